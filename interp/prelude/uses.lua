-- SPDX-License-Identifier: MIT
-- Which global variables, and which local variables of earlier inputs, a Lua function reads and which it assigns: read from
-- its bytecode, so that fields, parameters and inner locals of the same name do not count. Functions inside of it belong to
-- it.
--	GETUPVAL A B     R[A] := UpValue[B]            GETTABUP A B C   R[A] := UpValue[B][K[C]]
--	SETUPVAL A B     UpValue[B] := R[A]            SETTABUP A B C   UpValue[A][K[B]] := R or K[C]
--	CLOSURE A Bx     R[A] := closure of inner Bx   MOVE A B         R[A] := R[B]
-- A function that is only defined (stored in a global, a field or a local variable that nothing reads) does not run: what it
-- mentions is not read here.
-- A function with more than 255 constants reads _ENV into a register first; then its names are not in the instructions and
-- `whole` is set.
local _, internal = ...
local bytecode = internal.import 'interp/prelude/bytecode'
local decode = bytecode.decode
local MOVE, GETUPVAL, SETUPVAL = bytecode.MOVE, bytecode.GETUPVAL, bytecode.SETUPVAL
local GETTABUP, SETTABUP, SETFIELD, CLOSURE = bytecode.GETTABUP, bytecode.SETTABUP, bytecode.SETFIELD, bytecode.CLOSURE
local JUMPS = {} -- JMP, comparisons, TEST, TESTSET; FORLOOP, FORPREP, TFORPREP, TFORLOOP: behind them code may not run
for op = 56, 67 do JUMPS[op] = true end
for op = 73, 77 do JUMPS[op] = op ~= 76 or nil end
local CALLS = {[68] = true, [69] = true, [76] = true} -- CALL, TAILCALL, TFORCALL

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
			if is_cell and outer[b]:find '^save_%d+$' then found.calls = found.calls - 1 end -- of the wrapper (interp/repl/locals.c)
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
	bytecode.read(f, function(main)
		local names = {}
		for i = 0, #main.upvalues do names[i] = main.names[i] or false end
		collect(main, names, found, is_cell)
	end)
	return found
end
