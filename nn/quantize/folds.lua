-- SPDX-License-Identifier: MIT
-- Factors of the inputs of layers that the part before them takes back: W_k s_k beside x_k / s_k. Which part can is tried: the block's
-- result must not change.
local _, internal = ...
local module = internal.import 'nn/base/module'
local folds = {}

local CLOSE = 1e-4 -- of the largest value

local function size_of(child, fields)
	local t = rawget(child, fields[1])
	return t and t:size(1) or nil
end

-- The factors (channels) for every column of a target.
local function spread(t, s)
	local n, k = s:size(1), t.weight:size(2)
	return n == k and s or s:repeatinterleave(k // n)
end
folds.spread = spread

local methods = {}
local meta = {__index = methods}

local function divide(child, fields, s)
	for _, field in ipairs(fields) do
		local value = rawget(child, field)
		if value then
			value = value:detach()
			local shape = {value:size()}
			for i = 2, #shape do shape[i] = 1 end
			module.set_tensor(child, field, value / s:view(table.unpack(shape)))
		end
	end
end

-- Multiplies the weights of the stage by s, channel by channel, and divides what comes before.
function methods.apply(f, s)
	for _, child in ipairs(f.children) do divide(child, f.fields, s) end
	if f.owner then f.owner:divide(s) end
	for _, t in ipairs(f.stage) do
		local each = spread(t, s):view(1, t.float:size(2))
		t.float, t.factor = t.float * each, t.factor and t.factor * each or each
		t.weight = t.float
		t:put(t.float)
	end
end

-- What the part before was when the fold was found.
function methods.undo(f)
	for child, values in next, f.before do
		for field, value in next, values do module.set_tensor(child, field, value) end
	end
end

local function copies_of(children, fields)
	local before = {}
	for _, child in ipairs(children) do
		before[child] = {}
		for _, field in ipairs(fields) do before[child][field] = rawget(child, field) and rawget(child, field):detach() or nil end
	end
	return before
end

-- Writes what has become of the part before to the module of the model that it is a copy of; the weight of a target is written by it.
function methods.keep(f, layer)
	for _, field in ipairs(f.fields) do
		local value = rawget(f.children[1], field)
		if value and not (f.owner and field == f.owner.place) then module.set_tensor(layer, field, value:detach()) end
	end
end

local function result_of(block)
	local y = block:forward(1, block.values[1])
	return y:to 'float64'
end

-- Whether the block gives the same with other factors.
local function holds(block, f)
	local before = result_of(block)
	local s = (tensor.arange(1, f.size, {device = before:device()}):to 'float32' * 1.7):sin():exp()
	local weights, changed = {}, table.move(f.stage, 1, #f.stage, 1, {})
	changed[#changed + 1] = f.owner
	for i, t in ipairs(changed) do weights[i] = {t.float, t.factor, t.divisor} end
	f:apply(s)
	local after = result_of(block)
	f:undo()
	for i, t in ipairs(changed) do
		t.float, t.factor, t.divisor = table.unpack(weights[i], 1, 3)
		t.weight = t.float
		t:put(t.float)
	end
	return (after - before):abs():max():item() <= CLOSE * before:abs():max():item()
end

-- Whether one of a part's tensors belongs to other parts of the model, too.
local function is_shared(block, path)
	local layer = block.run.by_path[path]
	if not layer or block.run.shared[layer] then return true end
	for _, field in ipairs(module.class_of(layer).scaled) do
		if rawget(layer, field) and block.run.shared[rawget(layer, field)] then return true end
	end
	return false
end

-- The target whose weight is that of these modules.
local function owner_of(block, children)
	for _, t in ipairs(block.targets) do
		if t.children[1] == children[1] and (t.class.per or 1) == 1 then return t end
	end
end

local function names_of(stage)
	local names = {}
	for i, t in ipairs(stage) do names[i] = t.name end
	return names
end

-- The part of the block whose results can take a factor for each input of the layers of the stage: {path=, size=}; or nil and why there is none.
function folds.find(block, stage)
	local part = block.run.parts[1][block.number]
	for _, t in ipairs(stage) do
		if t.item.tied then return nil, 'no factors: other layers have its codes' end
	end
	if not part.sources then return nil, block.run.why end
	local sources, other = part.sources(names_of(stage))
	if not sources then return nil, ("no factors: '%s' reads the same input"):format(other) end
	local why = 'no factors: nothing with weights before it in its block'
	for _, source in ipairs(sources) do
		local children = block.inner[source.name]
		local fields = children and module.class_of(children[1]).scaled
		local n = fields and size_of(children[1], fields)
		if n and stage[1].weight:size(2) % n ~= 0 then
			why = ("no factors: '%s' gives %d values, %d are read"):format(source.path, n, stage[1].weight:size(2))
		elseif n and is_shared(block, source.path) then
			why = ("no factors: '%s' is used in several places"):format(source.path)
		elseif n then
			local f = setmetatable({path = source.path, size = n, children = children, fields = fields, stage = stage,
				before = copies_of(children, fields), owner = owner_of(block, children)}, meta)
			if holds(block, f) then return f end
			why = ("no factors: they do not pass from '%s'"):format(source.path)
		end
	end
	return nil, why
end

return folds
