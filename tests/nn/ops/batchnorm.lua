-- SPDX-License-Identifier: MIT
-- labels: quick host
-- nn.batchnorm: against PyTorch 2, float32 against float64, the running statistics, same bits on any number of
-- threads, and what is refused. tests/nn/gradients.lua compares the gradients with finite differences.
local function sequence(k, ...)
	local n = 1
	for _, size in ipairs {...} do n = n * size end
	return (tensor.arange(1, n):to 'float64' * k):view(...):detach()
end
local function near(got, wanted)
	local worst = (got:to('float64'):reshape(-1) - tensor(wanted):to 'float64'):abs():max():item()
	assert(worst <= 6e-5, ('off by %g'):format(worst))
end

local weight, bias = {1, 2, 0.5}, {0.1, 0.2, 0.3}
-- training: y, dx, dweight; dbias is the same in both
local wanted = {
	[true] = {{0.5673, 0.9735, 1.2611, 1.3912, 2.7363, 1.7158, 0.0274, -2.1005, 0.1121, -0.1133, -0.2916, -0.3985, -1.1953,
		-1.0620,
		-0.7718, -0.3639, -3.1772, -0.9397, 0.9893, 2.3487, 0.8912, 0.8668, 0.7569, 0.5764}, {0.4191,
		0.1634, -0.0399, -0.1680,
		3.5695, 3.4908, 3.5551, 3.6986, 0.3552, 0.1359, -0.0543, -0.1976, 0.3183, 0.0998, -0.2090,
		-0.5838, -1.7494, -3.0653,
		-4.2581, -5.2413, 0.0925, 0.0248, -0.0964, -0.2601}, {3.5222, 0.7814, -4.2261}},
	[false] = {{0.0100, 0.3278, 0.5529, 0.6547, 1.2120, 0.9672, 0.5623, 0.0520, 0.5113, 0.4083, 0.3269, 0.2781, -1.3693,
		-1.2650,
		-1.0379, -0.7188, -0.2062, 0.3304, 0.7930, 1.1190, 0.8672, 0.8560, 0.8059, 0.7234}, {1.0104,
		0.9920, 0.9617, 0.9197,
		1.2667, 1.1738, 1.0667, 0.9467, 0.1650, 0.1364, 0.1061, 0.0746, 0.1427, 0.0313, -0.0804, -0.1912,
		-0.4380, -0.5912,
		-0.7372, -0.8744, -0.2025, -0.2257, -0.2461, -0.2636}, {1.0589, 0.4337, -2.8317}},
}
for dtype in ('float32 float64'):gmatch '%w+' do
	it('PyTorch in ' .. dtype, function()
		local mean, var = tensor{0.5, 0.25, -1}, tensor{1, 2, 3}
		for _, training in ipairs {true, false} do
			local x = sequence(0.37, 2, 3, 2, 2):sin():to(dtype):detach():requires_grad_()
			local w, b = tensor(weight):to(dtype):detach():requires_grad_(), tensor(bias):to(dtype):detach():requires_grad_()
			local y = nn.batchnorm(x, w, b, mean, var, {training=training})
			y:backward(sequence(0.11, 2, 3, 2, 2):cos():to(dtype))
			near(y, wanted[training][1])
			near(x:grad(), wanted[training][2])
			near(w:grad(), wanted[training][3])
			near(b:grad(), {3.7246, 1.2203, -1.5165})
			near(mean, {0.4502, 0.2802, -0.8902})
			near(var, {0.9677, 1.8119, 2.7660})
		end
	end)
end

tensor.seed(9)
local function run(x, dtype, g)
	local c = x:size(2)
	local t = {x:to(dtype):detach():requires_grad_(), tensor.linspace(1, 2, c):to(dtype):detach():requires_grad_(),
		tensor.linspace(-1, 1, c):to(dtype):detach():requires_grad_()}
	local mean, var = tensor.zeros(c), tensor.ones(c)
	local y = nn.batchnorm(t[1], t[2], t[3], mean, var, {training=true, momentum=0.3})
	y:backward(g:to(dtype))
	return {y, t[1]:grad(), t[2]:grad(), t[3]:grad(), mean, var}
end

