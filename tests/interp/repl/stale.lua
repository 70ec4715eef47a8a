-- SPDX-License-Identifier: MIT
-- Which inputs read what has changed since: %%stale, %%run stale.
local prompt = dofile 'tests/tools/prompt.lua'
local session, check = prompt.session, prompt.check

describe('an input is stale', function()
	it('when a global that it read has changed', function()
		check('w = 1\ny = w + 1\nw = 5\n%stale', 'In[2] read w, changed by In[3]\n')
	end)
	it('when a kept local that it read has changed', function()
		check('local w = 1\ny = w + 1\nw = 5\n%stale', 'In[2] read w, changed by In[3]\n')
		check('local w = 1\ny = w + 1\nlocal w = 5\n%stale', 'In[2] read w, changed by In[3]\n')
	end)
	it('when a tensor was changed in place, also through a view', function()
		check('x = tensor.ones(3)\ny = x:sum():item()\nx:add_(1);\n%stale', 'In[2] read x, changed by In[3]\n')
		check('x = tensor.ones(3)\ny = x:sum():item()\nx[1] = 7\n%stale', 'In[2] read x, changed by In[3]\n')
		check('x = tensor.ones(3) v = x["1:2"]\ny = v:sum():item()\nx:mul_(2);\n%stale', 'In[2] read v, changed by In[3]\n')
	end)
	it('when a table or model that it read has other contents', function()
		check('t = {a = {1}}\ny = t.a[1]\nt.a[1] = 2\n%stale', 'In[2] read t, changed by In[3]\n')
		check('m = nn.Linear(2, 1)\ny = m(tensor.ones(1, 2)):sum():item()\nm.weight:detach():add_(1);\n%stale',
			'In[2] read m, changed by In[3]\n')
	end)
	it('when a function that it called reads something else, or is another', function()
		check('w = 1\nfunction f() return w end\nz = f()\nw = 2\n%stale', 'In[3] read w, changed by In[4]\n')
		check('function f() return 1 end\nz = f()\nfunction f() return 2 end\n%stale', 'In[2] read f, changed by In[3]\n')
		check('w = 1\nM = {f = function() return w end}\nz = M.f()\nw = 2\n%stale', 'In[3] read w, changed by In[4]\n')
		check('w = 1\nz = (function() return w end)()\nw = 2\n%stale', 'In[2] read w, changed by In[3]\n')
	end)
	it('when what it read was made by a stale one', function()
		check('a = 1\nb = a\nc = b\na = 2\n%stale',
			'In[2] read a, changed by In[4]\nIn[3] read b, which In[2] makes, and that is stale\n')
	end)
	it('when it only showed something', function()
		check('w = 1\nw\nw = 2\n%stale', 'Out[2]: 1\nIn[2] read w, changed by In[3]\n')
	end)
	it('when the change came with an error', function()
		local out = session 'w = 1\ny = w\nw = 2 error "x"\n%stale'
		assert(out:find('In[2] read w, changed by In[3]', 1, true), out)
	end)
end)

describe('an input is not stale', function()
	local function none(lines) check(lines .. '\n%stale', 'nothing is stale\n') end
	it('when only a field, parameter or inner local has that name', function()
		none 'w = 1\nt = {w = 2} y = t.w\nw = 3'
		none 'w = 1\nfunction f(w) return w end y = f(4)\nw = 3'
		none 'w = 1\ndo local w = 2 y = w end\nw = 3'
	end)
	it('when it only defined a function', function()
		none 'w = 1\nfunction f() return w end\nw = 2'
		none 'w = 1\nlocal function f() return w end\nw = 2'
		none 'w = 1\nM = {} function M.f() return w end\nw = 2'
	end)
	it('when the value came back', function()
		none 'w = 1\ny = w\nw = 2\nw = 1'
		none 't = {1, 2}\ny = t[1]\nt[1] = 5\nt[1] = 1'
	end)
	it('when it assigned again what it read, or ran again', function()
		none 'x = 1\nx = x + 1\nx = 7'
		none 'w = 1\ny = w\nw = 2\ny = w'
		none 'w = 1\ny = w\nw = 2\n%run 2'
	end)
	it('when others went on with what it changed', function()
		none 'x = tensor.ones(2)\nx:add_(1);\nx:mul_(2);'
	end)
	it('for what every input changes', function() none '5;\n_;\nIn[1];\n6;' end)
end)

it('%load counts as the input that assigns', function()
	local path = os.tmpname()
	local out = session(('x = 1\n%%save %s\nx = 2\ny = x\n%%load %s\nz = 3\n%%stale'):format(path, path))
	assert(out:find 'In%[4%] read x, changed by In%[5%]\n$', out)
	out = session(('x = 1\n%%save %s x\ny = x + 1\n%%load %s\nz = 3\n%%stale'):format(path, path))
	assert(out:find 'nothing is stale\n$', out)
	os.remove(path)
	os.remove(path .. '.safetensors')
end)

it('%reset ends all marks', function()
	local out = session 'x = 1\ny = x\n%reset -f\nx = 5\n%stale'
	assert(out:find 'nothing is stale\n$', out)
end)

describe('%run stale', function()
	it('runs them in order, under their numbers', function()
		check('a = 1\nb = a * 10\nc = b + 1\na = 2\n%run stale\nc\n%stale', 'Out[6]: 21\nnothing is stale\n')
		check('a = 1\na + 1\na = 5\n%run stale\nOut[2]', 'Out[2]: 2\nOut[2]: 6\nOut[5]: 6\n')
	end)
	it('stops at an error', function()
		local out = session 'a = 1\nassert(a == 1)\nb = a\na = 2\n%run stale\nb'
		assert(out:find 'assertion failed' and out:find 'Out%[6%]: 1\n', out)
	end)
	it('says when there is nothing to do', function() check('%run stale', 'nothing is stale\n') end)
end)

describe('%stale n', function()
	it('reports what an input read and wrote', function()
		check('a, b = 1, 2\nc = a + b\n%stale 2\n%stale 1', 'In[2] read a b; wrote c\nIn[1] read no variable; wrote a b\n')
		check('%stale 9', 'stale: In[9] has not run\n')
	end)
	it('knows functions of hundreds of constants', function()
		local many = {}
		for i = 1, 400 do many[i] = ('v%d = %d'):format(i, i + 1000) end
		check(table.concat(many, ' ') .. '\ny = v399\nv399 = 5\n%stale', 'In[2] read v399, changed by In[3]\n')
		check('w = 1\n' .. table.concat(many, ' ') .. ' y = w\nw = 2\n%stale', 'In[2] read w, changed by In[3]\n')
	end)
end)

it('%set stale on says it below the input', function()
	check('%set stale on\nw = 1\ny = w\nw = 2', 'stale now: In[3]; %stale shows why, %run stale runs it again\n')
	check('w = 1\ny = w\nw = 2', '')
end)
