-- SPDX-License-Identifier: MIT
-- labels: quick host
-- conv2d with one or two rows of weights per group (tensor/conv/few.c) has the bits of the sums by hand, in the order of channels and taps.
tensor.seed(3)

-- The product with each tap is added to the sums so far: elementwise ops, in float32.
local function by_hand(x, w, b, o)
	local rows, channels, sums = w:size(1) // o.groups, w:size(2), {}
	local padded = x:pad(o.pad, o.pad, o.pad, o.pad)
	local h = (padded:size(3) - (w:size(3) - 1) * o.dilation - 1) // o.stride + 1
	local wide = (padded:size(4) - (w:size(4) - 1) * o.dilation - 1) // o.stride + 1
	for row = 1, w:size(1) do
		local first, sum = (row - 1) // rows * channels, tensor.zeros(x:size(1), 1, h, wide)
		for c = 1, channels do
			for i = 1, w:size(3) do
				for k = 1, w:size(4) do
					local y, left = (i - 1) * o.dilation + 1, (k - 1) * o.dilation + 1
					local part = padded:slice(2, first + c, first + c):slice(3, y, y + (h - 1) * o.stride, o.stride)
						:slice(4, left, left + (wide - 1) * o.stride, o.stride)
					sum = sum + part * w[row][c][i][k]
				end
			end
		end
		sums[row] = sum + b[row]
	end
	return tensor.cat(sums, 2)
end

local function check(n, planes, h, wide, outputs, kernel, o)
	o = {groups = o.groups or planes, pad = o.pad or 0, stride = o.stride or 1, dilation = o.dilation or 1}
	local x, w, b = tensor.randn(n, planes, h, wide), tensor.randn(outputs, planes // o.groups, kernel[1], kernel[2]), tensor.randn(outputs)
	local want, before = by_hand(x, w, b, o), tensor.threads()
	local text = ('%d x %d, kernel %d x %d, stride %d'):format(h, wide, kernel[1], kernel[2], o.stride)
	for _, threads in ipairs {1, 3} do
		tensor.threads(threads)
		assert(x:conv2d(w, b, o):eq(want):all():item(), text)
		for _, act in ipairs {'relu', 'tanh'} do
			local all = {act = act, groups = o.groups, pad = o.pad, stride = o.stride, dilation = o.dilation}
			assert(x:conv2d(w, b, all):eq(want[act](want)):all():item(), text .. ', ' .. act)
		end
	end
	tensor.threads(before)
end

it('windows of 3 x 3 and 5 x 5, widths around the vectors', function()
	for _, wide in ipairs {1, 7, 15, 16, 17, 20, 31, 33, 64, 67, 70} do check(1, 2, 9, wide, 2, {3, 3}, {pad = 1}) end
	for _, wide in ipairs {3, 16, 21, 66} do check(2, 2, 6, wide, 2, {5, 5}, {pad = 2}) end
end)

it('steps, dilation, two rows of weights, windows that are not square', function()
	for _, wide in ipairs {5, 18, 37, 130} do check(1, 3, 8, wide, 6, {3, 3}, {pad = 1, stride = 2}) end
	check(2, 2, 12, 40, 4, {3, 3}, {pad = 2, dilation = 2})
	check(1, 2, 11, 23, 2, {1, 7}, {pad = 3})
	check(1, 2, 30, 30, 2, {4, 2}, {stride = 5})
	check(1, 1, 40, 41, 1, {7, 7}, {stride = 6, pad = 1}) -- more than 16 columns at which taps read first
end)

it('many channels for one row, in place and in pieces', function()
	for _, planes in ipairs {3, 16, 300} do check(1, planes, 5, 7, 1, {1, 1}, {groups = 1}) end
	check(1, 64, 12, 20, 2, {1, 1}, {groups = 1})
	check(1, 40, 9, 18, 1, {3, 3}, {groups = 1, pad = 1})
end)

it('tall images are divided', function() check(1, 1, 300, 48, 1, {3, 3}, {pad = 1}) end)

it('gradients of input and weight', function()
	for _, o in ipairs {{groups = 2, pad = 1}, {groups = 2, pad = 1, stride = 2}} do
		local x, w = tensor.randn(1, 2, 9, 18):to 'float64', tensor.randn(2, 1, 3, 3):to 'float64'
		local function grads(a, b)
			a, b = a:requires_grad_(), b:requires_grad_()
			local y = a:conv2d(b, nil, o)
			local loss = (y * tensor.arange(1, y:nelem()):to(y:dtype()):view(y:size())):sum()
			loss:backward()
			return a:grad():to 'float64', b:grad():to 'float64'
		end
		local dx, dw = grads(x:clone(), w:clone())
		local fx, fw = grads(x:to 'float32', w:to 'float32')
		assert((dx - fx):abs():max():item() < 1e-4 * dx:abs():max():item() and (dw - fw):abs():max():item() < 1e-4 * dw:abs():max():item())
	end
end)
