-- SPDX-License-Identifier: MIT
-- `quoll run` and `quoll convert`: their arguments, and what they do with notebooks. Each returns the exit code.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local notebook = internal.import 'interp/notebook/notebook'
local runner = internal.import 'interp/notebook/run'
local fail, near = base.fail, base.near

---------------------------------------------------------------- arguments

local EXPORTS = {'html', 'ipynb', 'md'}
local WITH_VALUE = {html = true, ipynb = true, md = true, param = true, out = true}
local FLAGS = {watch = true, cached = true}

local function all_options()
	local names = {}
	for name in pairs(WITH_VALUE) do names[#names + 1] = '--' .. name end
	for name in pairs(FLAGS) do names[#names + 1] = '--' .. name end
	return names
end

local function parse(arguments)
	local o, i = {parameters = {}, rest = {}, files = {}}, 1
	while i <= #arguments do
		local word = arguments[i]
		local name, value = word:match '^%-%-([%a-]+)=?(.*)$'
		if word == '--' then
			table.move(arguments, i + 1, #arguments, 1, o.rest)
			break
		elseif name and FLAGS[name] and not word:find '=' then
			o[name] = true
		elseif name and WITH_VALUE[name] then
			if not word:find '=' then
				i = i + 1
				value = arguments[i] or fail('--%s: wanted a value, got none', name)
			end
			if name == 'param' then
				local key, text = value:match '^([%a_][%w_]*)=(.*)$'
				if not key then fail("--param: wanted name=value, got '%s'", value) end
				o.parameters[#o.parameters + 1] = {key, text}
			else
				if value == '' then fail('--%s: wanted the name of a file, got none', name) end
				o[name] = value
			end
		elseif word:find '^%-.' then
			fail('%s: no such option%s (quoll run --help lists them)', word, near(word:gsub('=.*', ''), all_options()))
		else
			o.files[#o.files + 1] = word
		end
		i = i + 1
	end
	return o
end

---------------------------------------------------------------- writing

-- Figures that were kept as SVG alone, which front ends of Jupyter show in trusted notebooks only. Nothing is drawn here.
local function lacks_png(nb)
	local mime, n = internal.import 'interp/prelude/mime', 0
	for _, cell in ipairs(nb.cells) do
		for _, o in ipairs(cell.outputs or {}) do
			if o.data and not o.data['image/png'] and mime.is_figure(o.data['image/svg+xml']) then n = n + 1 end
		end
	end
	return n
end

local function write_ipynb(nb, file)
	notebook.save(nb, file)
	local n = lacks_png(nb)
	if n == 0 then return end
	io.stderr:write(('quoll: %s: %d figure%s kept as SVG only, which Jupyter shows in trusted notebooks; quoll run --ipynb draws PNG\n'):format(
		file, n, n == 1 and ' was' or 's were'))
end

-- In a table: the modules are only loaded when they are needed.
local WRITE = {
	html = function(nb, file) internal.write_file(file, internal.import 'interp/notebook/html'(nb)) end,
	md = function(nb, file) internal.import 'interp/notebook/markdown'(nb, file) end,
	ipynb = write_ipynb,
	lua = notebook.save,
}

local function check_exports(o, file)
	for _, kind in ipairs(EXPORTS) do
		local to = o[kind]
		if to and not to:lower():find('%.' .. kind .. '$') and not (kind == 'html' and to:lower():find '%.htm$') then
			fail('--%s: wanted a name that ends in .%s, got %s', kind, kind, to)
		end
		if to == file and kind ~= 'ipynb' then fail('--%s: %s is the notebook itself', kind, to) end
	end
	if o.out and o.out:lower():find '%.lua$' then fail('--out: %s is a Lua file; wanted a name for the outputs', o.out) end
	if o.out == file then fail('--out: %s is the notebook itself', file) end
end

-- False when one could not be written; that is told, and the others are.
local function export(o, nb)
	local good = true
	for _, kind in ipairs(EXPORTS) do
		if o[kind] then
			local done, problem = pcall(WRITE[kind], nb, o[kind])
			if not done then
				io.stderr:write('quoll: ', tostring(problem), '\n')
				good = false
			end
		end
	end
	return good
end

---------------------------------------------------------------- showing what was kept

local function show_output(o)
	if o.output_type == 'stream' then
		io[o.name]:write(o.text)
	elseif o.output_type == 'note' then
		print(o.text)
	elseif o.output_type == 'error' then
		io.stderr:write(table.concat(o.traceback, '\n'), '\n')
	else
		local text = o.data['text/plain'] or ''
		if o.execution_count then
			print(('Out[%d]:%s%s'):format(o.execution_count, text:find '\n' and '\n' or ' ', text))
		else
			print(text)
		end
	end
end

local function show_kept(nb)
	for _, cell in ipairs(nb.cells) do
		for _, o in ipairs(cell.kept and cell.outputs or {}) do show_output(o) end
	end
end

---------------------------------------------------------------- watching

-- Waits until the file is another, and has been for a moment: editors write in several steps.
local function wait_for_change(file, before)
	local last
	while true do
		internal.sleep(0.1)
		local now = internal.file_state(file)
		if now and now ~= before and now == last then return now end
		last = now
	end
end

-- Runs what changed, again and again; only Ctrl-C ends it.
local function watch(self, o, state)
	local file = self.nb.file
	while true do
		io.stderr:write(internal.dim('watching ' .. file .. '; Ctrl-C ends'), '\n')
		state = wait_for_change(file, state)
		local good, nb = pcall(notebook.open, file)
		if not good then
			io.stderr:write('quoll: ', tostring(nb), '\n')
		else
			local round = internal.import 'interp/notebook/stale'.round(self.nb, nb)
			self:take(nb)
			local how, last = self:all(function(cell) return round:wants(cell) end)
			if how == 'interrupted' then return 130 end
			round:finish(how == 'failed' and last or nil)
			self:keep()
			export(o, nb)
			io.stderr:write(internal.dim(('%d cell%s ran'):format(round.ran, round.ran == 1 and '' or 's')), '\n')
		end
	end
end

---------------------------------------------------------------- the commands

local cli = {}

local function run_all(self, o, state)
	local how = self:begin():all()
	self:keep()
	local good = export(o, self.nb) and not self.unwritable
	if how == 'interrupted' then return 130 end
	if o.watch then return watch(self, o, state) end
	return how == 'done' and good and 0 or 1
end

-- What is wrong with the arguments or a file is told in one line; anything else is an error of the program.
local function told(command, arguments)
	local good, code = pcall(command, arguments)
	if good then return code end
	if type(code) ~= 'string' or internal.is_own('=' .. code) or code == 'interrupted' then error(code, 0) end
	io.stderr:write('quoll: ', code, '\n')
	return 1
end

-- The side file; nil: outputs are not kept, because nobody wants it or because the one that is there may not be read.
local function side_of(o, file)
	local side = o.out or notebook.side_name(file)
	if side == '-' then return nil end
	local handle, why, code = io.open(side, 'rb')
	if handle then handle:close() end
	if handle or code ~= 13 then return side end -- EACCES
	io.stderr:write('quoll: the outputs are not kept: ', why, '\n')
	return nil
end

local function run_command(arguments)
	local o = parse(arguments)
	if #o.files ~= 1 then fail('run: wanted one notebook, got %d; quoll run --help explains', #o.files) end
	local file = o.files[1]
	check_exports(o, file)
	local state = internal.file_state(file)
	local nb = notebook.open(file)
	local side = side_of(o, file)
	local self = runner.new(nb, {side = side, parameters = o.parameters, png = o.ipynb ~= nil})
	if side then notebook.read_side(side) end -- not to replace what is none of ours
	arg = {[0] = file, table.unpack(o.rest)}
	if o.cached and not side then fail '--cached: wanted a side file, got --out -' end
	if o.cached and notebook.load_side(nb, side) and not o.watch then
		show_kept(nb)
		return export(o, nb) and 0 or 1
	end
	for _, cell in ipairs(nb.cells) do cell.outputs, cell.kept, cell.execution_count, cell.seconds = nil, nil, nil, nil end
	return run_all(self, o, state)
end

local function convert_command(arguments)
	local o = parse(arguments)
	if #o.files ~= 2 then fail('convert: wanted two files, got %d; quoll convert --help explains', #o.files) end
	local from, to = o.files[1], o.files[2]
	local write = WRITE[(to:match '%.(%w+)$' or ''):lower()]
	if not write then fail('convert: %s: wanted a name that ends in .lua, .ipynb, .html or .md', to) end
	if from == to then fail('convert: %s: wanted two files, got the same', to) end
	local nb = notebook.open(from)
	notebook.keys(nb, '')
	if nb.format == 'lua' then notebook.load_side(nb, notebook.side_name(from)) end
	write(nb, to)
	if to:lower():find '%.lua$' then
		local n = 0
		for _, cell in ipairs(nb.cells) do
			if cell.attachments then io.stderr:write(('quoll: cell %d: a Lua file cannot hold attached pictures\n'):format(cell.index)) end
			cell.kept = cell.kind == 'code' and cell.outputs ~= nil and #cell.outputs > 0
			n = n + (cell.kept and 1 or 0)
		end
		if n > 0 then notebook.save_side(nb, notebook.side_name(to)) end
	end
	return 0
end

function cli.run(arguments) return told(run_command, arguments) end

function cli.convert(arguments) return told(convert_command, arguments) end

return cli
