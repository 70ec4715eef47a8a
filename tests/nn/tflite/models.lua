-- SPDX-License-Identifier: MIT
-- labels: quick
-- Models of MLPerf Tiny: every code of LiteRT's reference kernels, and the labels that they get right.
local folder = data.find 'models/kws/kws_int8.tflite'
if not folder then
	skip('real input: no data folder (QUOLL_DATA, ./data)')
	return
end
folder = folder:match '^(.*/)models/'
local function right(y, labels) return (y:argmax(2) - 1):eq(labels:to 'int64'):to 'int64':sum():item() end

it('keyword spotting, 8 bits: 1000 inputs', function()
	local x, labels = tensor.load(folder .. 'models/kws/inputs_int8.npy'), tensor.load(folder .. 'models/kws/labels.npy')
	local want = tensor.load(folder .. 'models/kws/litert_reference_int8.npy')
	local y = graph.load(folder .. 'models/kws/kws_int8.tflite'):run(x:view(1000, 49, 10, 1))
	print(y:codes():eq(want):all():item(), right(y:codes(), labels))  --> true 901
	local floats = ((x:to 'float32' - 83) * 0.5847029089927673):view(1000, 49, 10, 1)
	print(right(graph.load(folder .. 'models/kws/kws_float.tflite'):run(floats), labels))  --> 901
end)

it('ResNet8, floats and 8 bits: 1000 images', function()
	local file = folder .. 'cifar10/test_batch_first1000.bin.xz'
	local out <close> = assert(io.popen('xz -dc ' .. file, 'r'))
	local bytes = out:read 'a'
	local images, labels = {}, {}
	for i = 0, 999 do
		labels[i + 1] = bytes:byte(i * 3073 + 1)
		images[i + 1] = {bytes:byte(i * 3073 + 2, i * 3073 + 3073)}
	end
	local x = tensor(images):to 'float32':view(1000, 3, 32, 32):permute(1, 3, 4, 2):contiguous()
	local y = graph.load(folder .. 'models/resnet8/resnet8_float.tflite'):run(x)
	print(right(y, tensor(labels)))  --> 881
	-- 880 by the reference kernels, 878 by XNNPACK
	print(right(graph.load(folder .. 'weights/mlperf-tiny-resnet8-int8.tflite'):run(x):codes(), tensor(labels)))  --> 880
end)

it('ad01, floats and 8 bits', function()
	tensor.seed(1)
	local x = tensor.randn(50, 640) * 5
	local a, b = graph.load(folder .. 'models/ad01/ad01_fp32.tflite'):run(x), graph.load(folder .. 'models/ad01/ad01_int8.tflite'):run(x)
	assert(a:error(b:dequantize()).cosine > 0.9)
end)
