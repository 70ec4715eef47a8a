-- SPDX-License-Identifier: MIT
-- labels: quick
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(8)
local x = tensor.randn(3, 4, 6)
local parts = {w = tensor.randn(6), b = tensor.randn(6)}

it('writes softmax', function()
	back(function(_, a) return a:softmax() end, x)
	back(function(_, a) return a:logsoftmax(2) end, x)
	local function f(_, a) return a:quantize {dtype = 'uint8', scale = 0.02, zero_point = 99}:softmax {out = {dtype = 'uint8', scale = 1 / 256}} end
	print(out.ops(f, x, {export = {form = 'qoperator'}}))  --> QuantizeLinear com.microsoft.QLinearSoftmax
end)

it('writes norms as the opset has them', function()
	local function layer(self, a) return a:layernorm(self.w, self.b, {eps = 1e-3}) end
	local function root(self, a) return a:rmsnorm(self.w, {eps = 1e-3}) end
	for _, opset in ipairs {13, 17, 23} do
		back(layer, x, {parts = parts, export = {opset = opset}, tolerance = 2e-6})
		back(root, x, {parts = parts, export = {opset = opset}, tolerance = 2e-6})
		back(function(_, a) return a:layernorm() + a:rmsnorm() end, x, {export = {opset = opset}, tolerance = 2e-6})
	end
	print(out.ops(layer, x, {parts = parts}), out.ops(root, x, {parts = parts, export = {opset = 23}}))  --> LayerNormalization RMSNormalization
	print(out.ops(root, x, {parts = parts}))  --> Mul ReduceMean Add Sqrt Div Mul
end)

it('writes norms of several axes, groups and instances', function()
	local v = {w = tensor.randn(4, 6), c = tensor.randn(4), d = tensor.randn(4)}
	local image = tensor.randn(3, 4, 2, 3)
	for _, opset in ipairs {13, 17, 21, 23} do
		local o = {parts = v, export = {opset = opset}, tolerance = 2e-6}
		back(function(self, a) return a:layernorm(self.w, {axes = 2}) + a:rmsnorm(self.w, {axes = 2}) + a:layernorm {axes = 2} end, x, o)
		back(function(self, a) return nn.groupnorm(a, 2, self.c, self.d, {eps = 1e-3}) + nn.groupnorm(a, 4) + nn.groupnorm(a, 1, self.c) end, image, o)
		back(function(self, a) return nn.instancenorm(a, self.c, self.d, {eps = 1e-3}) + nn.instancenorm(a) end, image, o)
	end
	print(out.ops(function(self, a) return nn.groupnorm(a, 2, self.c, self.d) end, image, {parts = v, export = {opset = 21}}))  --> GroupNormalization
end)

it('writes local response norm', function()
	for _, size in ipairs {1, 3, 4} do
		back(function(_, a) return nn.localresponsenorm(a, size, {alpha = 2, beta = 0.5, k = 1.5}) end, x, {tolerance = 2e-6})
	end
	print(out.ops(function(_, a) return nn.localresponsenorm(a, 5) end, x))  --> LRN
end)

it('writes batch norm', function()
	local y = tensor.randn(3, 4, 2, 2)
	local m = nn.BatchNorm2d(4):eval()
	print(back(graph.trace(m, y[{{1, 1}}]), y))  --> BatchNormalization
end)

it('writes norms of several axes, groups and channels', function()
	local y = tensor.randn(3, 4, 5, 6)
	local parts = {w = tensor.randn(5, 6), b = tensor.randn(5, 6), c = tensor.randn(4), d = tensor.randn(4)}
	for _, opset in ipairs {13, 17, 23} do
		local o = {parts = parts, export = {opset = opset}, tolerance = 3e-6}
		back(function(self, a) return a:layernorm(self.w, self.b, {axes = 2}) + a:layernorm {axes = 3} end, y, o)
		back(function(self, a) return a:rmsnorm(self.w, {axes = 2}) end, y, o)
		back(function(self, a) return nn.groupnorm(a, self.c, self.d, {groups = 2}) + nn.groupnorm(a, {groups = 4, eps = 0.1}) end, y, o)
		back(function(self, a) return nn.instancenorm(a, self.c, self.d) + nn.instancenorm(a) end, y, o)
	end
end)
