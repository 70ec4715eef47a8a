-- SPDX-License-Identifier: MIT
-- `quoll test` of a notebook: its cells run as with `quoll run` (interp/notebook/run.lua), and what they put out is compared with their
-- `-->` comments as in any other test (interp/doctest/doctest.lua). Beyond that
--   * the value that a cell shows is compared with the `-->` after or below its last expression, written with or without Out[n]:
--   * a `-->` in the line below a %word, a !command or any other line belongs to that line
--   * each cell that ran is one case; one with the tag `skip` is skipped by name; one with the tag `raises` must fail, with the
--     message of its `--> error:` when it has one
-- A cell that fails is told with its title and line, and ends the run.
local _, internal = ...
local cases = internal.import 'interp/doctest/cases'
local notebook = internal.import 'interp/notebook/notebook'
local runner = internal.import 'interp/notebook/run'

---------------------------------------------------------------- which files

local TEST_CALLS = {it = true, describe = true, pending = true, skip = true}

-- Whether the file calls it(…) and the like: then it is a plain test, with or without markers of cells.
local function is_plain(text)
	local tokens, before = internal.tokens(text), ''
	for i = 1, #tokens, 3 do
		local word = text:sub(tokens[i + 1], tokens[i + 2])
		local next_kind, after = tokens[i + 3], tokens[i + 4] and text:sub(tokens[i + 4], tokens[i + 4])
		if tokens[i] == 'name' and TEST_CALLS[word] and before ~= '.' and before ~= ':' and before ~= 'function' and
			(next_kind == 'string' or after == '(') then
			return true
		end
		before = word
	end
	return false
end

local function has_marker(text)
	local tokens = internal.tokens(text)
	for i = 1, #tokens, 3 do
		local at = tokens[i + 1]
		if tokens[i] == 'comment' and (at == 1 or text:sub(at - 1, at - 1) == '\n') then
			local rest = text:sub(at, tokens[i + 2]):match '^%-%-%s?%%%%(.*)$'
			if rest and (rest:find '^[%%%s]*$' or rest:find '^%%*%s') then return true end
		end
	end
	return false
end

local module = {}

function module.is_notebook(name, text)
	return name:lower():find '%.ipynb$' ~= nil or has_marker(text) and not is_plain(text)
end

---------------------------------------------------------------- the cases of a cell

