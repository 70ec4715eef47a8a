-- SPDX-License-Identifier: MIT
-- Which inputs read what has since changed. A cell is known by a number, its place in the session or notebook. For each
-- the marks keep the names that it read (interp/prelude/uses.lua, with those of the functions that it could call), the state of their
-- values when it had run (internal.fingerprint: contents of tables, versions of tensors, identity of functions), and
-- the
-- names that it wrote: assigned, or changed in place, which shows in the fingerprint.
--
-- A cell is stale when a value that it read is not as it left it, or when that value was made by a stale cell. Not so
--   * what it changed itself and a cell after it changed on (x:add_(1), then x:mul_(2)); when a cell before it did,
-- it is;
--   * when all it wrote was assigned anew by cells after it, or its very text ran again after it: it does not
-- matter any more.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local uses = internal.import 'interp/prelude/uses'
local fingerprint = internal.fingerprint

local methods = {}
methods.__index = methods

local KEPT = 1000 -- cells after the current one
local IGNORED = {_ = true, In = true, Out = true}

-- The value that a name has for the next input: a kept local, else a global.
local function value_of(name, locals)
	if locals[name] ~= nil then return locals[name] end
	return rawget(_G, name)
end

local function kept() return internal.locals and internal.locals() or {} end

local function is_own(name) return not IGNORED[name] and not base.is_given(name) end

local function is_user_function(value)
	return type(value) == 'function' and not internal.is_own(debug.getinfo(value, 'S').source)
end

-- Adds names that the function reads, and those of the functions that it could call: by name, or as fields of plain
-- tables. `via`: names that those functions read.
local function add_names(names, reads, locals, seen, calls, via, inner)
	for name in pairs(names) do
		if inner and is_own(name) then via[name] = true end
		if is_own(name) and not reads[name] then
			reads[name] = true
			local value = value_of(name, locals)
			local list = type(value) == 'table' and not getmetatable(value) and value or {value}
			for _, f in next, list do
				if calls and is_user_function(f) and not seen[f] then
					seen[f] = true
					local used = uses(f)
					if used then add_names(used.reads, reads, locals, seen, true, via, true) end
				end
			end
		end
	end
end

local function add_words(text, reads)
	for name in text:gmatch '[%a_][%w_]*' do
		if is_own(name) then reads[name] = true end
	end
end

---------------------------------------------------------------- recording

-- What an input of several pieces did before this piece.
local function join(cell, before)
	for name in pairs(cell.first) do
		if before.reads[name] then cell.first[name] = nil end
	end
	for _, field in ipairs {'direct', 'first', 'assigned', 'wrote', 'left', 'via', 'reasons'} do
		for name, value in pairs(before[field]) do cell[field][name] = value end
	end
	cell.calls = cell.calls or before.calls
	cell.text = before.text .. cell.text
end

-- A cell is about to run: its function, the names of its top-level locals, its text. `goes_on`: it is another piece of the input
-- that ran last under this key.
function methods:before(key, f, made, text, goes_on)
	self:after()
	self:forget(key - KEPT)
	local locals = kept()
	local cell = {key = key, text = text, direct = {}, reads = {}, via = {}, assigned = {}, first = {}, wrote = {}, left = {},
		state = {}, reasons = {}, names = {}}
	local used = uses(f, true) or {reads = {}, writes = {}}
	for name in pairs(used.reads) do -- but not what the wrapper of the input added (interp/repl/locals.c)
		if not name:find '^save_%d+$' or text:find(name, 1, true) then cell.direct[name] = true end
	end
	if used.whole then add_words(text, cell.direct) end
	for name in pairs(used.writes) do cell.assigned[name] = is_own(name) or nil end
	cell.first = used.first or {}
	for _, name in ipairs(made or {}) do
		cell.assigned[name] = is_own(name) or nil
		cell.first[name] = not cell.direct[name] or nil
	end
	cell.calls = used.calls == nil or used.calls > 0
	if goes_on and self.cells[key] then join(cell, self.cells[key]) end
	add_names(cell.direct, cell.reads, locals, {}, cell.calls, cell.via)
	for _, names in ipairs {cell.reads, cell.assigned} do
		for name in pairs(names) do
			if self.now[name] == nil then self.now[name] = fingerprint(value_of(name, locals)) end
		end
	end
	self.running = cell
end

-- What another cell's change of a name means for this one; see the head of the file.
local function touch(cell, name, by)
	if not cell.reads[name] or by == cell then return end
	if not cell.wrote[name] or by.key < cell.key then cell.reasons[name] = by.key end
end

-- Cells before this one that do not matter any more move to the past: their text ran again, or all that they wrote
-- was assigned.
local function retire(self, cell)
	for key, other in pairs(self.cells) do
		if key < cell.key then
			for name in pairs(cell.assigned) do
				if not cell.reads[name] then other.left[name] = nil end
			end
			if other.text == cell.text or next(other.wrote) and not next(other.left) then
				self.cells[key], self.past[key] = nil, other
			end
		end
	end
