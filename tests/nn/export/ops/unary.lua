-- SPDX-License-Identifier: MIT
-- labels: full
-- Elementwise functions in exported C: the bits of Quoll's own.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x, list = tensor.randn(12, 16), {}
for _, op in ipairs {'abs', 'neg', 'square', 'reciprocal', 'exp', 'exp2', 'expm1', 'log', 'log2', 'log10', 'log1p', 'tanh', 'sigmoid', 'silu', 'softplus',
	'relu', 'relu6', 'hardswish', 'gelu', 'leakyrelu', 'sqrt', 'rsqrt', 'sin', 'cos', 'tan', 'sinh', 'cosh', 'asinh', 'acosh', 'atanh', 'erf', 'round', 'floor', 'ceil', 'trunc', 'sign',
	'elu', 'selu', 'celu', 'mish', 'softsign', 'logsigmoid', 'hardsigmoid', 'hardtanh', 'shrink', 'threshold'} do
	list[op] = function(_, a) return a[op](a * 3) end
end
list['gelu by tanh'] = function(_, a) return a:gelu {approximate='tanh'} end
for op, options in pairs {elu = {0.5}, celu = {-0.75}, silu = {1.702}, softplus = {2, 3}, hardsigmoid = {0.2, -0.25}, hardtanh = {-0.5, 2}, shrink = {0.25, -0.5},
	threshold = {-0.5, -2}} do
	list[op .. ' with options'] = function(_, a) return a[op](a, table.unpack(options)) end
end
list['relu of codes'] = function(_, a) return a:quantize {dtype='uint8', scale=0.02, zero_point=99}:relu() end
list['clamp with low above high'] = function(_, a) return a:clamp(2, 0.25) end
list['clamp'] = function(_, a) return a:clamp {low=-0.5}:clamp(-2, 0.25) end
exported.functions(list, x)
-- signs of 0, ties, what has no fraction, infinities, the smallest and largest numbers
local specials = tensor {-0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 8388607.5, -8388608, 1e9, 1 / 0, -1 / 0, 0 / 0, 1e-45, 1e-38, 3.4e38, -1e-45}:view(1, 16)
local more = {}
for _, op in ipairs {'sin', 'cos', 'tan'} do
	it(op .. ' of large angles', function()
		local far = tensor {1048576, -1048575.9, 3e6, -1e9, 4.9e28, -1e30, 3.4028234e38, -1 / 0}:view(1, 8)
		local g = exported.of(function(_, a) return a[op](a) end, far)
		exported.check(op, g, far, {flags=exported.FLAGS})
		local y = g:run(far)
		assert(y:isfinite():to 'int32':sum():item() == 7)
	end)
end
for _, op in ipairs {'sinh', 'cosh', 'asinh', 'acosh', 'atanh', 'sqrt', 'rsqrt', 'round', 'floor', 'ceil', 'trunc', 'sign', 'elu', 'selu', 'celu', 'mish', 'softsign', 'logsigmoid', 'hardsigmoid', 'hardtanh', 'shrink', 'threshold'} do
	more[op .. ' of special numbers'] = function(_, a) return a[op](a) end
	more[op .. ': sign of 0'] = function(_, a) return a[op](a):reciprocal() end
end
for _, op in ipairs {'relu', 'relu6', 'sin', 'tan', 'tanh', 'expm1', 'log1p', 'gelu', 'erf'} do
	more[op .. ': sign of 0'] = function(_, a) return a[op](a):reciprocal() end
end
exported.functions(more, specials)
