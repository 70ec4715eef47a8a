-- SPDX-License-Identifier: MIT
-- ResNet9 for CIFAR-10 (after davidcpage's cifar10-fast): three stages of convolution, batch norm, ReLU and pooling, two of them
-- with a residual block. width 1 is the published size; ours is half of it.
--   model, norm = dofile 'models/resnet9.lua'
-- Input (N, 3, 32, 32), normalised: (x / 255 - norm.mean) / norm.std.
local width = 0.5

local function conv(inputs, outputs)
	return nn.Conv2d(inputs, outputs, 3, {pad=1, bias=false}), nn.BatchNorm2d(outputs), nn.ReLU()
end

local function residual(channels)
	local a, b, c = conv(channels, channels)
	local d, e, f = conv(channels, channels)
	return nn.Residual {a, b, c, d, e, f}
end

local list = {}
local function add(...)
	for _, layer in ipairs {...} do list[#list + 1] = layer end
end

local c1, c2, c3, c4 = 64 * width // 1, 128 * width // 1, 256 * width // 1, 512 * width // 1
add(conv(3, c1))
add(conv(c1, c2))
add(nn.MaxPool2d(2), residual(c2))
add(conv(c2, c3))
add(nn.MaxPool2d(2))
add(conv(c3, c4))
add(nn.MaxPool2d(2), residual(c4), nn.MaxPool2d(4), nn.Flatten(), nn.Linear(c4, 10))

return nn.Sequential(list), {mean = {0.4914, 0.4822, 0.4465}, std = {0.2470, 0.2435, 0.2616}}
