-- SPDX-License-Identifier: MIT
-- Views of 2^31 to 2^62 elements of a few numbers, empty tensors with huge axes, and what calls may be given beside them.
local function choose(list) return list[math.random(#list)] end
local DTYPES = {'float32', 'float64', 'float16', 'bfloat16', 'int8', 'uint8', 'int16', 'int32', 'int64', 'bool', 'int4', 'uint4'}
local SPECS = {'int8', 'uint8', 'int4', 'int8/1', 'int8/2', 'uint8/1', 'int4:32', 'int8:2', 'int16', 'int4:2', 'int8@mse', 'int8@percentile', 'binary'}
local NUMBERS = {0, 1, -1, 2, 3, 5, 7, 32, 1 << 16, 1 << 31, (1 << 31) + 1, 1 << 40, 1 << 61, (1 << 61) + 1, 1 << 62, (1 << 62) + 1, math.maxinteger,
	math.mininteger, 0.5, -2.0, 1e30, 1 / 0}

-- Sizes whose product is 2^31 to 2^62, more or less, some of them odd; one in eight overflows.
local function sizes(rank)
	local left, list = math.random(31, math.random(8) == 1 and 70 or 62), {}
	for d = 1, rank do
		local bits = d == rank and math.min(left, 62) or math.random(0, math.min(left, 62))
		left = left - bits
		list[d] = math.max(1, (1 << bits) - (math.random(3) == 1 and 1 or 0))
	end
	for d = 1, rank do
		local e = math.random(rank)
		list[d], list[e] = list[e], list[d]
	end
	return list
end

local function ones(rank)
	local list = {}
	for d = 1, rank do list[d] = 1 end
	list.dtype = choose(DTYPES)
	return tensor.ones(list)
end

local function expanded()
	local list = sizes(math.random(1, 4))
	local x = ones(#list)
	if x:dtype():find '^float' and math.random(3) == 1 then x = x:quantize(choose {'int8', 'uint8', 'int4', 'int8/1', 'int16'}) end
	return x:expand(list)
end

-- One or two axes are real.
local function partly()
	local list = sizes(math.random(1, 2))
	local n = math.random(2, 9)
	local x = tensor.rand(n, 1):expand(n, list[1])
	if list[2] then x = x:view(n, 1, list[1]):expand(n, list[2], list[1]) end
	if math.random(2) == 1 then x = x:transpose(1, -1) end
	return math.random(3) == 1 and x:requires_grad_() or x
end

local function empty()
	local list = sizes(math.random(1, 3))
	table.insert(list, math.random(#list + 1), 0)
	local x = choose {function() return tensor.zeros(0):view(list) end, function() return tensor.zeros {0, dtype = choose(DTYPES)}:reshape(list) end, function()
		local from = {}
		for d, n in ipairs(list) do from[d] = n == 0 and 0 or 1 end
		return tensor.zeros(from):expand(list)
	end}
	return x()
end

local function small()
	local x = choose {function() return tensor.rand(3) end, function() return tensor.rand(2, 3) end, function() return tensor.rand(1, 2, 4, 4) end,
		function() return tensor {1, 2, 3, dtype = 'int64'} end, function() return tensor {5} end, function() return tensor.rand(2, 3):quantize 'int8/1' end,
		function() return tensor {true, false} end, function() return tensor {7}:squeeze() end}
	return x()
end

local function operand()
	return choose {expanded, expanded, partly, empty, small}()
end

local function number() return choose(NUMBERS) end

local function numbers(n)
	local list = {}
	for i = 1, n do list[i] = number() end
	return list
end

local WORDS = {'axis', 'stride', 'pad', 'kernel', 'dilation', 'groups', 'out', 'dtype', 'keepdim', 'value', 'k', 'n', 'classes', 'size', 'mode', 'antialias'}
local argument
function argument()
	local kind = math.random(9)
	if kind <= 3 then return number() end
	if kind == 4 then return numbers(math.random(0, 4)) end
	if kind == 5 then return sizes(math.random(1, 3)) end
	if kind == 6 then return choose(SPECS) end
	if kind == 7 then
		local name = choose(WORDS)
		return {[name] = choose {number(), true, choose(SPECS), numbers(2), choose(DTYPES)}}
	end
	if kind == 8 then return math.random(-3, 3) end
	return operand()
end

local function begin(seed, i)
	math.randomseed(seed, i)
	tensor.seed(i)
end

return {argument = argument, begin = begin, choose = choose, number = number, numbers = numbers, operand = operand, sizes = sizes}
