-- SPDX-License-Identifier: MIT
-- Pass recognize_onehot: a linear of (x == {c, c+1, …}) as floats, numbers as vectors with one 1, becomes `embedding`: the rows of the
-- weight by number. A number outside the list has the vector of zeros: the table begins and ends with the row of that. Values stay the
-- same in every bit: 1 w + 0 + … + 0 is w, if all weights are finite.
local MOST = 1 << 30 -- of the list's numbers: those beside it are integers of 32 bits

local function const(e, ref)
	local node = type(ref) == 'string' and e.nodes[ref]
	return node and node.op == 'const' and not node.value:quantized() and node.value or nil
end

-- The node of that op behind an edge.
local function made_by(e, ref, op)
	local node = type(ref) == 'string' and e.nodes[ref]
	return node and node.op == op and not node.mode and node or nil
end

-- The first of n consecutive integers that are a vector along the last axis.
local function first_of(value, n)
	local kind = value and quant.dtype(value:dtype()).kind
	if kind ~= 'int' and kind ~= 'uint' or value:dim() < 1 or value:size(-1) ~= n or value:nelem() ~= n then return end
	local list = value:reshape(n):to 'int64'
	local first = list:narrow(1, 1, 1):sum():item()
	if first <= -MOST or first + n >= MOST then return end
	return list:eq(tensor.arange(first, first + n - 1, {dtype = 'int64'})):all():item() and first or nil
end

-- The numbers (…, 1) that an equality compares with n consecutive ones, and the first of these.
local function numbers_of(e, node, n)
	for at = 1, 2 do
		local ref, value = node.inputs[at], const(e, node.inputs[3 - at])
		local first = type(ref) == 'string' and first_of(value, n)
		local given = first and e:result_of(ref)
		local kind = given and quant.dtype(given.dtype)
		if kind and kind.kind == 'int' and kind.bits >= 32 and not given.spec and given.shape[#given.shape] == 1 and #given.shape >= value:dim() then
			return ref, first
		end
	end
end

-- What a linear is in these terms, or nil: {numbers=, first=, weight=, bias=}.
local function match(e, node)
	local w, b = const(e, node.inputs[2]), node.inputs[3] and const(e, node.inputs[3])
	if node.op ~= 'linear' or node.mode or next(node.attrs) ~= nil or not w or w:dim() ~= 2 or node.inputs[3] and not b then return end
	local cast = made_by(e, node.inputs[1], 'to')
	local equal = cast and made_by(e, cast.inputs[1], 'eq')
	if not equal or cast.results[1].dtype ~= w:dtype() or #e:users_of(node.inputs[2]) ~= 1 then return end
	local numbers, first = numbers_of(e, equal, w:size(2))
	if numbers and (w - w):eq(0):all():item() then return {numbers = numbers, first = first, weight = w, bias = b} end
end

-- 0 + w: a sum with zeros has no negative zero.
local function table_of(w, b)
	local beside = tensor.zeros {1, w:size(1), dtype = w:dtype()}
	local rows = tensor.cat({beside, w:t() + beside, beside}, 1)
	return b and rows + b or rows
end

local function insert(e, node, suffix, fields)
	fields.name = e:fresh(node.name .. suffix)
	fields.attrs, fields.module, fields.kind = fields.attrs or {}, node.module, node.kind
	e:add(fields, node.name)
	return fields.name
end

local function replace(e, node, found)
	local given, name = e:result_of(found.numbers), node.inputs[2]
	local rows, shape = table_of(found.weight, found.bias), table.move(given.shape, 1, #given.shape - 1, 1, {})
	local function one(from) return {{shape = from, dtype = given.dtype}} end
	local inside = insert(e, node, '.clamp', {op = 'clamp', inputs = {found.numbers}, results = one(given.shape),
		attrs = {low = found.first - 1, high = found.first + found.weight:size(2)}})
	local from1 = insert(e, node, '.number', {op = 'add', inputs = {inside, 2 - found.first}, results = one(given.shape)})
	local flat = insert(e, node, '.flat', {op = 'squeeze', inputs = {from1}, results = {{shape = shape, dtype = given.dtype, alias = 1}}, attrs = {axis = #given.shape}})
	e:change(e.nodes[name], {value = rows, results = {{shape = {rows:size()}, dtype = rows:dtype()}}})
	e:change(node, {op = 'embedding', inputs = {name, flat}, attrs = {}})
end

return {group = 'layers', needs = {'eq'}, text = 'a linear of vectors with one 1 becomes embedding', run = function(e, say)
	for _, name in ipairs(table.move(e.order, 1, #e.order, 1, {})) do
		local node = e.nodes[name]
		local found = node.op == 'linear' and match(e, node)
		if found then
			replace(e, node, found)
			say(name, 'linear of compared numbers becomes embedding')
		end
	end
end}
