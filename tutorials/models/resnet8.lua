-- SPDX-License-Identifier: MIT
-- ResNet8 for CIFAR-10 of MLPerf Tiny, in the names of the checkpoint resnet8-cifar10-mlperf-tiny.safetensors:
--   model, names = dofile 'models/resnet8.lua'
--   model:load(data.find 'weights/resnet8-cifar10-mlperf-tiny.safetensors', {rename=names}):eval()
-- Input (N, 3, 32, 32), 0 to 255 as float, not normalised. Convolutions with stride 2 and a 3x3 kernel pad only at the bottom
-- and right ("same" of TensorFlow).
local function conv(number, inputs, outputs, kernel, stride)
	local pad = kernel == 1 and 0 or stride == 2 and {0, 1, 0, 1} or 1
	return nn.Conv2d(inputs, outputs, kernel, {stride=stride, pad=pad, name='conv' .. number})
end

local function norm(number, channels)
	return nn.BatchNorm2d(channels, {eps=1e-3, name='bn' .. number})
end

local function block(first, inputs, outputs, stride)
	local shortcut = stride > 1 and conv(first + 2, inputs, outputs, 1, stride) or nil
	local norms = {[1] = 1, [3] = 3, [6] = 5}
	return nn.Residual {
		conv(first, inputs, outputs, 3, stride), norm(norms[first], outputs), nn.ReLU(),
		conv(first + 1, outputs, outputs, 3, 1), norm(norms[first] + 1, outputs), shortcut=shortcut,
	}
end

local model = nn.Sequential {
	conv(0, 3, 16, 3, 1), norm(0, 16), nn.ReLU(),
	block(1, 16, 16, 1), nn.ReLU(),
	block(3, 16, 32, 2), nn.ReLU(),
	block(6, 32, 64, 2), nn.ReLU(),
	nn.AvgPool2d(), nn.Flatten(), nn.Linear(64, 10, {name='dense'}),
}

-- The checkpoint knows no blocks: residual1.conv1.weight is conv1.weight there.
return model, function(name) return name:match '[%w_]+%.[%w_]+$' end
