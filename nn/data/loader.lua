-- SPDX-License-Identifier: MIT
-- data.loader: checks arguments and creates passes; nn/loader.c makes the batches.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local dataset = internal.import 'nn/base/dataset'
local fail, doc, describe, is_tensor = base.fail, base.doc, base.describe, base.is_tensor

local meta = {__name = 'quoll.loader'}
debug.getregistry()[meta.__name] = meta

-- Tensors of tokens that know their steps (data.text{steps=}): the key is the tensor itself.
local steps_of = setmetatable({}, {__mode = 'k'})

local loader = {}

function loader.set_steps(tokens, steps) steps_of[tokens] = steps end

---------------------------------------------------------------- options

local INTEGER = {crop = true, cutout = true}

local function read_augment(plan, given)
	if given == nil then return end
	for key, value in next, given do
		if key ~= 'crop' and key ~= 'flip' and key ~= 'cutout' then
			fail("loader: augment: unknown field '%.40s'%s; known: crop flip cutout", tostring(key),
				base.near(key, {'crop', 'flip', 'cutout'}))
		elseif INTEGER[key] and (math.type(value) ~= 'integer' or value < 0) then
			fail('loader: augment: %s: wanted a number of pixels, got %s', key, describe(value))
		elseif key == 'flip' and type(value) ~= 'boolean' then
			fail('loader: augment: flip: wanted true or false, got %s', describe(value))
		end
		plan[key] = value
	end
end

