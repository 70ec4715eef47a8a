-- SPDX-License-Identifier: MIT
-- ResNet20 for CIFAR-10 (He et al. 2016, section 4.2), in the names of the checkpoint resnet20-cifar10.safetensors:
--   model = dofile 'models/resnet20.lua':load(data.find 'weights/resnet20-cifar10.safetensors'):eval()
-- Input (N, 3, 32, 32), normalised: (x / 255 - mean) / std with resnet.mean and resnet.std below.

-- Shortcut "A": every second row and column, with channels of zeros on both sides.
local function narrow_and_pad(channels)
	return nn.module(function(_, x) return x:maxpool2d(1, {stride=2}):pad {0, 0, 0, 0, channels, channels} end)
end

local function block(name, inputs, outputs, stride)
	return nn.Residual {
		nn.Conv2d(inputs, outputs, 3, {stride=stride, pad=1, bias=false, name='conv1'}), nn.BatchNorm2d(outputs, {name='bn1'}), nn.ReLU(),
		nn.Conv2d(outputs, outputs, 3, {pad=1, bias=false, name='conv2'}), nn.BatchNorm2d(outputs, {name='bn2'}),
		shortcut=stride > 1 and narrow_and_pad((outputs - inputs) // 2) or nil,
		name=name,
	}
end

local list = {nn.Conv2d(3, 16, 3, {pad=1, bias=false, name='conv1'}), nn.BatchNorm2d(16, {name='bn1'}), nn.ReLU()}
local inputs = 16
for stage, outputs in ipairs {16, 32, 64} do
	for i = 0, 2 do
		list[#list + 1] = block(('layer%d.%d'):format(stage, i), inputs, outputs, stage > 1 and i == 0 and 2 or 1)
		list[#list + 1] = nn.ReLU()
		inputs = outputs
	end
end
table.move({nn.AvgPool2d(), nn.Flatten(), nn.Linear(64, 10, {name='linear'})}, 1, 3, #list + 1, list)
local model = nn.Sequential(list)

return model, {mean = {0.485, 0.456, 0.406}, std = {0.229, 0.224, 0.225}}
