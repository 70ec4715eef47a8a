-- SPDX-License-Identifier: MIT
-- Sizes of a graph for any batch B: an integer, or per * B + plus. Derived from three runs with different batches;
-- other differences between the runs are not representable.
local AFFINE = {__name = 'quoll.size'}
local size = {batches = {1, 2, 3}}

local function affine(per, plus)
	if per == 0 then return plus end
	return setmetatable({per = per, plus = plus}, AFFINE)
end

local function is_affine(value) return getmetatable(value) == AFFINE end
size.is_affine = is_affine

function AFFINE.__tostring(value)
	local text = value.per == 1 and 'B' or value.per == -1 and '-B' or value.per .. 'B'
	if value.plus == 0 then return text end
	return ('%s%s%d'):format(text, value.plus > 0 and '+' or '-', math.abs(value.plus))
end

function AFFINE.__eq(a, b) return is_affine(a) and is_affine(b) and a.per == b.per and a.plus == b.plus end

-- The size with values v[i] for the batches size.batches[i]; nil if it is not linear in the batch.
local function fit(v)
	local b = size.batches
	local per = (v[2] - v[1]) // (b[2] - b[1])
	local plus = v[1] - per * b[1]
	for i = 1, #b do
		if per * b[i] + plus ~= v[i] then return end
	end
	return affine(per, plus)
end

local function same_specs(values)
	for i = 2, #values do
		if tostring(values[i]) ~= tostring(values[1]) then return false end
	end
	return true
end

local merge

-- Whether all tables have the keys of the first only.
local function same_keys(values)
	for i = 2, #values do
		for key in next, values[i] do
			if values[1][key] == nil then return false end
		end
	end
	return true
end

local function merge_tables(values)
	local merged, count = {}, #values
	for key, first in next, values[1] do
		local same = true
		for i = 2, count do same = same and rawequal(values[i][key], first) end
		if not same then
			local inner = {}
			for i = 1, count do
				inner[i] = values[i][key]
				if inner[i] == nil then return nil end
			end
			first = merge(inner)
			if first == nil then return nil end
		end
		merged[key] = first
	end
	return same_keys(values) and merged or nil
end

-- The common value of all batches; nil if they differ.
function merge(values)
	local first, equal = values[1], true
	for i = 2, #values do equal = equal and rawequal(values[i], first) end
	if equal then return first end
	local kind, integers = type(first), math.type(first) == 'integer'
	for i = 2, #values do
		if type(values[i]) ~= kind then return nil end
		integers = integers and math.type(values[i]) == 'integer'
	end
	if integers then return fit(values) end
	if kind == 'table' then return merge_tables(values) end
	if kind == 'number' then return nil end
	return kind == 'userdata' and same_specs(values) and first or nil
end
size.merge = merge

-- The value for a batch of b, also of sizes within tables.
function size.at(value, b)
	if is_affine(value) then return value.per * b + value.plus end
	if type(value) ~= 'table' then return value end
	local made = {}
	for key, inner in next, value do made[key] = size.at(inner, b) end
	return made
end

-- Whether it depends on the batch.
function size.varies(value)
	if is_affine(value) then return true end
	if type(value) ~= 'table' then return false end
	for _, inner in next, value do
		if size.varies(inner) then return true end
	end
	return false
end

-- "(B, 3, 32, 32)"
function size.text(shape)
	local parts = {}
	for i, n in ipairs(shape) do parts[i] = tostring(n) end
	return '(' .. table.concat(parts, ', ') .. ')'
end

-- Number of elements for a batch of b.
function size.count(shape, b)
	local n = 1
	for _, d in ipairs(shape) do n = n * size.at(d, b) end
	return n
end

return size
