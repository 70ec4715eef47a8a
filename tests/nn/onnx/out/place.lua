-- SPDX-License-Identifier: MIT
-- labels: quick
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(5)
local x = tensor.randn(3, 4, 6)

it('pads, cuts triangles', function()
	back(function(_, a) return a:pad(1, 2) end, x)
	back(function(_, a) return a:pad {1, 0, 2, 1, value = -1.5} end, x)
	back(function(_, a) return a:to 'int32':pad(1) end, x)
	back(function(_, a) return a:tril() + a:triu(-1) end, x)
	back(function(_, a) return a:to 'int16':triu(2) end, x)
	back(function(_, a) return a:quantize {dtype = 'uint8', scale = 0.02, zero_point = 99}:pad(1, 2) end, x)
end)

it('finds elements by positions', function()
	back(function(_, a) return a:gather(2, a:argmax {axis = 2, keep = true}) end, x)
	back(function(self, a) return a:gather(3, self.i:expand(a:size(1), 4, 3)) end, x, {parts = {i = tensor {-1, 2, 4, dtype = 'int32'}:view(1, 1, 3)}})
	back(function(self, a) return a:indexselect(3, self.i) end, x, {parts = {i = tensor {-1, 2, 4, 4, dtype = 'int32'}}})
	back(function(_, a) return a:argmax(2):onehot(6) end, x)
	back(function(_, a) return a:argmax(2):onehot(6, {dtype = 'float32'}) end, x)
	back(function(_, a) return (a:argmax(2) + 1):onehot(6, {dtype = 'float32', on = 2.5, off = -1, foreign = true}) end, x)
	local function scatter(o) return function(_, a) return a:scatter(2, a:argmin {axis = 2, keep = true}, a, o or {}) end end
	print((out.ops(scatter(), x):gsub('^.-Cast ', '')))  --> Sub ScatterElements
	local m = out.model(out.graph(scatter {add = true}, x))
	local node = m.graph.node[#m.graph.node]
	print(node.op_type, node.attribute[1].name, node.attribute[1].i, node.attribute[2].name, node.attribute[2].s)  --> ScatterElements axis 1 reduction add
end)

it('replaces parts', function()
	back(function(_, a) local y = a * 2 y[{{}, {2, 3}}] = a[{{}, {3, 4}}] y[{{}, {}, 1}] = 0.5 return y end, x)
	back(function(_, a) local y = a * 2 y[{{}, 2, {2, 4}}] = a[{{}, 1, {1, 3}}] return y end, x)
	back(function(_, a) local y = a * 2 y[{{}, -1}] = 7 return y end, x)
	back(function(_, a) local y = a * 2 y[y:gt(1)] = 0 return y end, x)
	back(function(self, a) local y = a * 2 y[a:sum {axis = 3}:gt(0)] = self.v return y end, x, {parts = {v = tensor.randn(x:size(3))}})
	back(function(_, a) local y = a * 2 y[a:sum {axis = 3}:gt(0)] = 3 return y end, x)
end)

it('fills', function()
	back(function(_, a) return a:narrow(2, 1, 1):squeeze(2) + tensor.zeros(a:size(1), 6) + tensor.ones(a:size(1), 6) + tensor.full {a:size(1), 1, value = 0.3} end, x)
	back(function(_, a) return a + tensor.arange(1, 6) + tensor.linspace(0, 1, 6) + tensor.eye(4, 6) end, x)
end)
