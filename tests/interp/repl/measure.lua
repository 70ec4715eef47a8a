-- SPDX-License-Identifier: MIT
-- %%time, %%timeit, %%bench, %%explain.
local prompt = dofile 'tests/tools/prompt.lua'
local session, check, has = prompt.session, prompt.check, prompt.has

it('%bench keeps its report', function()
	local out = session '%bench tensor.ones(10):relu()\n_.name, Out[1].runs, _.kernel ~= nil'
	assert(out:find 'median time of a call' and out:find 'Out%[2%]: "tensor%.ones%(10%):relu%(%)"\t10\ttrue\n', out)
	check('%bench', 'usage: %bench code\n')
	has('%bench error "x"', 'In[1]:1: x')
end)

it('%timeit prints the report', function() has('%timeit 1 + 1', 'ms', 'spread') end)

it('%time tells what one run took', function() has('%time 1 + 1', 'Out[1]: 2\ntime ') end)

it('%explain tells the paths of the last input only', function()
	check('%explain', 'the last input ran no op\n')
	has("q = tensor{1, 2}:quantize 'int8'\n(q + 1);\n%explain", 'add', 'int8q x int64', 'fallback', 'the result is float32 without out=',
		'1 op fell back to float32')
	local out = session "q = tensor{1, 2}:quantize 'int8'\n(q + 1);\nq:relu();\n%explain"
	out = out:match 'tells why\n(.*)'
	assert(out:find 'relu' and not out:find 'add ' and out:find 'nothing fell back to float32', out)
	has('for i = 1, 3 do tensor.ones(2):exp() end\n%explain', 'exp', '(3 times)')
	has('x = tensor.ones(2):exp()\nquant.log(true);\nx:exp();\n%explain', 'exp')
end)
