-- SPDX-License-Identifier: MIT
-- What listeners hear of what is put out, in its order, and what the terminal still gets.
local internal = debug.getregistry()['quoll.internal']

-- The events while the code runs, as 'kind text' lines.
local function heard(code, quiet)
	local events = {}
	do
		local _ <close> = internal.listen(function(kind, text, value)
			events[#events + 1] = {kind = kind, text = text, value = value}
		end, quiet ~= false)
		local s = internal.session()
		for _, input in ipairs(code) do assert(s:input(input, true)) end
	end
	return events
end

local function joined(events, kind)
	local all = {}
	for _, e in ipairs(events) do
		if e.kind == kind then all[#all + 1] = e.text end
	end
	return table.concat(all, '|')
end

it('hears Lua and C in their order', function()
	local e = heard {"io.write 'a' io.stdout:write 'b\\n' io.stderr:write 'c' 6 * 7"}
	assert(e[1].kind == 'stdout' and e[1].text == 'ab\n')
	assert(e[2].kind == 'stderr' and e[2].text == 'c')
	assert(e[3].kind == 'result' and e[3].text == '42' and e[3].value == 42 and #e == 3)
end)
it('hears errors with their traceback', function()
	local e = heard {"local function f() error 'no' end f()"}
	assert(#e == 1 and e[1].kind == 'error' and e[1].text:find 'no\nstack traceback:\n')
end)
it('hears figures as values', function()
	local e = heard {'plot.line{{1, 2}}:show() plot.bar{{3}}'}
	assert(e[1].kind == 'display' and e[1].value and e[1].value.svg, joined(e, 'display'))
	assert(e[2].kind == 'result' and e[2].value ~= e[1].value and not e[2].text:find '\27')
end)
it('hears notes', function()
	local e = heard {"a = tensor.randn(4, 4):quantize 'int8' b = a + a"}
	assert(joined(e, 'note'):find 'fell back to float32')
end)
it('keeps a session: numbers, locals, costs', function()
	local _ <close> = internal.listen(function() end, true)
	local s = internal.session()
	assert(not s:input('local x = {', false) and s:input('local x = 1', false) and s:input('y = x + 1', false))
	assert(y == 2 and s:number() == 3)
	local wall, cpu, peak, fallbacks = s:cost()
	assert(wall >= 0 and cpu >= 0 and peak == 0 and fallbacks == 0)
	y = nil
end)
it('uses locals behind line breaks and comments', function()
	local e = heard {'local x = 1', '\n\nx + 1', '-- why\nx + 2'}
	assert(joined(e, 'result') == '2|3' and joined(e, 'error') == '', joined(e, 'error'))
end)
it('reports lines of a file', function()
	local events = {}
	do
		local _ <close> = internal.listen(function(kind, text) events[#events + 1] = kind .. ' ' .. text end, true)
		local s = internal.session()
		s:input("local x = 1\nerror 'no'", true, '@some.lua', 7)
		s:input('x x', true, '@some.lua', 20)
		s:input('In[1]', true)
		assert(select(2, s:input('print(2)', true)) == false)
	end
	assert(events[1] == "error some.lua:8: no\nstack traceback:\n\t[C]: in function 'error'\n\tsome.lua:8: in input", events[1])
	assert(events[2]:find '^error some.lua:20: syntax error', events[2])
	assert(events[3]:find 'result "local x = 1\\nerror', events[3])
end)
it('is loud or quiet on the terminal', function()
	local name = os.tmpname()
	local function run(quiet)
		local file = assert(io.open(name, 'w'))
		file:write(([[local internal = debug.getregistry()['quoll.internal']
			local n = 0
			local l = internal.listen(function(kind, text) n = n + #text end, %s)
			print 'hello' io.stderr:write 'err' l:close() l:close()
			print(n)]]):format(quiet))
		file:close()
		local pipe = io.popen(('"/proc/$PPID/exe" %s 2>&1'):format(name))
		return pipe:read 'a', pipe:close()
	end
	local loud, quiet = run(false), run(true)
	assert(loud:find 'hello' and loud:find 'err' and loud:find 'err9\n', loud)
	assert(not quiet:find 'hello' and not quiet:find 'err' and quiet:find '9\n$', quiet)
	os.remove(name)
end)
it('goes on when a listener fails', function()
	local listener = internal.listen(function() error 'bad listener' end, true)
	print 'still here'
	warn '@off'
	listener:close()
	warn '@on'
end)
