-- SPDX-License-Identifier: MIT
-- g:run with options, g:node, g:print and g:dot.
tensor.seed(2)
local m = nn.Sequential{nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)}
local x = tensor.randn(5, 3)
local g = graph.trace(m, x)

local function fails(pattern, fn, ...)
	local good, message = pcall(fn, ...)
	assert(not good and message:find(pattern), message)
end

it('keeps inner values by name', function()
	local y, inner = g:run(x, {keep='linear1'})
	print(inner.linear1:error(m[1](x)).max, y:error(m(x)).max)  --> 0.0 0.0
	local _, both = g:run(x, {keep={'relu1', 'linear2'}})
	print(both.relu1:error(m[2](m[1](x))).max, both.linear2:error(y).max)  --> 0.0 0.0
	local _, moved = g:run(x, {keep={'linear1', 'relu1'}, arena=true}) -- relu1 writes over linear1
	print(moved.linear1:error(m[1](x)).max, moved.relu1:error(both.relu1).max)  --> 0.0 0.0
	fails("wanted the name of a node, got 'linear3'; did you mean 'linear[12]'", g.run, g, x, {keep='linear3'})
	fails("unknown option 'kep'", g.run, g, x, {kep='a'})
end)

it('checks dtypes and sizes of the inputs, and names the node whose op fails', function()
	fails('input: wanted float32%(B, 3%), got float32%(5, 4%)', g.run, g, tensor.randn(5, 4))
	fails('input: wanted float32%(B, 3%), got float64', g.run, g, x:to 'float64')
	local e = graph.trace(nn.Sequential{nn.Embedding(4, 2)}, tensor.ones{1, 2, dtype='int32'})
	fails("node 'embedding1': embedding", e.run, e, tensor{{1, 9}, dtype='int32'})
end)

it('shares tensors with the module: a trained weight is seen', function()
	tensor.nograd(function() m[1].weight:mul_(2) end)
	print(g:run(x):error(m(x)).max)  --> 0.0
end)

it('g:node gives a copy', function()
	local n = g:node 'linear1'
	n.inputs[1] = 'nothing'
	n.users[1] = 'nobody'
	print(g:node('linear1').inputs[1], g:node('linear1').users[1], g:node('linear1').bytes)  --> input relu1 16
	fails("wanted the name of a node, got 'linear9'", g.node, g, 'linear9')
	fails("wanted the name of a node, got 'linear1:2'", g.node, g, 'linear1:2')
end)

it('g:dot writes a file that names with quotes do not break', function()
	local text = g:dot()
	print(text:match 'digraph[^\n]*', select(2, text:gsub('%->', '')))  --> digraph graph_ { 4
	local file = os.tmpname()
	g:dot(file)
	local handle = io.open(file)
	assert(handle:read 'a' == text)
	handle:close()
	os.remove(file)
	fails('no/such', g.dot, g, 'no/such/folder/net.dot')
	fails('wanted the name of a file, got one with a zero byte', g.dot, g, file .. '\0.dot')
	assert(not io.open(file))
end)

it('g:dot tells outputs apart', function()
	local two = nn.module(function(self, v) return self.a(v), self.a(v):relu() end, {a=nn.Linear(6, 2)})
	local text = graph.trace(two, tensor.ones(1, 6)):dot()
	print(text:match '"a" %-> "output1"', text:match '"a_2" %-> "output', text:match '"relu1" %-> "output2"')  --> "a" -> "output1" nil "relu1" -> "output2"
	print(text:find '"output"')  --> nil
end)

it('releases values after their last use, but no input, constant, output, nor what shares its memory with one', function()
	local big = nn.module(function(_, v)
		local a = v * 2
		local b = a + 1
		return {a:view(a:nelem()), b:relu(), v, a}
	end)
	local v = tensor.randn(1, 50000)
	local e = graph.trace(big, v)
	e:run(v)
	collectgarbage()
	collectgarbage 'stop'
	local before, values = tensor.memory().now, nil
	for _ = 1, 20 do values = e:run(v) end
	local used = (tensor.memory().now - before) / 50000 / 4
	collectgarbage 'restart'
	assert(used <= 41 and used > 2, used) -- a and the relu of each run, not b
	assert(values[1]:error((v * 2):view(50000)).max == 0 and values[2]:error((v * 2 + 1):relu()).max == 0)
	assert(values[3]:error(v).max == 0 and values[4]:error(v * 2).max == 0)
	local third = graph.trace(nn.module(function(_, w) return {w, w:view(w:nelem())} end), v)
	values = third:run(v)
	values = third:run(values[1])
	assert(values[2]:error(v:view(50000)).max == 0)
end)
