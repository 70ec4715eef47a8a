-- SPDX-License-Identifier: MIT
-- Sums of products by index letters and inner products, in the order of tensor/ops/einsum.c: letters that occur in
-- one operand only are summed first, then products of floats are added in the order of the first operand's letters.
-- Integers in 64 bits.
local _, internal = ...
local axes = internal.import 'nn/export/axes'
local parts = internal.import 'nn/export/parts'
local cast = internal.import 'nn/export/ops/cast'
internal.import 'nn/export/sums'
internal.import 'nn/export/ops/index' -- offset

local function add(name, sum, product)
	parts.add(name, {fields = {'a', 'b', 'y'}, needs = {{'offset'}}, text = ([[
/* The first `kept` axes are those of y, the others are summed: n sizes, sa and sb strides. */
static void ${name}(const ${a} *a, const ${b} *b, int32_t outputs, int32_t terms, int32_t kept, int32_t summed, const int32_t *n,
	const int32_t *sa, const int32_t *sb, ${y} *y)
{
	int32_t i, j;

	for (i = 0; i < outputs; i++) {
		const ${a} *p = a + q_offset(i, kept, n, sa);
		const ${b} *q = b + q_offset(i, kept, n, sb);
		@SUM@ sum = 0;

		for (j = 0; j < terms; j++)
			sum += @PRODUCT@;
		y[i] = (${y})sum;
	}
}
]]):gsub('@(%u+)@', {SUM = sum, PRODUCT = product:gsub('P', 'p[q_offset(j, summed, n + kept, sa + kept)]')
		:gsub('Q', 'q[q_offset(j, summed, n + kept, sb + kept)]')})})
end
add('einsum', 'float', 'P * Q')
add('einsumwrap', 'uint64_t', '(uint64_t)P * (uint64_t)Q')

