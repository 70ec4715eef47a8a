-- SPDX-License-Identifier: MIT
-- ?name of what the user made: values by what they are, functions by their signature and comment; ??name adds the source.
local prompt = dofile 'tests/tools/prompt.lua'
local session = prompt.session

-- What the last line prints; all parts must be in it, those in `never` not.
local function has(lines, ...)
	local out = session(lines)
	for _, part in ipairs {...} do
		if not out:find(part, 1, true) then error(('%q: wanted %q in %s'):format(lines, part, out), 2) end
	end
	return out
end

it('a lone help is help()', function()
	local wanted = session 'help()'
	assert(wanted:find '^Quoll: ' and session 'help' == wanted and session '  help;\n' == wanted)
	prompt.check('help = 5\nhelp', 'Out[2]: 5\n')
end)

it('formats of specs, and tensors of them', function()
	has('?mxfp4', "mxfp4, a format of quant specs: x:quantize 'mxfp4'", 'scale in float8_e8m0 per 32 elements')
	has("x = tensor.ones(2, 64):quantize 'nvfp4'\n?x", 'x, nvfp4(2, 64), blocks of 16 on axis 2', 'spec       nvfp4', 'scales in  fp8_e4m3', 'scale      0.166667 (8')
	has("x = tensor.ones(2, 64):quantize 'int4:32+min'\n?x", 'minimum    1 (4 of them')
end)

it("what is Lua's own: its place in the manual; %words: what to type", function()
	local manual = 'https://www.lua.org/manual/5.4/manual.html#'
	prompt.check('?print', 'print is a function of Lua: ' .. manual .. 'pdf-print\n')
	prompt.check('??print', 'print is a function of Lua: ' .. manual .. 'pdf-print\n')
	prompt.check('?if', 'if is a word of Lua: ' .. manual .. '3\n')
	prompt.check('?table', 'table is a library of Lua: ' .. manual .. '6\n')
	prompt.check('string.format?', "string.format belongs to Lua's library string: " .. manual .. 'pdf-string.format\n')
	prompt.check('?%who', '%who\n  the variables, like who()\n')
	has('?%%timeit', '%timeit [-n calls] [-r runs] code\n  runs it many times')
	has('?%nothing', "'%nothing'")
	has('print = 3\n?print', 'print')
end)

