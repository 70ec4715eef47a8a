-- SPDX-License-Identifier: MIT
-- What the studies of this folder measure models on: name -> function that returns {model=, test=, calibration=,
-- metric=}, with trained weights. Only tasks whose weights and data are there are listed; quick ones compute their data
-- and train for a moment.
--   tasks, files = dofile 'scripts/tasks.lua' (quick)      files: what the results depend on, for sweep.run{data=}
local here = debug.getinfo(1, 'S').source:match '^@(.*)tasks.lua$' or ''
local models = here .. '../tutorials/models/'

local function exists(file)
	local handle = io.open(file, 'rb')
	if handle then handle:close() end
	return handle ~= nil
end

---------------------------------------------------------------- trained

local function digits(name)
	return function()
		local m = dofile(models .. name .. '.lua'):load(models .. name .. '.safetensors'):eval()
		return {model = m:fuse(), metric = 'accuracy', test = data.loader(data.mnist {split='test', limit=2000},
			{batch=250}), calibration = data.loader(data.mnist {split='validation', limit=1000}, {batch=125})}
	end
end

local function photographs(m, normalize)
	return {model = m:eval():fuse(), metric = 'accuracy',
		test = data.loader(data.cifar10 {split='test', limit=1000}, {batch=125, normalize=normalize}),
		calibration = data.loader(data.cifar10 {split='validation', limit=1000}, {batch=125, normalize=normalize})}
end

local function resnet8()
	local m, rename = dofile(models .. 'resnet8.lua')
	m:load(data.find 'weights/resnet8-cifar10-mlperf-tiny.safetensors', {rename=rename})
	return photographs(m, {mean={0, 0, 0}, std={1 / 255, 1 / 255, 1 / 255}})
end

local function resnet20()
	local m, normalize = dofile(models .. 'resnet20.lua')
	return photographs(m:load(data.find 'weights/resnet20-cifar10.safetensors'), normalize)
end

local function resnet9()
	local m, normalize = dofile(models .. 'resnet9.lua')
	return photographs(m:load(models .. 'resnet9.safetensors'), normalize)
end

local function language(name, text, batch, steps)
	return function()
		local d = text()
		local m = dofile(models .. name .. '.lua'):load(models .. name .. '.safetensors'):eval()
		local function some(part)
			return data.loader(part:narrow(1, 1, math.min(part:size(1), 20000)), {batch=batch, steps=steps, order='windows'})
		end
		return {model = m, metric = 'perplexity', test = some(d.test), calibration = some(d.valid)}
	end
end

local DIGITS, SEEN = 'mnist/t10k-images-idx3-ubyte.gz', 'mnist/train-images-idx3-ubyte.gz'
local PHOTOGRAPHS = 'cifar10/test_batch_first1000.bin.xz'

-- name, function, files in the models' folder, files of the data
local TRAINED = {
	{'mlp', digits 'mlp', {'mlp.lua', 'mlp.safetensors'}, {DIGITS, SEEN}},
	{'lenet', digits 'lenet', {'lenet.lua', 'lenet.safetensors'}, {DIGITS, SEEN}},
	{'resnet8', resnet8, {'resnet8.lua'}, {'weights/resnet8-cifar10-mlperf-tiny.safetensors', PHOTOGRAPHS}},
	{'resnet20', resnet20, {'resnet20.lua'}, {'weights/resnet20-cifar10.safetensors', PHOTOGRAPHS}},
	{'resnet9', resnet9, {'resnet9.lua', 'resnet9.safetensors'}, {PHOTOGRAPHS}},
	{'transformer', language('transformer', function() return data.text {level='char', steps=128} end, 16, 128),
		{'transformer.lua', 'transformer.safetensors'}, {'text/tinyshakespeare.txt.xz'}},
	{'lstm', language('lstm', function() return data.ptb {} end, 20, 35), {'lstm.lua', 'lstm.safetensors'},
		{'ptb/ptb.test.txt.xz'}},
}

---------------------------------------------------------------- quick

local function quick_digits()
	local images, test = data.synth {kind='digits', n=600, seed=1}, data.synth {kind='digits', n=200, seed=2}
	tensor.seed(1) -- the same model whatever the trial's seed
	local m = nn.Sequential {nn.Flatten(), nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10)}
	m:fit(data.loader(images, {batch=50}), {opt=optim.adam(m, {lr=3e-3}), epochs=2, log=false})
	return {model = m:eval(), metric = 'accuracy', test = data.loader(test, {batch=100}),
		calibration = data.loader(images, {batch=100})}
end

local function quick_text()
	local d = data.synth {kind='markov', n=8000, seed=1}
	tensor.seed(1)
	local m = nn.Transformer {vocab=#d.vocab, d=32, heads=2, layers=1, ff=64, context=32}
	m:fit(data.loader(d.train, {batch=16, steps=32}), {opt=optim.adam(m, {lr=3e-3}), epochs=1, log=false})
	return {model = m:eval(), metric = 'perplexity', test = data.loader(d.test, {batch=4, steps=32, order='windows'}),
		calibration = data.loader(d.valid, {batch=4, steps=32, order='windows'})}
end

---------------------------------------------------------------- what is there

return function(quick)
	local own = here .. 'tasks.lua'
	if quick then return {mlp = quick_digits, transformer = quick_text}, {own} end
	local tasks, files = {}, {own}
	for _, entry in ipairs(TRAINED) do
		local name, make, needed, sets = table.unpack(entry)
		local list, missing = {}, nil
		for _, file in ipairs(needed) do
			list[#list + 1] = models .. file
			if not exists(models .. file) then missing = models .. file end
		end
		for _, set in ipairs(sets) do
			local file = data.find(set)
			if file then list[#list + 1] = file else missing = set end
		end
		if missing then
			if not os.getenv 'QUOLL_SWEEP_TRIAL' then
				io.stderr:write(('%s is left out: there is no %s\n'):format(name, missing))
			end
		else
			tasks[name] = make
			table.move(list, 1, #list, #files + 1, files)
		end
	end
	return tasks, files
end