end

-- Brings `now` up to date; what changed was changed by this cell.
local function compare(self, cell, locals)
	for name, old in pairs(self.now) do
		local new = fingerprint(value_of(name, locals))
		if new ~= old then
			self.now[name], cell.wrote[name] = new, true
			for _, other in pairs(self.cells) do touch(other, name, cell) end
		end
	end
end

local function sorted(set)
	local list = {}
	for name in pairs(set) do list[#list + 1] = name end
	table.sort(list)
	return list
end

-- The cell has run, well or not. Returns the cells that became stale by it. Nothing when none has run.
function methods:after()
	local cell = self.running
	if not cell then return {} end
	self.running = nil
	local locals = kept()
	self.cells[cell.key], self.past[cell.key] = cell, nil
	cell.reads = {} -- once more, as it may have called what it defined
	add_names(cell.direct, cell.reads, locals, {}, cell.calls, cell.via)
	for name in pairs(cell.reads) do
		if self.now[name] == nil then self.now[name] = fingerprint(value_of(name, locals)) end
	end
	for name in pairs(cell.assigned) do cell.wrote[name] = true end
	compare(self, cell, locals)
	for name in pairs(cell.wrote) do self.writer[name], cell.left[name] = cell.key, true end
	for name in pairs(cell.reads) do cell.state[name] = self.now[name] end
	cell.names = sorted(cell.reads)
	retire(self, cell)
	local before, new = {}, {}
	for _, c in ipairs(self.listed) do before[c.key] = true end
	self.listed = self:list()
	for _, c in ipairs(self.listed) do
		if not before[c.key] and c.key ~= cell.key then new[#new + 1] = c end
	end
	return new
end

---------------------------------------------------------------- asking

-- Why the cell is stale: name, number of the cell that changed it, true when that one is stale itself; nil: it is not.
local function reason(self, cell, stale)
	for _, name in ipairs(cell.names) do
		local by = cell.reasons[name]
		if by and (cell.wrote[name] or cell.state[name] ~= self.now[name]) then return name, by, false end
	end
	for _, name in ipairs(cell.names) do
		local by = self.writer[name]
		if by and by ~= cell.key and stale[by] and not cell.assigned[name] then return name, by, true end
	end
end

-- The stale cells in order: {key =, name =, by =, through =, wrote = whether it wrote anything, why = text}.
function methods:list()
	local keys, stale, found = sorted(self.cells), {}, {}
	for _, key in ipairs(keys) do
		local cell = self.cells[key]
		local name, by, through = reason(self, cell, stale)
		if name then
			stale[key] = true
			found[#found + 1] = {key = key, name = name, by = by, through = through, wrote = next(cell.wrote) ~= nil,
				why = through and ('read %s, which In[%d] makes, and that is stale'):format(name, by) or
					('read %s, changed by In[%d]'):format(name, by)}
		end
	end
	return found
end

-- What a cell read and wrote, as sorted lists of names; nil when it has not run.
function methods:names(key)
	local cell = self.cells[key] or self.past[key]
	if not cell then return nil end
	return sorted(cell.reads), sorted(cell.wrote)
end

-- Forgets a cell.
function methods:forget(key) self.cells[key], self.past[key] = nil, nil end

local stale = {}

-- The state of the value that a name has now, to be compared with cell.state.
function stale.fingerprint(name) return fingerprint(value_of(name, kept())) end

-- Whether the value of the name is a function that the user wrote.
function stale.is_function(name) return is_user_function(value_of(name, kept())) end

-- Takes a variable away: the local of earlier inputs, and the global.
function stale.unset(name)
	local now = stale.session.now
	internal.forget_local(name)
	rawset(_G, name, internal.baseline[name])
	if now[name] ~= nil then now[name] = fingerprint(nil) end -- no cell did it
end

function stale.new()
	return setmetatable({cells = {}, past = {}, now = {}, writer = {}, listed = {}, running = nil}, methods)
end

---------------------------------------------------------------- the prompt

stale.session = stale.new() -- ql_session_begin makes a new one

function stale.begin() stale.session = stale.new() end

function stale.before(...) stale.session:before(...) end

-- Returns the line that tells of cells that just became stale, or nil.
function stale.after(wanted)
	local names = {}
	for _, c in ipairs(stale.session:after()) do
		if wanted == 'on' or wanted == 'auto' and c.wrote then names[#names + 1] = ('In[%d]'):format(c.key) end
	end
	if #names == 0 then return nil end
	local more = #names > 6 and (' and %d more'):format(#names - 6) or ''
	return ('stale now: %s%s; %%stale shows why, %%run stale runs %s again'):format(table.concat(names, ' ', 1,
		math.min(#names, 6)), more, #names == 1 and 'it' or 'them')
end

return stale
