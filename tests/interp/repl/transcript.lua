-- SPDX-License-Identifier: MIT
-- Sessions that are pasted with their prompts.
local prompt = dofile 'tests/tools/prompt.lua'
local check = prompt.check
local transcript = debug.getregistry()['quoll.internal'].import 'interp/repl/transcript'

local function cut(text, wanted, ...)
	local got, cuts = transcript(text)
	if got ~= wanted then error(('%q: wanted %q, got %q'):format(text, wanted, got), 2) end
	local places = {...}
	assert(#places == #(cuts or {}), #(cuts or {}))
	for i, at in ipairs(places) do assert(cuts[i] == at, cuts[i]) end
end

it('prompts of Quoll and IPython are cut off, outputs become blank lines', function()
	cut('In [3]: x = 5\n', 'x = 5\n')
	cut('In[3]: x = 5', 'x = 5')
	cut('In [3]: for i = 1, 2 do\n   ...:     print(i)\n   ...: end\n', 'for i = 1, 2 do\n    print(i)\nend\n')
	cut('In [1]: x\nOut[1]: 5\nIn [2]: y\nOut[2]:\nfloat32(1)\n  5\n', 'x\n\ny\n\n\n\n', 3)
	cut('In [1]: print(1)\n1\nIn [2]: y', 'print(1)\n\ny', 10)
	cut('In [1]: if x then\nprint(x)\nend\nOut[1]: 3\nmore', 'if x then\nprint(x)\nend\n\n')
	cut('In [1]:\nIn [2]: y', '\ny', 1)
	cut('\n  In [1]: y', '\ny')
end)
it('so are those of Python and Lua', function()
	cut('>>> for i = 1, 2 do\n...   print(i)\n... end\n1\n2\n>>> x', 'for i = 1, 2 do\n  print(i)\nend\n\n\nx', 33)
	cut('> x = 1\n>> y\n5', 'x = 1\ny\n')
	cut('quoll> x = 1', 'x = 1')
end)
it('nothing else is touched', function()
	for _, text in ipairs {'x = 1', 'In[3]', 'In[3]:upper()', 'In = {}', 'x = 1\nIn [2]: y', 'q = 5', '>', 'Out[3]:size()', '', '\n'} do
		if text ~= '>' then assert(transcript(text) == nil, text) end
	end
end)
it('the prompt runs each as it was typed', function()
	check('In [7]: x = 5\nIn [8]: x * 2', 'Out[2]: 10\n')
	check('In [7]: for i = 1, 2 do\n   ...: print(i)\n   ...: end\nIn[1]', '1\n2\nOut[2]: "for i = 1, 2 do\\nprint(i)\\nend\\n"\n')
	check('>>> x = 3\n>>> x', 'Out[2]: 3\n')
	check('In [1]: %time\n', 'usage: %time code\n')
	check('In [1]: x = = 1\n', "In[1]:1: unexpected symbol near '='\n")
end)
it('in one text its inputs are pieces', function()
	local name = os.tmpname() .. '.lua'
	local file = io.open(name, 'w')
	file:write '-- %%\nIn [1]: x = 4\n\nIn [2]: x\nOut[2]: 4\n\nIn [3]: x + 1\nOut[3]: 5\n-- %%\n>>> error "here"\n'
	file:close()
	local pipe = io.popen(('exec "/proc/$PPID/exe" run %s --out - 2>&1'):format(name))
	local out = pipe:read 'a'
	pipe:close()
	os.remove(name)
	assert(out:find '^Out%[1%]: 5\n' and out:find(name .. ':10: here', 1, true) and out:find '10 | >>> error "here"', out)
end)
