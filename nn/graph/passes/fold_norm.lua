-- SPDX-License-Identifier: MIT
-- Pass fold_norm: folds a batch norm after a convolution or linear into its weight and bias, like m:fuse:
--   w' = w gamma / sqrt(var + eps), b' = (b - mean) gamma / sqrt(var + eps) + beta   (Jacob et al. 2018, 3.2)
local _, internal = ...
local folded = internal.import('nn/quantize/fuse').folded

local function const(e, ref)
	local node = type(ref) == 'string' and e.nodes[ref]
	return node and node.op == 'const' and not node.value:quantized() and node.value or nil
end

-- The norm's tensors when all are constant.
local function norm_of(e, node)
	local norm = {eps = node.attrs.eps or 1e-5}
	for i, key in ipairs {'weight', 'bias', 'mean', 'var'} do
		norm[key] = const(e, node.inputs[i + 1])
		if not norm[key] then return end
	end
	return norm
end

-- The layer into which the norm can be folded.
local function layer_of(e, node)
	local ref = node.inputs[1]
	local layer = type(ref) == 'string' and e.nodes[ref]
	if not layer or layer.op ~= 'conv2d' and layer.op ~= 'linear' or layer.attrs.act or layer.attrs.out or layer.mode then return end
	if e:only_user(ref) ~= node or not const(e, layer.inputs[2]) then return end
	if layer.inputs[3] and not const(e, layer.inputs[3]) then return end
	return layer
end

-- Replaces a constant, keeping its name if it has no other users.
local function put(e, layer, at, value, name)
	local old = layer.inputs[at]
	if not old or #e:users_of(old) > 1 then name = e:fresh(old and old .. '_folded' or name) else name = old end
	local results = {{shape = {value:size()}, dtype = value:dtype()}}
	if e.nodes[name] then
		e:change(e.nodes[name], {value = value, results = results})
	else
		e:add({name = name, op = 'const', inputs = {}, attrs = {}, results = results, value = value, module = layer.module,
			kind = layer.kind}, layer.name)
	end
	return e:set_input(layer, at, name)
end

return {group = 'fold', needs = {'batchnorm'}, text = 'batch norm into the weights of the layer before it', run = function(e, say)
	for _, name in ipairs(table.move(e.order, 1, #e.order, 1, {})) do
		local node = e.nodes[name]
		if node.op == 'batchnorm' and not node.attrs.training then
			local norm, layer = norm_of(e, node), layer_of(e, node)
			if norm and layer then
				local weight, bias = folded(const(e, layer.inputs[2]), layer.inputs[3] and const(e, layer.inputs[3]), norm)
				layer = put(e, layer, 2, weight)
				layer = put(e, layer, 3, bias, layer.name .. '.bias')
				e:take_over(name, layer.name)
				say(name, 'folded into ' .. layer.name)
			end
		end
	end
end}
