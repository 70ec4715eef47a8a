-- SPDX-License-Identifier: MIT
-- Commands of the shell: os.execute as in plain Lua, and what they put out as outputs of a notebook.
local folder = os.tmpname()
os.remove(folder)
os.execute('mkdir ' .. folder)

-- Runs a notebook and gives its Markdown and what went to the terminal.
local function run(text)
	local file = io.open(folder .. '/nb.lua', 'w')
	file:write(text):close()
	local pipe = io.popen(('cd %s && "/proc/$PPID/exe" run nb.lua --md nb.md --out - 2>&1'):format(folder))
	local terminal = pipe:read 'a'
	pipe:close()
	local page <close> = assert(io.open(folder .. '/nb.md'), terminal)
	return page:read 'a', terminal
end

describe('os.execute', function()
	it('reports how the command ended', function()
		print(os.execute 'exit 3')     --> nil exit 3
		print(os.execute 'true')       --> true exit 0
		print(os.execute 'kill -9 $$') --> nil signal 9
		print(os.execute())            --> true
		assert(not pcall(os.execute, {}))
	end)
end)

describe('in a notebook', function()
	it('stdout and stderr of commands are outputs, in their order with those of Lua', function()
		local page, terminal = run("-- %%\nprint 'first'\nos.execute 'echo second; echo third >&2'\nprint 'fourth';\n-- %%\n!echo fifth\n")
		assert(page:find 'first\nsecond\nthird\nfourth\n' and page:find '\nfifth\n', page)
		assert(terminal:find 'first\nsecond\nthird\nfourth\n.*fifth\n', terminal)
	end)
	it('stdin of commands is empty', function()
		assert(run('-- %%\n!cat; echo over\n'):find '\nover\n')
	end)
	it('large outputs are whole', function()
		local page = run "-- %%\nos.execute 'yes 123456789 | head -n 20000';\n"
		local n = select(2, page:gsub('123456789\n', ''))
		assert(n == 20000 or page:find 'lines', n)
	end)
	it('programs left in the background are not waited for', function()
		local began = os.time()
		assert(run("-- %%\n!sleep 20 & echo started\n"):find '\nstarted\n')
		assert(os.time() - began < 15)
	end)
	it('statuses come back', function()
		local page = run "-- %%\nprint(os.execute 'exit 3', select(3, os.execute 'exit 4'))\nprint(select(2, os.execute 'kill -9 $$'))\n"
		assert(page:find 'nil\t4\nsignal\t9\n', page)
	end)
	it('an editor is refused', function()
		local page, terminal = run '-- %%\nx = 1\n-- %%\n%edit 1\n'
		assert(terminal:find 'edit: an editor needs the terminal of the prompt', terminal .. page)
	end)
	it('Ctrl-C ends the command and the run', function()
		local file = io.open(folder .. '/nb.lua', 'w')
		file:write "-- %%\nos.execute 'sleep 30; echo never'\n":close()
		local began = os.time()
		local pipe = io.popen(('cd %s && timeout -s INT 1 "/proc/$PPID/exe" run nb.lua --out - 2>&1; echo $?'):format(folder))
		local text = pipe:read 'a'
		pipe:close()
		assert(text:find 'interrupted' and not text:find '\nnever' and os.time() - began < 20, text)
	end)
end)

os.execute('rm -r ' .. folder)
