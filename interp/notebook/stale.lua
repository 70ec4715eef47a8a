-- SPDX-License-Identifier: MIT
-- `quoll run --watch`: which cells run again when the file has changed, so that variables and outputs are as if all had run
-- from the top. It goes by what the cells really read and wrote when they ran (the marks of the prompt, interp/input/stale.lua): also
-- through functions that they call, and in place.
--
-- A cell runs again when it is new or another, or failed, or has not run; else when
--   * it wrote a name that is touched: one that a cell above it wrote in this round, so that its own value is gone;
--   * it read a name that is touched, and whose value is not the one that it read; or has it in a function, when it is a
--     local variable: the function has the old one;
--   * it draws random numbers, and they would be others.
-- What a cell wrote that is gone, or failed halfway, is undone: the variable goes, the name is touched from the top, and so
-- the cells that wrote it run again. That is not needed when the cell assigned it before it looked at it, and what stands
-- there now does, too. Undone are also names that a cell is to read which perhaps runs again, when a cell below it wrote them:
-- it must not see what only comes later.
-- Cells after one that failed have not been looked at: they keep the touched names for the next round, and show nothing
-- until then.
--
-- What cells read or write elsewhere (files, the clock) is not seen.
local _, internal = ...
local effects = internal.import 'interp/notebook/effects'
local notebook = internal.import 'interp/notebook/notebook'
local stale = internal.import 'interp/input/stale'

local KEPT = {'outputs', 'seconds', 'peak', 'fallbacks', 'execution_count', 'ran', 'kept', 'failed', 'marks',
	'random_before', 'random', 'held'}

