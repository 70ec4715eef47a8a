-- SPDX-License-Identifier: MIT
-- labels: quick
local exported = dofile 'tests/tools/exported.lua'
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(11)
local x = tensor.randn(3, 4, 6, 7)

it('writes floats with their activation', function()
	for _, o in ipairs {{}, {pad = 1, stride = 2}, {pad = {0, 1, 1, 0}, dilation = {1, 2}}, {groups = 2}} do
		back(graph.trace(nn.Conv2d(4, 6, 3, o), x[{{1, 1}}]), x)
	end
	for _, act in ipairs {'relu', 'relu6', 'gelu', 'silu', 'tanh', 'sigmoid', 'hardswish'} do
		back(function(self, a) return a:conv2d(self.w, self.b, {act = act}) end, x, {parts = {w = tensor.randn(2, 4, 3, 3), b = tensor.randn(2)}, tolerance = 2e-6})
	end
end)

local m = nn.Sequential {nn.Conv2d(4, 6, 3, {pad = 1}), nn.ReLU(), nn.Conv2d(6, 6, 3, {groups = 6}), nn.Conv2d(6, 3, 1)}

it('writes codes: qdq, qoperator, dynamic', function()
	local q = exported.static(m, x)
	back(q, x)
	local _, count = back(q, x, {export = {form = 'qoperator'}}):gsub('QLinearConv', '')
	print(count)  --> 2
	local d = exported.quantized(m, x, {mode = 'dynamic'})
	print(select(2, back(d, x[{{1, 1}}]):gsub('DynamicQuantizeLinear ConvInteger Cast Mul Mul', '')))  --> 3
	for _, o in ipairs {{mode = 'dynamic', weight = 'int8/1', input = 'int8'}, {mode = 'static', weight = 'int4/1'}, {mode = 'weight_only'}} do
		back(exported.quantized(m, x, o), x[{{1, 1}}])
	end
end)

it('keeps a bias as int32 where codes become codes', function()
	local model = out.model(exported.static(m, x))
	local types = {}
	for _, t in ipairs(model.graph.initializer) do types[t.name] = t.data_type end
	print(types['conv1.weight'], types['conv1.bias'], types['conv1.bias.scale'], types['conv3.bias'])  --> 3 6 1 1
end)

it('writes transposed convolutions', function()
	local parts = {w = tensor.randn(4, 3, 3, 3), b = tensor.randn(3), g = tensor.randn(4, 2, 3, 2), c = tensor.randn(4)}
	back(function(self, a) return a:convtranspose2d(self.w, self.b, {stride = 2, pad = 1, outputpad = 1}) end, x, {parts = parts, tolerance = 3e-6})
	back(function(self, a) return a:convtranspose2d(self.g, self.c, {groups = 2, dilation = {1, 2}}) end, x, {parts = parts, tolerance = 3e-6})
	back(exported.static(nn.Sequential {nn.ConvTranspose2d(4, 5, 3, {stride = 2, pad = 1}), nn.ReLU(), nn.ConvTranspose2d(5, 2, 2)}, x), x)
end)
