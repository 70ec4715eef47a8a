-- SPDX-License-Identifier: MIT
-- Reads what string.dump writes: the functions of a chunk with their instructions, constants, upvalues and lines. Layout: ldump.c of
-- Lua 5.4; instructions: lopcodes.h; lines: ldebug.c (a signed byte each from the one before, -128: an absolute one follows).
local bytecode = {MOVE = 0, LOADK = 3, LOADNIL = 8, GETUPVAL = 9, SETUPVAL = 10, GETTABUP = 11, GETTABLE = 12, GETI = 13, GETFIELD = 14,
	SETTABUP = 15, SETTABLE = 16, SETI = 17, SETFIELD = 18, SELF = 20, TESTSET = 67, CALL = 68, TAILCALL = 69, TFORCALL = 76, CLOSURE = 79,
	VARARG = 80}
local unpack = string.unpack

local text, at -- of the dump that is read

local function byte()
	at = at + 1
	return text:byte(at - 1)
end

-- Seven bits per byte, the highest first; the last byte has its top bit set.
local function size()
	local value = 0
	while true do
		local b = byte()
		value = value << 7 | b & 0x7f
		if b & 0x80 ~= 0 then return value end
	end
end

local function string()
	local n = size()
	if n == 0 then return nil end
	at = at + n - 1
	return text:sub(at - n + 1, at - 1)
end

local CONSTANT = { -- by the tags of lobject.h: nil, false, true, integer, float, short and long string
	[0x00] = function() end, [0x01] = function() end, [0x11] = function() end,
	[0x03] = function() at = at + 8 end, [0x13] = function() at = at + 8 end,
	[0x04] = string, [0x14] = string,
}

-- A function of the dump: {code =, count = of instructions, constants =, upvalues = {{instack, index}}, inner =, names = of upvalues,
-- starts = set of the instructions from which on a local variable is there, last = names of those that live at its end, line =, deltas =, absolute = lines}
local function read_function()
	local f = {constants = {}, upvalues = {}, inner = {}, names = {}, starts = {}, last = {}}
	string() -- source
	f.line = size()
	size() -- last line
	f.from = at
	at = at + 3 -- parameters, vararg, stack
	local n = size()
	f.code, f.count = at, n
	at = at + 4 * n
	for i = 0, size() - 1 do f.constants[i] = CONSTANT[byte()]() end
	f.to = at - 1
	for i = 0, size() - 1 do
		f.upvalues[i] = {byte(), byte()}
		at = at + 1 -- kind
	end
	for i = 1, size() do f.inner[i] = read_function() end
	n = size()
	f.deltas = at
	at = at + n
	f.absolute = {}
	for _ = 1, size() do
		local i = size()
		f.absolute[i] = size()
	end
	for _ = 1, size() do -- local variables
		local name = string()
		f.starts[size()] = true
		if size() == f.count then f.last[#f.last + 1] = name end
	end
	for i = 0, size() - 1 do f.names[i] = string() end
	return f
end

-- What a function does, without where it is written and what its variables are called: instructions and constants of it and of the functions in
-- it, which also say where their upvalues come from; and a list of the texts among the constants.
function bytecode.canonical(f)
	local parts, texts = {}, {}
	local function add(inner, outermost)
		parts[#parts + 1] = text:sub(inner.from, inner.to)
		for i = 0, #inner.upvalues do
			local upvalue = not outermost and inner.upvalues[i]
			if upvalue then parts[#parts + 1] = ('^%d.%d'):format(upvalue[1], upvalue[2]) end
		end
		for _, constant in next, inner.constants do texts[#texts + 1] = constant end
		for _, one in ipairs(inner.inner) do add(one, false) end
	end
	add(f, true)
	return table.concat(parts, '\0'), texts
end

-- Opcode, A, B, C, Bx and k of instruction i, from 0 on.
function bytecode.decode(f, i)
	local instruction = unpack('<I4', text, f.code + 4 * i)
	return instruction & 0x7f, instruction >> 7 & 0xff, instruction >> 16 & 0xff, instruction >> 24, instruction >> 15, instruction >> 15 & 1 == 1
end

-- The line of instruction i.
function bytecode.line(f, i)
	local line = f.line
	for k = 0, i do line = f.absolute[k] or line + unpack('b', text, f.deltas + k) end
	return line
end

-- Calls use(main function) for a function in Lua; what is read is only known until use returns.
function bytecode.read(f, use)
	text, at = ('').dump(f), 1
	at = at + 4 + 1 + 1 + 6 + 3 + 8 + 8 + 1 -- signature to number of upvalues
	use(read_function())
	text = nil
end

return bytecode
