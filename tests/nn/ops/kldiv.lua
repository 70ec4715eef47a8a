-- SPDX-License-Identifier: MIT
-- Kullback-Leibler divergence; literals from torch.nn.functional 2 in float64.
local checks = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checks.lua')
local near = checks.near
local rows, q = {{1, -2, 0.5}, {3, 0.25, -1}}, {{0.2, 0.3, 0.5}, {0, 0.25, 0.75}}
local logs = {{0.2, 0.3, 0.5}, {0.1, 0.25, 0.65}}

for dtype, bound in pairs {float32 = 1e-6, float64 = 1e-9} do
	it('values and gradients in ' .. dtype, function()
		local y = tensor{dtype = 'float64', table.unpack(rows)}:logsoftmax():to(dtype):requires_grad_()
		local t = tensor{dtype = 'float64', table.unpack(q)}:to(dtype)
		near(nn.kldiv(y, t, {reduction = 'none'}), {-0.220968202, 0.6901872294, 0.1557248609, 0, 0.3606854601, 2.843515597}, bound)
		near(nn.kldiv(y, t, {reduction = 'sum'}):view(1), {3.829144945}, bound)
		local mean = nn.kldiv(y, t)
		near(mean:view(1), {0.6381908242}, bound)
		mean:backward()
		near(y:grad(), {-0.03333333333, -0.05, -0.08333333333, 0, -0.04166666667, -0.125}, bound)
		y:zero_grad()
		t = tensor{dtype = 'float64', table.unpack(logs)}:log():to(dtype)
		near(nn.kldiv(y, t, {logtarget = true, reduction = 'none'}),
			{-0.220968202, 0.6901872294, 0.1557248609, -0.2223548892, 0.3606854601, 2.371364635}, bound)
		mean = nn.kldiv(y, t, {logtarget = true})
		near(mean:view(1), {0.5224398491}, bound)
		mean:backward()
		near(y:grad(), {-0.03333333333, -0.05, -0.08333333333, -0.01666666667, -0.04166666667, -0.1083333333}, bound)
	end)
end
print(nn.kldiv(tensor{-1 / 0, 0}, tensor{0, 1}), nn.kldiv(tensor{-1 / 0, 0}, tensor{-1 / 0, 0}, {logtarget = true}))  --> 0 0
print(pcall(nn.kldiv, tensor{1, 2}, tensor{1}))  --> false ...kldiv: wanted operands of the same shape, got (2) and (1)
