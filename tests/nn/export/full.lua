-- SPDX-License-Identifier: MIT
-- labels: full
-- Whole networks as exported C: by each compiler that is here, for 32 bits, under UBSan; the test images through ResNet8.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)

local function compiles(command) return os.execute(("echo 'int main(void){return 0;}' | %s -x c -o /dev/null - 2>/dev/null"):format(command)) end
local many = {'cc -O1', 'cc -O2', 'cc -O1 -fsanitize=undefined -fno-sanitize-recover=all'}

describe('a network', function()
	for _, more in ipairs {{'clang', 'clang -O2'}, {'clang', 'clang -O0'}, {'cc -m32', 'cc -O2 -m32 -msse2 -mfpmath=sse'}} do
		it('compiled by ' .. more[1], function()
			if not compiles(more[1]) then skip(more[1] .. ' is not here') end
			many[#many + 1] = more[2]
		end)
	end
	local x, cases = tensor.randn(12, 3, 10, 10), {}
	local convolutions = nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, {groups=8}), nn.ReLU(),
		nn.Conv2d(8, 6, 1), nn.Flatten(), nn.Linear(54, 7), nn.GELU(), nn.Linear(7, 3)}
	cases[1] = {name='convolutions, the same by all', graph=exported.static(convolutions, x), x=x}
	local ids = tensor.randint{12, 6, low=1, high=20, dtype='int32'}
	local attention = nn.Transformer {vocab=20, d=16, heads=4, kvheads=2, layers=1, norm='layernorm', act='swiglu', position='rope'}
	for _, input in ipairs {'uint8', 'int16'} do
		local g = graph.trace(attention, ids:narrow(1, 1, 1)):calibrate({{ids, ids}}, {input=input, log=false}):quantize {mode='static',
			rules={{'head', output={dtype='int16', scale=1e-3}}}}
		cases[#cases + 1] = {name='attention, norms and tables in ' .. input, graph=g, x=ids}
	end
	exported.together(cases, {compilers=many, alone=true})
end)

-- gcc 12 at -O2 lost what kernels wrote where it knew the places of their operands (calls of one kernel with the same places): ivopts
-- makes addresses relative to 0, which is taken for NULL.
describe('places that a compiler could know', function()
	local levels = {'cc -O1', 'cc -O2', 'cc -O3', 'cc -Os'}
	it('in a chain of the same ops', function()
		local g = graph.trace(nn.module(function(_, a)
			local y = a
			for _ = 1, 6 do y = (y:gt(0) + 0):to 'float32' - a end
			return y
		end, {}), tensor.zeros(1, 11))
		exported.check('chain', g, tensor.randn(5, 11), {flags=levels})
	end)
	it('in variants of a network', function()
		local x = tensor.randn(5, 3, 9, 7)
		local m = nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.Conv2d(8, 8, 3, {pad=1}), nn.ReLU(), nn.Conv2d(8, 8, 3, {pad=1}), nn.Tanh(),
			nn.Conv2d(8, 8, 3, {pad=1})}:eval()
		m:calibrate({{x, x}}, {log=false})
		local g, cases = graph.trace(m, x[{{1, 1}}]), {}
		for _, mode in ipairs {'static', 'dynamic'} do cases[#cases + 1] = {name=mode, graph=g:quantize {mode=mode}, x=x, single=true} end
		local program = exported.program(cases)
		for _, flags in ipairs(levels) do
			local _, wrong = exported.differing(program, {cc=flags})
			assert(wrong == '', flags .. ': ' .. wrong)
		end
		os.execute('rm -r ' .. program.folder)
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
	exported.check('resnet8', graph.trace(m:quantize {mode='static'}, x:narrow(1, 1, 1)), x, {flags=exported.FLAGS})
end)

it('stories260K, a trained Llama in integers from the first op to the last: perplexity, and the logits of C', function()
	local file = data.find 'weights/stories260K.bin'
	if not file then skip 'no weights here' end
	local m, texts, inputs, targets = nn.llama(file):eval(), dofile 'tests/golden/stories_ids.lua', {}, {}
	for i, ids in ipairs(texts) do
		inputs[i], targets[i] = ids:narrow(1, 1, 256):unsqueeze(1), ids:narrow(1, 2, 256):to 'int64'
	end
	local calibration = {}
	for i = 1, 10 do calibration[i] = {inputs[i], inputs[i]} end
	local g = graph.trace(m, inputs[1]):calibrate(calibration, {log=false})
	local function perplexity(graph)
		local loss = 0
		for i = 11, 20 do loss = loss + nn.crossentropy(graph:run(inputs[i]):view(256, m.vocab), targets[i]):item() / 10 end
		return math.exp(loss)
	end
	local q, r = g:quantize {mode='static'}
	quant.log 'reset'
	local float = perplexity(g)
	quant.log 'reset'
	local integer = perplexity(q)
	assert(#r:where{mode='float'} == 0 and #quant.log():where{path='fallback'} == 0)
	assert(integer < 1.04 * float, ('%g against %g'):format(integer, float)) -- measured: 3.660 against 3.567
	exported.check('stories', q, tensor.cat({inputs[11], inputs[12], inputs[13]}, {axis=1}), {flags=exported.FLAGS})
end)
