-- SPDX-License-Identifier: MIT
-- Shared by the sections of scripts/ptq_methods.lua: rows over seeds, models, calibration data.
local here = ...
local tools = {seeds = tonumber(os.getenv 'SEEDS') or 3}

function tools.need(path)
	local found = data.find(path)
	if not found then error(('skipped: %s is not in the data folder (QUOLL_DATA)'):format(path), 0) end
	return found
end

---------------------------------------------------------------- methods

-- What of a chain does not exist: the name of a method, or of an option; nil: all of it does.
function tools.missing(method)
	if method == nil then return nil end
	local good, why = pcall(function() return nn.Linear(8, 8):quantize {mode = 'weight_only', weight = 'int4:8', method = method} end)
	if good then return nil end
	local name = why:match "wanted one of .-, got '([^']*)'"
	local option = why:match "unknown option '([^']*)'"
	return name or option and 'option ' .. option or nil
end

function tools.text(method)
	if type(method) == 'string' then return method end
	if type(method) ~= 'table' then return '-' end
	if type(method[1]) == 'string' and type(method[2]) == 'nil' then
		local words = {method[1]}
		for key, value in pairs(method) do
			if key ~= 1 then words[#words + 1] = value == true and key or ('%s=%s'):format(key, value) end
		end
		table.sort(words, function(a, b) return a == method[1] or b ~= method[1] and a < b end)
		return table.concat(words, ' ')
	end
	local parts = {}
	for i, one in ipairs(method) do parts[i] = tools.text(one) end
	return table.concat(parts, ', ')
end

---------------------------------------------------------------- rows

local methods = {}
local meta = {__index = methods}

-- o: unit, higher (whether more is better), digits.
function tools.table(o) return setmetatable({o = o, rows = {}, of = {}}, meta) end

local function reached(t, goal, value)
	if not goal then return '-' end
	return (t.o.higher and value >= goal or not t.o.higher and value <= goal) and 'yes' or 'no'
end

local function put(t, row)
	t.rows[#t.rows + 1] = row
	io.stderr:write(('%s, %s: %s\n'):format(row[1], row[2], row[3]))
end

-- A row: what, method (nil: none), goal, of = function(seed) -> number, or note of more; once: it has no seeds.
function methods:add(r)
	local gone = tools.missing(r.method)
	local label = r.label or tools.text(r.method)
	if gone or r.missing then return put(self, {r.what, label, 'missing: ' .. (gone or r.missing), '', '', r.goal or '-', '-', ''}) end
	local sum, low, high, n, note = 0, math.huge, -math.huge, r.once and 1 or tools.seeds, nil
	for seed = 1, n do
		local good, value, more = pcall(r.of, seed)
		if not good then return put(self, {r.what, label, 'cannot: ' .. tostring(value):gsub('^%S+:%d+: ', ''):gsub('\n.*', ''), '', '', r.goal or '-', '-', ''}) end
		sum, low, high, note = sum + value, math.min(low, value), math.max(high, value), more or note
	end
	local form = '%.' .. (self.o.digits or 2) .. 'f'
	local mean = sum / n
	self.of[r.what] = self.of[r.what] or {}
	table.insert(self.of[r.what], {label = label, mean = mean, low = low, high = high})
	put(self, {r.what, label, form:format(mean), form:format(low), form:format(high), r.goal or '-', reached(self, r.goal, mean), note or ''})
	return mean
end

-- The best of the rows of that name.
function methods:best(what, goal)
	local best
	for _, one in ipairs(self.of[what] or {}) do
		if not best or self.o.higher and one.mean > best.mean or not self.o.higher and one.mean < best.mean then best = one end
	end
	if not best then return end
	local form = '%.' .. (self.o.digits or 2) .. 'f'
	put(self, {what .. ', best', best.label, form:format(best.mean), form:format(best.low), form:format(best.high), goal, reached(self, goal, best.mean), ''})
end

function methods:mean(what, label)
	for _, one in ipairs(self.of[what] or {}) do
		if one.label == label then return one.mean end
	end
end

function methods:print()
	local rows = self.rows
	rows.columns = {'what', 'method', self.o.unit, 'least', 'largest', 'goal', 'reached', 'note'}
	print(report(rows):text {width = 150})
end

---------------------------------------------------------------- stories260K

function tools.stories()
	local m = nn.llama(tools.need 'weights/stories260K.bin')
	local texts = {}
	for i, ids in ipairs(dofile(here .. '../tests/golden/stories_ids.lua')) do
		local n = ids:size(1) - 1
		texts[i] = {ids:narrow(1, 1, n):unsqueeze(1), ids:narrow(1, 2, n):unsqueeze(1)}
	end
	return m, texts
end

-- n texts that the model writes, of a seed.
function tools.own_texts(m, seed, n)
	tools.kept = tools.kept or {}
	local key = seed * 1000 + n
	if tools.kept[key] then return tools.kept[key] end
	local begin = data.tokenizer(tools.need 'weights/tok512.bin'):encode('', {bos = true})
	tools.kept[key] = data.self(m, {texts = n, steps = 256, begin = begin, seed = 1000 * seed + 1})
	return tools.kept[key]
end

function tools.perplexity(q, texts) return q:evaluate(texts, {metric = 'perplexity', log = false}).perplexity end

---------------------------------------------------------------- images

local MODELS = {
	resnet8 = function()
		local m, names = dofile(here .. '../tutorials/models/resnet8.lua')
		return m:load(tools.need 'weights/resnet8-cifar10-mlperf-tiny.safetensors', {rename = names}):eval():fuse(), {mean = {0, 0, 0}, std = {1 / 255, 1 / 255, 1 / 255}}
	end,
	resnet20 = function()
		local m, norm = dofile(here .. '../tutorials/models/resnet20.lua')
		return m:load(tools.need 'weights/resnet20-cifar10.safetensors'):eval():fuse(), norm
	end,
}

-- The model, its test images as batches, and calibration(seed): 256 images of the validation part, others for each seed.
function tools.images(name)
	tools.need 'cifar10/data_batch_5.bin.xz'
	local m, norm = MODELS[name]()
	local test, all = {}, {}
	for x, y in data.loader(data.cifar10 {split = 'test', limit = 1000}, {batch = 250, normalize = norm})() do test[#test + 1] = {x, y} end
	for x in data.loader(data.cifar10 {split = 'validation', limit = 768}, {batch = 64, normalize = norm})() do all[#all + 1] = {x} end
	return m, test, function(seed) return table.move(all, 4 * seed - 3, 4 * seed, 1, {}) end
end

function tools.right(q, test)
	local n = 0
	for _, batch in ipairs(test) do n = n + q(batch[1]):argmax(-1):eq(batch[2]):sum():item() end
	return n
end

-- Images that both name alike.
function tools.agree(m, q, test)
	local n = 0
	for _, batch in ipairs(test) do n = n + q(batch[1]):argmax(-1):eq(m(batch[1]):argmax(-1)):sum():item() end
	return n
end

return tools
