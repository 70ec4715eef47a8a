-- SPDX-License-Identifier: MIT
-- Which global variables, and which local variables of earlier inputs, a Lua function reads, assigns and changes: read from
-- its bytecode, so that fields, parameters and inner locals of the same name do not count. Functions inside of it belong to
-- it.
--	GETUPVAL A B     R[A] := UpValue[B]            GETTABUP A B C   R[A] := UpValue[B][K[C]]
--	SETUPVAL A B     UpValue[B] := R[A]            SETTABUP A B C   UpValue[A][K[B]] := R or K[C]
--	GETTABLE A B C   R[A] := R[B][R[C]]            SETTABLE A B C   R[A][R[B]] := R or K[C]
--	GETFIELD A B C   R[A] := R[B][K[C]]            SELF A B C       R[A+1] := R[B]; R[A] := R[B][R or K[C]]
--	CLOSURE A Bx     R[A] := closure of inner Bx   MOVE A B         R[A] := R[B]
-- A function that is only defined (stored in a global, a field or a local variable that nothing reads) does not run: what it
-- mentions is not read here.
-- The instructions are followed in their order, not along jumps: a register is known by what was put into it last. A name
-- that is no constant of the instruction (there are more than 255) is in a register; where it is computed, `whole` is set.
local _, internal = ...
local bytecode = internal.import 'interp/prelude/bytecode'
local decode = bytecode.decode
local OP = bytecode
local KEEPS = {} -- instructions that change no register: stores, jumps, comparisons, returns
for op in ('10 15 16 17 18 46 47 48 54 55 56 57 58 59 60 61 62 63 64 65 66 70 71 72 78 81 82'):gmatch '%d+' do KEEPS[tonumber(op)] = true end
local ABOVE = {[OP.CALL] = 0, [OP.TAILCALL] = 0, [OP.TFORCALL] = 4, [OP.VARARG] = 0} -- these change all registers from A + this on
local JUMPS = {} -- JMP, comparisons, TEST, TESTSET; FORLOOP, FORPREP, TFORPREP, TFORLOOP: after them code may not run
for op = 56, 67 do JUMPS[op] = true end
for op = 73, 77 do JUMPS[op] = op ~= 76 or nil end
local CALLS = {[OP.CALL] = true, [OP.TAILCALL] = true, [OP.TFORCALL] = true}

-- The inner functions that instruction i makes only to be stored.
local function is_definition(f, i, register)
	if i + 1 >= f.count then return false end
	local op, _, _, c = decode(f, i + 1)
	if (op == OP.SETTABUP or op == OP.SETFIELD) and c == register then return true end
	if not f.starts[i + 1] then return false end
	for k = i + 1, f.count - 1 do
		local later, _, from = decode(f, k)
		if later == OP.MOVE and from == register then return false end
	end
	return true
end

---------------------------------------------------------------- registers

-- What is known of the registers: roots[r] is the variable that the value of register r is, or comes from by fields; texts[r] its
-- text; environments[r] says that it is _ENV.
local state = {}
state.__index = state

function state.new(found) return setmetatable({found = found, roots = {}, texts = {}, environments = {}}, state) end

-- The registers from a to b have other values. An _ENV that goes unread was used in another way.
function state:forget(a, b)
	for r in next, self.environments do
		if r >= a and r <= b then self.found.whole, self.environments[r] = true, nil end
	end
	for _, known in ipairs {self.roots, self.texts} do
		for r in next, known do
			if r >= a and r <= b then known[r] = nil end
		end
	end
end

-- R[a] := R[b][name]; name nil: it is computed.
function state:get(a, b, name)
	local environment, root = self.environments[b], self.roots[b]
	self.environments[b] = nil
	self:forget(a, a)
	self.roots[a] = root
	if environment and name then
		self.found.reads[name], self.roots[a] = true, name
	elseif environment then
		self.found.whole = true
	end
end

-- R[a][name] := …
function state:set(a, name, write)
	local environment, root = self.environments[a], self.roots[a]
	self.environments[a] = nil
	if environment and name then
		write(name)
	elseif environment then
		self.found.whole = true
	elseif root then
		self.found.fields[root] = true
	end
end

