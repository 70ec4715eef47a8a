-- SPDX-License-Identifier: MIT
-- Graphs of ResNet20 and ResNet8 with trained weights: values, memory, and quantized graphs against m:quantize.
-- labels: full
local found = data.find 'weights/resnet20-cifar10.safetensors' and data.find 'weights/resnet8-cifar10-mlperf-tiny.safetensors' and
	data.find 'cifar10/test_batch_first1000.bin.xz'
if not found then
	skip('real input: no data folder (QUOLL_DATA, ./data)')
	return
end
local folder = debug.getinfo(1, 'S').source:match '^@(.*)tests/' or ''
local test = data.cifar10{split='test'}
local function batch(norm)
	for x, y in data.loader(test, {batch=200, normalize=norm})() do return x, y end
end

local function right(y, target) return y:argmax(-1):eq(target):to('float32'):mean():item() end

local m20, norm = dofile(folder .. 'tutorials/models/resnet20.lua')
m20:load(data.find 'weights/resnet20-cifar10.safetensors'):eval()
local m8, rename = dofile(folder .. 'tutorials/models/resnet8.lua')
m8:load(data.find 'weights/resnet8-cifar10-mlperf-tiny.safetensors', {rename=rename}):eval()

local function check(name, m, x)
	local start = hw.clock()
	local g = graph.trace(m, x[{{1, 1}}])
	assert(hw.clock() - start < 2, name .. ': trace took longer than 2 s')
	local y = m(x)
	assert(g:run(x, {check=true}):error(y).max == 0)
	assert(g:run(x[{{1, 3}}], {arena=true}):error(y[{{1, 3}}]).max == 0)
	local _, peak, bound = g:plan()
	assert(peak <= 1.1 * bound)
	m:calibrate({{x[{{1, 64}}], x}}, {log=false})
	return g, y
end

it('ResNet8: every mode gives the bits of m:quantize', function()
	local x, target = batch {mean={0, 0, 0}, std={1 / 255, 1 / 255, 1 / 255}}
	local g, y = check('resnet8', m8, x)
	for _, o in ipairs {{mode='static'}, {mode='dynamic'}, {mode='weight_only', weight='int4:32'}, {mode='static', weight='int4/1'}} do
		local q = g:quantize(o)
		local got = q:run(x, {check=true})
		assert(got:error(m8:quantize(o)(x)).max == 0, o.mode)
		assert(q:run(x[{{1, 2}}], {arena=true}):error(q:run(x[{{1, 2}}])).max == 0)
	end
	local q = g:quantize{mode='static'}
	quant.log 'reset'
	local got = q:run(x)
	assert(#quant.log():where{path='fallback'} == 0)
	assert(math.abs(right(got, target) - right(y, target)) <= 0.02)
end)

it('ResNet20: bit for bit in every mode', function()
	local x, target = batch(norm)
	local g, y = check('resnet20', m20, x)
	for _, o in ipairs {{mode='dynamic'}, {mode='weight_only'}} do
		assert(g:quantize(o):run(x):error(m20:quantize(o)(x)).max == 0, o.mode)
	end
	local q, r = g:quantize{mode='static'}
	local got, wanted = q:run(x, {check=true}), m20:quantize{mode='static'}(x)
	print(#r:where{op='add', mode='static'}, #r:where{op='conv2d', mode='static'})  --> 9 19
	assert(got:error(wanted).max == 0)
	assert(math.abs(right(got, target) - right(y, target)) <= 0.02)
	local n = {}
	for _, name in ipairs(q.order) do n[q.nodes[name].op] = (n[q.nodes[name].op] or 0) + 1 end
	print(n.quantize, n.dequantize, n.requantize, n.batchnorm)  --> 1 nil nil nil
end)
