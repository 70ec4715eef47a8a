-- SPDX-License-Identifier: MIT
-- labels: full
-- Whole networks as exported C: by each compiler that is here, for 32 bits, under UBSan; the test images through ResNet8.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)

local function compiles(command) return os.execute(("echo 'int main(void){return 0;}' | %s -x c -o /dev/null - 2>/dev/null"):format(command)) end
local many = {"CFLAGS='-O1'", "CFLAGS='-O2'", "CFLAGS='-O1 -fsanitize=undefined -fno-sanitize-recover=all'"}

describe('a network', function()
	for _, more in ipairs {{'clang', "CC=clang CFLAGS='-O2'"}, {'clang', "CC=clang CFLAGS='-O0'"}, {'cc -m32', "CFLAGS='-O2 -m32 -msse2 -mfpmath=sse'"}} do
		it('compiled by ' .. more[1], function()
			if not compiles(more[1]) then skip(more[1] .. ' is not here') end
			many[#many + 1] = more[2]
		end)
	end
	it('is the same by all', function()
		local x = tensor.randn(12, 3, 10, 10)
		local m = nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, {groups=8}), nn.ReLU(), nn.Conv2d(8, 6, 1),
			nn.Flatten(), nn.Linear(54, 7), nn.GELU(), nn.Linear(7, 3)}
		exported.check('many', exported.static(m, x), x, {flags=many})
	end)
end)

it('ResNet8 of MLPerf Tiny: every output of the 1000 test images', function()
	local weights = data.find 'weights/resnet8-cifar10-mlperf-tiny.safetensors'
	if not weights or not data.find 'cifar10/test_batch_first1000.bin.xz' then skip 'no weights or images here' end
	local m, names = dofile 'tutorials/models/resnet8.lua'
	m:load(weights, {rename=names}):eval()
	local how = {batch=100, normalize={mean={0, 0, 0}, std={1 / 255, 1 / 255, 1 / 255}}}
	m:calibrate(data.loader(data.cifar10 {split='validation'}, how), {batches=5, log=false})
	local x
	how.batch = 1000
	for given in data.loader(data.cifar10 {split='test'}, how)() do x = given end
	exported.check('resnet8', graph.trace(m:quantize {mode='static'}, x:narrow(1, 1, 1)), x, {flags={exported.FLAGS[2]}})
end)