local function lines_of(text)
	local lines = {}
	for line in (text .. '\n'):gmatch '(.-)\n' do lines[#lines + 1] = line end
	return lines
end

-- The line in which the last token of a piece ends that is no comment.
local function last_line(code, piece)
	local text = code:sub(piece.from, piece.to)
	if piece.magic and not piece.code then return piece.line end
	local tokens, last = internal.tokens(text), 1
	for i = 1, #tokens, 3 do
		if tokens[i] ~= 'comment' then last = tokens[i + 2] end
	end
	return piece.line + select(2, text:sub(1, last):gsub('\n', ''))
end

-- A case in a line of its own belongs to the line above it.
local function take_line_above(case, lines, scanned)
	local above = case.line - 1
	if case.code:find '%S' or not lines[above] or not lines[above]:find '%S' then return end
	case.first, case.above = math.min(case.first, scanned[above].first), above
end

-- Sets cell.code to the text that runs, and cell.pieces; adds the cases.
local function add_cases(self, cell, chunk, first)
	local code = cell.code or cell.source
	local pieces = internal.pieces(code)
	local scanned, lines = cases.scan(notebook.lua_of(cell, pieces)), lines_of(code)
	local place = self.places[chunk] or {cases = {}, by_line = {}}
	self.places[chunk] = place
	local wrapped = {}
	cell.pieces, cell.errors, cell.chunk, cell.offset = {}, {}, chunk, first - 1
	for i, piece in ipairs(pieces) do
		cell.pieces[i] = {line = piece.line, last = last_line(code, piece), magic = piece.magic, code = piece.code}
	end
	local found = cases.of(scanned)
	for _, case in ipairs(found) do
		take_line_above(case, lines, scanned)
		self.cases[#self.cases + 1] = case
		case.index, case.chunk = #self.cases, chunk
		case.want[1] = case.want[1]:gsub('^Out ?%[%d+%]: ?', '')
		if case.want[1] == '' and #case.want > 1 then table.remove(case.want, 1) end
		local magic = false
		for _, piece in ipairs(pieces) do
			magic = magic or piece.magic and not piece.code and piece.line == (case.above or case.line)
		end
		if case.error and (magic or cell.tags.raises) then
			table.insert(cell.errors, case)
		elseif case.error then
			wrapped[#wrapped + 1] = case
		end
	end
	if #wrapped > 0 then cell.code = cases.wrap(code, wrapped) end
	for _, case in ipairs(found) do
		for _, field in ipairs {'line', 'first', 'above'} do case[field] = case[field] and case[field] + cell.offset end
		place.by_line[case.above or case.line] = case
		place.cases[#place.cases + 1] = case
	end
end

---------------------------------------------------------------- running

-- The case of a value that is shown, or of what a line that is no Lua prints.
local function case_of(self, cell, kind, line)
	local piece
	for _, p in ipairs(cell.pieces) do
		if line > 0 and p.line == line - cell.offset or line == 0 and not p.magic then piece = p end
	end
	if not piece or kind == 'stdout' and (line == 0 or piece.code) then return nil end -- %time: its costs
	local case = self:owner(piece.last + cell.offset, cell.chunk)
	return case and not case.error and case
end

local function title_of(cell)
	local title = cell.metadata.title
	return type(title) == 'string' and ("cell %d '%s'"):format(cell.index, title) or ('cell %d'):format(cell.index)
end

-- What no case wanted.
local function show(self, cell)
	for _, o in ipairs(cell.outputs or {}) do
		if o.output_type == 'stream' then
			if o.name == 'stdout' then self.out:write(o.text) else io.stderr:write(o.text) end
		elseif o.output_type == 'execute_result' and o.data['text/plain'] then
			local text = o.data['text/plain']
			self.out:write(('Out[%d]:%s%s\n'):format(o.execution_count, text:find '\n' and '\n' or ' ', text))
		end
	end
end

local function error_of(cell)
	for _, o in ipairs(cell.outputs or {}) do
		if o.output_type == 'error' then return table.concat(o.traceback, '\n'), o.evalue end
	end
end

-- Where the message says that it was, else where the cell begins.
local function fail_cell(self, cell, text)
	local name = cell.chunk:sub(2)
	local line = text:match(':(%d+):', (text:find(name, 1, true)) or 1)
	if text:sub(1, #name) == name then text = text:sub(#name + 1):gsub('^:%d+: ', '', 1) end -- told before the cell
	self:fail(tonumber(line) or cell.offset + 1, title_of(cell) .. ': ' .. text, cell.chunk)
end

local function judge_errors(cell)
	local _, message = error_of(cell)
	for _, case in ipairs(cell.errors) do
		case.reached = message ~= nil
		if message and not cases.matches(message, case.error) then
			case.problem = 'expected an error: ' .. case.error .. '\n  got: ' .. message
		end
	end
end

-- Returns whether the run goes on.
local function run_cell(self, notes, cell)
	notes.cell, self.left = cell, nil
	local how = notes.runner:all(function(c) return c == cell end)
	show(self, cell)
	judge_errors(cell)
	if how == 'interrupted' then error('interrupted', 0) end
	if self.left then
		fail_cell(self, cell, 'a test must not call os.exit')
	elseif how == 'failed' then
		fail_cell(self, cell, error_of(cell) or 'failed')
	else
		self:pass()
		return true
	end
	return false
end

local function run_cells(self, nb)
	local notes = {}
	notes.runner = runner.new(nb, {quiet = true, watch = function(r, kind, text)
		if kind ~= 'result' and kind ~= 'stdout' then return false end
		local case = case_of(self, notes.cell, kind, r.session:line())
		if not case then return false end
		case.got[#case.got + 1] = kind == 'result' and #case.got > 0 and not case.got[#case.got]:find '\n$' and '\t' .. text or text
		return true
	end}):begin()
	for _, cell in ipairs(nb.cells) do
		if cell.kind == 'code' and cell.tags.skip then
			self:skipped(self.name, title_of(cell) .. ' has the tag skip')
		elseif notebook.runs(cell) and not run_cell(self, notes, cell) then
			return false
		end
	end
	return true
end

-- Runs the notebook as the test `self`, a run of interp/doctest/doctest.lua without a place yet.
function module.run(self)
	local good, nb = pcall(notebook.open, self.name)
	if not good then
		local text = tostring(nb)
		if text:sub(1, #self.name + 1) == self.name .. ':' then text = text:sub(#self.name + 2) end
		local line, rest = text:match '^(%d+):%s*(.*)$'
		self:fail(tonumber(line) or 0, rest or text:match '^%s*(.*)$')
		return
	end
	for _, cell in ipairs(nb.cells) do
		if notebook.runs(cell) then
			local lua = nb.format == 'lua'
			add_cases(self, cell, lua and '@' .. nb.file or ('=%s[%d]'):format(nb.file, cell.index), lua and cell.line or 1)
		end
	end
	self.ended = not run_cells(self, nb)
	for _, case in ipairs(self.cases) do self:judge(case) end
	for _ in pairs(self.asserts) do self:pass() end
end

return module
