-- SPDX-License-Identifier: MIT
-- labels: quick noproducts host
-- convtranspose2d and its gradients: against PyTorch 2 (float64), float32 against the loops in float64, autopad, the same bits on any
-- number of threads, and what is refused. tests/nn/gradients.lua compares the gradients with finite differences.
local function sequence(k, ...)
	local n = 1
	for _, size in ipairs {...} do n = n * size end
	return (tensor.arange(1, n):to 'float64' * k):sin():view(...):detach()
end
local function near(got, wanted, tolerance)
	local worst = (got:to('float64'):reshape(-1) - tensor(wanted):to 'float64'):abs():max():item()
	assert(worst <= tolerance, ('off by %g'):format(worst))
end

-- options, sizes of x and w, outputs, then what PyTorch gives (5 digits) for y, dx, dw, db with the gradient sin(0.11 i)
for i, c in ipairs {
	{{}, {1, 1, 2, 3}, {1, 2, 2, 2}, 2,
		{0.96614, 1.4397, 1.8244, 1.5647, 1.6483, 3.1206, 3.4953, 2.2422, 1.779, 2.5939, 2.3997, 1.4627, 1.1445, 1.2782, 1.3708, 0.93945,
		1.2493, 0.70438, 0.23035, 0.14566, 0.43777, -0.43041, -0.31094, 0.26452},
		{0.38905, 0.76632, 1.1343, 1.8249, 2.1391, 2.4275},
		{2.1415, 2.5726, 3.6605, 3.94, 4.45, 4.3056, 3.5702, 3.2342}, {7.3122, 9.973}},
	{{stride=2, pad=1, outputpad=1}, {1, 2, 2, 3}, {2, 2, 3, 3}, 2,
		{0.76141, 1.2826, 1.0352, 1.6965, 1.275, 0.72027, 2.31, 3.1779, 1.9295, 2.4241, 1.3939, 1.4555, 1.4482, 2.1143, 1.5314, 2.0616, 1.5133,
		0.60536, -0.59989, -1.756, -0.82281, -2.0022, -0.82835, -0.9607, 0.8043, 1.0866, 1.4141, 2.103, 1.9644, 2.0486, 0.35323, 0.23177,
		0.50593, 0.63032, 0.72197, 1.073, 2.3806, 3.5605, 2.6063, 3.8044, 2.6112, 2.7085, 1.5315, 2.1079, 1.5975, 2.0364, 1.5791, 0.66228},
		{-0.78743, -1.7754, -2.4941, -1.5586, -1.3412, -0.60948, 0.76424, 1.7986, 2.5604, 1.6466, 1.5724, 0.8777},
		{1.4508, 2.2422, 2.3959, 2.2718, 3.4318, 3.5856, 2.6213, 3.6859, 3.5705, -0.80386, -1.2334, -1.491, -1.3437, -2.2447, -2.5653, -2.4561,
		-3.6397, -3.7306, -1.4755, -1.9393, -2.0549, -1.7866, -2.2249, -2.1231, -1.3113, -1.2642, -1.037, 0.83836, 1.1428, 1.3499, 1.645,
		2.3379, 2.3637, 1.7385, 2.0701, 1.9318}, {17.285, -13.508}},
	{{stride={3, 2}, pad={1, 0}, dilation={2, 1}, groups=2, outputpad={2, 1}}, {1, 2, 2, 2}, {2, 1, 2, 3}, 2,
		{0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 1.0918, 0.95402, 1.3446, 1.1016, 0.75744, 0.78333, 1.2361, 1.5647, 2.1823,
		1.6521, 1.779, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 1.5473, 1.2061, 1.5984, 1.2534, 0.74509, 0.78333,
		0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 0.97385, 0.97385, 0.97385, 0.97385, 0.97385, 0.97385, 0.17381, 0.55297, 0.38466,
		0.62509, 1.035, 0.97385, 0.69176, 0.50719, 0.35346, 0.81303, 0.79355, 0.97385, 0.97385, 0.97385, 0.97385, 0.97385, 0.97385, 0.97385,
		0.5377, 0.7444, 0.86376, 0.89478, 0.98771, 0.97385, 0.97385, 0.97385, 0.97385, 0.97385, 0.97385, 0.97385},
		{0.92547, 1.0978, 2.8193, 2.4927, 1.1918, 1.1517, 1.1479, 0.50444},
		{1.8796, 1.8734, 1.8445, 1.3274, 1.1898, 1.0379, -0.52087, -0.46615, -0.4058, -1.4095, -1.3104, -1.1954}, {14.923, -4.7433}},
	{{stride={1, 2}, dilation=3, outputpad={2, 2}}, {1, 1, 2, 2}, {1, 1, 2, 2}, 1,
		{0.96614, 0.78333, 1.1242, 1.0988, 0.78333, 1.3715, 0.78333, 0.78333, 1.2361, 0.78333, 1.2868, 1.5647, 0.78333, 1.6521, 0.78333,
		0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 1.1449, 0.78333, 1.4575, 1.0918, 0.78333, 1.3585,
		0.78333, 0.78333, 1.6789, 0.78333, 1.779, 1.5473, 0.78333, 1.6328, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333,
		0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333, 0.78333},
		{0.86116, 0.73484, 0.17587, -0.040469},
		{1.9388, 2.4305, -0.81507, -1.5961}, {0.0073819}},
} do
	for dtype in ('float32 float64'):gmatch '%w+' do
		it(('PyTorch, case %d in %s'):format(i, dtype), function()
			local function leaf(k, ...) return sequence(k, ...):to(dtype):detach():requires_grad_() end
			local x, w, b = leaf(0.37, table.unpack(c[2])), leaf(0.53, table.unpack(c[3])), leaf(0.9, c[4])
			local y = x:convtranspose2d(w, b, c[1])
			near(y, c[5], 2e-4)
			y:backward(sequence(0.11, y:size()):to(dtype))
			near(x:grad(), c[6], 2e-3)
			near(w:grad(), c[7], 2e-3)
			near(b:grad(), c[8], 2e-3)
		end)
	end
