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
