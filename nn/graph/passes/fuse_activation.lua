-- SPDX-License-Identifier: MIT
-- Pass fuse_activation: an activation that is the only user of a linear or convolution becomes its act=. If
-- calibration observed the activation's input, an activation that is not a clamp stays separate until the layer is
-- quantized: it can be a table of codes.
local _, internal = ...
local ACTS = {relu = true, relu6 = true, gelu = true, silu = true, tanh = true, sigmoid = true, hardswish = true}

local CLAMPS = {relu = true, relu6 = true}

-- m:calibrate or g:calibrate has seen the value.
local function is_known(e, layer)
	if e.observers and e.observers[layer.name] then return true end
	if not e.root or not e.observed or not e.observed[layer.name] then return false end
	local decide = internal.import 'nn/graph/decide'
	e.layers = e.layers or decide.layers_of(e)
	return decide.spec_for({g = e, layers = e.layers, found = {}}, layer, layer.name) ~= nil
end

local function is_left(e, layer, node) return not layer.mode and not CLAMPS[node.op] and is_known(e, layer) end

return {group = 'fuse', text = 'an activation into the layer before it', run = function(e, say)
	for _, name in ipairs(table.move(e.order, 1, #e.order, 1, {})) do
		local node = e.nodes[name]
		local ref = node.inputs[1]
		local layer = ACTS[node.op] and next(node.attrs) == nil and type(ref) == 'string' and e.nodes[ref]
		if layer and (layer.op == 'linear' or layer.op == 'conv2d' or layer.op == 'convtranspose2d') and not layer.attrs.act and not layer.attrs.out and
			e:only_user(ref) == node and not is_left(e, layer, node) then
			layer = e:set_attr(layer, 'act', node.op)
			e:take_over(name, layer.name)
			say(name, 'fused into ' .. layer.name)
		end
	end
end}
