-- SPDX-License-Identifier: MIT
-- %%time, %%timeit, %%bench, %%explain.
local prompt = dofile 'tests/tools/prompt.lua'
local session, check, has = prompt.session, prompt.check, prompt.has

it('%bench keeps its report', function()
	local out = session '%bench tensor.ones(10):relu()\n_.name, Out[1].runs, _.kernel ~= nil'
	assert(out:find 'median time of a call' and out:find 'Out%[2%]: "tensor%.ones%(10%):relu%(%)"\t10\ttrue\n', out)
	check('%bench', 'usage: %bench [-n calls] [-r runs] code\n')
	has('%bench error "x"', 'In[1]:1: x')
end)

it('%timeit prints the report', function() has('%timeit 1 + 1', 'ms', 'spread') end)

it('-n and -r are calls in a sample and samples', function()
	has('%timeit -n 3 -r 2 1 + 1', 'runs     2\n', 'calls    3\n')
	has('%timeit -n3 -r2 tensor.ones(2)', 'runs     2\n', 'calls    3\n')
	assert(session('%bench -r 4 -n 2 x = 1\n_.runs, _.calls, x, _.name'):find 'Out%[2%]: 4\t2\t1\t"x = 1"\n')
	assert(session('n = 4\n%timeit -n + 1\nn'):find 'spread.*Out%[3%]: 4\n', '-n is an expression')
	check('%timeit -q 3 f()', "timeit: unknown option '-q'; known: -n calls, -r runs\n")
	check('%timeit -n f()', 'timeit: -n: wanted a number, got none\n')
	check('%timeit -n x 1', "timeit: -n: wanted a number, got 'x'\n")
	check('%bench -r 3 -n many f() + 1 2', "bench: -n: wanted a number, got 'many'\n")
	assert(session('%timeit -n 3 1 1'):find "near '1'")
	check('%bench -n 0 f()', 'bench: -n: wanted 1 or more, got 0\n')
end)

it('the locals of %timeit and %bench are their own, those of %time stay', function()
	for _, word in ipairs{'timeit -n 2 -r 2', 'bench -n 2 -r 2'} do
		assert(session('%' .. word .. ' local xx = 3\nxx'):find 'Out%[2%]: nil\n', word)
		assert(session('local xx = 1\n%' .. word .. ' local xx = 3; xx = 4\nxx'):find 'Out%[3%]: 1\n', word)
		assert(session('local xx = 1\n%' .. word .. ' xx = 2\nxx'):find 'Out%[3%]: 2\n', word)
	end
	assert(session('%time local xx = 3\nxx'):find 'Out%[2%]: 3\n')
end)

it('%time reports what one run took', function() has('%time 1 + 1', 'Out[1]: 2\ntime ') end)

it('%explain reports the paths of the last input only', function()
	check('%explain', 'the last input ran no op\n')
	has("q = tensor{1, 2}:quantize 'int8'\n(q + 1);\n%explain", 'add', 'int8q x int64', 'fallback', 'the result is float32 without out=',
		'1 op fell back to float32')
	local out = session "q = tensor{1, 2}:quantize 'int8'\n(q + 1);\nq:relu();\n%explain"
	out = out:match 'shows why\n(.*)'
	assert(out:find 'relu' and not out:find 'add ' and out:find 'nothing fell back to float32', out)
	has('for i = 1, 3 do tensor.ones(2):exp() end\n%explain', 'exp', '(3 times)')
	has('x = tensor.ones(2):exp()\nquant.log(true);\nx:exp();\n%explain', 'exp')
end)