end

tensor.seed(3)
local function run(given, o, dtype)
	local t = {}
	for i, x in ipairs(given) do t[i] = x:to(dtype):detach():clone():requires_grad_() end
	local y = t[1]:convtranspose2d(t[2], t[3], o)
	y:backward(y:detach())
	return {y, t[1]:grad(), t[2]:grad(), t[3]:grad()}
end
-- n, channels, h, w, outputs of a group, kh, kw
local cases = {{2, 12, 9, 10, 16, 4, 4, {stride=2, pad=1}}, {3, 8, 7, 7, 3, 3, 3, {stride=2, pad={1, 0, 2, 1}, outputpad={1, 0}, groups=4}},
	{2, 5, 6, 11, 7, 5, 2, {stride={3, 1}, dilation={1, 2}, act='relu'}}, {2, 8, 12, 12, 1, 3, 3, {stride=2, groups=8, act='gelu'}},
	{1, 6, 5, 5, 4, 2, 2, {stride=3}}, {2, 4, 5, 6, 4, 3, 3, {stride=2, pad=3, outputpad=1}}}
for i, c in ipairs(cases) do
	it(('float32 against the loops in float64, %d'):format(i), function()
		local o = c[8]
		local x, w, b = tensor.randn(c[1], c[2], c[3], c[4]), tensor.randn(c[2], c[5], c[6], c[7]), tensor.randn(c[5] * (o.groups or 1))
		local got, wanted = run({x, w, b}, o, 'float32'), run({x, w, b}, o, 'float64')
		for k = 1, 4 do assert((got[k]:to 'float64' - wanted[k]):abs():max():item() / wanted[k]:abs():max():item() < 3e-6) end
		assert(got[1]:origin().path == 'float32' and wanted[1]:origin().path == 'float64')
		local half = x:to('float16'):convtranspose2d(w:to 'float16', b:to 'float16', o)
		assert(half:dtype() == 'float16' and half:to('float32'):error(wanted[1]:to 'float32').sqnr > 50)
		local turned = x:permute(1, 2, 4, 3):contiguous():permute(1, 2, 4, 3):convtranspose2d(w:transpose(3, 4):contiguous():transpose(3, 4), b, o)
		assert(turned:eq(got[1]:detach()):all():item())
	end)
