-- SPDX-License-Identifier: MIT
-- labels: quick
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(31)
local x = tensor.randn(5, 6, 7) * 2

local function apply(op, ...)
	local given = table.pack(...)
	return function(_, a) return a[op](a, table.unpack(given, 1, given.n)) end
end

it('writes hyperbolic functions and activations, in both precisions', function()
	for _, op in ipairs {'sinh', 'cosh', 'asinh', 'acosh', 'atanh', 'softsign', 'elu', 'selu', 'celu', 'mish', 'logsigmoid', 'hardsigmoid', 'hardtanh',
		'shrink', 'threshold', 'silu', 'softplus'} do
		back(apply(op), x, {tolerance = 2e-6})
		back(function(_, a) local y = a:to 'float64' return y[op](y) end, x, {tolerance = 2e-6})
	end
end)

it('writes their parameters', function()
	back(apply('elu', 0.3), x)
	back(apply('celu', 0.3), x)
	back(function(_, a) return a:to 'float64':celu(0.3) end, x)
	back(apply('hardsigmoid', 0.2, 0.4), x)
	back(apply('hardtanh', -0.5, 2), x)
	back(apply('shrink', 0.7, 0.2), x)
	back(apply('threshold', 0.3, -2), x)
	back(apply('silu', 1.702), x)
	back(function(_, a) return a:softplus {beta = 2, threshold = 3} end, x)
end)

it('has one node where the opset has it', function()
	print(out.ops(apply 'mish', x, {export = {opset = 18}}), out.ops(apply 'mish', x))  --> Mish Softplus Tanh Mul
	print(out.ops(apply 'celu', x), out.ops(apply 'selu', x))  --> Celu Selu
end)

it('writes slopes of an axis, and of all', function()
	for _, axis in ipairs {1, 2, 3, -1} do
		local n = axis == 1 and 1 or x:size(axis)
		back(function(self, a) return a:prelu(self.s, {axis = axis}) end, x, {parts = {s = tensor.randn(n)}})
	end
	back(function(self, a) return a:prelu(self.s) end, x, {parts = {s = tensor.randn(1)}})
	back(function(self, a) return a:prelu(self.s) end, x, {parts = {s = tensor.randn(6)}})
end)

it('writes the angle in each quarter, and on the axes', function()
	local v = tensor {{0, 0}, {0, 1}, {1, 0}, {0, -1}, {-1, 0}, {2, 3}, {-2, 3}, {2, -3}, {-2, -3}}
	back(function(_, a) return a:select(2, 1):atan2(a:select(2, 2)) end, v)
end)
