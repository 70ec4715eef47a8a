-- SPDX-License-Identifier: MIT
-- The mean squared error and its gradient; expected values by hand.
local y, t = tensor{1, 2, 5, grad=true}, tensor{1, 4, 4}
local loss = nn.mse(y, t)
print(loss:item() * 3)  --> 5.0
loss:backward()
print(y:grad() * 3)  --> float32(3)  0 -4 2
print(nn.mse(tensor{1, 2, dtype='int32'}, tensor{1, 3, dtype='int32'}))  --> 0.5000

local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('mse: wanted operands of the same shape, got (3) and (2)', nn.mse, y, tensor{1, 2})
refused('mse: wanted at least one element, got shape (0)', nn.mse, tensor.zeros(0), tensor.zeros(0))

-- torch.nn.functional 2 in float64
local checks = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checks.lua')
local near = checks.near
for name, case in pairs {
	mse = {{}, {0.25, 9, 0, 16, 0.0625, 0.0625}, 4.229166667, {-0.1666666667, -1, 0, 1.333333333, 0.08333333333, -0.08333333333}},
	l1 = {{}, {0.5, 3, 0, 4, 0.25, 0.25}, 1.333333333, {-0.1666666667, -0.1666666667, 0, 0.1666666667, 0.1666666667, -0.1666666667}},
	['smoothl1 of 1'] = {{}, {0.125, 2.5, 0, 3.5, 0.03125, 0.03125}, 1.03125,
		{-0.08333333333, -0.1666666667, 0, 0.1666666667, 0.04166666667, -0.04166666667}},
	['smoothl1 of 0.5'] = {{beta = 0.5}, {0.25, 2.75, 0, 3.75, 0.0625, 0.0625}, 1.145833333,
		{-0.1666666667, -0.1666666667, 0, 0.1666666667, 0.08333333333, -0.08333333333}},
	['smoothl1 of 0'] = {{beta = 0}, {0.5, 3, 0, 4, 0.25, 0.25}, 1.333333333,
		{-0.1666666667, -0.1666666667, 0, 0.1666666667, 0.1666666667, -0.1666666667}},
	['huber of 2'] = {{delta = 2}, {0.125, 4, 0, 6, 0.03125, 0.03125}, 1.697916667,
		{-0.08333333333, -0.3333333333, 0, 0.3333333333, 0.04166666667, -0.04166666667}},
} do
	it(name, function()
		local f = nn[name:match '%w+']
		for dtype, bound in pairs {float32 = 1e-6, float64 = 1e-9} do
			local options, y = case[1], tensor{{1, -2, 0.5}, {3, 0.25, -1}}:to(dtype):requires_grad_()
			local t = tensor{{1.5, 1, 0.5}, {-1, 0, -0.75}}:to(dtype):requires_grad_()
			options.reduction = 'none'
			local each = f(y, t, options)
			assert(each:size(1) == 2 and each:size(2) == 3 and each:dtype() == dtype)
			near(each, case[2], bound)
			options.reduction = 'sum'
			local sum = f(y, t, options)
			near(sum:view(1), {case[3] * 6}, bound * 10)
			sum:backward()
			near(y:grad() / 6, case[4], bound)
			near(t:grad() / -6, case[4], bound)
			y:zero_grad()
			options.reduction = nil
			local mean = f(y, t, options)
			near(mean:view(1), {case[3]}, bound)
			mean:backward()
			near(y:grad(), case[4], bound)
			y:zero_grad()
			each:backward(tensor.full {2, 3, value = 1 / 6, dtype = dtype})
			near(y:grad(), case[4], bound)
		end
		assert(f(tensor.zeros(0, 2), tensor.zeros(0, 2), {reduction = 'sum'}):item() == 0)
		assert(f(tensor.zeros(3, 2):t(), tensor.ones(2, 3), {reduction = 'none'}):size(1) == 2)
	end)
end
print(pcall(nn.smoothl1, tensor{1}, tensor{2}, {beta = -1}))  --> false ...smoothl1: beta: wanted a finite number of at least 0, got -1
print(pcall(nn.huber, tensor{1}, tensor{2}, {delta = 0}))  --> false ...huber: delta: wanted a finite number above 0, got 0
print(pcall(nn.l1, tensor{1}, tensor{2}, {reduction = 'all'}))  --> false ...l1: reduction: wanted one of mean sum none, got 'all'
