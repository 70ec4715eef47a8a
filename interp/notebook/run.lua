-- SPDX-License-Identifier: MIT
-- Runs the cells of a notebook as the prompt runs its inputs, and keeps what they put out: on the terminal, in the cells,
-- in the side file after every cell that took a while. Tags: `skip` is not run; `raises` must fail, and the run goes on;
-- `raises-exception` may; `parameters` gets the values given from outside after it. Any other error ends the run.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local effects = internal.import 'interp/notebook/effects'
local mime = internal.import 'interp/prelude/mime'
local notebook = internal.import 'interp/notebook/notebook'
local notebook_stale = internal.import 'interp/notebook/stale'
local strict = internal.import 'interp/input/strict'
local fail, near = base.fail, base.near

local OFTEN = 0.5            -- seconds of running after which the side file is written again
local MOST = 4 * 1024 * 1024 -- bytes of text kept of one cell

local run = {}
run.__index = run

---------------------------------------------------------------- what cells put out

local function add_stream(self, name, text)
	local outputs = self.cell.outputs
	local last = outputs[#outputs]
	if self.kept > MOST then return end
	self.kept = self.kept + #text
	if self.kept > MOST then text = text:sub(1, 200) .. '\n… (more than is kept)\n' end
	if last and last.output_type == 'stream' and last.name == name then
		last.pieces[#last.pieces + 1] = text
	else
		outputs[#outputs + 1] = {output_type = 'stream', name = name, pieces = {text}}
	end
end

local TAKERS = {
	stdout = function(self, text) add_stream(self, 'stdout', text) end,
	stderr = function(self, text) add_stream(self, 'stderr', text) end,
	result = function(self, _, value)
		return {output_type = 'execute_result', data = mime.bundle(value, self.wanted), metadata = {},
			execution_count = self.number}
	end,
	display = function(self, _, value)
		return {output_type = 'display_data', data = mime.bundle(value, self.wanted), metadata = {}}
	end,
	error = function(self, text)
		local message, lines = text:match '^(.-)\nstack traceback:' or text, {}
		for line in (text .. '\n'):gmatch '(.-)\n' do lines[#lines + 1] = line end
		self.failed = message
		return {output_type = 'error', ename = 'error', evalue = message, traceback = lines}
	end,
	note = function(_, text) return {output_type = 'note', text = text} end,
}

local function take(self, kind, text, value)
	if not self.cell or self.watch and self.watch(self, kind, text) then return end
	local output = TAKERS[kind](self, text, value)
	if output then table.insert(self.cell.outputs, output) end
end

-- A line that was drawn over with \r counts as it was last. Lines without are left alone: they may be very long.
local function last_drawn(text)
	if not text:find('\r', 1, true) then return text end
	return (text:gsub('[^\n]+', function(line)
		return line:find('\r', 1, true) and line:match '^.*\r([^\r].*)$' or nil
	end))
end

local function settle(outputs)
	for _, o in ipairs(outputs) do
		if o.pieces then
			o.text = last_drawn(table.concat(o.pieces):gsub('\r\n', '\n'))
			o.pieces = nil
		end
	end
end

---------------------------------------------------------------- parameters

local READERS = {number = function(text) return tonumber(text) end,
	string = function(text) return text end,
	boolean = function(text)
		if text == 'true' or text == 'false' then return text == 'true' end
	end}

-- Names that the cell assigns: a set, and a list in their order.
local function parameters_of(cell)
	local text, names, listed = notebook.lua_of(cell), {}, {}
	local known = effects(text).assigned
	for name in text:gmatch '[%a_][%w_]*' do
		if known[name] and not listed[name] then names[#names + 1], listed[name] = name, true end
	end
	return known, names
end

-- Every parameter must be one of the notebook's.
local function check_parameters(nb, given)
	local cell
	for _, c in ipairs(nb.cells) do
		if c.kind == 'code' and c.tags.parameters then cell = cell or c end
	end
	if not cell then fail('--param %s: wanted a cell with tags=["parameters"] in %s, got none', given[1][1], nb.file) end
	local known, names = parameters_of(cell)
	for _, pair in ipairs(given) do
		if not known[pair[1]] then
			fail('--param %s: no such parameter%s; the cell has: %s', pair[1], near(pair[1], names), table.concat(names, ' '))
		end
	end
end

-- The text as a value of the type that the variable has; where that is another, by its look.
local function typed(name, text)
	local own = internal.locals()[name]
	if own == nil then own = _G[name] end
	local wanted = type(own)
	if READERS[wanted] then
		local value = READERS[wanted](text)
		if value == nil then
			fail("--param %s: wanted %s, got '%s'", name, wanted == 'number' and 'a number' or 'true or false', text)
		end
		return value
	end
	local flag = READERS.boolean(text)
	if flag ~= nil then return flag end
	return tonumber(text) or text
end

-- Lua text that assigns the parameters, after their cell ran.
local function overrides(given)
	local lines = {}
	for i, pair in ipairs(given) do
		lines[i] = ('%s = %s'):format(pair[1], ('%q'):format(typed(pair[1], pair[2])):gsub('\\\n', '\\n'))
	end
	return table.concat(lines, '\n')
end

-- One text for all, for the keys of cells.
local function text_of(given)
	local parts = {}
	for i, pair in ipairs(given) do parts[i] = pair[1] .. '=' .. pair[2] end
	return table.concat(parts, '\n')
end

---------------------------------------------------------------- running

local function input(self, cell, text, chunk, line)
	self.cell, self.failed, self.kept, self.number = cell, nil, 0, self.session:number()
	local before = hw.clock()
	local _, interrupted = self.session:input(text, true, chunk, line)
	io.stdout:flush()
	self.cell = nil
	settle(cell.outputs)
	local wall, _, peak, fallbacks = self.session:cost()
	cell.seconds, cell.peak, cell.fallbacks = math.max(wall, 0), peak, fallbacks
	cell.execution_count = self.session:number() > self.number and self.number or nil
	cell.ran, cell.kept, cell.failed = true, nil, self.failed ~= nil
	notebook_stale.after(cell, self.number)
	self.unsaved = self.unsaved + hw.clock() - before
	return interrupted
end

-- Calls the function in the folder in which the run began, wherever the cells went.
local function at_home(self, f, ...)
	local here = internal.working_folder()
	internal.working_folder(self.home)
	local good, problem = pcall(f, ...)
	internal.working_folder(here)
	return good, problem
end

-- Writes the side file; the first failure is told and counts as one of the run.
function run:keep()
	self.unsaved = 0
	if self.unwritable or not self.side then return end
	local good, problem = at_home(self, notebook.save_side, self.nb, self.side, text_of(self.given))
	if not good then
		self.unwritable = true
		io.stderr:write('quoll: the outputs are not kept: ', tostring(problem), '\n')
	end
end

local function announce(self, cell)
	if not internal.live() then return end
	local title = type(cell.metadata.title) == 'string' and '  ' .. mime.clean(cell.metadata.title):gsub('%s+', ' ') or ''
	io.stderr:write(internal.dim(('── %d of %d%s%s'):format(cell.index, #self.nb.cells,
		cell.line and (', line %d'):format(cell.line) or '', title)), '\n')
end

-- 'raises' turned round: what must fail and did not is the error.
local function judge(self, cell)
	local fails = notebook.fails(cell)
	if fails == 'may' then return true end
	if not fails then return not self.failed end
	if self.failed then return true end
	local text = ('%s:%d: the cell is tagged `raises`, and there was no error'):format(self.nb.file, cell.line or cell.index)
	io.stderr:write(text, '\n')
	table.insert(cell.outputs, {output_type = 'error', ename = 'error', evalue = text, traceback = {text}})
	cell.failed = true
	return false
end

-- Sets the parameters after their cell. Returns whether that was possible, and an interrupt.
local function set_parameters(self, cell)
	self.overridden = true
	local good, text = pcall(overrides, self.given)
	if not good then
		io.stderr:write(text, '\n')
		table.insert(cell.outputs, {output_type = 'error', ename = 'error', evalue = text, traceback = {text}})
		cell.failed = true
		return false
	end
	local outputs, count = cell.outputs, cell.execution_count
	cell.outputs = {}
	local interrupted = input(self, cell, text, '=(parameters)', 1)
	table.move(cell.outputs, 1, #cell.outputs, #outputs + 1, outputs)
	cell.outputs, cell.execution_count = outputs, count
	return not self.failed, interrupted
end

-- Runs one cell. Returns 'done', 'failed' or 'interrupted'.
function run:one(cell)
	announce(self, cell)
	cell.outputs = {}
	notebook_stale.before(cell)
	local interrupted = input(self, cell, cell.code or cell.source, notebook.chunk(self.nb, cell))
	local good = judge(self, cell)
	if not interrupted and good and cell.tags.parameters and #self.given > 0 and not self.overridden then
		good, interrupted = set_parameters(self, cell)
	end
	if self.unsaved > OFTEN then self:keep() end
	return interrupted and 'interrupted' or good and 'done' or 'failed'
end

-- Runs all cells that run, or those for which `wanted(cell)` is true. Returns how it ended, as run:one, and the cell.
function run:all(wanted)
	local listener <close> = internal.listen(function(...) take(self, ...) end, self.quiet)
	internal.working_folder(self.folder)
	local exit = os.exit
	os.exit = function(...) -- what the cells put out so far is kept
		io.stdout:flush()
		local cell = self.cell
		if cell then
			settle(cell.outputs)
			cell.ran, self.cell = true, nil
		end
		self:keep()
		listener:close()
		exit(...)
	end
	local how, last = 'done', nil
	for _, cell in ipairs(self.nb.cells) do
		if notebook.runs(cell) and (not wanted or wanted(cell)) then
			how, last = self:one(cell), cell
			if how ~= 'done' then break end
		end
	end
	os.exit = exit
	self.folder = internal.working_folder() -- where the next round goes on
	internal.working_folder(self.home)
	return how, last
end

-- options: side (file for the outputs), parameters (list of {name, text}), png (also of figures), quiet, watch (a function that gets
-- run, kind and text of what a cell puts out, and may keep it: true).
function run.new(nb, options)
	local self = setmetatable({nb = nb, side = options.side, wanted = {png = options.png}, quiet = options.quiet,
		watch = options.watch, unsaved = 0},
		run)
	self.home = internal.working_folder()
	self.folder = self.home
	self.given = options.parameters or {}
	if #self.given > 0 then check_parameters(nb, self.given) end
	notebook.keys(nb, text_of(self.given))
	return self
end

-- The text as a chunk, without the expression at its end that a cell may show; nil when it is no Lua.
local function chunk_of(text, name)
	local chunk = load(text, name, 't')
	while not chunk and text ~= '' do
		text = text:match '^(.*)\n[^\n]*$' or ''
		chunk = load(text, name, 't')
	end
	return chunk
end

-- Warns of globals that only functions of the notebook assign (--strict).
local function warn_of_globals(self)
	local chunks, declared = {}, {}
	for _, cell in ipairs(self.nb.cells) do
		local text = notebook.runs(cell) and (cell.code or cell.source) or ''
		local name, line = notebook.chunk(self.nb, cell)
		for _, piece in ipairs(internal.pieces(text)) do
			local chunk = not piece.magic and chunk_of(text:sub(piece.from, piece.to), name)
			if chunk then chunks[#chunks + 1] = {chunk = chunk, name = name:sub(2), line = (line or 1) + piece.line - 2} end
		end
		for variable in pairs(text ~= '' and parameters_of(cell) or {}) do declared[variable] = true end
	end
	strict.warn(chunks, declared)
end

-- A session of its own: In, Out and _ begin anew. Not before it is certain that something runs.
function run:begin()
	internal.fix_width() -- the outputs are kept: they must not depend on this terminal
	self.session = internal.session()
	notebook_stale.begin(self.nb)
	if strict.wanted() then warn_of_globals(self) end
	return self
end

-- The notebook has another text now: the session goes on.
function run:take(nb)
	self.nb, self.overridden = nb, false
	if #self.given > 0 then check_parameters(nb, self.given) end
	notebook.keys(nb, text_of(self.given))
end

return run
