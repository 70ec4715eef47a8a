-- SPDX-License-Identifier: MIT
-- labels: full serial
-- Times of exported C, and of exporting, printed and not judged, because they depend on the machine and its load: ResNet8 in int8 beside
-- Quoll's float32 with one thread, and ResNet20 traced, quantized and exported.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
if not (data.find 'weights/resnet20-cifar10.safetensors' and data.find 'cifar10/test_batch_first1000.bin.xz') then
	skip('real input: no data folder (QUOLL_DATA, ./data)')
	return
end
local folder = os.tmpname()
os.remove(folder)

local function images(norm, n)
	for x in data.loader(data.cifar10 {split='test'}, {batch=n, normalize=norm})() do return x end
end

it('ResNet8', function()
	local m, names = dofile 'tutorials/models/resnet8.lua'
	m:load(data.find 'weights/resnet8-cifar10-mlperf-tiny.safetensors', {rename=names}):eval()
	local x = images({mean={0, 0, 0}, std={1 / 255, 1 / 255, 1 / 255}}, 64)
	m:calibrate({{x, x}}, {log=false})
	graph.trace(m:quantize {mode='static'}, x[{{1, 1}}]):export {dir=folder, name='net', samples=x}
	assert(os.execute(('make -s -C %s'):format(folder)))
	local function exported_ms()
		local pipe = io.popen(folder .. '/net --time 200')
		local text = pipe:read 'a'
		pipe:close()
		return tonumber(text:match '[%d.]+') / 1000
	end
	local threads, f, one = tensor.threads(), m:fuse(), x[{{1, 1}}]
	tensor.threads(1)
	local float = tensor.nograd(function() return bench.time(function() return f(one) end, {runs=50}).min end)
	tensor.threads(threads)
	local least = math.min(exported_ms(), exported_ms(), exported_ms())
	io.stderr:write(('ResNet8: exported int8 %.3f ms, float32 %.3f ms\n'):format(least, float))
	assert(least > 0 and float > 0)
	os.execute('rm -r ' .. folder)
end)
it('ResNet20', function()
	local m, norm = dofile 'tutorials/models/resnet20.lua'
	m:load(data.find 'weights/resnet20-cifar10.safetensors'):eval()
	local x = images(norm, 16)
	m:calibrate({{x, x}}, {log=false})
	local start = hw.clock()
	graph.trace(m, x[{{1, 1}}]):quantize {mode='static'}:export {dir=folder, name='net', samples=x}
	local seconds = hw.clock() - start
	io.stderr:write(('ResNet20: trace, quantize, export %.2f s\n'):format(seconds))
	os.execute('rm -r ' .. folder)
end)
