-- SPDX-License-Identifier: MIT
-- Ops whose result is codes of a table, or codes of operands that are not all affine codes of one scale: as in the library, the
-- operands are decoded (products in integers keep theirs), and the float result is quantized.
local _, internal = ...
local codes = internal.import 'nn/graph/codes'
local core = internal.import 'nn/graph/core'
local ops = internal.import 'nn/graph/ops'

-- Ops that read and write codes of any kind by themselves.
local WHOLE = {linear = true, conv2d = true}

-- Constants may have any codes: emitters read them as weights.
local function is_affine(g, ref)
	local node, spec = g.nodes[core.split(ref)], g:result_of(ref).spec
	return node.op == 'const' and spec or spec and spec.affine and spec.scale
end

-- Whether the operands that the op takes as codes are affine codes of one scale; others, such as the weight of a norm, are floats.
local function all_affine(g, node)
	local form, wanted = ops.form(node.op, node), {}
	for _, list in ipairs(form and not form.all and {form.inputs, form.weights} or {}) do
		for _, at in ipairs(list) do wanted[at] = true end
	end
	for at, ref in ipairs(node.inputs) do
		if type(ref) == 'string' and (not next(wanted) or wanted[at]) and not is_affine(g, ref) then return false end
	end
	return true
end

local function target(node) return node.op == 'requantize' and node.attrs.spec or node.attrs.out end

local function splits(g, node)
	local spec = target(node)
	if not spec or WHOLE[node.op] or node.emit or ops.user(node.op) or ops.emitter(node.op) then return false end
	return not spec.affine or not all_affine(g, node)
end

-- Whether the op gives floats of codes without out=: a product in integers.
local function takes_codes(node)
	local form = ops.form(node.op, node)
	return form and form.gives == 'codes' and not form.needs
end

local function decoded(e, node, ref)
	if type(ref) ~= 'string' or not codes.are_codes(e, ref) then return ref end
	local name = e:fresh(ref:gsub(':', '_') .. '.decoded')
	e:add({name = name, op = 'dequantize', inputs = {ref}, attrs = {}, results = {{shape = e:result_of(ref).shape, dtype = 'float32'}}}, node.name)
	return name
end

local function split(e, node)
	local inputs, attrs, keep = {}, {}, takes_codes(node) and all_affine(e, node)
	for at, ref in ipairs(node.inputs) do inputs[at] = keep and ref or decoded(e, node, ref) end
	local float = inputs[1]
	if node.op ~= 'requantize' then
		for key, value in next, node.attrs do attrs[key] = key ~= 'out' and value or nil end
		float = e:fresh(node.name .. '.float')
		e:add({name = float, op = node.op, inputs = inputs, attrs = attrs, traced = keep or nil,
			results = {{shape = node.results[1].shape, dtype = 'float32'}}}, node.name)
	end
	e:change(node, {op = 'quantize', inputs = {float}, attrs = {spec = target(node)}})
end

-- The graph with such ops split.
return function(g)
	local list = {}
	for _, name in ipairs(g.order) do
		if splits(g, g.nodes[name]) then list[#list + 1] = name end
	end
	if #list == 0 then return g end
	local e = core.edit(g)
	for _, name in ipairs(list) do split(e, e.nodes[name]) end
	return e:finish()
end
