-- SPDX-License-Identifier: MIT
-- What nn.load reads: a folder of Hugging Face with its description and shards, a .gguf file. Both give the tensors by name and
-- the checked fields of the description.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fields = internal.import 'nn/checkpoints/fields'
local json = internal.import 'interp/prelude/json'
local writer = internal.import 'interp/prelude/json_write'
local fail = base.fail
local sources = {}

local MOST = 64 << 20 -- bytes of a description or index

-- The object in a file of JSON, and the text.
function sources.json(path)
	local bytes, message = internal.read_bytes(path, MOST, false)
	if not bytes then fail('load: %s', message) end
	local text = internal.bytes_text(bytes)
	local ok, value = pcall(json, text)
	if not ok then fail('load: %s: %s', path, value) end
	if type(value) ~= 'table' then fail('load: %s: wanted an object, got another value', path) end
	return value, text
end

-- Checks an index and gives the names of its files, in order.
local function shards(path, map)
	local names, seen = {}, {}
	if type(map) ~= 'table' then fail('load: %s: weight_map: wanted an object, got %s', path, base.describe(map)) end
	for tensor_name, file in pairs(map) do
		if type(tensor_name) ~= 'string' or type(file) ~= 'string' or not file:find '^[%w_][%w_.-]*%.safetensors$' then
			fail('load: %s: %s: wanted the name of a .safetensors file in the folder, got %s', path, base.describe(tensor_name), base.describe(file))
		end
		if not seen[file] then names[#names + 1] = file end
		seen[file] = true
	end
	table.sort(names)
	return names
end

-- Tensors of a file or folder by name; asking for one that cannot be read is an error, which says why. map: which
-- file has each.
function sources.tensors(all, refused, from, map)
	return setmetatable(all, {refused = refused, shards = map, __index = function(_, name)
		if refused[name] then fail('load: %s: %s', from, refused[name]) end
	end})
end

-- The tensors of all shards. Each has to be in the shard that the index names, and in no other.
local function indexed(folder, path)
	local map, all, refused = sources.json(path).weight_map, {}, {}
	local function put(list, file, name, value)
		if map[name] ~= file then fail("load: %s/%s: wanted the tensors that the index names for it, got '%s'", folder, file, base.word(name)) end
		list[name] = value
	end
	for _, file in ipairs(shards(path, map)) do
		local t = tensor.load(folder .. '/' .. file, {map = true})
		for name, value in pairs(t) do put(all, file, name, value) end
		for name, why in pairs(getmetatable(t).refused) do put(refused, file, name, why) end
	end
	for name, file in pairs(map) do
		if not all[name] and not refused[name] then fail("load: %s/%s: wanted '%s' as the index says, the file has none", folder, file, base.word(name)) end
	end
	return sources.tensors(all, refused, folder, map)
end

-- A description without what it says about quantized weights.
function sources.plain(text)
	local values = writer.read(text)
	if not values.quantization_config then return text end
	values.quantization_config = nil
	return writer.write(values, '  ') .. '\n'
end

-- Writes tensors to model.safetensors, or to the files of a map name -> file and an index; others go with the first.
function sources.write(folder, all, map)
	local options = {metadata = {format = 'pt'}}
	if not map then return tensor.save(folder .. 'model.safetensors', all, options) end
	local parts, where, bytes, first = {}, {}, 0, nil
	for _, file in pairs(map) do first = first and first < file and first or file end
	for name, value in pairs(all) do
		local file = map[name] or first
		parts[file] = parts[file] or {}
		parts[file][name], where[name], bytes = value, file, bytes + value:nbytes()
	end
	for file, t in pairs(parts) do tensor.save(folder .. file, t, options) end
	internal.write_file(folder .. 'model.safetensors.index.json', writer.write({metadata = {total_size = bytes}, weight_map = where}, '  ') .. '\n')
end

function sources.folder(folder)
	folder = folder:gsub('(.)/+$', '%1')
	local config = folder .. '/config.json'
	if not internal.exists(config) then fail('load: %s: wanted a folder with config.json, there is none', folder) end
	local index, whole = folder .. '/model.safetensors.index.json', folder .. '/model.safetensors'
	if not internal.exists(index) and not internal.exists(whole) then
		fail('load: %s: wanted model.safetensors, or model.safetensors.index.json and its files, there is neither', folder)
	end
	local values, text = sources.json(config)
	local c = fields.new(config, values)
	c.text = text
	return c, function() return internal.exists(index) and indexed(folder, index) or tensor.load(whole, {map = true}) end
end

return sources
