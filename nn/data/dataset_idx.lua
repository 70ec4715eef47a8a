-- SPDX-License-Identifier: MIT
-- Sets of 28 x 28 gray images in the idx files of MNIST: data.mnist and data.fashion.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local dataset = internal.import 'nn/base/dataset'
local fail = base.fail

local idx = {}

local N = {train = 60000, t10k = 10000} -- samples by the beginning of the file names
local VALIDATION = 5000                 -- last of the training images

-- One of the two files, checked. `what` is 'data.mnist', folder 'mnist'.
local function load(what, path, part, kind)
	local ok, t = pcall(tensor.load, path)
	if not ok then fail('%s: %s', what, (tostring(t):gsub('^.-load: ', ''))) end
	local n = N[part]
	local good
	if kind == 'images' then
		good = t:dim() == 3 and t:size(1) == n and t:size(2) == 28 and t:size(3) == 28
	else
		good = t:dim() == 1 and t:size(1) == n
	end
	if not good or t:dtype() ~= 'uint8' then
		fail('%s: %s: wanted %d %s, got %s', what, path, n, kind == 'images' and 'images of 28 x 28' or 'labels',
			internal.describe(t))
	end
	return t
end

local function classes_of(what, path, labels)
	if labels:max():item() > 9 then fail('%s: %s: wanted labels from 0 to 9, got %d', what, path, labels:max():item()) end
	return labels:to 'int64' + 1
end

-- set: name, title, classes, url (of the folder), bytes[part][kind] of the published files
function idx.load(set, options)
	local what = 'data.' .. set.name
	local split = dataset.check_split(set.name, options.split)
	local part = split == 'test' and 't10k' or 'train'
	local list = {}
	for i, kind in ipairs {'images', 'labels'} do
		local name = ('%s-%s-idx%d-ubyte'):format(part, kind, kind == 'images' and 3 or 1)
		local stem = ('%s/%s'):format(set.name, name)
		list[i] = {names = {stem .. '.gz', stem, stem .. '.xz'}, bytes = set.bytes[part][kind] .. ' bytes',
			url = set.url .. name .. '.gz'}
	end
	local paths = dataset.files(what, list)
	local codes, labels = load(what, paths[1], part, 'images'), load(what, paths[2], part, 'labels')
	local ds = dataset.new {name = ('%s %s'):format(set.title, split), classes = set.classes,
		x = dataset.pixels(codes:reshape(N[part], 1, 28, 28)), y = classes_of(what, paths[2], labels)}
	if split == 'train' then
		ds = ds:narrow(1, -VALIDATION - 1)
	elseif split == 'validation' then
		ds = ds:narrow(-VALIDATION, -1)
	end
	return dataset.limit(set.name, ds, options.limit)
end

idx.options = {{'split', 'text', "'train' (default), 'validation', 'test' or 'all' (train and validation)"},
	{'limit', 'integer', 'only the first so many samples'}}

return idx
