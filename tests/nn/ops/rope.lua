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

-- Hugging Face's apply_rotary_pos_emb: x cos + rotate_half(x) sin, tables of both halves.
local function halves(t, c, s)
	local n = t:size(t:dim()) // 2
	return t * c + tensor.cat({-t:narrow(t:dim(), n + 1, n), t:narrow(t:dim(), 1, n)}, {axis = -1}) * s
end

-- Cosines and sines (t, n / 2) of positions 1, 2, …
local function tables(t, n, start)
	local angle = tensor.arange(start - 1, start + t - 2):to 'float64':view(t, 1) * (tensor{10000, dtype = 'float64'} ^ (tensor.arange(0, n // 2 - 1):to 'float64' * (-2 / n)))
	return angle:cos(), angle:sin()
end

it('halves, some of a row, given tables', function()
	local t = tensor.randn(2, 3, 5, 8)
	local c, s = tables(5, 8, 4)
	local function twice(a) return tensor.cat({a, a}, {axis = -1}) end
	local want = halves(t:to 'float64', twice(c), twice(s))
	local function same(y, z) assert(y:to 'float64':metrics(z:to 'float64').max < 1e-6) end
	same(nn.rope(t, {style = 'half', start = 4}), want)
	same(nn.rope(t:to 'float64', {style = 'half', start = 4}), want)
	same(nn.rope(t, c, s, {style = 'half'}), want)
	same(nn.rope(t, {style = 'half', cos = twice(c), sin = twice(s)}), want)
	same(nn.rope(t, c, s), nn.rope(t, {start = 4}))
	same(nn.rope(t:transpose(2, 3), c, s, {axis = 2, style = 'half'}), want:transpose(2, 3))
	local c4, s4 = tables(5, 4, 1)
	local part = nn.rope(t, {style = 'half', dims = 4})
	same(part, tensor.cat({halves(t:narrow(4, 1, 4):to 'float64', twice(c4), twice(s4)), t:narrow(4, 5, 4):to 'float64'}, {axis = 4}))
	same(nn.rope(t, c4, s4, {style = 'half', dims = 4}), part)
	local odd = tensor.randn(3, 7)
	assert(nn.rope(odd, {dims = 2}):narrow(2, 3, 5):eq(odd:narrow(2, 3, 5)):all():item())
end)

it('tables for each row of the batch; numbers of a pair that differ', function()
	local t, c, s = wide(2, 3, 5, 4), wide(2, 5, 4), wide(2, 5, 4)
	local want = halves(t, c:unsqueeze(2), s:unsqueeze(2))
	assert(nn.rope(t, c, s, {style = 'half'}):metrics(want).max < 1e-12)
	assert(nn.rope(t, c[{ {1, 1} }], s[{ {1, 1} }], {style = 'half'})[1]:metrics(want[1]).max < 1e-12)
	check_gradient(function(x) return nn.rope(x, c, s, {style = 'half'}) end, wide(2, 3, 5, 4))
	check_gradient(function(x) return nn.rope(x, c, s) end, wide(2, 3, 5, 4))
	check_gradient(function(x) return nn.rope(x, {style = 'half', dims = 2}) end, wide(3, 5))
	local y = nn.rope(wide(2, 3, 5, 4):requires_grad_(), c:requires_grad_(), s)
	refused('rope: cos and sin: wanted tables without a gradient', y.backward, y, y:detach())
end)

it('codes', function()
	local z, out = tensor.randn(2, 3, 4):quantize 'int8', {dtype = 'int8', scale = 0.03}
	assert(nn.rope(z, {out = out}):explain():find 'path integer')
	local y = nn.rope(z, {style = 'half', out = out})
	assert(y:explain():find 'path integer')
	assert((y:codes():to 'int64' - nn.rope(z:dequantize(), {style = 'half'}):quantize(out):codes():to 'int64'):abs():max():item() <= 1)
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
	check_bits(function() return nn.rope(t), nn.rope(t, {style = 'half', dims = 30}) end)
end)

refused('rope: wanted x (…, positions, d) with an even d, got (2, 3)', nn.rope, tensor.zeros(2, 3))
refused('rope: wanted x (…, positions, d) with an even d, got (4)', nn.rope, tensor.zeros(4))
refused('rope: wanted floats, got int32', nn.rope, tensor.zeros {2, 2, dtype = 'int32'})
refused('rope: base: wanted a number above 0, got 0', nn.rope, x, {base = 0})
refused('rope: start: wanted 1 or more, got 0', nn.rope, x, {start = 0})
refused('rope: axis: wanted an axis before the last', nn.rope, x, {axis = 2})
for _, case in ipairs {
	{'dims: wanted an even number from 2 to 4, got 3', {dims = 3}},
	{'dims: wanted an even number from 2 to 4, got 6', {dims = 6}},
	{"style: wanted one of pairs half, got 'halves'", {style = 'halves'}},
	{'wanted both cos and sin, or none, got one', {cos = tensor.zeros(3, 2)}},
	{'wanted cos and sin, or base and start, of which they are made, got both', {cos = tensor.zeros(3, 2), sin = tensor.zeros(3, 2), start = 2}},
	{'cos: wanted shape (3, 2), (3, 4), or one such table for each of the first axis of x, got (2, 2)', {cos = tensor.zeros(2, 2), sin = tensor.zeros(2, 2)}},
	{'sin: wanted shape (3, 2), (3, 4), or one such table', {cos = tensor.zeros(3, 2), sin = tensor.zeros(3, 4)}},
} do
	refused('rope: ' .. case[1], nn.rope, x, case[2])
end
