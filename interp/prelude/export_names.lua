-- SPDX-License-Identifier: MIT
-- Identifiers of exported C: any text becomes one, and no two are the same.
local names = {}
names.__index = names

local RESERVED = {}
for word in ([[auto break case char const continue default do double else enum extern float for goto if inline int long register
	restrict return short signed sizeof static struct switch typedef union unsigned void volatile while main arena memcpy memset
	int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t size_t]]):gmatch '%S+' do
	RESERVED[word] = true
end

function names.new() return setmetatable({taken = {}}, names) end

-- Letters, digits and '_' stay, anything else becomes '_'; C99 tells 63 characters apart.
function names.identifier(text)
	local word = text:gsub('[^%w_]', '_'):sub(1, 48)
	if word == '' or word:find '^[%d_]' then word = 'n' .. word end
	return word
end

function names:fresh(text)
	local word = names.identifier(text)
	local free, n = word, 2
	while self.taken[free] or RESERVED[free] or free:find '^q_' do
		free = ('%s_%d'):format(word, n)
		n = n + 1
	end
	self.taken[free] = true
	return free
end

return names
