-- SPDX-License-Identifier: MIT
-- Identifiers of exported C: converts any text to a unique one.
local names = {}
names.__index = names

-- Keywords of C, names declared by the included headers, and names that exported files use.
local RESERVED = {}
for word in ([[auto break case char const continue default do double else enum extern float for goto if inline int long register
	restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm main arena memory memcpy
	memset clock clock_t printf state int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t size_t FILE NULL]]):gmatch '%S+' do
	RESERVED[word] = true
end

function names.new() return setmetatable({taken = {}}, names) end

-- Keeps letters, digits and '_', anything else becomes '_'; C99 distinguishes 63 characters.
function names.identifier(text)
	local word = text:gsub('[^%w_]', '_'):sub(1, 48)
	if word == '' or word:find '^[%d_]' then word = 'n' .. word end
	return word
end

-- The name of files and functions: an identifier that is neither a file nor a target of the Makefile.
local FILES = {main = true, test = true, clean = true, all = true, Makefile = true}
function names.program(text)
	local word = names.identifier(text)
	return FILES[word] and word .. '_net' or word
end

-- Text within a comment.
function names.comment(text) return (text:gsub('[^%w ,;:()%[%]{}=+_.<>-]', '_')) end

function names:fresh(text)
	local word = names.identifier(text)
	if word:find '^q_' then word = 'n' .. word end -- those are the functions
	local free, n = word, 2
	while self.taken[free] or RESERVED[free] do
		free = ('%s_%d'):format(word, n)
		n = n + 1
	end
	self.taken[free] = true
	return free
end

return names
