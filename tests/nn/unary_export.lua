-- SPDX-License-Identifier: MIT
-- labels: full
-- Elementwise functions in exported C: the bits of Quoll's own.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x, list = tensor.randn(12, 16), {}
for _, op in ipairs {'abs', 'neg', 'square', 'reciprocal', 'exp', 'exp2', 'expm1', 'log', 'log2', 'log10', 'log1p', 'tanh', 'sigmoid', 'silu', 'softplus',
	'relu', 'relu6', 'hardswish', 'gelu', 'leakyrelu'} do
	list[op] = function(_, a) return a[op](a * 3) end
end
list['gelu by tanh'] = function(_, a) return a:gelu {approximate='tanh'} end
list['relu of codes'] = function(_, a) return a:quantize {dtype='uint8', scale=0.02, zero_point=99}:relu() end
exported.functions(list, x)
