-- SPDX-License-Identifier: MIT
-- Warnings of globals that only functions of a script assign.
local file = os.tmpname()

-- What running the text as a script says.
local function said(text, options)
	local f <close> = io.open(file, 'w')
	f:write(text):close()
	local pipe <close> = io.popen(('"/proc/$PPID/exe" %s %s 2>&1'):format(options or '', file))
	return (pipe:read 'a':gsub('%S*' .. file:match '[^/]*$', 'x.lua'))
end

describe('a script', function()
	it('is warned of a forgotten local, with the line, before it runs', function()
		local text = said 'print "runs"\nfunction f()\n\tlocal a\n\ttotal = 1\nend'
		assert(text:find "^warning: x.lua:4: only a function assigns the global 'total': wanted a local", text)
		assert(text:find 'runs\n$' and select(2, text:gsub('warning: ', '')) == 1, text)
	end)
	it('at every depth, in the order of lines', function()
		local text = said 'local function f() return function() b = 1 a = 2 end end\nfunction g()\n\n\nc = 1 end'
		assert(text:find "x.lua:1: [^\n]*'a'.*x.lua:1: [^\n]*'b'.*x.lua:5: [^\n]*'c'", text)
	end)
	it('not of names that the script itself assigns, before or after, or that exist', function()
		assert(said 'x = 1 function f() x, y, print = 2, 3, 4 end y = 1' == '')
	end)
	it('not of names that the script assigns by _G', function()
		assert(said "_G.u = 1 rawset(_G, 'r', 2) function f() u, r = 3, 4 end" == '')
		assert(said '_G.u = 1 function f() v = 3 end':find "'v'")
	end)
	it('not of locals, fields, parameters and reads', function()
		assert(said 'local l local t = {} function f(p) l, p, t.field = 1, 2, 3 t[l] = read end' == '')
		assert(said 'function f() local _ENV = {} inside = 1 end' == '')
	end)
	it('only when that is wanted', function()
		assert(said('function f() x = 1 end', '--strict=0') == '')
	end)
	it('runs without any, too, when there are many constants and lines far apart', function()
		local parts = {}
		for i = 1, 300 do parts[i] = ('s%d = "t%d"'):format(i, i) end
		local text = said(table.concat(parts, '\n') .. ('\n'):rep(500) .. 'function f()\n' .. ('\n'):rep(300) .. ' late = 1 end')
		assert(text:find 'x.lua:1101: ' or text == '', text) -- with so many constants names may be out of the instructions' reach
	end)
end)

describe('a notebook', function()
	-- What running the cells says.
	local function run(text, options)
		local f <close> = io.open(file .. '.lua', 'w')
		f:write(text):close()
		local pipe <close> = io.popen(('"/proc/$PPID/exe" %s run %s.lua --out - 2>&1'):format(options or '', file))
		return (pipe:read 'a':gsub('%S*' .. file:match '[^/]*$', 'x'))
	end
	it('is warned in the same way, with the line of the file', function()
		local text = run '-- %%\nlocal seen = 0\n-- %%\nfunction f() seen, later = 1, 2 end\n1 + 1\n-- %%\nlater = 3\nfunction g()\ntotal = 1\nend\n!true\n-- %%\nprint "end"'
		assert(text:find "x.lua:9: only a function assigns the global 'total'" and select(2, text:gsub('warning: ', '')) == 1, text)
		assert(text:find 'end\n')
	end)
	it('not with --strict=0, and its outputs are as without', function()
		assert(run('-- %%\nfunction f() x = 1 end', '--strict=0') == '')
	end)
end)

it('our own scripts and tutorials are clean', function()
	local pipe <close> = io.popen('ls scripts/*.lua tutorials/*.lua 2>/dev/null')
	local strict = debug.getregistry()['quoll.internal'].import 'interp/input/strict'.script
	local n = 0
	for name in pipe:lines() do
		local chunk = loadfile(name)
		if chunk then
			n = n + #strict(chunk, name)
		end
	end
	assert(n == 0)
end)

os.remove(file)
os.remove(file .. '.lua')