it('float32 against float64, short and long channels, far from 0', function()
	for _, s in ipairs {{5, 4}, {50, 600}, {6, 3, 7}, {4, 40, 4, 4}, {3, 5, 20, 30}, {2, 2, 1, 1100}} do
		local x, g = tensor.randn(table.unpack(s)) * 0.01 + 100, tensor.randn(table.unpack(s))
		local a, b = run(x, 'float32', g), run(x, 'float64', g)
		for i = 1, 6 do
			local worst = (a[i]:to 'float64' - b[i]:to 'float64'):abs():max():item() / b[i]:abs():max():item()
			assert(worst < 2e-6, ('(%s), %d: %g'):format(table.concat(s, ', '), i, worst))
		end
		local y = run(x, 'float64', g)[1]:transpose(1, 2):reshape(s[2], -1)
		assert((y:std{axis=2, unbiased=false} - tensor.linspace(1, 2, s[2]):to 'float64'):abs():max():item() < 0.3)
		assert((y:mean(2) - tensor.linspace(-1, 1, s[2]):to 'float64'):abs():max():item() < 1e-6)
	end
end)

it('the same bits on any number of threads', function()
	local before = tensor.threads()
	for _, s in ipairs {{50, 600}, {40, 64, 4, 4}, {8, 5, 40, 30}} do
		local x, g, first = tensor.randn(table.unpack(s)), tensor.randn(table.unpack(s)), nil
		for threads = 1, 3 do
			tensor.threads(threads)
			local got = run(x, 'float32', g)
			first = first or got
			for i = 1, 6 do assert(got[i]:eq(first[i]):all():item(), ('%d threads, %d'):format(threads, i)) end
		end
	end
	tensor.threads(before)
end)

it('twice in one graph; the running statistics are no part of it', function()
	local x, w, b = tensor.randn(4, 2, 3):requires_grad_(), tensor.ones(2), tensor.zeros(2)
	local mean, var = tensor.zeros(2), tensor.ones(2)
	local y = nn.batchnorm(nn.batchnorm(x, w, b, mean, var, {training=true}), w, b, mean, var, {training=true})
	y:backward(tensor.ones(4, 2, 3))
	assert(x:grad():abs():max():item() < 1e-5)
	local z = nn.batchnorm(x, w, b, mean, var)
	mean:add_(1)
	local ok, message = pcall(z.backward, z, tensor.ones(4, 2, 3))
	assert(not ok and message:find 'backward: batchnorm: wanted operand 4 as it was', message)
end)

it('other dtypes, views, nothing to do, and the ledger', function()
	local x, w, b, mean, var = tensor.randn(3, 2, 5), tensor{1, 2}, tensor{0, 1}, tensor{0.5, 0}, tensor{1, 4}
	local half = nn.batchnorm(x:to 'bfloat16', w, b, mean, var)
	assert(half:dtype() == 'bfloat16' and (half:to 'float32' - nn.batchnorm(x, w, b, mean, var)):abs():max():item() < 0.1)
	local turned = x:permute(1, 3, 2):contiguous():permute(1, 3, 2)
	assert(nn.batchnorm(turned, w, b, mean, var):eq(nn.batchnorm(x, w, b, mean, var)):all():item())
	local both = tensor{{0, 1}, {0, 1}}
	nn.batchnorm(x, w, b, both[{{}, 1}], both[{{}, 2}], {training=true, momentum=1})
	near(both[{{}, 1}], x:transpose(1, 2):reshape(2, -1):mean(2):totable())
	near(both[{{}, 2}], x:transpose(1, 2):reshape(2, -1):var(2):totable())
	print(nn.batchnorm(tensor.zeros(0, 2, 5), w, b, mean, var):size())  --> 0 2 5
	quant.log(true)
	nn.batchnorm(x, w, b, mean, var)
	for _, row in ipairs(quant.log()) do
		if row.op == 'batchnorm' then assert(row.path == 'float32' and row.kernel:find '^simd') end
	end
end)

local x, one, zero = tensor.ones(4, 3), tensor.ones(3), tensor.zeros(3)
local function refused(pattern, ...)
	local ok, message = pcall(nn.batchnorm, ...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('batchnorm: x: wanted (n, c, …), got (3)', one, one, zero, {training=true})
refused('batchnorm: bias: wanted shape (3), got (4)', x, one, tensor.zeros(4), zero, one)
refused('batchnorm: weight: wanted floats, got int32', x, one:to 'int32', zero, zero, one)
refused('batchnorm: wanted mean and var, or training=true', x, one, zero)
refused('batchnorm: wanted mean and var', x, one, zero, zero, {training=true})
refused('batchnorm: eps: wanted a number above 0, got 0', x, one, zero, zero, one, {eps=0})
refused('batchnorm: momentum: wanted a number from 0 to 1, got 2', x, one, zero, zero, one, {momentum=2})
refused('batchnorm: wanted more than one number per channel for training, got x (1, 3)',
	x[{{1, 1}}], one, zero, {training=true})
refused('batchnorm: wanted a tensor that takes no part in gradients', x, one, zero, zero:clone():requires_grad_(), one,
	{training=true})
