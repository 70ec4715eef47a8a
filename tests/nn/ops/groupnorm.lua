-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Group and instance norm; literals from PyTorch in float64, else beside the formula in other ops.
tensor.seed(1)
local checks = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checks.lua')
local near, check_gradient, wide, check_bits, refused = checks.near, checks.gradient, checks.wide, checks.bits, checks.refused

-- The groups as rows in float64, then the channels.
local function formula(x, groups, w, b, eps)
	local n, c = x:size(1), x:size(2)
	local rows = x:to 'float64':reshape(n, groups, -1)
	local d = rows - rows:mean(3, {keep = true})
	local y = (d / (d:square():mean(3, {keep = true}) + eps):sqrt()):view(n, c, -1)
	if w then y = y * w:to 'float64':view(1, c, 1) end
	if b then y = y + b:to 'float64':view(1, c, 1) end
	return y:view(x:size())
end

for dtype, bound in pairs {float32 = 3e-6, float64 = 1e-8} do
	it('values and gradients in ' .. dtype, function()
		local x = tensor.arange(0, 23):to 'float64':sin():view(2, 4, 3):to(dtype):clone():requires_grad_()
		local w = tensor{1, -2, 0.5, 3, dtype = dtype}:requires_grad_()
		local b = tensor{0.5, 0, -1, 2, dtype = dtype}:requires_grad_()
		local y = nn.groupnorm(x, 2, w, b)
		near(y:view(-1):narrow(1, 1, 12), {0.458765826, 1.64054499, 1.73580184, -0.313915337, 2.20820634, 2.77593431, -1.22736329, -0.559091756, -0.321891829, 3.59693586, -0.497208345, -2.44964629}, bound)
		y:backward((tensor.arange(0, 23):to 'float64' * 0.5):cos():view(2, 4, 3):to(dtype))
		near(x:grad():view(-1):narrow(1, 13, 12), {0.190918865, 0.800154399, 0.82687312, -1.47630153, -0.625596353, 0.283951496, -1.36068224, -0.273144806, 0.816449983, -0.749465744, 0.270575453, 1.29626735}, bound)
		near(w:grad(), {2.3780348, 2.83392203, -1.40335442, -2.5768961}, bound)
		near(b:grad(), {5.10854503, -1.54742987, -5.32746675, 0.793729689}, bound)
	end)
end

it('values in each dtype, views, shapes', function()
	for _, c in ipairs {{2, 6, 3, 5, groups = 3}, {3, 4, groups = 2}, {1, 8, 70, groups = 1}, {2, 3, 4, groups = 3}} do
		local x, w, b = tensor.randn(table.unpack(c)) * 3 + 2, tensor.randn(c[2]), tensor.randn(c[2])
		for dtype, bound in pairs {float32 = 2e-6, float64 = 1e-12, float16 = 4e-3} do
			local t, u, v = x:to(dtype), w:to(dtype), b:to(dtype)
			local want = formula(t, c.groups, u, v, 0.01)
			local got = nn.groupnorm(t, c.groups, u, v, {eps = 0.01})
			assert(got:dtype() == dtype and got:to 'float64':metrics(want).max < bound * 4)
			if c.groups == c[2] then assert(nn.instancenorm(t, u, v, {eps = 0.01}):eq(got):all():item()) end
		end
		assert(nn.groupnorm(x, c.groups, w):to 'float64':metrics(formula(x, c.groups, w, nil, 1e-5)).max < 1e-5)
	end
	local x = tensor.randn(2, 5, 6)
	assert(nn.groupnorm(x:transpose(2, 3), 2):eq(nn.groupnorm(x:transpose(2, 3):contiguous(), 2)):all():item())
	print(nn.groupnorm(tensor.zeros(0, 4, 2), 2):size())  --> 0 4 2
	print(nn.groupnorm(tensor.zeros(2, 4, 0), 2):size())  --> 2 4 0
	local z = x:quantize 'int8'
	assert(nn.instancenorm(z):eq(nn.instancenorm(z:dequantize())):all():item())
end)

it('gradients against finite differences', function()
	check_gradient(function(x, w, b) return nn.groupnorm(x, 2, w, b, {eps = 0.1}) end, wide(2, 4, 3), wide(4), wide(4))
	check_gradient(function(x, w) return nn.instancenorm(x, w) end, wide(2, 3, 4), wide(3))
	check_gradient(function(x) return nn.groupnorm(x, 1) end, wide(2, 3))
end)

it('gives the same bits everywhere', function()
	local x, w = tensor.randn(4, 12, 300), tensor.randn(12)
	check_bits(function() return nn.groupnorm(x, 4, w, w) end)
end)

local x = tensor.zeros(2, 6, 4)
refused('groupnorm: groups: wanted a divisor of 6 channels, got 4', nn.groupnorm, x, 4)
refused('groupnorm: groups: wanted a divisor of 6 channels, got 0', nn.groupnorm, x, 0)
refused('groupnorm: groups: wanted number of groups, a divisor of the channels, got nothing', nn.groupnorm, x)
refused('groupnorm: weight: wanted floats (6), one for each channel, got float32(4)', nn.groupnorm, x, 2, tensor.zeros(4))
refused('groupnorm: eps: wanted 0 or more, got -1', nn.groupnorm, x, 2, {eps = -1})
refused('instancenorm: wanted x (n, channels, length, …), got (2, 3)', nn.instancenorm, tensor.zeros(2, 3))
refused('groupnorm: wanted floats, got int32(2, 2)', nn.groupnorm, tensor.zeros {2, 2, dtype = 'int32'}, 1)
