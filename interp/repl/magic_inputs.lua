-- SPDX-License-Identifier: MIT
-- %run, %edit, %history, %stale, %journal. %run and %edit return inputs to run: {{text =, number =}, …}.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local path_of = base.path
local magics = {}

local function fail(format, ...) error(format:format(...), 0) end

local function words_of(text)
	local words = {}
	for word in text:gmatch '%S+' do words[#words + 1] = word end
	return words
end

local function input(number)
	local text = type(In) == 'table' and rawget(In, number)
	if type(text) ~= 'string' then fail('no input In[%d]', number) end
	return text
end

-- An input that only orders others about is not run again with them; `%run file` is.
local function is_order(text)
	local word, rest = text:match '^%s*%%(%l+)%s*(.-)%s*$'
	if word == 'run' then return rest:find '^%d' or rest:find '^above' or rest:find '^stale' end
	return word == 'edit' or word == 'debug' or word == 'stale' or word == 'history' or word == 'hist'
end

---------------------------------------------------------------- %run

local function add_range(jobs, from, to)
	for number = from, to do
		local text = type(In) == 'table' and rawget(In, number)
		if type(text) == 'string' and not is_order(text) then jobs[#jobs + 1] = {number = number, text = text} end
	end
end

-- All inputs before `number` that ended well when they ran last; the others are named.
local function add_above(jobs, number)
	local all, passed = {}, {}
	add_range(all, 1, number - 1)
	for _, job in ipairs(all) do
		local how = internal.outcomes[job.number]
		if how then
			passed[#passed + 1] = ('In[%d] (%s)'):format(job.number, how)
		else
			jobs[#jobs + 1] = job
		end
	end
	if #passed > 0 then
		local lines = {}
		local text = ('passed over: %s; %%run %s runs %s'):format(table.concat(passed, ', '), passed[1]:match '%d+', #passed == 1 and 'it' or 'one')
		base.wrap(lines, text, '', internal.width())
		print(table.concat(lines, '\n'))
	end
end

-- The stale inputs one after the other: running one may make the next one stale, or no more so. Each runs once.
local function add_stale(jobs)
	local marks = internal.import 'interp/input/stale'.session
	marks:after()
	for _, cell in ipairs(marks:list()) do jobs[#jobs + 1] = {number = cell.key, text = input(cell.key)} end
	if #jobs == 0 then print 'nothing is stale' end
end

-- The notebook in the file; nil: there is none, or it is a script, which has no marker of a cell.
local function notebook_of(path)
	local text = path:lower():find '%.lua$' and internal.exists(path) and internal.import 'interp/notebook/notebook'.read_file(path)
	local maybe = text and ('\n' .. text):find '\n%-%-%s?%%%%' or path:lower():find '%.ipynb$'
	if not maybe then return nil end
	local good, nb = pcall(internal.import 'interp/notebook/notebook'.open, path)
	if not good then fail('run: %s', nb) end
	for _, cell in ipairs(nb.cells) do
		if nb.format == 'ipynb' or not (cell.bare or cell.front) then return nb end
	end
end

-- The cells of a notebook as `quoll run` takes them (interp/notebook/run.lua), in the variables of this prompt.
local function cell_jobs(nb)
	local jobs, notebook = {}, internal.import 'interp/notebook/notebook'
	for _, cell in ipairs(nb.cells) do
		if notebook.runs(cell) then
			local chunk, line = notebook.chunk(nb, cell)
			jobs[#jobs + 1] = {cell = ('\n'):rep(line - 1) .. (cell.code or cell.source), fails = notebook.fails(cell), chunk = chunk,
				complaint = ('%s:%d: the cell is tagged `raises`, and there was no error'):format(chunk:sub(2), line)}
		end
	end
	return jobs
end

-- A script runs as with `quoll file.lua argument …`, but its globals stay.
local function file_job(path, words)
	path = path_of(path)
	for _, ending in ipairs {'.lua', '.ipynb'} do
		if not internal.exists(path) and internal.exists(path .. ending) then path = path .. ending end
	end
	local nb = notebook_of(path)
	if nb then
		rawset(_G, 'arg', table.move(words, 2, #words, 1, {[0] = path}))
		return cell_jobs(nb)
	end
	local chunk, reason = loadfile(path)
	if not chunk then fail('run: %s%s', reason, internal.file_state(path) and '' or base.near(words[1], {'above', 'stale'})) end
	local arguments = table.move(words, 2, #words, 1, {[0] = path})
	rawset(_G, 'arg', arguments)
	return {{call = chunk, arguments = arguments}}
end

function magics.run(text, number)
	local words, jobs = words_of(text), {}
	if #words == 0 then fail 'usage: %%run file [argument ...], %%run 3, %%run 3-5 7, %%run above, %%run stale' end
	for i, word in ipairs(words) do
		local from, to = word:match '^(%d+)%-?(%d*)$'
		if from then
			from = math.tointeger(from)
			to = to ~= '' and math.tointeger(to) or from
			if from == to then
				jobs[#jobs + 1] = {number = from, text = input(from)}
				if is_order(jobs[#jobs].text) then fail('run: In[%d] is %s itself', from, jobs[#jobs].text:match '%%%l+') end
			else
				add_range(jobs, from, to)
			end
		elseif word == 'above' then
			add_above(jobs, number)
		elseif word == 'stale' then
			add_stale(jobs)
		elseif i == 1 and word:find '^%-' and not internal.exists(word) then
			fail("run: no option '%s': a file runs with the variables of the prompt; %%time and %%debug are lines of their own", word)
		elseif i == 1 then
			return file_job(word, words)
		else
			fail("run: wanted numbers, 'above' or 'stale', got '%s'%s", word, base.near(word, {'above', 'stale'}))
		end
	end
	return jobs
end

---------------------------------------------------------------- %edit

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function run_editor(path)
	if not internal.at_prompt() then fail 'edit: an editor needs the terminal of the prompt: there is none in a notebook, a test or Jupyter' end
	if os.getenv 'QUOLL_SANDBOX' then fail 'edit: --sandbox runs no programs' end
	local editor = os.getenv 'VISUAL' or os.getenv 'EDITOR' or 'vi'
	local good, how, code = os.execute(editor .. ' ' .. quoted(path))
	if not good then fail('edit: %s: %s %d; nothing was run', editor, how == 'signal' and 'ended by signal' or 'exit status', code) end
end

local function read(path)
	local file, reason = io.open(path, 'rb')
	if not file then fail('edit: %s', reason) end
	local text = file:read 'a'
	file:close()
	return text
end

local function edit_text(text)
	local plain = os.tmpname()
	local path = plain .. '.lua'
	local _ <close> = setmetatable({}, {__close = function()
		os.remove(path)
		os.remove(plain)
	end})
	local file = assert(io.open(path, 'wb'))
	file:write(text, text:find '\n$' and '' or '\n')
	file:close()
	run_editor(path)
	return read(path)
end

function magics.edit(text, number)
	local word = text:match '^%s*(.-)%s*$'
	local edited
	if word == '' or word:find '^%d+$' then
		local which = word ~= '' and math.tointeger(word) or nil
		local before = which and input(which) or ''
		for i = number - 1, 1, -1 do
			if which then break end
			local last = type(In) == 'table' and rawget(In, i)
			if type(last) == 'string' and not is_order(last) then which, before = i, last end
		end
		edited = edit_text(before)
		if not edited:find '%S' then
			print 'nothing to run'
			return
		end
		return {{text = edited, number = number}}
	end
	if word:find '%s' and not io.open(path_of(word), 'rb') then fail("edit: wanted the number of one input or one file, got '%s'", word) end
	word = path_of(word)
	local made = not io.open(word, 'rb')
	run_editor(word)
	if made and not io.open(word, 'rb') then
		print 'nothing to run'
		return
	end
	return file_job(word, {word})
end

---------------------------------------------------------------- %history

local function parse_history(text)
	local o, words, i = {}, words_of(text), 1
	while words[i] do
		local word = words[i]
		if word == '-n' then
			o.n = math.tointeger(tonumber(words[i + 1] or ''))
			if not o.n or o.n < 1 then fail('history: -n: wanted a number of inputs, got %s', words[i + 1] or 'none') end
			i = i + 1
		elseif word == '-o' then
			o.results = true
		elseif word == '-g' then
			o.all = true
		elseif word == '-F' or word == '--force' then
			o.force = true
		elseif word == '-f' then
			o.file = path_of(words[i + 1] or fail 'history: -f: wanted a file, got none')
			i = i + 1
		elseif word:find '^%-%d+$' then
			o.n = math.tointeger(tonumber(word:sub(2)))
		elseif word:find '^%-' then
			fail("history: unknown option '%s'%s; known: -n 20 -o -g -f file -F", word, base.near(word, {'--force'}))
		else
			o.pattern = o.pattern and o.pattern .. ' ' .. word or word
		end
		i = i + 1
	end
	if o.force and not o.file then fail('history: -F: wanted -f file, as in %%history -f %s -F', o.pattern or 'nb.lua') end
	return o
end

local function chosen(o, number)
	local numbers = {}
	for i = 1, number - 1 do
		local text = type(In) == 'table' and rawget(In, i)
		if type(text) == 'string' and (not o.pattern or text:find(o.pattern, 1, true)) then numbers[#numbers + 1] = i end
	end
	if o.n and #numbers > o.n then numbers = table.move(numbers, #numbers - o.n + 1, #numbers, 1, {}) end
	return numbers
end

-- The inputs of all sessions with the text, of the file of the line editor (history_file.c).
local function list_all(o)
	local path = internal.folder('state', 'history')
	local file = path and io.open(path, 'rb')
	local found = {}
	for line in (file and file:read 'a' or ''):gmatch '[^\n]+' do
		local text = line:gsub('\\(.)', {n = '\n', ['\\'] = '\\'})
		if not o.pattern or text:find(o.pattern, 1, true) then found[#found + 1] = text end
	end
	if file then file:close() end
	for i = math.max(1, #found - (o.n or #found) + 1), #found do print((found[i]:gsub('%s+$', ''))) end
	if #found == 0 then print 'no such input' end
end

-- The input as Lua: a value that it shows is printed; what is no Lua (%words, `x = 1 x`) becomes a comment.
local function as_lua(text)
	if load(text) then return text end
	if load('print(' .. text .. '\n)') then return text:find '%-%-' and 'print(' .. text .. '\n)' or 'print(' .. text .. ')' end
	return '-- ' .. text:gsub('\n', '\n-- ')
end

-- A notebook of the inputs.
local function write_history(path, numbers, force)
	if not force and internal.file_state(path) then fail('history: %s is there already; %%history -f %s -F replaces it', path, path) end
	local parts = {}
	for _, i in ipairs(numbers) do
		local text = as_lua((In[i]:gsub('[%s;]+$', '')))
		parts[#parts + 1] = '-- %%\n' .. text .. '\n'
	end
	internal.write_file(path, table.concat(parts, '\n'))
	print(('%d inputs in %s'):format(#numbers, path))
end

function magics.history(text, number)
	local o = parse_history(text)
	if o.all and (o.file or o.results) then fail 'history: -g: wanted no -o or -f beside it' end
	if o.all then return list_all(o) end
	local numbers = chosen(o, number)
	if o.file then return write_history(o.file, numbers, o.force) end
	local show = internal.import 'interp/prelude/show'
	for _, i in ipairs(numbers) do
		local head = ('%4d: '):format(i)
		print(head .. In[i]:gsub('%s+$', ''):gsub('\n', '\n' .. (' '):rep(#head)))
		local result = o.results and type(Out) == 'table' and Out[i]
		if result ~= nil and result ~= false then print('      --> ' .. show(result):gsub('\n', '\n          ')) end
	end
	if #numbers == 0 then print 'no such input' end
end

---------------------------------------------------------------- %stale, %journal

function magics.stale(text)
	local marks = internal.import 'interp/input/stale'.session
	marks:after()
	local word = text:match '^%s*(.-)%s*;?%s*$'
	local number = math.tointeger(tonumber(word))
	if word ~= '' and not number then fail("stale: wanted the number of an input or nothing, got '%s'", word) end
	if number then
		local reads, writes = marks:names(number)
		if not reads then fail('stale: In[%d] has not run', number) end
		print(('In[%d] read %s; wrote %s'):format(number, #reads > 0 and table.concat(reads, ' ') or 'no variable',
			#writes > 0 and table.concat(writes, ' ') or 'none'))
		return
	end
	local list = marks:list()
	for _, cell in ipairs(list) do print(('In[%d] %s'):format(cell.key, cell.why)) end
	if #list == 0 then print 'nothing is stale' end
end

function magics.journal() internal.import 'interp/repl/journal_read'.list() end

return magics
