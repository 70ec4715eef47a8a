-- SPDX-License-Identifier: MIT
-- labels: quick
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(1)
local x = tensor.randn(5, 7) * 3

local function apply(op, ...)
	local given = table.pack(...)
	return function(_, a) return a[op](a, table.unpack(given, 1, given.n)) end
end

it('writes functions of floats', function()
	for _, op in ipairs {'relu', 'sigmoid', 'tanh', 'exp', 'log', 'sqrt', 'reciprocal', 'erf', 'sin', 'cos', 'tan', 'asin', 'acos', 'atan', 'softplus',
		'abs', 'neg', 'floor', 'ceil', 'round', 'sign', 'square', 'rsqrt', 'exp2', 'expm1', 'log1p', 'log2', 'log10', 'silu', 'trunc', 'relu6',
		'hardswish', 'leakyrelu', 'gelu', 'clone', 'contiguous'} do
		back(apply(op), x, {tolerance = 2e-6})
		back(function(_, a) local y = a:to 'float64' return y[op](y) end, x)
	end
	back(apply('leakyrelu', 0.3), x)
	back(apply('gelu', {approximate = 'tanh'}), x)
end)

it('has one node where the opset has it', function()
	print(out.ops(apply 'gelu', x, {export = {opset = 20}}))  --> Gelu
	print(out.ops(apply 'gelu', x))  --> Mul Erf Mul Add Mul
	print(out.ops(apply 'hardswish', x, {export = {opset = 13}}))  --> HardSigmoid Mul
	back(apply 'gelu', x, {export = {opset = 20}})
	back(apply 'hardswish', x, {export = {opset = 13}})
end)

it('writes functions of integers', function()
	for _, dtype in ipairs {'int8', 'uint8', 'int16', 'int32', 'int64'} do
		for _, op in ipairs {'abs', 'neg', 'sign', 'relu', 'relu6', 'square', 'floor', 'trunc', 'exp'} do
			if dtype ~= 'uint8' or op ~= 'neg' then
				back(function(_, a) local y = (a * 20):to(dtype) return y[op](y) end, x)
			end
		end
	end
	back(function(_, a) return a:to 'int16':clamp(-1.5, 2.5) end, x)
	back(function(_, a) return a:to 'int64':clamp {low = -1} end, x)
	back(function(_, a) return a:gt(0):bnot() end, x)
	print(out.ops(function(_, a) return a:to 'int32':bnot() end, x):match '%S+$')  --> BitwiseNot
end)

it('clamps', function()
	back(apply('clamp', -0.5, 2), x)
	back(apply('clamp', {high = 1}), x)
	back(apply('clamp', 2, -2), x)
end)

it('casts by rounding half to even, and saturates', function()
	local wide = tensor {-1e30, -300.5, -2.5, -0.5, 0.5, 1.5, 2.5, 200, 70000, 1e30, 0 / 0}:view(1, 11)
	for _, dtype in ipairs {'int8', 'uint8', 'int16', 'uint16', 'int32', 'bool', 'float16', 'float64'} do back(apply('to', dtype), wide) end
	back(function(_, a) return a:to 'int32':to 'int8':to 'float32' end, wide)
	back(function(_, a) return a:to 'int16':to 'uint8' end, wide)
end)

it('tells numbers from others', function()
	local y = tensor {1, 0 / 0, 1 / 0, -1 / 0}:view(1, 4)
	for _, op in ipairs {'isnan', 'isinf', 'isfinite'} do back(apply(op), y) end
end)