-- One number for each channel.
local function numbers(what, value, channels, default)
	if value == nil then value = default end
	if type(value) == 'number' then
		local list = {}
		for c = 1, channels do list[c] = value end
		return list
	end
	if type(value) ~= 'table' or #value ~= channels then
		fail('loader: normalize: %s: wanted a number or a list of %d, got %s', what, channels,
			type(value) == 'table' and 'a list of ' .. #value or describe(value))
	end
	for _, number in ipairs(value) do
		if type(number) ~= 'number' then fail('loader: normalize: %s: wanted numbers, got %s', what, describe(number)) end
	end
	return value
end

local function read_normalize(plan, given)
	if given == nil or given == false then return end
	if given == true then given = {} end
	if type(given) ~= 'table' then
		fail('loader: normalize: wanted true or a table {mean=, std=}, got %s', describe(given))
	end
	for key in next, given do
		if key ~= 'mean' and key ~= 'std' then
			fail("loader: normalize: unknown field '%.40s'; known: mean std", tostring(key))
		end
	end
	local channels = plan.x:dim() == 4 and plan.x:size(2) or 1
	plan.mean = numbers('mean', given.mean, channels, 0)
	plan.std = numbers('std', given.std, channels, 1)
end

-- `own`: the steps are those of the text.
local function order_of(given, own)
	if given.order and given.order ~= 'streams' and given.order ~= 'windows' then
		fail("loader: order: wanted 'streams' or 'windows', got %s", describe(given.order))
	end
	if given.shuffle and given.order == 'streams' then
		fail "loader: shuffle: streams continue from batch to batch; use order='windows'"
	end
	return given.order or (given.shuffle or own) and 'windows' or 'streams'
end

---------------------------------------------------------------- the loader

local entry = doc {name = 'data.loader', usage = "data.loader(ds, {batch=128, shuffle=true})",
	text = [[Makes batches: for x, y in loader() do … end is one pass over a data set (`data.mnist` …), a tensor
of samples or a tensor of tokens (`data.ptb`). #loader is the number of batches per pass; its fields are loader.batch,
loader.data, loader.stream and loader.epoch (the number of passes begun; set it to resume training).

shuffle=true draws a new order for every pass, which depends on tensor.seed and the number of the pass only. Batches of
images stay uint8 with their scale unless normalize= makes them float32, (value - mean) / std with one number per
channel. augment= changes images at random: crop=4 pads each side with 4 zeros and crops back to the size, flip=true
mirrors half of them, cutout=8 blanks a square of 8 around a random pixel (with the mean, if normalize= gives
it). The changes depend on the number of the image and the pass, so the bits are the same with any number of threads.

Tokens need steps=: x is (batch, steps) and y is x shifted by one token. order='streams' cuts the text into
`batch` long streams, and row r of a batch continues row r of the previous batch (for recurrent networks; tokens that
do not fill the streams are dropped, the last batch may have fewer steps). order='windows' takes windows from the
whole text: in order, or at random places with shuffle=true. The default is streams, or windows with shuffle=true and
for a text made with steps=.

A thread prepares the next two batches when that is faster; it ends with the pass, also when the loop is left
early.]],
	example = [[ds = data.synth{kind='digits', n=100, seed=1}
loader = data.loader(ds, {batch=32, shuffle=true})
for x, y in loader() do n = x:size(1) end
print(#loader, n)  --> 4 4]],
	options = {{'batch', 'integer', 'samples per batch (default 32)'},
		{'shuffle', 'true or false', 'a new order in every pass (default false)'},
		{'drop', 'true or false', 'drop the last batch if it is not full (default false)'},
		{'augment', 'list', 'random changes of images: {crop=4, flip=true, cutout=8}'},
		{'normalize', 'any', 'float32 batches: true, or {mean=, std=} with numbers or lists of one for each channel'},
		{'device', 'text', 'where batches are put (default: where the samples are, else cpu, see --device)'},
		{'steps', 'integer', 'tokens per row'},
		{'order', 'text', "'streams' or 'windows'"},
		{'prefetch', 'true or false', 'use the thread (default: when it is faster)'}}}

local function make_plan(source, given)
	local tokens = is_tensor(source) and (given.steps or steps_of[source])
	local plan = {batch = given.batch or 32, drop = given.drop, shuffle = given.shuffle, prefetch = given.prefetch, device = given.device}
	if tokens then
		plan.x, plan.steps = source:contiguous(), tokens
		plan.order = order_of(given, steps_of[source] and not given.steps)
	else
		if given.steps or given.order then
			fail('loader: %s: wanted a tensor of tokens (d.train), got samples', given.steps and 'steps' or 'order')
		end
		if is_tensor(source) then source = dataset.new{x = source} end
		plan.x, plan.y, plan.order = source.x:contiguous(), source.y and source.y:contiguous(), 'samples'
	end
	read_augment(plan, given.augment)
	read_normalize(plan, given.normalize)
	return plan
end

function loader.new(source, options)
	local given = base.options(entry, options)
	if not is_tensor(source) and not dataset.is(source) then
		fail('loader: wanted a data set or a tensor, got %s', describe(source))
	end
	local plan = make_plan(source, given)
	local self = {batch = plan.batch, data = source, epoch = 0, stream = plan.order == 'streams', plan = plan}
	plan.length = internal.loader_length(plan)
	plan.random = plan.shuffle or plan.crop or plan.flip or plan.cutout
	self.seed = plan.random and internal.loader_seed() or nil
	return setmetatable(self, meta)
end

function meta.__len(self) return self.plan.length end

function meta.__tostring(self)
	local plan, parts = self.plan, {}
	parts[1] = ('loader: %d batches of %d'):format(plan.length, plan.batch)
	if plan.steps then parts[#parts + 1] = ('%d steps, %s'):format(plan.steps, plan.order) end
	if plan.shuffle then parts[#parts + 1] = 'shuffled' end
	for _, key in ipairs {'crop', 'flip', 'cutout'} do
		if plan[key] then parts[#parts + 1] = key .. (plan[key] == true and '' or '=' .. plan[key]) end
	end
	if plan.mean then parts[#parts + 1] = 'normalized' end
	parts[#parts + 1] = 'of ' .. internal.describe(plan.x)
	return table.concat(parts, ', ')
end

-- The seeds of the passes only have to differ: each is a key of Philox.
local function seed_of(self)
	return self.seed and self.seed + self.epoch * 0x9E3779B97F4A7C15 or 0
end

function meta.__call(self)
	self.epoch = self.epoch + 1
	self.plan.seed = seed_of(self)
	local pass
	pass, self.prefetching = internal.loader_open(self.plan)
	return pass, nil, nil, pass
end

return loader