-- R[a + 1] := R[b]; R[a] := R[b][name], to be called
function state:method(a, b, name)
	local root = self.roots[b]
	self:forget(a, a + 1)
	self.roots[a + 1] = root
	if root and name then
		local methods = self.found.methods
		methods[root] = methods[root] or {}
		methods[root][name] = true
	end
end

-- Any other instruction.
function state:change(op, a, b, text)
	local root = (op == OP.MOVE or op == OP.TESTSET) and self.roots[b] or nil
	if KEEPS[op] then return end
	self:forget(a + (ABOVE[op] or 0), ABOVE[op] and 255 or op == OP.LOADNIL and a + b or a)
	self.roots[a], self.texts[a] = root, text
end

local FIELDS = {
	[OP.GETTABLE] = function(s, _, a, b, c) s:get(a, b, s.texts[c]) end,
	[OP.GETI] = function(s, _, a, b) s:get(a, b) end,
	[OP.GETFIELD] = function(s, f, a, b, c) s:get(a, b, f.constants[c]) end,
	[OP.SETTABLE] = function(s, _, a, b, _, write) s:set(a, s.texts[b], write) end,
	[OP.SETI] = function(s, _, a, _, _, write) s:set(a, nil, write) end,
	[OP.SETFIELD] = function(s, f, a, b, _, write) s:set(a, f.constants[b], write) end,
	[OP.SELF] = function(s, f, a, b, c, _, constant) s:method(a, b, constant and f.constants[c] or s.texts[c]) end,
}

---------------------------------------------------------------- one function

-- outer[i]: the name of the function's upvalue i when that is a variable of the outermost function's surroundings,
-- else false.
local function collect(f, outer, found, is_cell)
	local defined, straight = {}, is_cell
	local registers = state.new(found)
	local function write(name)
		found.first[name] = found.first[name] or straight and not found.reads[name] or nil
		found.writes[name] = true
	end
	for i = 0, f.count - 1 do
		local op, a, b, c, index, constant = decode(f, i)
		straight = straight and not JUMPS[op]
		if FIELDS[op] then
			FIELDS[op](registers, f, a, b, c, write, constant)
		else
			registers:change(op, a, b, op == OP.LOADK and f.constants[index] or nil)
		end
		if op == OP.GETTABUP and outer[b] == '_ENV' then
			found.reads[f.constants[c]] = true
			registers.roots[a] = f.constants[c]
		elseif op == OP.SETTABUP and outer[a] == '_ENV' then
			write(f.constants[b])
		elseif op == OP.GETUPVAL and outer[b] == '_ENV' then
			if f.starts[i + 1] then found.whole = true else registers.environments[a] = true end
		elseif op == OP.GETUPVAL and outer[b] then
			found.reads[outer[b]] = true
			registers.roots[a] = outer[b]
			if is_cell and outer[b]:find '^save_%d+$' then found.calls = found.calls - 1 end -- of the wrapper (interp/repl/locals.c)
		elseif op == OP.SETUPVAL and outer[b] then
			write(outer[b])
		elseif CALLS[op] and is_cell then
			found.calls = found.calls + 1
		elseif op == OP.CLOSURE and is_cell then
			defined[index + 1] = is_definition(f, i, a)
			straight = straight and defined[index + 1]
		end
	end
	if next(registers.environments) then found.whole = true end
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
-- reads them itself, fields = {name = true}: of whose fields it assigns one, methods = {name = {method = true}}: called on the
-- variable or on what its fields hold, locals = {name = true}: its own that live at its end, whole = true or nil: it reads and
-- writes names that are computed, calls = number of calls in it}; nil for a function of C. is_cell: what its inner functions
-- mention counts only when they can run in it.
return function(f, is_cell)
	local info = debug.getinfo(f, 'S')
	if info.what == 'C' then return nil end
	local found = {reads = {}, writes = {}, first = {}, fields = {}, methods = {}, locals = {}, calls = 0}
	bytecode.read(f, function(main)
		local names = {}
		for i = 0, #main.upvalues do names[i] = main.names[i] or false end
		for _, name in ipairs(main.last) do found.locals[name] = true end
		collect(main, names, found, is_cell)
	end)
	return found
end
