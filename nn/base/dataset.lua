-- SPDX-License-Identifier: MIT
-- Data sets: samples x with targets y along the first axis, the names of the classes, and notes. And texts: token
-- tensors train, valid and test with one vocabulary.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, doc, describe = base.fail, base.doc, base.describe

local dataset = {}
local methods, meta = {}, {__name = 'quoll.dataset'}
meta.methods = methods -- for completion and help
debug.getregistry()[meta.__name] = meta

-- fields: x, and if there are: y, name, classes (list), left_out (list of files), note (one line)
function dataset.new(fields)
	return setmetatable(fields, meta)
end

function dataset.is(value)
	return getmetatable(value) == meta
end

local function check_self(set, name)
	if not dataset.is(set) then fail('%s: wanted a data set, as in ds:%s(…), got %s', name, name, describe(set)) end
end

function meta.__len(set) return rawget(set, 'x'):size(1) end

function meta.__index(set, key)
	if math.type(key) == 'integer' then return {set:get(key)} end
	return methods[key]
end

local function shape_text(x)
	return describe(x)
end

function meta.__tostring(set)
	local lines = {('%s: %d samples'):format(set.name or 'data set', #set)}
	lines[2] = '  x  ' .. shape_text(set.x)
	if set.y then lines[3] = '  y  ' .. shape_text(set.y) end
	local function list(what, names)
		local text = table.concat(names, ' ')
		if #text > 90 then text = text:sub(1, 90):gsub('%S*$', '…') end
		lines[#lines + 1] = ('  %d %s: %s'):format(#names, what, text)
	end
	if set.classes then list('classes', set.classes) end
	if set.left_out then list(#set.left_out == 1 and 'file left out' or 'files left out', set.left_out) end
	if set.note then lines[#lines + 1] = '  ' .. set.note end
	return table.concat(lines, '\n')
end

doc {name = 'dataset', kind = 'concept',
	text = [[What `data.mnist`, `data.synth` and their like give: samples ds.x with targets ds.y along the first axis,
ds.name, ds.classes (a list of names; the class number in y is the place in it, from 1) and ds.note, what should be
known of it. #ds is the number of samples, ds[i] the pair {x, y} of one, and printing shows all of it. `data.loader`
makes batches.

Images are uint8 (n, channels, height, width) with scale 1/255, so 0 to 255 mean 0 to 1; y is int64 (n), as argmax
gives. Of the sets with files, split='validation' is the last 5000 training images and split='train' is the rest:
choices (calibration, search, early stopping) need no test image. Texts are objects with the int32 tensors d.train,
d.valid and d.test instead.]],
	example = [[ds = data.synth{kind='digits', n=10, seed=1}
x, y = table.unpack(ds[3])
print(#ds, x:dtype(), y:item() == ds.y[3]:item())  --> 10 uint8 true]]}

doc {name = 'dataset:get', usage = 'ds:get(i)', text = [[Sample i as x and y; negative numbers count from the end.
ds[i] is the same as one table.]],
	example = [[ds = data.tensors(tensor{{1,2},{3,4}}, tensor{1,2, dtype='int64'})
print(ds:get(2))  --> float32(2)  3 4 2]]}

function methods.get(set, i)
	check_self(set, 'get')
	if math.type(i) ~= 'integer' or i == 0 or i > #set or i < -#set then
		fail('get: wanted the number of a sample, 1 to %d, got %s', #set, describe(i))
	end
	return set.x[i], set.y and set.y[i]
end

doc {name = 'dataset:narrow', usage = 'ds:narrow(from, to)', text = [[The samples from to to, both counted; negative
numbers count from the end. Memory is shared.]],
	example = "print(#data.synth{n=10}:narrow(3, -2))  --> 7"}

function methods.narrow(set, from, to)
	check_self(set, 'narrow')
	local n = #set
	local function place(i, what)
		if math.type(i) ~= 'integer' then fail('narrow: %s: wanted an integer, got %s', what, describe(i)) end
		return i < 0 and n + 1 + i or i
	end
	local lo, hi = place(from, 'from'), place(to == nil and -1 or to, 'to')
	if lo < 1 or hi > n or lo > hi + 1 then
		fail('narrow: wanted samples within 1 to %d, got %d to %d', n, from, to or -1)
	end
	local part = {}
	for key, value in next, set do part[key] = value end
	part.x = set.x:narrow(1, lo, hi - lo + 1)
	part.y = set.y and set.y:narrow(1, lo, hi - lo + 1)
	return dataset.new(part)
end

doc {name = 'dataset:split', usage = 'train, rest = ds:split(n)', text = [[Two data sets: the first n samples and the
others. A fraction below 1 counts as that share of them.]],
	example = [[a, b = data.synth{n=10}:split(0.8)
print(#a, #b)  --> 8 2]]}

function methods.split(set, n)
	check_self(set, 'split')
	local size = #set
	if type(n) ~= 'number' or not (n >= 0 and n <= size) or n % 1 ~= 0 and n > 1 then
		fail('split: wanted a number of samples up to %d or a share below 1, got %s', size, describe(n))
	end
	n = n > 0 and n < 1 and math.floor(n * size + 0.5) or math.tointeger(n)
	return set:narrow(1, n), set:narrow(n + 1, -1)
end

---------------------------------------------------------------- images

-- A uint8 tensor with scale 1/255, its codes not set.
function dataset.pixels_empty(...)
	return tensor.empty {quant = {dtype = 'uint8', scale = 1 / 255, zero_point = 0}, ...}
end

-- The same with these codes.
function dataset.pixels(codes)
	local x = dataset.pixels_empty(codes:size())
	x:codes():copy_(codes)
	return x
end

-- The first `limit` samples.
function dataset.limit(what, set, limit)
	if limit == nil then return set end
	if limit < 1 then fail('%s: limit: wanted 1 or more, got %d', what, limit) end
	return set:narrow(1, math.tointeger(math.min(limit, #set)))
end

-- The name of a split of a set with files, checked; 'train' when nil.
function dataset.check_split(what, split)
	local known = {train = true, validation = true, test = true, all = true}
	split = split or 'train'
	if not known[split] then
		fail("%s: split: wanted 'train', 'validation', 'test' or 'all', got %s%s", what, describe(split),
			base.near(split, {'train', 'validation', 'test', 'all'}))
	end
	return split
end

---------------------------------------------------------------- files

-- Files that are needed: a list of {names = {'mnist/a.gz', 'mnist/a'}, bytes = text about the size, url =}. Returns the
-- list of their paths, or raises one error that names all that are missing.
function dataset.files(what, list)
	local paths, absent = {}, {}
	for i, file in ipairs(list) do
		for _, name in ipairs(file.names) do paths[i] = paths[i] or data.find(name) end
		if not paths[i] then
			absent[#absent + 1] = ('\n  %s  (%s)  %s'):format(file.names[1], file.bytes, file.url)
		end
	end
	if #absent > 0 then
		fail('%s: %d of %d files not there; nothing is downloaded; put into %s:%s', what, #absent, #list,
			table.concat(data.folders(), ' or '), table.concat(absent))
	end
	return paths
end

-- The bytes of a file that must have this size when unpacked, as a uint8 tensor.
function dataset.read(what, path, size)
	local bytes, message = internal.read_bytes(path, size, true)
	if not bytes then fail('%s: %s', what, message) end
	return bytes
end

return dataset
