-- SPDX-License-Identifier: MIT
-- Stores the measurements of quant.search across runs, with the model, data and options that they belong to.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fit = internal.import 'nn/base/fit'
local identity = internal.import 'nn/base/identity'
local module = internal.import 'nn/base/module'
local fail = base.fail
local store = {}

-- A file of lines "key<TAB>value<TAB>bytes<TAB>ms<TAB>count"; an incomplete last line is removed. The first line identifies the model, data and options.
function store.open(path, head)
	local known = {}
	if not path then return known, function() end end
	path = base.path(base.check_path('search: file', path))
	local file = io.open(path, 'rb')
	if not file then
		local good, why = pcall(internal.write_file, path, head .. '\n')
		if not good then fail('search: file: %s', (tostring(why):gsub('^save: ', ''))) end
	else
		local text, why = file:read 'a'
		file:close()
		if not text then fail("search: file: '%s': wanted a file, got one that cannot be read: %s", path, why) end
		if text:find '^quoll search [12] ' then
			fail("search: file: %s: wanted measurements of this version, got those of an earlier one, without counts; remove the file or give another", path)
		end
		if text:match '^[^\n]*' ~= head then
			fail("search: file: %s: wanted measurements of this model, data and options, got those of others; remove the file or give another", path)
		end
		for key, value, bytes, ms, count in text:gmatch '\n([^\t\n]+)\t([^\t\n]+)\t([^\t\n]+)\t([^\t\n]+)\t([^\t\n]+)%f[\n]' do
			known[key] = {value = tonumber(value), bytes = tonumber(bytes), ms = tonumber(ms), count = math.tointeger(count)}
		end
		if text:sub(-1) ~= '\n' then internal.write_file(path, text:match '^(.*\n)' or head .. '\n') end
	end
	return known, function(key, entry)
		local out, why = io.open(path, 'ab')
		if not out then fail('search: file: %s', why) end
		out:write(('%s\t%.17g\t%.17g\t%.17g\t%d\n'):format(key, entry.value, entry.bytes, entry.ms, entry.count)):flush()
		out:close()
	end
end

---------------------------------------------------------------- identity of model, data and options

-- Names, shapes and sums of the weights.
local function of_weights(names, by_name)
	local parts = {}
	for _, name in ipairs(names) do
		for _, field in ipairs(module.weights(by_name[name])) do
			local w = rawget(by_name[name], field):detach()
			parts[#parts + 1] = ('%s.%s:%d:%.9g:%.9g'):format(name, field, w:nelem(), w:sum():item(), w:abs():sum():item())
		end
	end
	return table.concat(parts, ' ')
end

-- Sums hashes of rows with their targets, so that the order does not matter; batches without a target per row are hashed as a whole.
local function of_batch(x, y)
	if x:dim() == 0 or y:dim() == 0 or x:size(1) ~= y:size(1) then
		return tonumber(internal.sha256(identity.tensor(x) .. identity.tensor(y)):sub(1, 16), 16)
	end
	local sum = 0
	for i = 1, x:size(1) do
		sum = sum + tonumber(internal.sha256(identity.tensor(x:narrow(1, i, 1)) .. identity.tensor(y:narrow(1, i, 1))):sub(1, 16), 16)
	end
	return sum
end

-- One pass over the batches used for measuring.
local function of_data(o)
	local sum, n = 0, 0
	for x, y in fit.batches('search', o.data) do
		fit.check_batch('search', x, y)
		sum, n = sum + of_batch(x, y), n + 1
		if n == o.batches then break end
	end
	return ('%d:%016x'):format(n, sum)
end

-- What choices with methods learn from.
local function of_inputs(data)
	local parts = {}
	for x in fit.batches('search', data) do parts[#parts + 1] = identity.value(x) end
	return internal.sha256(table.concat(parts, ' '))
end

-- The first line of the file. `how`: mode, input, batches; `by_name`: the layers; inputs: of methods, or false.
function store.head(o, how, names, by_name, inputs)
	local function named(f) return type(f) == 'function' and identity.of(f):sub(1, 16) or tostring(f or '-') end
	local _ <close> = internal.nograd()
	return ('quoll search 3 %s %s %s %s %s %s %s'):format(named(o.metric or 'accuracy'), named(o.loss), how.mode,
		how.input and tostring(quant.spec(how.input)) or '-', tostring(how.batches), of_data(o), of_weights(names, by_name)) .. (inputs and ' inputs ' .. of_inputs(inputs) or '')
end

return store