it('a tensor: dtype, shape, bytes, values, gradient', function()
	has('x = tensor{{1, 2, 3}, {4, 5, 6.5}}\n?x', 'x, float32(2, 3)\n', 'dtype      float32\n', 'shape      2 x 3 (6 elements)\n', 'bytes      24\n', 'values     1 to 6.5\n',
		"help 'tensor' describes")
	has('local x = tensor{{1, 2, 3}, {4, 5, 6}}:t()\nx?', 'shape      3 x 2', 'a view with strides 1 3')
	has('x = tensor{1, 2, grad = true}\n?x', 'gradient   wanted\n')
	has('x = tensor.zeros(0)\n?x', 'shape      0 (0 elements)\n')
	has('x = tensor{3}:sum()\n?x', 'shape      a single number\n', 'values     3\n')
	has('x = tensor.zeros(1024)\n?x', 'bytes      4096 (4.0 KiB)\n')
end)
it('a quantized tensor: spec, scales, zero points, codes', function()
	has("x = tensor{{1, 2}, {3, 127}}:quantize 'int8'\n?x", 'x, int8(2, 2) symmetric', 'spec       int8\n', 'scheme     symmetric\n', 'scale      1\n', 'codes      -127 to 127\n',
		'values     1 to 127\n')
	has("x = tensor{{-1, 1}, {-2, 2}}:quantize 'uint8/1'\n?x", 'scale      0.00784', '(2 of them, along axis 1)', 'zero point ')
	has("x = tensor.ones(4, 64):quantize 'int4:32'\n?x", 'spec       int4:32\n', '(8 of them, one for 32 along axis 2)')
	local out = session "x = tensor{1, 2}:quantize 'int8'\n?x\n%explain"
	assert(out:find 'nothing fell back', out)
end)
it('a field that is not there: the name that is near', function()
	prompt.check('cfg = {lr = 1, inner = {rate = 2}}\n?cfg.lrr', "cfg has no field 'lrr'; did you mean 'lr'?\n")
	prompt.check('local cfg = {lr = 1}\n?cfg.zebra', "cfg has no field 'zebra'\n")
	prompt.check('cfg = {lr = 1, inner = {rate = 2}}\n?cfg.inner.rat', "cfg.inner has no field 'rat'; did you mean 'rate'?\n")
	has('x = tensor{1}\n?x.relu', 'relu')
end)
it('a function: signature, place, comment, source', function()
	local name = os.tmpname() .. '.lua'
	local file = io.open(name, 'w')
	file:write '-- %% a cell\n-- Adds them.\n-- All of them.\nfunction add(x, y, ...)\n  return x + y\nend\n'
	file:close()
	local out = has(('%%run %s\n?add'):format(name), 'add, a function\n', 'call       add(x, y, ...)\n', ('defined    %s:4\n'):format(name), '  Adds them.\n  All of them.\n', '??add shows')
	assert(not out:find 'a cell' and not out:find 'return x')
	out = has(('%%run %s\n??add'):format(name), '  Adds them.\n', 'function add(x, y, ...)\n  return x + y\nend\n')
	assert(not out:find 'shows its text', out)
	os.remove(name)
	has('-- Twice.\nlocal function twice(x)\n return 2 * x end\n?twice', 'call       twice(x)\n', 'defined    In[1]:1\n')
	has('f = tensor.ones\n?f', 'tensor.ones(2, 3)')
	has('f = print\n?f', 'written in C')
end)
it('a table: its fields, also by their names', function()
	local lines = "cfg = {1, 2, lr = 0.1, name = 'net', sub = {x = {1, 2, 3}}, f = print, w = tensor{1}}\n"
	has(lines .. '?cfg', 'cfg, a table\n', 'items      7, 2 of them in a list\n', '[1]        1\n', 'lr         0.1\n', 'name       "net"\n', 'sub        a table of 1 item\n',
		'f          a function written in C\n', 'w          float32(1)\n')
	has(lines .. '?cfg.sub.x', 'cfg.sub.x, a table\n', 'items      3, 3 of them in a list\n')
	has(lines .. '?cfg.w', 'cfg.w, float32(1)\n')
	has('t = {} for i = 1, 100 do t[i] = i end\n?t', '… and 60 more\n')
	has('t = setmetatable({a = 1}, {__index = error, __pairs = error, __len = error, __tostring = function() return "mine" end})\n?t', 'a          1\n')
end)
it('other values', function()
	has("s = 'relu'\n?s", 's, a string\n', 'value      "relu"\n', 'bytes      4\n')
	has('n = 3\nn?', 'n, an integer\n', 'value      3\n')
	has('m = nn.Sequential{nn.Linear(2, 3)}\n?m', 'm, Sequential, 9 parameters\n', 'parameters 2 tensors, 36 bytes\n', 'linear1  Linear(2, 3)', "help 'module'")
	has('m = nn.Sequential{nn.Linear(2, 3)}\n?m.linear1.weight', 'm.linear1.weight, float32(3, 2)\n')
	has('o = optim.sgd(nn.Linear(2, 3))\n?o', 'o, optim.sgd', "help 'optimizer'")
	has('r = report{{a = 1}}\n?r', 'r, report, 1 row: a\n')
end)
it('names of Quoll stay what they are', function()
	assert(session '?x:relu' == session 'x = tensor{1}\n?x.relu')
	assert(session '?tensor' == session 'x = 1\n?tensor')
	has('?no_such_name_at_all', "No help for 'no_such_name_at_all'")
end)
