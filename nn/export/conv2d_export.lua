-- SPDX-License-Identifier: MIT
-- Convolutions of codes or floats, channels last: the window is gathered, padding as the zero point, and multiplied by each output's
-- weights (kernel_height, kernel_width, channels); where each channel is by itself, in place.
local _, internal = ...
local base = internal.import 'base'
local product = internal.import 'export_product'
local window = internal.import 'export_window'

local function prepare(e, node, f, g, order, fold)
	if f.scale then return product.prepare(e, node, f, g, order, fold) end
	return product.prepare_float(e, node, order)
end

local BYTES = {float = 4, uint8_t = 1, int8_t = 1, int16_t = 2, uint16_t = 2}

return {ops = {'conv2d'}, emit = function(e, node)
	local x, f = e:input(node, 1, 'nhwc')
	product.check_act(node)
	local y, g = e:output(node, 'nhwc')
	local w, groups = e:constant(node, 2), node.attrs.groups or 1
	local v = window.of(e, node, f, g, {w:size(3), w:size(4)})
	local fields
	if groups == 1 then
		local p = prepare(e, node, f, g, {1, 3, 4, 2}, true)
		fields = {x = f.ctype, w = p.wtype, sum = p.sum, y = g.ctype}
		e:call('%s(%s, &%s, %s, %d, %s, %s, %s, %d, %s, %s);', e:part('conv', fields), x, v, p.w, p.outputs, p.bias, p.factor, p.codes,
			f.zero or 0, e:scratch(p.per * BYTES[f.ctype]), y)
	elseif groups == f.shape[2] then
		local p = prepare(e, node, f, g, {3, 4, 1, 2}, false)
		fields = {x = f.ctype, w = p.wtype, sum = p.sum, y = g.ctype}
		e:call('%s(%s, &%s, %s, %d, %s, %s, %s, %d, %s);', e:part('depthwise', fields), x, v, p.w, p.outputs // groups, p.bias, p.factor,
			p.codes, f.zero or 0, y)
	else
		base.fail("export: node '%s': groups: wanted 1 or the number of channels, got %d", node.name, groups)
	end
end}
