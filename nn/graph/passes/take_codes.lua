-- SPDX-License-Identifier: MIT
-- Pass take_codes: an op that has an integer version and whose operands are decoded codes takes the codes. The other passes of
-- quantization then make the quantize after it its out=. Graphs from files with QuantizeLinear and DequantizeLinear become integer ops so;
-- the values change only by roundings that are gone.
local _, internal = ...
local codes = internal.import 'nn/graph/codes'
local ops = internal.import 'nn/graph/ops'

-- The codes that the operand decodes: their edge and spec.
local function decoded(e, ref)
	local node = type(ref) == 'string' and e.nodes[ref]
	if not node or node.op ~= 'dequantize' then return end
	local source = e.nodes[node.inputs[1]]
	if source and source.op == 'const' then return source.name, source.value:spec(), source.value end
	local spec = codes.are_codes(e, node.inputs[1]) and codes.spec_of(e, node.inputs[1])
	if spec and codes.fixed(spec) and spec.affine then return node.inputs[1], spec end
end

local function is_in(list, at)
	for _, other in ipairs(list) do
		if other == at then return true end
	end
	return false
end

-- operand -> its codes, with the specs of the first activation and of the weight; nil: some activation is not decoded codes.
local function operands(e, node, form)
	local found, input, weight, value = {}, nil, nil, nil
	for at, ref in ipairs(node.inputs) do
		local codes_of, spec, constant = decoded(e, ref)
		if form.all or is_in(form.inputs, at) then
			if codes_of then found[at], input = codes_of, input or spec elseif not (form.numbers and type(ref) == 'number') then return end
		elseif is_in(form.weights, at) then
			if not codes_of then return end
			found[at], weight, value = codes_of, spec, constant
			if not constant and not form.either then return end
		end
	end
	return next(found) and found, input, weight, value
end

-- Whether the result becomes codes at once: what `needs` asks for.
local function is_quantized(e, node)
	local user = e:only_user(node.name)
	if user and user.op == 'relu' then user = e:only_user(user.name) end
	return user and user.op == 'quantize' and codes.fixed(user.attrs.spec)
end

local function taken(e, node, form)
	if node.mode or node.attrs.out or not form or form.gives ~= 'codes' or #node.results ~= 1 then return end
	local found, input, weight, value = operands(e, node, form)
	if not found or form.needs and not is_quantized(e, node) then return end
	if form.fits and not form.fits(node, weight, input, value) then return end
	return found, {mode = 'static', weight = weight, input = input}
end

return {text = 'ops take the codes that their operands decode', run = function(e, say)
	for _, name in ipairs(table.move(e.order, 1, #e.order, 1, {})) do
		local node = e.nodes[name]
		local form = ops.form(node.op, node)
		local found, spec = taken(e, node, form)
		if found then
			for at, ref in next, found do node = e:set_input(node, at, ref) end
			local attrs = {}
			for key, v in next, node.attrs do attrs[key] = v end
			for key, v in next, form.attrs and form.attrs(node, spec.weight) or {} do attrs[key] = v end
			e:change(node, {mode = 'static', spec = spec, attrs = attrs})
			say(name, 'takes codes')
		end
	end
end}
