-- SPDX-License-Identifier: MIT
-- Which global variables, and which local variables of earlier inputs, a Lua function reads and which it assigns:
-- read from
-- its bytecode, so that fields, parameters and inner locals of the same name do not count. Functions inside of it
-- belong to
-- it. Layout of a dumped function: ldump.c of Lua 5.4; the instructions are those of lopcodes.h:
--	GETUPVAL A B     R[A] := UpValue[B]            GETTABUP A B C   R[A] := UpValue[B][K[C]]
--	SETUPVAL A B     UpValue[B] := R[A]            SETTABUP A B C   UpValue[A][K[B]] := R or K[C]
--	CLOSURE A Bx     R[A] := closure of inner Bx   MOVE A B         R[A] := R[B]
-- A function that is only defined (stored in a global, a field or a local variable that nothing reads) does not run:
-- what it
-- mentions is not read here.
-- A function with more than 255 constants reads _ENV into a register first; then its names are not in the
-- instructions and
-- `whole` is set.
local MOVE, GETUPVAL, SETUPVAL, GETTABUP, SETTABUP, SETFIELD, CLOSURE = 0, 9, 10, 11, 15, 18, 79
local JUMPS = {} -- JMP, comparisons, TEST, TESTSET; FORLOOP, FORPREP, TFORPREP, TFORLOOP: behind them code may not run
for op = 56, 67 do JUMPS[op] = true end
for op = 73, 77 do JUMPS[op] = op ~= 76 or nil end
local CALLS = {[68] = true, [69] = true, [76] = true} -- CALL, TAILCALL, TFORCALL
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

-- A function of the dump: {code =, constants =, upvalues = {{instack, index}}, inner =, names = of upvalues,
-- starts = set of the instructions from which on a local variable is there}
local function read_function()
	local f = {constants = {}, upvalues = {}, inner = {}, names = {}, starts = {}}
	string() -- source
	size() -- first line
	size() -- last line
	at = at + 3 -- parameters, vararg, stack
	local n = size()
	f.code, f.count = at, n
	at = at + 4 * n
	for i = 0, size() - 1 do f.constants[i] = CONSTANT[byte()]() end
	for i = 0, size() - 1 do
		f.upvalues[i] = {byte(), byte()}
		at = at + 1 -- kind
	end
	for i = 1, size() do f.inner[i] = read_function() end
	n = size() -- lines of the instructions
	at = at + n
	for _ = 1, size() do
		size()
		size()
	end
	for _ = 1, size() do -- local variables
		string()
		f.starts[size()] = true
		size()
	end
	for i = 0, size() - 1 do f.names[i] = string() end
	return f
end

local function decode(f, i)
	local instruction = unpack('<I4', text, f.code + 4 * i)
	return instruction & 0x7f, instruction >> 7 & 0xff, instruction >> 16 & 0xff, instruction >> 24, instruction >> 15
end

-- The inner functions that instruction i makes only to be stored.
local function is_definition(f, i, register)
	if i + 1 >= f.count then return false end
	local op, _, _, c = decode(f, i + 1)
	if (op == SETTABUP or op == SETFIELD) and c == register then return true end
	if not f.starts[i + 1] then return false end
	for k = i + 1, f.count - 1 do
		local later, _, from = decode(f, k)
		if later == MOVE and from == register then return false end
	end
	return true
end

-- outer[i]: the name of the function's upvalue i when that is a variable of the outermost function's surroundings,
-- else false.
local function collect(f, outer, found, is_cell)
	local defined, straight = {}, is_cell
	local function write(name)
		found.first[name] = found.first[name] or straight and not found.reads[name] or nil
		found.writes[name] = true
	end
	for i = 0, f.count - 1 do
		local op, a, b, c, index = decode(f, i)
		straight = straight and not JUMPS[op]
		if op == GETTABUP and outer[b] == '_ENV' then
			found.reads[f.constants[c]] = true
		elseif op == SETTABUP and outer[a] == '_ENV' then
			write(f.constants[b])
		elseif op == GETUPVAL and outer[b] == '_ENV' then
			found.whole = true
		elseif op == GETUPVAL and outer[b] then
			found.reads[outer[b]] = true
			if is_cell and outer[b]:find '^save_%d+$' then found.calls = found.calls - 1 end -- of the wrapper (locals.c)
		elseif op == SETUPVAL and outer[b] then
			write(outer[b])
		elseif CALLS[op] and is_cell then
			found.calls = found.calls + 1
		elseif op == CLOSURE and is_cell then
			defined[index + 1] = is_definition(f, i, a)
			straight = straight and defined[index + 1]
		end
	end
	for k, inner in ipairs(f.inner) do
		local names = {}
		for i = 0, #inner.upvalues do
			local upvalue = inner.upvalues[i]
			names[i] = upvalue and upvalue[1] == 0 and outer[upvalue[2]]
		end
		if not defined[k] then collect(inner, names, found, false) end
	end
end

-- {reads = {name = true}, writes = {name = true}, first = {name = true}: those of writes that it certainly writes before it
-- reads them itself, whole = true or nil, calls = number of calls in it}; nil for a function of C. is_cell: what its inner
-- functions mention counts only when they can run in it.
return function(f, is_cell)
	local info = debug.getinfo(f, 'S')
	if info.what == 'C' then return nil end
	local found = {reads = {}, writes = {}, first = {}, calls = 0}
	text, at = ('').dump(f), 1
	at = at + 4 + 1 + 1 + 6 + 3 + 8 + 8 + 1 -- signature to number of upvalues
	local main = read_function()
	local names = {}
	for i = 0, #main.upvalues do names[i] = main.names[i] or false end
	collect(main, names, found, is_cell)
	text = nil
	return found
end