end

it('is the gradient of conv2d', function()
	local x, w = tensor.randn(2, 4, 9, 8):to('float64'):detach():requires_grad_(), tensor.randn(6, 2, 3, 3):to 'float64'
	local o = {stride={2, 1}, pad={1, 0, 2, 1}, groups=2}
	local y = x:conv2d(w, o)
	local g = tensor.randn(y:size()):to 'float64'
	y:backward(g)
	local dx = g:convtranspose2d(w, {stride={2, 1}, pad={1, 0, 2, 1}, groups=2, outputpad={x:size(3) - 2 * (y:size(3) - 1) - 2, 0}})
	assert((dx - x:grad()):abs():max():item() < 1e-12)
end)

it('autopad gives results of size * stride, odd rows cut off last or first', function()
	local x, w = tensor{1, 2, 3}:view(1, 1, 1, 3), tensor{1, 10, 100}:view(1, 1, 1, 3)
	print(x:convtranspose2d(w, {stride={1, 2}, autopad='same_upper'}):view(6))  --> float32(6)   1  10 102  20 203  30
	print(x:convtranspose2d(w, {stride={1, 2}, autopad='same_lower'}):view(6))  --> float32(6)  10 102  20 203  30 300
	print(x:convtranspose2d(w, {autopad='same'}):view(3))  --> float32(3)  12 123 230
	print(x:convtranspose2d(w, {stride={1, 4}, autopad='same'}):view(12))  --> float32(12)   1  10 100   0   2  20 200   0   3  30 300   0
	print(x:convtranspose2d(w, {autopad='valid'}):view(5))  --> float32(5)   1  12 123 230 300
end)

it('the same bits on any number of threads', function()
	local before = tensor.threads()
	local x, w, b = tensor.randn(3, 20, 15, 15), tensor.randn(20, 24, 4, 4), tensor.randn(24)
	local first
	for _, n in ipairs {1, 2, 5} do
		tensor.threads(n)
		local y = x:convtranspose2d(w, b, {stride=2, pad=1, act='relu'})
		assert(not first or y:eq(first):all():item())
		first = first or y
	end
	tensor.threads(before)
	print(tensor.zeros(0, 4, 3, 3):convtranspose2d(tensor.ones(4, 2, 2, 2), {stride=2}):size())  --> 0 2 6 6
end)

local x, w = tensor.ones(2, 4, 5, 6), tensor.ones(4, 3, 3, 3)
local function refused(pattern, ...)
	local ok, message = pcall(x.convtranspose2d, ...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('convtranspose2d: wanted x (n, c, h, w) and w (c, out / groups, kh, kw), got (4, 5, 6) and (4, 3, 3, 3)', x[1], w)
refused('convtranspose2d: wanted x (n, c, h, w) and w (c, out / groups, kh, kw), got (2, 4, 5, 6) and (3, 4, 3, 3)', x, w:transpose(1, 2))
refused('convtranspose2d: groups: wanted a divisor of 4 channels, got 3', x, w, {groups=3})
refused('convtranspose2d: bias: wanted shape (6), got (3)', x, w, tensor.ones(3), {groups=2})
refused('convtranspose2d: outputpad: wanted less than the stride or the dilation, 2, got 2', x, w, {stride=2, outputpad=2})
refused('convtranspose2d: autopad: wanted pad= or autopad=, got both', x, w, {pad=1, autopad='same'})
refused('convtranspose2d: wanted a result of at least one row, got -1 from 5', x, w, {pad=4})
refused('convtranspose2d: operand 2: wanted floats or a quantized tensor, got int32', x, w:to 'int32')
refused('convtranspose2d: wanted a result of at least one row', tensor.ones(1, 4, 0, 3), w)
