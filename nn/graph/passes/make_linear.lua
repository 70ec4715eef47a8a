-- SPDX-License-Identifier: MIT
-- Pass make_linear: a product with a constant matrix that no other op uses becomes `linear`, whose weight has a row for each output, and
-- a constant that is added to each output of a linear or a convolution becomes its bias. Files of other programs have them apart.
local _, internal = ...
local core = internal.import 'nn/graph/core'

local function const(e, ref)
	local node = type(ref) == 'string' and e.nodes[ref]
	return node and node.op == 'const' and node.value or nil
end

-- Whether a (…, k) times the constant (k, n) is a linear.
local function is_linear(e, node)
	local w = node.op == 'matmul' and not node.mode and const(e, node.inputs[2])
	local x = type(node.inputs[1]) == 'string' and e:result_of(node.inputs[1])
	return w and w:dim() == 2 and not w:quantized() and quant.dtype(w:dtype()).float and x and #x.shape >= 1 and x.dtype == w:dtype() and #e:users_of(node.inputs[2]) == 1 and w:dtype() or nil
end

local function turn(e, node)
	local name, value = node.inputs[2], const(e, node.inputs[2]):t():contiguous()
	e:change(e.nodes[name], {value = value, results = {{shape = {value:size()}, dtype = value:dtype()}}})
	e:change(node, {op = 'linear', attrs = {}})
end

-- The number of outputs of a layer without bias, and their axis, counted from the last.
local function outputs_of(e, node)
	if node.mode or node.attrs.act or node.attrs.out or node.inputs[3] then return end
	local w = (node.op == 'linear' or node.op == 'conv2d') and type(node.inputs[2]) == 'string' and e:result_of(node.inputs[2])
	if w then return w.shape[1], node.op == 'conv2d' and 3 or 1 end
end

-- The constant as a vector of n numbers, if it has them along that axis (from the last) and one along others.
local function vector(value, n, axis)
	if not value or value:quantized() or value:nelem() ~= n or value:dim() < axis and not (n == 1 and value:dim() > 0) then return end
	for i = 1, value:dim() do
		if value:size(i) ~= 1 and i ~= value:dim() - axis + 1 then return end
	end
	return value:reshape(n)
end

-- The layer and the bias of a sum, or nil.
local function bias_of(e, node)
	for at = 1, 2 do
		local ref, other = node.inputs[at], node.inputs[3 - at]
		local layer = type(ref) == 'string' and not ref:find ':' and e.nodes[ref]
		local n, axis = nil, nil
		if layer and e:only_user(ref) == node then n, axis = outputs_of(e, layer) end
		local bias = n and vector(const(e, other), n, axis)
		if bias and bias:dtype() == e:result_of(ref).dtype then return layer, bias, other end
	end
end

local function add_bias(e, node, layer, bias, was)
	local results = {{shape = {bias:size()}, dtype = bias:dtype()}}
	local name = was
	if #e:users_of(was) > 1 then
		name = e:fresh(layer.name .. '.bias')
		e:add({name = name, op = 'const', inputs = {}, attrs = {}, results = results, value = bias, module = layer.module, kind = layer.kind}, layer.name)
	else
		e:change(e.nodes[was], {value = bias, results = results})
	end
	layer = e:set_input(e.nodes[layer.name], 3, name)
	e:take_over(node.name, layer.name)
end

return {group = 'layers', needs = {'matmul', 'add'}, text = 'a product with a constant becomes linear, a constant that is added its bias', run = function(e, say)
	for _, name in ipairs(table.move(e.order, 1, #e.order, 1, {})) do
		local node = e.nodes[name]
		if is_linear(e, node) then
			turn(e, node)
			say(name, 'matmul becomes linear')
		elseif node.op == 'add' and next(node.attrs) == nil and #node.inputs == 2 then
			local layer, bias, was = bias_of(e, node)
			if layer then
				add_bias(e, node, layer, bias, was)
				say(name, 'bias of ' .. core.split(layer.name))
			end
		end
	end
end}
