-- SPDX-License-Identifier: MIT
-- Trains the networks of the tutorials and saves their weights as float16 in tutorials/models/:
--   quoll scripts/train.lua mlp lenet resnet9 transformer lstm     (with QUOLL_DATA, see data.folders)
--   quoll scripts/train.lua resnet9 --minutes 60 --epochs 14 --folder .
-- A run that was stopped goes on when it is started again: its state is in <folder>/<name>.training.safetensors. No test image or
-- token is used: epochs are judged by the last 5000 training images, or by the validation text.
local wanted, options = {}, {minutes = math.huge, folder = '.'}
do
	local i = 1
	while arg[i] do
		local key = arg[i]:match '^%-%-(%w+)$'
		if key then
			options[key] = tonumber(arg[i + 1]) or arg[i + 1]
			i = i + 1
		else
			wanted[#wanted + 1] = arg[i]
		end
		i = i + 1
	end
end
local here = arg[0]:match '^(.*)scripts/[^/]*$' or ''
local models = here .. 'tutorials/models/'

local function images(name, normalize, augment, batch)
	return data.loader(data[name] {split='train'}, {batch=batch or 128, shuffle=true, normalize=normalize, augment=augment}),
		data.loader(data[name] {split='validation'}, {batch=500, normalize=normalize})
end

local tasks = {}

function tasks.mlp()
	local train, valid = images 'mnist'
	local m = dofile(models .. 'mlp.lua')
	local epochs = options.epochs or 10
	return m, train, {opt=optim.adam(m, {lr=optim.cosine {lr=2e-3, steps=epochs * #train}}), epochs=epochs, validate=valid, metric='accuracy'}
end

function tasks.lenet()
	local train, valid = images 'mnist'
	local m = dofile(models .. 'lenet.lua')
	local epochs = options.epochs or 8
	return m, train, {opt=optim.adam(m, {lr=optim.cosine {lr=2e-3, steps=epochs * #train}}), epochs=epochs, validate=valid, metric='accuracy'}
end

function tasks.resnet9()
	local m, norm = dofile(models .. 'resnet9.lua')
	local train, valid = images('cifar10', norm, {crop=4, flip=true, cutout=8})
	local epochs = options.epochs or 14
	local opt = optim.sgd(m, {lr=optim.onecycle {lr=0.1, steps=epochs * #train}, momentum=0.9, nesterov=true, decay=5e-4})
	return m, train, {opt=opt, epochs=epochs, validate=valid, metric='accuracy'}
end

function tasks.transformer()
	local d = data.text {level='char', steps=128}
	local m = dofile(models .. 'transformer.lua')
	local train, valid = data.loader(d.train, {batch=32, shuffle=true}), data.loader(d.valid, {batch=32})
	local epochs = options.epochs or 16
	local opt = optim.adamw(m, {lr=optim.onecycle {lr=2e-3, steps=epochs * #train}, decay=0.05, clip=1})
	return m, train, {opt=opt, epochs=epochs, validate=valid, metric='loss'}
end

-- Zaremba's small configuration (arXiv 1409.2329), whose loss is summed over the steps of a batch: lr 1 and clipping at 5 there are
-- lr 20 and clipping at 0.25 of the mean. The rate falls from the fifth epoch on.
function tasks.lstm()
	local d = data.ptb {}
	local m = dofile(models .. 'lstm.lua')
	local train, valid = data.loader(d.train, {batch=20, steps=35}), data.loader(d.valid, {batch=20, steps=35})
	local steps = #train
	local function lr(step) return 20 * 0.6 ^ math.max(0, step // steps - 4) end
	return m, train, {opt=optim.sgd(m, {lr=lr, clip=0.25}), epochs=options.epochs or 12, validate=valid, metric='perplexity'}
end

for _, name in ipairs(wanted) do
	assert(tasks[name], 'train: wanted mlp, lenet, resnet9, transformer or lstm, got ' .. name)
	tensor.seed(1)
	local m, train, o = tasks[name]()
	o.save = ('%s/%s.training.safetensors'):format(options.folder, name)
	o.resume, o.minutes = true, options.minutes
	print(name)
	print(m:fit(train, o))
	local half = m:clone():to 'float16'
	half:save(models .. name .. '.safetensors')
	print(('%s%s.safetensors: %d bytes'):format(models, name, half:nbytes()))
end
