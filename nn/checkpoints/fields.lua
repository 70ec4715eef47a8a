-- SPDX-License-Identifier: MIT
-- Checked fields of a model's description: config.json or the keys of a .gguf file. Neither is trusted.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fields = {}
fields.__index = fields

-- what: the file, for messages; prefix: of every key, as 'llama.'.
function fields.new(what, values, prefix)
	return setmetatable({what = what, values = values, prefix = prefix or ''}, fields)
end

function fields:fail(...) base.fail('load: %s: ' .. select(1, ...), self.what, select(2, ...)) end

function fields:get(key)
	return self.values[self.prefix == '' and key or self.prefix .. key]
end

local function wrong(self, key, wanted, got)
	self:fail('%s%s: wanted %s, got %s', self.prefix, key, wanted, got == nil and 'none' or base.describe(got))
end

-- An integer from 1 to 2^31; without a default the key has to be there.
function fields:size(key, default)
	local value = self:get(key)
	if value == nil then value = default end
	local found = math.type(value) and math.tointeger(value)
	if not found or found < 1 or found > 1 << 31 then wrong(self, key, 'an integer from 1 to 2^31', value) end
	return found
end

-- A finite number above 0.
function fields:number(key, default)
	local value = self:get(key)
	if value == nil then value = default end
	if type(value) ~= 'number' or not (value > 0 and value < math.huge) then wrong(self, key, 'a number above 0', value) end
	return value + 0.0
end

-- A list of so many of them.
function fields:numbers(key, count)
	local list, copy = self:get(key), {}
	if type(list) ~= 'table' or #list ~= count then wrong(self, key, ('a list of %d numbers'):format(count), list) end
	for i, value in ipairs(list) do
		if type(value) ~= 'number' or not (value > 0 and value < math.huge) then wrong(self, key, 'numbers above 0', value) end
		copy[i] = value + 0.0
	end
	return copy
end

function fields:flag(key, default)
	local value = self:get(key)
	if value == nil then value = default end
	if type(value) ~= 'boolean' then wrong(self, key, 'true or false', value) end
	return value
end

-- What the name stands for in the table.
function fields:choice(key, choices, default)
	local value = self:get(key)
	if value == nil then value = default end
	local names = {}
	for name in pairs(choices) do names[#names + 1] = name end
	table.sort(names)
	local found = type(value) == 'string' and choices[value]
	if found == nil or found == false then wrong(self, key, table.concat(names, ' or '), value) end
	return found
end

-- The same fields of a table in the field.
function fields:inner(key)
	local value = self:get(key)
	if type(value) ~= 'table' then wrong(self, key, 'an object', value) end
	return fields.new(('%s: %s'):format(self.what, key), value)
end

return fields
