-- SPDX-License-Identifier: MIT
-- The figures of tutorials/README.md that need no training, made again: `./quoll scripts/figures.lua NAME ...` prints one line for each,
-- name and text as it is in that file (without names: all). tests/interp/notebook/figures.lua compares the two. Needs the data sets and the weights of
-- the tutorials.
local folder = (arg and arg[0] or ''):match '^(.*/)' or ''
local models = folder .. '../tutorials/models/'
local OBSERVERS = {'minmax', 'average', 'percentile', 'entropy', 'mse', 'adaptive'}

local function figure(name, format, ...) print(name, format:format(...)) end
local function signed(value, reference) return 100 * (value / reference - 1) end
local function value(m, batches, metric, limit) return m:evaluate(batches, {metric = metric, batches = limit, log = false}).value end
local function trained(name)
	local m, norm = dofile(models .. name .. '.lua')
	return m:load(models .. name .. '.safetensors'):eval(), norm
end

-- '914 to 916', '914'
local function span(format, list)
	table.sort(list)
	local lo, hi = format:format(list[1]), format:format(list[#list])
	return lo == hi and lo or lo .. ' to ' .. hi
end

-- How many of all inputs get the same answer from both.
local function agreement(a, b, batches)
	local same, n = 0, 0
	tensor.nograd(function()
		for x in batches() do
			same, n = same + a(x):argmax{axis = 2}:eq(b(x):argmax{axis = 2}):sum():item(), n + x:size(1)
		end
	end)
	return 100 * same / n
end

-- Weights int8/1, ranges of each observer from 10 batches: what is counted and how many answers are those of m.
local function statics(m, choices, count, test)
	local counts, same = {}, {}
	for i, observer in ipairs(OBSERVERS) do
		m:calibrate(choices, {input = 'uint8@' .. observer, batches = 10, log = false})
		local q = m:quantize{mode = 'static', weight = 'int8/1'}
		counts[i], same[i] = count(q), test and agreement(m, q, test)
	end
	return counts, same
end

local figures = {}

function figures.mlp()
	local m = trained 'mlp'
	local test = data.loader(data.mnist{split = 'test'}, {batch = 500})
	local function percent(q) return value(q, test, 'accuracy') end
	figure('mlp', '%.2f %% | %s %% | %.2f %%', percent(m), span('%.2f', (statics(m, data.loader(data.mnist{split = 'validation'},
		{batch = 500}), percent))), percent(m:quantize{mode = 'dynamic', weight = 'int8/1'}))
end

-- Of the 1000 test images of CIFAR-10, in batches of 100.
local function photos(name, m, norm)
	local how = {batch = 100, normalize = norm}
	local test = data.loader(data.cifar10{split = 'test'}, how)
	local function right(q) return math.floor(10 * value(q, test, 'accuracy') + 0.5) end
	m = m:fuse()
	local counts, same = statics(m, data.loader(data.cifar10{split = 'validation'}, how), right, test)
	figure(name, '%d | %s by observer; %s %% the same answer | %d', right(m), span('%d', counts), span('%.1f', same),
		right(m:quantize{mode = 'dynamic', weight = 'int8/1'}))
	figure(name .. ' int4', 'int4/1 everywhere %d', right(m:quantize{mode = 'weight_only', weight = 'int4/1'}))
	return m, right, test
end

function figures.resnet20()
	local m, norm = dofile(models .. 'resnet20.lua')
	local q, right = photos('resnet20', m:load(data.find 'weights/resnet20-cifar10.safetensors'):eval(), norm)
	figure('resnet20 int8', 'int8/1 %d', right(q:quantize{mode = 'weight_only', weight = 'int8/1'}))
end

local function weight_bytes(m)
	local bytes = 0
	for _, layer in pairs(m:named()) do
		local good, w = pcall(function() return layer.weight end)
		if good and w and w:quantized() then bytes = bytes + w:nbytes() end
	end
	return bytes
end

-- A spec for each layer, int4/1 or int8/1, that 1000 training images choose.
local function mixture(name, m, norm, share, right)
	local full = weight_bytes(m:quantize{mode = 'weight_only', weight = 'int8/1'})
	local choices = data.loader(data.cifar10{split = 'validation', limit = 1000}, {batch = 250, normalize = norm})
	local rules = quant.search(m, {data = choices, metric = 'loss', choices = {'int4/1', 'int8/1'}, bytes = share * full, log = false})
	local q = m:quantize{mode = 'weight_only', rules = rules}
	figure(name .. ' mixture', 'a mixture in %.3f of the bytes of int8/1 %d', weight_bytes(q) / full, right(q))
end

function figures.resnet8()
	local m, names = dofile(models .. 'resnet8.lua')
	local norm = {mean = {0, 0, 0}, std = {1 / 255, 1 / 255, 1 / 255}}
	local f, right = photos('resnet8', m:load(data.find 'weights/resnet8-cifar10-mlperf-tiny.safetensors', {rename = names}):eval(), norm)
	mixture('resnet8', f, norm, 0.6, right)
end

function figures.resnet9()
	local m, norm = trained 'resnet9'
	figure('resnet9 validation', '%.1f %% of the validation images', value(m, data.loader(data.cifar10{split = 'validation'},
		{batch = 500, normalize = norm}), 'accuracy'))
	local f, right, test = photos('resnet9', m, norm)
	f:calibrate(data.loader(data.cifar10{split = 'validation'}, {batch = 100, normalize = norm}), {input = 'uint8@mse', batches = 10, log = false})
	local q = f:quantize{mode = 'static', weight = 'int4/1@mse'}
	figure('resnet9 4 bits', '%d images rounded afterwards with ranges of least squared error, %.1f %% the same answer', right(q), agreement(f, q, test))
end

function figures.lenet()
	local m = trained 'lenet'
	local test = data.loader(data.mnist{split = 'test'}, {batch = 500})
	figure('lenet', 'float32 %.2f %%', value(m, test, 'accuracy'))
end

local function perplexities(m, test, limit, rows)
	local float = value(m, test, 'perplexity', limit)
	local list = {}
	for _, row in ipairs(rows) do list[#list + 1] = ('%s %+.2f %%'):format(row[1], signed(value(row[2], test, 'perplexity', limit), float)) end
	return float, table.concat(list, ', ')
end

function figures.lstm()
	local m = trained 'lstm'
	local d = data.ptb()
	local function loader(part) return data.loader(part, {batch = 20, steps = 35}) end
	figure('lstm validation', '%.1f on the validation text', value(m, loader(d.valid), 'perplexity'))
	m:calibrate(loader(d.valid), {input = 'uint8', batches = 50, log = false})
	local rules, all = {{'embedding.*', false}}, m:quantize{mode = 'dynamic', weight = 'int8/1'}
	local float, rest = perplexities(m, loader(d.test), nil, {{'dynamic int8', m:quantize{mode = 'dynamic', weight = 'int8/1', rules = rules}},
		{'static int8', m:quantize{mode = 'static', weight = 'int8/1', rules = rules}},
		{'weights int4:32', m:quantize{mode = 'weight_only', weight = 'int4:32', rules = rules}}})
	figure('lstm', 'float32 %.2f, %s', float, rest)
	figure('lstm embedding', '%.1f MB instead of %.1f, %+.2f %%', all:nbytes() / 1e6, m:nbytes() / 1e6,
		signed(value(all, loader(d.test), 'perplexity'), float))
end

function figures.transformer()
	local m = trained 'transformer'
	local d = data.text{level = 'char', steps = 128}
	local function loader(part) return data.loader(part, {batch = 32, steps = 128, order = 'windows'}) end
	figure('transformer validation', '%.3f nats on the validation text', value(m, loader(d.valid), 'loss'))
	local function weights(spec) return {spec, m:quantize{mode = 'weight_only', weight = spec, rules = {{'embedding.*', false}}}} end
	local four = {weights 'int4:32', weights 'int4:64', weights 'int4/1'}
	local float, rest = perplexities(m, loader(d.test), nil, four)
	m:calibrate(loader(d.valid), {input = 'uint8', batches = 16, log = false})
	local first, some = perplexities(m, loader(d.test), 8, {{'dynamic int8', m:quantize{mode = 'dynamic'}},
		{'static int8', m:quantize{mode = 'static'}}, {'weights int8/1', weights 'int8/1'[2]}, table.unpack(four)})
	figure('transformer 8 batches', 'float32 %.3f, %s', first, some)
	figure('transformer', '%.3f, %s', float, rest)
end

local names = {}
for name in pairs(figures) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(arg and arg[1] and arg or names) do
	if not figures[name] then
		io.stderr:write(('figures: wanted some of %s, got %s\n'):format(table.concat(names, ' '), name))
		os.exit(1)
	end
	figures[name]()
end
