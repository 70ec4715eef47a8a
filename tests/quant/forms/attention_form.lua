-- SPDX-License-Identifier: MIT
-- attention has no integer version: the report says so, a rule for it is an error; its multiplications count.
tensor.seed(25)
local m = nn.Attention(8, 2, {causal=true})
local x = tensor.randn(2, 5, 8)
local g = graph.trace(m, x)

it('stays float between integer layers', function()
	local q, r = g:quantize{mode='dynamic'}
	print(r:where{op='attention'}.mode, r:where{op='attention'}.why)  --> float 'attention' has no integer version...
	print(q:run(x, {check=true}):error(m:quantize{mode='dynamic'}(x)).max)  --> 0.0
	print(pcall(g.quantize, g, {rules={{'attention1', 'int8'}}}))  --> false ...attention1: 'attention' has no integer version...
end)

it('counts both products', function()
	print(g:node('attention1').macs)  --> 400
end)
