-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Rotary embedding; literals from the formula of llama2.c in double.
tensor.seed(1)
local checks = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checks.lua')
local near, check_gradient, wide, check_bits, refused = checks.near, checks.gradient, checks.wide, checks.bits, checks.refused

local x = tensor{{1, 2, 3, 4}, {5, 6, 7, 8}, {-1, 0.5, 2, -3}}
for dtype, bound in pairs {float32 = 1e-6, float64 = 1e-9} do
	near(nn.rope(x:to(dtype)), {1, 2, 3, 4, -2.34731438, 7.449168759, 6.919651336, 8.069598837, -0.03850187687, -1.117370845,
		2.059596013, -2.959402687}, bound)
	near(nn.rope(x:to(dtype), {base = 100, start = 8}), {-0.5600709431, 2.164791107, -0.2823441871, 4.992021811, -6.663649649,
		4.07379103, -0.8619017618, 10.59514631, 0.7050710193, -0.8676836162, 3.593200665, -0.2981760856}, bound)
end

it('gradients against finite differences', function()
	check_gradient(function(t) return nn.rope(t, {start = 3}) end, wide(2, 3, 4))
	check_gradient(function(t) return nn.rope(t, {base = 10, axis = 1}) end, wide(3, 2, 2))
end)

it('positions lie along any axis; a later start is a later row', function()
	local t = tensor.randn(2, 5, 3, 8)
	assert(nn.rope(t, {axis = 2}):eq(nn.rope(t:transpose(2, 3)):transpose(2, 3)):all():item())
	assert(nn.rope(t)[{ {}, {}, {2, 3} }]:eq(nn.rope(t[{ {}, {}, {2, 3} }], {start = 2})):all():item())
	assert(math.abs(nn.rope(t):norm():item() - t:norm():item()) < 1e-5)
	print(nn.rope(t:to 'float16'):dtype(), nn.rope(tensor.zeros(2, 0, 4)):size())  --> float16 2 0 4
	assert(nn.rope(t):explain():find 'path float32, kernel simd_')
end)

it('gives the same bits everywhere', function()
	local t = tensor.randn(4, 8, 300, 64)
	check_bits(function() return nn.rope(t) end)
end)

refused('rope: wanted x (…, positions, d) with an even d, got (2, 3)', nn.rope, tensor.zeros(2, 3))
refused('rope: wanted x (…, positions, d) with an even d, got (4)', nn.rope, tensor.zeros(4))
refused('rope: wanted floats, got int32', nn.rope, tensor.zeros {2, 2, dtype = 'int32'})
refused('rope: base: wanted a number above 0, got 0', nn.rope, x, {base = 0})
refused('rope: start: wanted 1 or more, got 0', nn.rope, x, {start = 0})
refused('rope: axis: wanted an axis before the last', nn.rope, x, {axis = 2})
