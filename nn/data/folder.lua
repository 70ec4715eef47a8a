-- SPDX-License-Identifier: MIT
-- data.folder: images of your own, a folder for each class.
local _, internal = ...
local base = internal.import 'base'
local dataset = internal.import 'dataset'
local fail = base.fail

local entry = base.doc {name = 'data.folder', usage = "data.folder 'fruits'  data.folder('fruits', {limit=100})",
	text = [[A `dataset` of the PNG images in fruits/apple, fruits/pear and so on: the folders' names, in the order of
the alphabet, are ds.classes. All images must have one size and be all gray or all in colour, 8 bits; an alpha channel
is left out.]],
	example = [[print(pcall(data.folder, 'no/such/folder'))  --> false ...data.folder: no/such/folder: cannot open...]],
	options = {{'limit', 'integer', 'at most so many images of each class'}}}

local function list(path)
	local names, message = internal.list_folder(path)
	if not names then fail('data.folder: %s: %s', path, message) end
	table.sort(names)
	return names
end

local function find_images(root, limit)
	local files, classes = {}, {}
	for _, class in ipairs(list(root)) do
		local names, count = not class:find '^%.' and internal.list_folder(root .. '/' .. class) or {}, 0
		table.sort(names)
		for _, name in ipairs(names) do
			if name:lower():find '%.png$' and (not limit or count < limit) then
				count = count + 1
				files[#files + 1] = {path = ('%s/%s/%s'):format(root, class, name), class = #classes + 1}
			end
		end
		if count > 0 then classes[#classes + 1] = class end
	end
	if #files == 0 then fail('data.folder: %s: wanted folders with .png files, got none', root) end
	return files, classes
end

-- An image as (channels, height, width), without alpha.
local function read(path)
	local ok, t = pcall(tensor.load, path)
	if not ok then fail('data.folder: %s', (tostring(t):gsub('^.-load: ', ''))) end
	if t:dtype() ~= 'uint8' then fail('data.folder: %s: wanted 8 bits a channel, got %s', path, internal.describe(t)) end
	if t:dim() == 2 then return t:reshape(1, t:size(1), t:size(2)) end
	local channels = t:size(3)
	return t:narrow(3, 1, channels > 2 and 3 or 1):permute(3, 1, 2)
end

return function(root, options)
	if type(root) ~= 'string' or root == '' then
		fail('folder: wanted the name of a folder, got %s', base.describe(root))
	end
	options = base.options(entry, options)
	if options.limit and options.limit < 1 then fail('folder: limit: wanted 1 or more, got %d', options.limit) end
	local files, classes = find_images(root, options.limit)
	local first = read(files[1].path)
	local x = dataset.pixels_empty(#files, first:size())
	local codes, y = x:codes(), tensor.empty {#files, dtype = 'int64'}
	for i, file in ipairs(files) do
		local image = i == 1 and first or read(file.path)
		for d = 1, 3 do
			if image:size(d) ~= first:size(d) then
				fail('data.folder: %s: wanted %s as %s has, got %s', file.path, internal.describe(first), files[1].path,
					internal.describe(image))
			end
		end
		codes[i]:copy_(image)
		y[i] = file.class
	end
	return dataset.new {name = root:match '[^/]+/*$', x = x, y = y, classes = classes}
end
