-- SPDX-License-Identifier: MIT
-- Habits of IPython and Python: words of the prompt that it has not, syntax that Lua has not.
local prompt = dofile 'tests/tools/prompt.lua'
local session, check, has = prompt.session, prompt.check, prompt.has

it('words of IPython get an answer', function()
	check('%matplotlib inline', '%matplotlib is a word of IPython; here: nothing to switch on: plot.line(x) draws in the terminal (%set plot …) and in Jupyter\n')
	for _, word in ipairs {'load_ext', 'paste', 'cpaste', 'xmode', 'pdb', 'prun', 'whos', 'lsmagic', 'autoreload', 'store', 'capture'} do
		local out = session('%' .. word .. ' x')
		assert(out:find('^%%' .. word .. ' is a word of IPython; here: [^\n]+\n$'), out)
		assert(session('%%' .. word) == session('%' .. word))
	end
	check('%whoss', "%whoss: no such magic; did you mean 'who'?; %magics lists them\n")
end)
it('no word of IPython hides one of ours', function()
	local answer = debug.getregistry()['quoll.internal'].import 'interp/repl/magic_ipython'.answer
	for _, magic in ipairs(debug.getregistry()['quoll.internal'].magics()) do assert(not answer(magic[1]), magic[1]) end
end)
it('words without arguments refuse them', function()
	for _, word in ipairs {'who', 'explain', 'magics', 'journal', 'pwd'} do
		check(('%%%s x y;'):format(word), ("%%%s: wanted nothing after it, got 'x y'\n"):format(word))
	end
	has('%debug x', "wanted drop or nothing, got 'x'\n")
	has('%debug dorp', "got 'dorp'; did you mean 'drop'?\n")
	check('%set --svae', "set: unknown option '--svae'; did you mean '--save'?\n")
	check('%forget', 'usage: forget name ...\n')
	check('local a = 1\n%forget a, 5', "forget: wanted names, got ','\nforget: wanted names, got '5'\n")
	check('%reset all', "reset: wanted -f or nothing, got 'all'\n")
end)
it('%reset drops the variables, with -f', function()
	check('x = 1 local y = 2\n7\n%reset\nx, y\n%reset -f\nx, y, Out[2], _, tensor ~= nil', 'Out[2]: 7\n%reset -f drops 2 variables and all of Out; ' ..
		'%forget name drops one\nOut[4]: 1\t2\n2 variables dropped\nOut[6]: nil\tnil\tnil\tnil\ttrue\n')
end)
it('%help is help', function()
	assert(session '%help x:relu' == session '?x:relu' and session "%help 'x:relu'" == session '?x:relu')
	assert(session '%help' == session 'help()')
end)
describe('syntax of other languages', function()
	for text, hint in pairs {
		['if a != b then end'] = "'~=' is the operator 'not equal' here", ['x += 1'] = "there is no '+=' in Lua: x = x + …", ['x.y[2] -= 3'] = 'x.y[2] = x.y[2] - …',
		['x = a && b'] = "'and' is that operator here", ['x = a || b'] = "'or' is that operator here", ['if !x then end'] = "'not' is that operator here",
		['if (a = 1) then end'] = "'==' compares", ['x++'] = "there is no '++' in Lua: x = x + 1", ['help tensor'] = "?tensor or help 'tensor' asks for help", ['x = [1, 2]'] = 'a list is written in braces: {1, 2, 3}',
		['f(x, axis=1)'] = 'options go in braces: f(x, {name = value})', ['x[:, 1]'] = "a range is a text: x[':, 1'], x['1:10']", ['def f(x):'] = 'function name(x) … end',
		['import torch'] = 'nothing is imported', ['from torch import nn'] = 'nothing is imported', ['y = x ** 2'] = "'^' is the power here", ['x = 5 # five plus two'] = "'--' begins a comment",
		['// note'] = "'--' begins a comment", ['f = lambda x: x'] = 'function(x) return … end', ['print x'] = 'print(x)', ['y = a ? b : c'] = 'condition and a or b',
		['for i in range(3):\n    print(i)'] = 'a loop is written: for i = 1, n do … end', ['while x:\n    f()'] = 'while … do … end',
		['del x'] = 'a variable goes away by x = nil, a local one of the prompt by %forget x', ['files = !ls'] = "io.popen('ls'):read 'a'",
		['"""doc"""'] = 'is written in [[ ]]', ["s = '''a"] = 'is written in [[ ]]', ['[i for i in x]'] = 'a list is filled in a loop', ['[1, 2]'] = 'in braces',
		["d = {'a': 1}"] = 'fields are written {name = value}', ['y = 1 if x else 2'] = 'condition and a or b', ['x is None'] = "'==' compares: x == nil",
		['if x is not None then end'] = "'~=' compares: x ~= nil", ['a @ b'] = 'a:matmul(b)', ['"%d".format(3)'] = "('%d'):format(3)",
		['x = y = 3'] = 'a statement of its own', ['# comment'] = "'--' begins a comment", ['"a" + "b"'] = 'texts are joined by ..',
		['1 + "b"'] = 'texts are joined by ..', ['"%d" % 3'] = "('%d'):format(3)", ['"-" * 10'] = "('ab'):rep(3)",
		['if x:\n    f()\nelse:\n    g()'] = 'if … then … elseif',
	} do
		it('gets a hint: ' .. text, function()
			local out = session(text)
			assert(out:find(hint, 1, true) and out:find '^In%[1%]:%d+: ', out)
		end)
	end
	it('gets a note where it is a variable of Lua', function()
		check('x = {flag = True}', 'True is a variable without a value here; the word of Lua is true\n')
		check('f = None or null', 'None is a variable without a value here; the word of Lua is nil\n')
		check('True = 1\nTrue', 'Out[2]: 1\n')
		check('local None = 2\nNone, ({True = 1}).True', 'Out[2]: 2\t1\n')
		check('x = {None = 1, "False"}\nx.None', 'Out[2]: 1\n')
	end)
	it('in strings and comments is none', function()
		check('x = "a != b" y y', "In[1]:1: syntax error near 'y'\n")
		check('x y -- a && b', "In[1]:1: syntax error near 'y'\n")
		check('if x == 1 then y = = 2 end', "In[1]:1: unexpected symbol near '='\n")
		check('if a then b = 1 else c = = 2 end', "In[1]:1: unexpected symbol near '='\n")
		check('x = #t y y', "In[1]:1: syntax error near 'y'\n")
	end)
end)
