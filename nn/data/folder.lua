-- SPDX-License-Identifier: MIT
-- data.folder: the user's own images, one folder per class.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local dataset = internal.import 'nn/base/dataset'
local fail, describe = base.fail, internal.describe

local entry = base.doc {name = 'data.folder', usage = "data.folder 'fruits'  data.folder('photos', {resize=72, crop=64})",
	text = [[A `dataset` of the PNG and JPEG images in fruits/apple, fruits/pear and so on: the folder names, in alphabetical
order, are ds.classes. All images must be gray or all in colour, with 8 bits; an alpha channel is dropped. They must have the same size
or be brought to one: resize=n makes the shorter side n pixels and keeps the proportions, resize={h, w} sets both sides; crop=n or crop={h, w}
then takes the centre. resize is bilinear with antialiasing (`x:resize`). Files that are not images, or not in a class folder, are
left out: ds.left_out lists them, and printing the data set shows how many there are.]],
	example = [[print(pcall(data.folder, 'no/such/folder'))  --> false ...data.folder: no/such/folder: cannot open...]],
	options = {{'limit', 'integer', 'at most so many images of each class'},
		{'resize', 'any', 'pixels of the shorter side, or {height, width}'},
		{'crop', 'any', 'pixels of both sides of the centre that is taken, or {height, width}'}}}

local function list(path)
	local names, message = internal.list_folder(path)
	if not names then fail('data.folder: %s: %s', path, message) end
	table.sort(names)
	return names
end

local function is_image(name)
	local ending = name:lower():match '%.(%w+)$'
	return ending == 'png' or ending == 'jpg' or ending == 'jpeg'
end

-- The images with their classes, the classes, and the files that are left out. Hidden files and folders do not count.
local function find_images(root, limit)
	local files, classes, left_out = {}, {}, {}
	for _, class in ipairs(list(root)) do
		local names, count = not class:find '^%.' and internal.list_folder(root .. '/' .. class), 0
		if not names and not class:find '^%.' then left_out[#left_out + 1] = class end
		table.sort(names or {})
		for _, name in ipairs(names or {}) do
			local path = ('%s/%s/%s'):format(root, class, name)
			if not is_image(name) then
				if not name:find '^%.' then left_out[#left_out + 1] = class .. '/' .. name end
			elseif not limit or count < limit then
				count = count + 1
				files[#files + 1] = {path = path, class = #classes + 1}
			end
		end
		if count > 0 then classes[#classes + 1] = class end
	end
	if #files == 0 then fail('data.folder: %s: wanted folders with .png or .jpg files, got none', root) end
	return files, classes, left_out
end

-- A number or {height, width} of option `name`: whether it was a number, height, width.
local function sides(name, value)
	if value == nil then return end
	local both = type(value) == 'table' and value or {value, value}
	for i = 1, 2 do
		if math.type(both[i]) ~= 'integer' or both[i] < 1 or #both ~= 2 then
			fail('folder: %s: wanted a number of pixels or {height, width}, got %s', name, base.describe(value))
		end
	end
	return type(value) ~= 'table', both[1], both[2]
end

-- The height and width that resize gives an image.
local function resized(t, how)
	local keep, h, w = table.unpack(how, 1, 3)
	if not keep then return {h, w} end
	local short = math.min(t:size(2), t:size(3))
	return {math.max(1, (2 * t:size(2) * h + short) // (2 * short)), math.max(1, (2 * t:size(3) * h + short) // (2 * short))}
end

local function centre(t, path, how)
	for d = 2, 3 do
		local over = t:size(d) - how[d]
		if over < 0 then fail('data.folder: %s: crop: wanted at least %d x %d pixels, got %d x %d; see resize=', path, how[2], how[3], t:size(2), t:size(3)) end
		t = t:narrow(d, over // 2 + 1, how[d])
	end
	return t
end

-- An image as (channels, height, width), without alpha.
local function read(path, resize, crop)
	local ok, t = pcall(tensor.load, path)
	if not ok then fail('data.folder: %s', (tostring(t):gsub('^.-load: ', ''))) end
	if t:dtype() ~= 'uint8' then fail('data.folder: %s: wanted 8 bits a channel, got %s', path, describe(t)) end
	if t:dim() == 2 then
		t = t:reshape(1, t:size(1), t:size(2))
	else
		t = t:narrow(3, 1, t:size(3) > 2 and 3 or 1):permute(3, 1, 2)
	end
	if resize[2] then t = t:resize {size = resized(t, resize), antialias = true} end
	return crop[2] and centre(t, path, crop) or t
end

local function check_size(image, path, first, first_path)
	for d = 1, 3 do
		if image:size(d) ~= first:size(d) then
			fail('data.folder: %s: wanted %s as %s has, got %s%s', path, describe(first), first_path, describe(image),
				d > 1 and '; see resize= and crop=' or '')
		end
	end
end

return function(root, options)
	if type(root) ~= 'string' or root == '' then
		fail('folder: wanted the name of a folder, got %s', base.describe(root))
	end
	options = base.options(entry, options)
	if options.limit and options.limit < 1 then fail('folder: limit: wanted 1 or more, got %d', options.limit) end
	local resize, crop = {sides('resize', options.resize)}, {sides('crop', options.crop)}
	local files, classes, left_out = find_images(root, options.limit)
	local first = read(files[1].path, resize, crop)
	local x = dataset.pixels_empty(#files, first:size())
	local codes, y = x:codes(), tensor.empty {#files, dtype = 'int64'}
	for i, file in ipairs(files) do
		local image = i == 1 and first or read(file.path, resize, crop)
		check_size(image, file.path, first, files[1].path)
		codes[i]:copy_(image)
		y[i] = file.class
	end
	return dataset.new {name = root:match '[^/]+/*$', x = x, y = y, classes = classes, left_out = #left_out > 0 and left_out or nil}
end