-- The letters of a term; '...' stands for the axes 'dots-1', … counted from the last.
local function letters_of(term, dots)
	local list = {}
	for letter in term:gsub('%.%.%.', '.'):gmatch '[%a.]' do
		if letter == '.' then
			for k = dots, 1, -1 do list[#list + 1] = 'dots' .. k end
		else
			list[#list + 1] = letter
		end
	end
	return list
end

-- Without '->': the axes of '...', then the letters that occur once, in the order of their codes.
local function implicit(terms, most)
	local counts, list, names = {}, {}, {}
	for _, term in ipairs(terms) do
		for _, letter in ipairs(term) do counts[letter] = (counts[letter] or 0) + 1 end
	end
	for k = most, 1, -1 do list[#list + 1] = 'dots' .. k end
	for letter, count in next, counts do
		if count == 1 and #letter == 1 then names[#names + 1] = letter end
	end
	table.sort(names)
	return table.move(names, 1, #names, #list + 1, list)
end

-- Terms of the operands, and of the result.
local function read(equation, shapes)
	local left, right = equation:match '^(.-)%->(.*)$'
	left = left or equation
	local terms, most, i = {}, 0, 0
	for term in (left .. ','):gmatch '([^,]*),' do
		i = i + 1
		local _, letters = term:gsub('%a', '')
		local dots = #shapes[i] - letters
		most = term:find('.', 1, true) and math.max(most, dots) or most
		terms[i] = letters_of(term, dots)
	end
	return terms, right and letters_of(right, most) or implicit(terms, most)
end

-- Size of each letter, and its stride in each operand; a repeated letter takes the diagonal.
local function walk(terms, shapes)
	local sizes, strides = {}, {}
	for i, term in ipairs(terms) do
		local dense = axes.dense(shapes[i])
		strides[i] = {}
		for d, letter in ipairs(term) do
			sizes[letter] = math.max(sizes[letter] or 0, shapes[i][d])
			strides[i][letter] = (strides[i][letter] or 0) + (shapes[i][d] == 1 and 0 or dense[d])
		end
	end
	return sizes, strides
end

local einsum = {ops = {'einsum', 'dot'}}

-- The distinct letters of a term: those for which `own` is true, and the others.
local function parted(term, own)
	local mine, others, seen = {}, {}, {}
	for _, letter in ipairs(term) do
		if not seen[letter] then table.insert(own(letter) and mine or others, letter) end
		seen[letter] = true
	end
	return mine, others
end

local function picked(list, letters)
	local values = {}
	for i, letter in ipairs(letters) do values[i] = list[letter] or 0 end
	return values
end

local function product_of(list)
	local n = 1
	for _, size in ipairs(list) do n = n * size end
	return n
end

-- Sums the float operand at x over the letters `alone`, with the others in the order `kept`; returns the C expression and strides by
-- letter.
local function summed_alone(e, node, x, sizes, strides, kept, alone)
	local all = table.move(alone, 1, #alone, #kept + 1, table.move(kept, 1, #kept, 1, {}))
	local shape, rows, n = picked(sizes, all), product_of(picked(sizes, kept)), product_of(picked(sizes, alone))
	local copy, y, made = e:scratch(4 * rows * n), e:scratch(4 * rows), {}
	axes.copy(e, node, 'float', shape, x, picked(strides, all), copy)
	e:call('%s(%s, %d, %d, 1, %s);', e:part('reducesumf', {x = 'float', y = 'float'}), copy, rows, n, y)
	for i, step in ipairs(axes.dense(picked(sizes, kept))) do made[kept[i]] = step end
	return y, made
end

-- Emits the node with this equation; also used by exporters of products for other types.
function einsum.product(e, node, equation)
	local pointers, shapes, facts = {}, {}, {}
	local real = e.graph:result_of(node.name).dtype:find '^float'
	for i in ipairs(node.inputs) do
		if real then
			pointers[i], facts[i] = cast.floats(e, node, i)
		else
			pointers[i], facts[i] = e:plain(node, i)
		end
		shapes[i] = facts[i].shape
	end
	local terms, out = read(equation, shapes)
	local sizes, strides = walk(terms, shapes)
	local wanted, held, summed = {}, {{}, {}}, {}
	for _, letter in ipairs(out) do wanted[letter] = true end
	for i, term in ipairs(terms) do
		for _, letter in ipairs(term) do held[i][letter] = true end
	end
	for i, term in ipairs(terms) do
		local kept, alone = parted(term, function(letter) return wanted[letter] or held[3 - i][letter] end)
		if real and #alone > 0 then
			pointers[i], strides[i] = summed_alone(e, node, pointers[i], sizes, strides[i], kept, alone)
		elseif not real then
			table.move(alone, 1, #alone, #summed + 1, summed)
		end
	end
	local _, both = parted(terms[1], function(letter) return wanted[letter] or not held[2][letter] end)
	table.move(both, 1, #both, #summed + 1, summed)
	local y, g = e:output(node)
	if not pointers[2] then
		pointers[2], facts[2], strides[2] = e:array(node.name .. '_one', facts[1].ctype, {1}, 'a number'), facts[1], {}
	end
	local order = table.move(summed, 1, #summed, #out + 1, table.move(out, 1, #out, 1, {}))
	local function list(of) return #order > 0 and e:array(node.name .. '_walk', 'int32_t', picked(of, order), 'sizes or strides') or '0' end
	e:call('%s(%s, %s, %d, %d, %d, %d, %s, %s, %s, %s);', e:part(real and 'einsum' or 'einsumwrap', {a = facts[1].ctype, b = facts[2].ctype,
		y = g.ctype}), pointers[1], pointers[2], product_of(picked(sizes, out)), product_of(picked(sizes, summed)), #out, #summed, list(sizes),
		list(strides[1]), list(strides[2]), y)
end

parts.add('dot', {needs = {{'products', {x = 'float'}}}, text = [[
static void ${name}(const float *a, const float *b, int32_t n, float *y)
{
	*y = (float)${products}(a, n, b);
}
]]})

local function dot(e, node)
	if e.graph:result_of(node.name).dtype ~= 'float32' then return einsum.product(e, node, 'i,i->') end
	local a, f = cast.floats(e, node, 1)
	local b = cast.floats(e, node, 2)
	e:call('%s(%s, %s, %d, %s);', e:part 'dot', a, b, f.count, (e:output(node)))
end

function einsum.emit(e, node)
	if node.op == 'dot' then return dot(e, node) end
	einsum.product(e, node, node.attrs.equation)
end

return einsum
