-- SPDX-License-Identifier: MIT
-- labels: quick
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(6)
local x = tensor.randn(3, 4, 6)

it('reduces floats at the opsets where axes are attributes and inputs', function()
	for _, opset in ipairs {13, 17, 18} do
		for _, op in ipairs {'sum', 'mean', 'max', 'min', 'var', 'std', 'norm', 'any', 'all'} do
			for _, o in ipairs {{axis = 2}, {axis = {2, 3}}, {axis = -1, keep = true}} do
				back(function(_, a) return a[op](a, o) end, x, {export = {opset = opset}, tolerance = 2e-6})
			end
		end
	end
	for _, op in ipairs {'sum', 'mean', 'max'} do back(function(_, a) return a[op](a) end, x, {tolerance = 2e-6}) end
	back(function(_, a) return a:aminmax {axis = 3} end, x)
end)

it('takes options and other norms', function()
	back(function(_, a) return a:var {axis = 2, unbiased = false} end, x)
	back(function(_, a) return a:std {axis = {2, 3}, correction = 2} end, x)
	for _, p in ipairs {0, 1, 3, 0.5, -2, math.huge, -math.huge} do back(function(_, a) return a:norm {p = p, axis = 2} end, x, {tolerance = 5e-6}) end
end)

it('reduces integers', function()
	for _, dtype in ipairs {'int8', 'uint8', 'int32', 'int64'} do
		for _, op in ipairs {'sum', 'mean', 'max', 'min', 'any', 'cumsum'} do
			back(function(_, a) local y = (a * 20):to(dtype) return y[op](y, op == 'cumsum' and 2 or {axis = 2}) end, x)
		end
	end
	back(function(_, a) return a:cumsum(2) end, x)
end)

it('writes products, logarithms of sums and running ones', function()
	for _, axis in ipairs {2, 3} do
		back(function(_, a) return a:prod {axis = axis} end, x, {tolerance = 3e-6})
		back(function(_, a) return a:logsumexp {axis = axis, keep = true} end, x, {tolerance = 3e-6})
		for _, o in ipairs {{}, {exclusive = true}, {reverse = true}, {exclusive = true, reverse = true}} do
			o.axis = axis
			back(function(_, a) return a:cumprod(axis, {exclusive = o.exclusive, reverse = o.reverse}) end, x, {tolerance = 3e-6})
		end
		back(function(_, a) return a:round():cummax(axis) end, x)
		back(function(_, a) return a:round():cummin(axis) end, x)
	end
	back(function(_, a) return (a * 2):to 'int32':prod {axis = 2} end, x)
	back(function(_, a) return (a * 2):to 'int32':cumprod(2) end, x)
	out.refused('the batch as its axis', function(_, a) return a:cumprod(1) end, x)
end)
