-- SPDX-License-Identifier: MIT
-- Parts of exported C taken from the source of tensor/vmath: found in the text by name, with the functions they call
-- and the macros they use. ql_exp becomes q_exp.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local parts = internal.import 'nn/export/parts'
local vmath = {}
local functions, macros

-- Replacements of definitions of math.h.
local OWN = {fabsf = 'ql_magnitude', copysignf = 'ql_signed', INFINITY = 'ql_of_bits(0x7f800000u)', NAN = 'ql_of_bits(0x7fc00000u)'}
local EXTRA = [[

QL_INLINE float ql_magnitude(float x)
{
	return ql_of_bits(ql_bits(x) & 0x7fffffffu);
}

QL_INLINE float ql_signed(float x, float sign)
{
	return ql_of_bits((ql_bits(x) & 0x7fffffffu) | (ql_bits(sign) & 0x80000000u));
}
]]

-- "QL_INLINE type name(" at the beginning of a line, until "}" there; the comment before it is left out.
local function read()
	functions, macros = {}, {}
	local text = '\n' .. internal.vmath():gsub('%f[%w_]%a+%f[^%w_]', OWN) .. EXTRA
	for head, name, body in text:gmatch '\nQL_INLINE ([%w_ ]-)%f[%w_](ql_[%w_]+)(%b()\n%b{})' do
		functions[name] = 'static ' .. head .. name .. body .. '\n'
	end
	for name, value in text:gmatch '\n#define (QL_[%w_]+) ([^\n]+)' do macros[name] = value:gsub('%s*/%*.*', '') end
end

local function needs_of(text, own)
	local needs, seen = {}, {[own] = true}
	for name in text:gmatch '%f[%w_](ql_[%w_]+)%f[^%w_]' do
		if not seen[name] and functions[name] then
			seen[name] = true
			needs[#needs + 1] = {vmath.part(name)}
		end
	end
	return needs
end

-- Registers the function and those that it calls as parts; returns the part's name without "q_".
function vmath.part(name)
	if not functions then read() end
	local short = name:match '^ql_(.+)$'
	if parts.has(short) then return short end
	local text = functions[name] or base.fail("export: wanted a function of Quoll's mathematics, got '%s'", short)
	parts.add(short, {})
	local needs = needs_of(text, name)
	text = text:gsub('%f[%w_](QL_[%w_]+)%f[^%w_]', function(word) return macros[word] and '(' .. macros[word] .. ')' end)
	parts.add(short, {needs = needs, text = (text:gsub('%f[%w_]ql_([%w_]+)', 'q_%1'):gsub('%${', '$ {'))})
	return short
end

-- The expression with names beginning with q_, and the parts that it needs.
function vmath.expression(text)
	if not functions then read() end
	return (text:gsub('%f[%w_]ql_([%w_]+)', 'q_%1')), needs_of(text, '')
end

return vmath