local function code_cells(nb)
	local list = {}
	for _, cell in ipairs(nb.cells) do
		if cell.kind == 'code' then list[#list + 1] = cell end
	end
	return list
end

-- Whether each cell of the new notebook was there before, in the same order: the longest common subsequence of the texts.
-- Returns new cell -> old one, and for each old one that is gone the new ones that are in its place: {cell, list}.
local function compare(old, new)
	local a, b, length = code_cells(old), code_cells(new), {}
	for i = #a + 1, 1, -1 do
		length[i] = {}
		for k = #b + 1, 1, -1 do
			if i > #a or k > #b then
				length[i][k] = 0
			elseif a[i].source == b[k].source then
				length[i][k] = length[i + 1][k + 1] + 1
			else
				length[i][k] = math.max(length[i + 1][k], length[i][k + 1])
			end
		end
	end
	local same, gone, i, k, here = {}, {}, 1, 1, {}
	while i <= #a or k <= #b do
		if i <= #a and k <= #b and a[i].source == b[k].source then
			same[b[k]] = a[i]
			i, k, here = i + 1, k + 1, {}
		elseif k > #b or i <= #a and length[i + 1][k] >= length[i][k + 1] then
			gone[#gone + 1] = {a[i], here}
			i = i + 1
		else
			here[#here + 1] = b[k]
			k = k + 1
		end
	end
	return same, gone
end

---------------------------------------------------------------- what cells read and write

-- A cell that ran is known by its marks, another one by its text: {reads =, writes =, first =}, sets of names; `first`: those
-- that it certainly writes before it, or a function that it calls, reads them.
local function of_marks(marks)
	local facts = {reads = {}, writes = {}, first = {}}
	for i, mark in ipairs(marks) do
		for name in pairs(mark.reads) do facts.reads[name] = true end
		for name in pairs(mark.wrote) do facts.writes[name] = true end
		for name in pairs(i == 1 and mark.first or {}) do facts.first[name] = not mark.via[name] or nil end
	end
	return facts
end

local function facts_of(cell, before)
	return before and before.marks and of_marks(before.marks) or effects(notebook.lua_of(cell))
end

local round = {}
round.__index = round

function round:touch(cell)
	for _, mark in ipairs(cell.marks or {}) do
		for name in pairs(mark.wrote) do self.touched[name] = true end
	end
end

function round:undo_name(name)
	self.touched[name] = true
	stale.unset(name)
end

-- Undoes what the cell wrote, unless `instead`, the cells in its place, write it anew.
function round:undo(cell, instead)
	local old = of_marks(cell.marks or {})
	for name in pairs(old.writes) do
		local anew = false
		for _, new in ipairs(old.first[name] and instead or {}) do
			anew = anew or notebook.runs(new) and effects(notebook.lua_of(new)).first[name]
		end
		if not anew then self:undo_name(name) end
	end
end

local function generator()
	local seed, position = internal.rng(0, 0)
	internal.rng(seed, position)
	return {seed, position}
end

local function same_random(a, b) return a[1] == b[1] and a[2] == b[2] end

local function draws(cell) return not same_random(cell.random_before, cell.random) end

-- Names that are local variables at the top of a cell.
local function locals_of(set, nb)
	for _, cell in ipairs(code_cells(nb)) do
		for name in pairs(effects(notebook.lua_of(cell)).locals) do set[name] = true end
	end
end

local function has_old_local(self, cell, touched)
	local facts = effects(notebook.lua_of(cell))
	for name in pairs(self.locals) do
		if touched[name] and (facts.reads[name] or facts.writes[name]) then return true end
	end
	return false
end

local function is_stale(self, before)
	if has_old_local(self, before, self.touched) or draws(before) and not same_random(self.random, before.random_before) then return true end
	for _, mark in ipairs(before.marks) do
		for name in pairs(mark.wrote) do
			if self.touched[name] then return true end
		end
		for name in pairs(mark.reads) do
			if self.touched[name] and stale.fingerprint(name) ~= mark.state[name] then return true end
		end
	end
	return false
end

local function is_known(before) return before and before.ran and before.marks and before.random and not before.failed end

local function meets(set, other)
	for name in pairs(set) do
		if other[name] then return true end
	end
	return false
end

-- Cells that perhaps run again, with what they read and write. Returns a name that one of them would have from below.
local function name_from_below(self, list)
	local touched, random = setmetatable({}, {__index = self.touched}), false
	for i, item in ipairs(list) do
		for name in pairs(item.before and item.before.pending or {}) do touched[name] = true end
		local drawing = not item.known or draws(item.before)
		if not item.known or meets(item.facts.reads, touched) or meets(item.facts.writes, touched) or random and drawing or
			has_old_local(self, item.before, touched) then
			random = random or drawing
			for name in pairs(item.facts.writes) do touched[name] = true end
			for name in pairs(item.facts.reads) do
				local below = false
				for k = i + 1, #list do below = below or list[k].facts.writes[name] end
				if below and not item.facts.first[name] and not self.touched[name] then return name end
			end
		end
	end
end

function round:undo_from_below()
	local list = {}
	for _, cell in ipairs(code_cells(self.new)) do
		if notebook.runs(cell) then
			local before = self.same[cell]
			list[#list + 1] = {before = before, known = is_known(before), facts = facts_of(cell, before)}
		end
	end
	for name in function() return name_from_below(self, list) end do self:undo_name(name) end
end

-- For each cell that could run, in their order, when those above have run: whether it shall.
function round:wants(cell)
	if self.last then
		self:touch(self.last)
		self.random, self.last = self.last.random, nil
	end
	local before = self.same[cell]
	for name in pairs(before and before.pending or {}) do self.touched[name] = true end
	if is_known(before) and not is_stale(self, before) then
		if draws(before) then self.random = before.random end
		cell.outputs, cell.held = cell.outputs or cell.held, nil
		return false
	end
	self.ran, self.last, cell.held = self.ran + 1, cell, nil
	if before then self:touch(before) end
	internal.rng(table.unpack(self.random))
	return true
end

local function copy_of(set)
	local copy = {}
	for name in pairs(set) do copy[name] = true end
	return copy
end

-- After the run: `failed` is the cell that ended it, if one did.
function round:finish(failed)
	local behind = false
	if self.last then self:touch(self.last) end
	for _, cell in ipairs(code_cells(self.new)) do
		if behind then
			local before = self.same[cell]
			for name in pairs(before and before.pending or {}) do self.touched[name] = true end
			cell.pending = copy_of(self.touched)
			cell.held, cell.outputs = cell.outputs or cell.held, nil
		end
		behind = behind or cell == failed
	end
end

local notebook_stale = {}

-- Between two states of a file: takes what is known of the old cells over to the new ones.
function notebook_stale.round(old, new)
	local same, gone = compare(old, new)
	local self = setmetatable({new = new, same = same, touched = {}, locals = {}, ran = 0, random = old.random}, round)
	new.random = old.random
	locals_of(self.locals, old)
	locals_of(self.locals, new)
	for cell, before in pairs(same) do
		for _, field in ipairs(KEPT) do cell[field] = before[field] end
		if before.failed then self:undo(before, {cell}) end
	end
	for _, pair in ipairs(gone) do self:undo(pair[1], pair[2]) end
	self:undo_from_below()
	return self
end

-- The notebook runs for the first time.
function notebook_stale.begin(nb) nb.random = generator() end

-- A cell runs: what it reads and writes is known when it has.
function notebook_stale.before(cell) cell.marks, cell.random_before = {}, generator() end

function notebook_stale.after(cell, number)
	local marks = stale.session
	local mark = marks.cells[number] or marks.past[number]
	if mark then cell.marks[#cell.marks + 1] = mark end
	cell.random = generator()
end

return notebook_stale
