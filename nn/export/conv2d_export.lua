-- SPDX-License-Identifier: MIT
-- Convolutions of codes or floats (or weights that are decoded), channels last: the window is gathered, padding as the zero point, and multiplied by each output's
-- weights (kernel_height, kernel_width, channels); where each channel is by itself, or in groups, in place.
local _, internal = ...
local product = internal.import 'export_product'
local window = internal.import 'export_window'

local function prepare(e, node, f, g, order, fold, k)
	if f.scale or f.params then return product.prepare(e, node, f, g, order, fold, k) end
	return product.prepare_float(e, node, order)
end

local BYTES = {float = 4, uint8_t = 1, int8_t = 1, int16_t = 2, uint16_t = 2}

-- y, facts g, of a convolution.
local function emit(e, node, x, f, y, g)
	local w, groups = e.graph:result_of(node.inputs[2]).shape, node.attrs.groups or 1
	local v = window.of(e, node, f, g, {w[3], w[4]})
	local d = product.prepare_decoded(e, node)
	if d then
		e:call('%s(%s, &%s, %s, %d, %d, %s, %s, %s, %s);', e:part('convw', {w = d.kind, z = d.z, log = d.log}), x, v, d.w, d.n, groups, d.groups, d.codes,
			e:scratch(d.k * 8), y)
	elseif groups == 1 then
		local p = prepare(e, node, f, g, {1, 3, 4, 2}, true)
		local fields = {x = f.ctype, w = p.wtype, sum = p.sum, y = g.ctype, rule = p.rule}
		local zero = f.params and ('(%s)%s'):format(f.ctype, e:zero_of(f)) or f.zero or 0
		e:call('%s(%s, &%s, %s, %d, %s, %s, %s, %s, %s, %s);', e:part('conv', fields), x, v, p.w, p.outputs, p.bias, p.factor, p.codes,
			zero, e:scratch(p.per * BYTES[f.ctype]), y)
	elseif groups == f.shape[2] then
		local p = prepare(e, node, f, g, {3, 4, 1, 2}, false, w[1] * w[3] * w[4])
		local fields = {x = f.ctype, w = p.wtype, sum = p.sum, y = g.ctype, rule = p.rule}
		e:call('%s(%s, &%s, %s, %d, %s, %s, %s, %s, %s);', e:part('depthwise', fields), x, v, p.w, p.outputs // groups, p.bias, p.factor,
			p.codes, (f.scale or f.params) and e:zero_of(f) or '0', y)
	else
		local p = prepare(e, node, f, g, {1, 3, 4, 2}, false, w[2] * w[3] * w[4])
		local fields = {x = f.ctype, w = p.wtype, sum = p.sum, y = g.ctype, rule = p.rule}
		e:call('%s(%s, &%s, %s, %d, %d, %s, %s, %s, %s, %s);', e:part('grouped', fields), x, v, p.w, p.outputs, groups, p.bias, p.factor,
			p.codes, (f.scale or f.params) and e:zero_of(f) or '0', y)
	end
end

return {ops = {'conv2d'}, emit = function(e, node)
	local x, f = e:input(node, 1, 'nhwc')
	local result, facts = e:output(node, 'nhwc')
	product.result(e, node, result, facts, function(y, g) emit(e, node, x, f, y, g) end)
end}
