-- SPDX-License-Identifier: MIT
-- data.cifar10: the binary version of CIFAR-10 (Krizhevsky, "Learning multiple layers of features from tiny images",
-- 2009): records of 3073 bytes, a label and the red, green and blue plane.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local dataset = internal.import 'nn/base/dataset'
local fail = base.fail

local RECORD, BATCH, VALIDATION = 3073, 10000, 5000
local URL = 'https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz (170,052,171 bytes in all)'
local CLASSES = {'airplane', 'automobile', 'bird', 'cat', 'deer', 'dog', 'frog', 'horse', 'ship', 'truck'}

-- Possible paths of a batch: our own layout, or that of the published archive.
local function names_of(name)
	local list = {}
	for _, folder in ipairs {'cifar10/', 'cifar-10-batches-bin/', 'cifar10/cifar-10-batches-bin/'} do
		for _, tail in ipairs {'.bin.xz', '.bin', '.bin.gz'} do list[#list + 1] = folder .. name .. tail end
	end
	return list
end

local function wanted(name) return {names = names_of(name), bytes = '30,730,000 bytes unpacked', url = URL} end

local function find(name)
	for _, file in ipairs(names_of(name)) do
		local path = data.find(file)
		if path then return path end
	end
end

-- The records first to last of a file of n, into codes and labels from `at` on.
local function read_into(path, n, first, last, codes, labels, at)
	local bytes = dataset.read('data.cifar10', path, n * RECORD):view(n, RECORD):narrow(1, first, last - first + 1)
	local y = bytes:select(2, 1)
	if y:max():item() > 9 then fail('data.cifar10: %s: wanted labels from 0 to 9, got %d', path, y:max():item()) end
	labels:narrow(1, at, last - first + 1):copy_(y)
	codes:narrow(1, at, last - first + 1):copy_(bytes:narrow(2, 2, RECORD - 1))
end

-- parts: list of {path=, n= records of the file, first=, last=}
local function assemble(parts)
	local n, at = 0, 1
	for _, part in ipairs(parts) do n = n + part.last - part.first + 1 end
	local x = dataset.pixels_empty(n, 3, 32, 32)
	local codes, labels = x:codes():view(n, RECORD - 1), tensor.empty {n, dtype = 'int64'}
	for _, part in ipairs(parts) do
		read_into(part.path, part.n, part.first, part.last, codes, labels, at)
		at = at + part.last - part.first + 1
	end
	return x, labels:add_(1)
end

-- Training batches that are there: records from 1 to 50000 by their place in the whole set, of which the last 5000 are
-- for validation. Also which batches are absent.
local function training(split)
	local parts, absent, files = {}, {}, {}
	for b = 1, 5 do
		local name = 'data_batch_' .. b
		local path = find(name)
		files[b] = wanted(name)
		local first = split == 'validation' and (b == 5 and BATCH - VALIDATION + 1 or BATCH + 1) or 1
		local last = split == 'train' and b == 5 and BATCH - VALIDATION or BATCH
		if path and first <= last then
			parts[#parts + 1] = {path = path, n = BATCH, first = first, last = last}
		elseif not path then
			absent[#absent + 1] = tostring(b)
		end
	end
	if #parts == 0 then dataset.files('data.cifar10', split == 'validation' and {files[5]} or files) end
	return parts, #absent > 0 and split ~= 'validation' and
		'partial: training batch ' .. table.concat(absent, ', ') .. ' of 5 not there'
end

local function test()
	local path, first = find 'test_batch', find 'test_batch_first1000'
	if path then return {{path = path, n = BATCH, first = 1, last = BATCH}} end
	if first then
		return {{path = first, n = 1000, first = 1, last = 1000}}, 'partial: the first 1000 of the 10000 test images'
	end
	dataset.files('data.cifar10', {wanted 'test_batch'})
end

local entry = base.doc {name = 'data.cifar10', usage = "data.cifar10{split='train'}",
	text = [[Photographs of ten kinds of things, 32 x 32 in colour, as a `dataset`: 45000 for training, 5000 for
validation (the last of the 50000) and 10000 for tests. The files are those of the binary version, packed (.xz, .gz)
or not, in the folder cifar10 of `data.folders`. Some of the training batches are enough, and so are the first 1000
test images (test_batch_first1000.bin.xz): ds.note and print say what is missing.]],
	example = [[if data.find 'cifar10/data_batch_1.bin.xz' then
  ds = data.cifar10{split='train', limit=3}
  assert(ds.classes[ds.y[1]:item()] == 'frog')
end]],
	options = {{'split', 'text', "'train' (default), 'validation', 'test' or 'all' (train and validation)"},
		{'limit', 'integer', 'only the first so many samples'}}}

return function(options)
	options = base.options(entry, options)
	local split = dataset.check_split('cifar10', options.split)
	local parts, note
	if split == 'test' then parts, note = test() else parts, note = training(split) end
	local limit = options.limit
	if limit and limit >= 1 and limit <= parts[1].last - parts[1].first + 1 then
		parts = {parts[1]} -- the other files need not be read
	end
	local x, y = assemble(parts)
	return dataset.limit('cifar10', dataset.new {name = 'CIFAR-10 ' .. split, x = x, y = y, classes = CLASSES,
		note = note or nil}, limit)
end
