-- SPDX-License-Identifier: MIT
-- labels: full
-- Published weights give the published answers: ResNet20 and ResNet8 on the first test images of CIFAR-10. Logits are those of
-- expected.json beside the weights, computed by their authors' frameworks.
local found = data.find 'weights/resnet20-cifar10.safetensors' and data.find 'cifar10/test_batch_first1000.bin.xz'
if not found then
	skip('real input: no data folder (QUOLL_DATA, ./data)')
	return
end
local folder = debug.getinfo(1, 'S').source:match '^@(.*)tests/' or ''
local test = data.cifar10 {split='test'}

-- Rows of the logits of a network in expected.json.
local function expected(name)
	local handle = assert(io.open(data.find 'weights/expected.json'))
	local text = handle:read 'a':match('"' .. name .. '"%s*:%s*(%b{})')
	handle:close()
	local rows = load('return ' .. text:match '"logits_first4"%s*:%s*(%b[])':gsub('%[', '{'):gsub('%]', '}'))()
	return tensor(rows), tonumber(text:match '"test_batch_first1000_correct"%s*:%s*(%d+)')
end

local function check(name, m, loader, tolerance)
	local logits, correct = expected(name)
	for x in loader() do
		local got = m(x):detach():narrow(1, 1, 4)
		assert(got:error(logits).max < tolerance, got:error(logits).max)
		break
	end
	local function right(model) return math.floor(model:evaluate(loader, {metric='accuracy', log=false}).accuracy * 10 + 0.5) end
	assert(right(m) == correct)
	assert(right(m:fuse()) >= correct - 1)
end

it('ResNet20: 915 of 1000', function()
	local m, norm = dofile(folder .. 'tutorials/models/resnet20.lua')
	m:load(data.find 'weights/resnet20-cifar10.safetensors'):eval()
	check('resnet20_cifar10', m, data.loader(test, {batch=250, normalize=norm}), 2e-3)
end)

it('ResNet8 of MLPerf Tiny: 881 of 1000', function()
	local m, rename = dofile(folder .. 'tutorials/models/resnet8.lua')
	m:load(data.find 'weights/resnet8-cifar10-mlperf-tiny.safetensors', {rename=rename}):eval()
	check('resnet8_cifar10_mlperf_tiny', m, data.loader(test, {batch=250, normalize={mean={0, 0, 0}, std={1 / 255, 1 / 255, 1 / 255}}}), 2e-3)
end)
