-- SPDX-License-Identifier: MIT
-- A block at work (nn/quantize/learn.lua): its modules, the weights in it that methods decide about, and what the calibration data gives them.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local like = internal.import 'quant/like'
local module = internal.import 'nn/base/module'
local moments = internal.import 'nn/quantize/moments'
local targets = internal.import 'nn/quantize/targets'
local values = internal.import 'nn/quantize/values'
local is_tensor = base.is_tensor

local Block = {}
Block.__index = Block

---------------------------------------------------------------- its modules

-- One module for each shape of batches; their parts by the names that these have there.
local function build(block)
	local run, made, inner = block.run, {}, {}
	for i in ipairs(run.inputs) do
		local part = run.parts[i][block.number]
		if not made[part] then
			made[part] = part.make()
			module.walk(made[part], function(name, child)
				inner[name] = inner[name] or {}
				table.insert(inner[name], child)
			end)
		end
	end
	block.modules, block.inner = made, inner
end

-- The modules that are copies of a layer.
local function copies_of(block, name)
	local list = {}
	for _, node in ipairs(block.part.nodes[name]) do table.move(block.inner[node] or {}, 1, #(block.inner[node] or {}), #list + 1, list) end
	return list
end

-- A weight that an op of the block reads, not a layer: a field of the blocks' modules; nil: it is none.
local function weight_of_op(block, name, item)
	for _, weight in ipairs(block.part.weights and block.part.weights[name] or {}) do
		if weight.field == item.field then
			local children, field = {}, nil
			for _, m in next, block.modules do children[#children + 1], field = m, m.fields[weight.ref] end
			return field and targets.new(name, item, children, field, weight)
		end
	end
end

-- The weights of the block that are to be coded.
local function weights_of(block, plan)
	local list = {}
	for _, name in ipairs(block.part.layers) do
		local children = copies_of(block, name)
		for _, item in ipairs(plan[name] or {}) do
			list[#list + 1] = #children > 0 and targets.new(name, item, children, item.field) or weight_of_op(block, name, item)
		end
	end
	return list
end

-- Those that read the same value, in the order of the block: lists of targets.
local function stages_of(part, list)
	local stages, by_input = {}, {}
	for _, t in ipairs(list) do
		local node = part.graph and part.graph.nodes[t.op and t.op.node or part.nodes[t.name][1]]
		local key = node and (t.op and node.name or node.inputs[1]) or t.name
		if not by_input[key] then
			by_input[key] = {}
			stages[#stages + 1] = by_input[key]
		end
		table.insert(by_input[key], t)
	end
	return stages
end

-- Block number b of the run; plan: see learn.run.
function Block.new(run, b, plan)
	local block = setmetatable({run = run, number = b, part = run.parts[1][b], values = run.values, folds = {}}, Block)
	build(block)
	block.targets = weights_of(block, plan)
	block.stages = stages_of(block.part, block.targets)
	return block
end

---------------------------------------------------------------- passes

-- What the block reads for batch i, whose value before it is x.
function Block:operands(i, x)
	local part, given = self.run.parts[i][self.number], self.run.inputs[i]
	x = module.moved(x, self.run.device) -- from a file
	if part.whole then return {given} end
	local list = part.from and {x} or {}
	if not part.from or part.takes then
		table.move(is_tensor(given) and {given} or given, 1, is_tensor(given) and 1 or #given, #list + 1, list)
	end
	return list
end

-- What it gives for operands like those of batch i.
function Block:compute(i, operands) return (self.modules[self.run.parts[i][self.number]](table.unpack(operands))) end

function Block:forward(i, x) return self:compute(i, self:operands(i, x)) end

-- Calls each(i, y) with what it gives for each batch.
function Block:each(given, each)
	for i = 1, #self.run.inputs do each(i, self:forward(i, given[i])) end
end

-- What it gives for all batches, as a list.
function Block:pass(given)
	local list = {}
	self:each(given, function(i, y) values.put(self.run.pool, list, i, y) end)
	return list
end

-- Passes all batches, and watch(target, x) gets the input of each of these targets; of weights that ops read, watch(target, operands, results).
function Block:watch(list, given, watch)
	local hooks, of = {}, {}
	for _, t in ipairs(list) do
		for _, child in ipairs(t.op and {} or t.children) do
			of[child] = of[child] or {}
			table.insert(of[child], t)
		end
	end
	for child, all in next, of do
		table.move({child, module.HOOK, function(m, x, ...)
			for _, t in ipairs(all) do watch(t, module.real(x)) end
			return module.run(m, x, ...)
		end}, 1, 3, #hooks + 1, hooks)
	end
	for _, m in next, self.modules do
		local at = {}
		for _, t in ipairs(list) do
			local name = t.op and t.op.node
			if name then
				at[name] = at[name] or {}
				table.insert(at[name], t)
			end
		end
		for name, all in next, at do
			at[name] = function(...)
				for _, t in ipairs(all) do watch(t, ...) end
			end
		end
		if next(at) then table.move({m, 'taps', at}, 1, 3, #hooks + 1, hooks) end
	end
	local _ <close> = internal.fields(hooks)
	self:each(given, function() end)
end

-- The spec by which each module of the block rounds its input, in modes that do so: that of the mode static has the scale of all batches.
local function input_specs(block)
	local specs, watched, observers = {}, {}, {}
	for _, t in ipairs(block.targets) do
		if t.item.input and t.item.mode ~= 'weight_only' then
			local spec = quant.spec(t.item.input)
			for _, child in ipairs(t.children) do specs[child] = spec end
			if t.item.mode == 'static' and not spec.scale then
				watched[#watched + 1], observers[t] = t, quant.observer(spec)
			end
		end
	end
	block:watch(watched, block.values, function(t, x) observers[t]:update(x) end)
	for t, o in next, observers do
		local p = o:params()
		local spec = like.spec(o.spec, {scale = p.scale:item(), zero_point = p.zero_point and p.zero_point:item()})
		for _, child in ipairs(t.children) do specs[child] = spec end
	end
	return specs
end

-- Rounds the inputs of the block's layers until it is closed.
local function rounding(self)
	local hooks = {}
	for child, spec in next, input_specs(self) do
		table.move({child, module.HOOK, function(m, x, ...) return module.run(m, module.real(x):quantize(spec):dequantize(), ...) end}, 1, 3, #hooks + 1, hooks)
	end
	return internal.fields(hooks)
end

---------------------------------------------------------------- statistics

-- Those of the stage whose layers multiply columns of their inputs.
function Block.with_columns(_, stage)
	local list = {}
	for _, t in ipairs(stage) do
		if t:has_columns() then list[#list + 1] = t end
	end
	return list
end

local function plus(a, b) return a and a:add_(b) or b end

-- Of columns (rows, inputs), or (groups, rows, inputs): each gives a row of numbers for all inputs of all groups.
local GATHER = {
	h = function(h, c) return moments.add(h, c) end,
	mean = function(sum, c) return plus(sum, c:sum {axis = -2}:reshape(c:nelem() // c:size(-2)):to 'float64') end,
	magnitude = function(sum, c) return plus(sum, c:abs():sum {axis = -2}:reshape(c:nelem() // c:size(-2)):to 'float64') end,
	largest = function(most, c)
		local top = c:abs():max {axis = -2}:reshape(c:nelem() // c:size(-2))
		return most and most:maximum(top) or top
	end,
}

local function gather(t, c, wanted)
	for _, name in ipairs(wanted) do t[name] = GATHER[name](t[name], c) end
	t.rows = t.rows + c:size(-2)
end

-- What the columns of the stage's targets are like as they arrive now: h (second moments), mean, magnitude (mean of |x|), largest (of |x|), which of
-- them `wanted` says.
function Block:measure(stage, wanted)
	local list = self:with_columns(stage)
	local first = list[1]
	if not first then return end
	for _, t in ipairs(list) do
		for _, name in ipairs(wanted) do t[name] = nil end
		t.rows, t.same = 0, t ~= first and t:reads_like(first) or nil
	end
	self:watch(list, self.values, function(t, ...)
		if not t.same then t:each_columns(function(c) gather(t, c, wanted) end, ...) end
	end)
	for _, t in ipairs(list) do
		if t.same then t.rows = first.rows end
		for _, name in ipairs(wanted) do
			if t.same then t[name] = first[name] end
			if not t.same and t[name] and (name == 'mean' or name == 'magnitude') then t[name] = t[name] / t.rows end
		end
	end
end

---------------------------------------------------------------- results

local function each_float(y, each)
	if is_tensor(y) then
		if y:dtype():find 'float' then each(module.real(y)) end
	elseif type(y) == 'table' then
		for _, inner in ipairs(y) do each_float(inner, each) end
	end
end

-- The sum of squares of what two results differ by, and that of the first.
local function distance(a, b)
	local noise, signal, list, at = 0, 0, {}, 0
	each_float(a, function(x) list[#list + 1] = x:to 'float64' end)
	each_float(b, function(x)
		at = at + 1
		noise = noise + (x:to 'float64' - list[at]):square():sum():item()
		signal = signal + list[at]:square():sum():item()
	end)
	return noise, signal
end

-- The same of what the block gives now beside the float block, for all batches; each(i, y) gets the results.
function Block:difference(each)
	local noise, signal = 0, 0
	self:each(self.values, function(i, y)
		local n, s = distance(module.moved(self.float[i], self.run.device), y)
		noise, signal = noise + n, signal + s
		if each then each(i, y) end
	end)
	return noise, signal
end

-- The squared error of what the block gives now; with `rounds`: if its inputs are rounded, too.
function Block:noise()
	local _ <close> = self.rounds and rounding(self) or nil
	return (self:difference())
end

-- The squared error of a list of results beside another.
function Block.between(floats, list)
	local sum = 0
	for i, y in ipairs(list) do sum = sum + distance(floats[i], y) end
	return sum
end

return Block
