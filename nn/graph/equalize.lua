-- SPDX-License-Identifier: MIT
-- g:quantize{equalize=, biascorrect=}: the arithmetic is that of m:quantize (nn/quantize/equalize.lua), here over
-- nodes. Two layers are consecutive if nothing else uses the value between them, and ops between them commute with
-- scaling by channel.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local core = internal.import 'nn/graph/core'
local equalizer = internal.import 'nn/quantize/equalize'
local fit = internal.import 'nn/base/fit'
local module = internal.import 'nn/base/module'
local ops = internal.import 'nn/graph/ops'
local run = internal.import 'nn/graph/run'
local fail = base.fail
local equalize = {}

local BATCHES = {calibrate = 32, correct = 8} -- as m:calibrate and m:quantize

---------------------------------------------------------------- equal ranges

-- A weight or bias that can be changed: a float constant without other users.
local function own_value(e, ref)
	local node = type(ref) == 'string' and e.nodes[ref]
	return node and node.op == 'const' and not node.value:quantized() and #e:users_of(ref) == 1 and node.value or nil
end

local function is_layer(e, node)
	return (node.op == 'linear' or node.op == 'conv2d') and not node.mode and not node.traced and not node.attrs.out and own_value(e, node.inputs[2])
end

-- Whether a view changes nothing, or flattens images such that each channel stays contiguous.
local function keeps_channels(e, node)
	local from, to = e:result_of(node.inputs[1]).shape, node.results[1].shape
	if #from == 4 then return #to == 2 end
	for i = 1, math.max(#from, #to) do
		if not from[i] or not to[i] or tostring(from[i]) ~= tostring(to[i]) then return false end
	end
	return true
end

local THROUGH = {relu = true, maxpool2d = true, avgpool2d = true, contiguous = true, view = keeps_channels, reshape = keeps_channels}

-- The following layer, or nil.
local function next_layer(e, node)
	local taker = e:only_user(node.name)
	while taker and THROUGH[taker.op] and (THROUGH[taker.op] == true or THROUGH[taker.op](e, taker)) do taker = e:only_user(taker.name) end
	return taker and is_layer(e, taker) and taker.inputs[1] and taker or nil
end

local function groups_of(node) return node.attrs.groups or 1 end

-- {one=, bias=, two=}: the values of each pair, two by input channels; copies, kept in `made` by name.
local function pairs_of(e, made)
	local list = {}
	local function copy(ref)
		made[ref] = made[ref] or e.nodes[ref].value:clone()
		return made[ref]
	end
	for _, name in ipairs(e.order) do
		local first = e.nodes[name]
		local act = first.attrs.act
		local second = is_layer(e, first) and (not act or act == 'relu') and next_layer(e, first)
		local bias = second and first.inputs[3]
		if second and (not bias or own_value(e, bias)) then
			local one = copy(first.inputs[2])
			local two = equalizer.by_input(copy(second.inputs[2]), groups_of(second), one:size(1))
			if two then list[#list + 1] = {one = one, bias = bias and copy(bias), two = two} end
		end
	end
	return list
end

-- The values that calibration has observed, with their specs: those of g:calibrate, else of m:calibrate. Values that passes have
-- removed are left out.
local function observed_values(g, layers)
	local refs, spec = {}, nil
	for ref, observer in next, g.observers or {} do
		if g.nodes[core.split(ref)] then refs[ref], spec = true, spec or observer.spec end
	end
	if spec then return refs, spec end
	for ref, list in next, g.observed or {} do
		for _, entry in ipairs(g.nodes[core.split(ref)] and list or {}) do
			local observers = layers[entry.module] and rawget(layers[entry.module], 'input_observers')
			local o = observers and observers[entry.what]
			if o and o.count > 0 then refs[ref], spec = true, spec or o.spec end
		end
	end
	return refs, spec
end

-- Runs the batches and returns observers of the refs.
local function observe(g, refs, spec, data)
	local observers, n = {}, 0
	for ref in next, refs do observers[ref] = quant.observer(spec):label(ref) end
	for x in fit.batches('quantize: equalize', data, core.device(g)) do
		local get = run.execute(g, x, {keep = refs})
		for ref, observer in next, observers do observer:update(get(ref)) end
		n = n + 1
		if n >= BATCHES.calibrate then break end
	end
	if n == 0 then fail('quantize: equalize: wanted at least one batch, got none') end
	return observers
end

-- The graph with equalized channel ranges. Because this invalidates calibrated ranges, the graph is calibrated again with `data`.
-- layers: the layers of the module by name.
function equalize.equalize(g, data, layers)
	local e, made = core.edit(g), {}
	equalizer.sweep(pairs_of(e, made))
	for ref, value in next, made do e:change(e.nodes[ref], {value = value}) end
	local equal = e:finish()
	local refs, spec = observed_values(g, layers)
	if not spec then return equal end
	if data == true then fail('quantize: equalize: wanted data to calibrate with again, because the ranges change, got true') end
	equal.observers = observe(equal, refs, spec, data)
	return equal
end

---------------------------------------------------------------- means

-- Mean per channel of a layer's float sums before the activation, over one pass through the data.
local function mean_of(g, name, data)
	local node, keep, attrs = g.nodes[name], {}, {}
	for key, value in next, node.attrs do
		if key ~= 'act' and key ~= 'out' then attrs[key] = value end
	end
	for _, ref in ipairs(node.inputs) do keep[ref] = true end
	local total, seen = equalizer.channel_mean(), 0
	for x in fit.batches('quantize: biascorrect', data, core.device(g)) do
		local get, operands = run.execute(g, x, {keep = keep, stop = name}), {}
		for i, ref in ipairs(node.inputs) do operands[i] = get(ref) end
		total.add(module.real(ops.apply(node.op, operands, attrs)[1]))
		seen = seen + 1
		if seen >= BATCHES.correct then break end
	end
	if seen == 0 then fail('quantize: biascorrect: wanted at least one batch, got none') end
	return total.mean()
end

-- The graph with the bias of a layer replaced.
local function with_bias(g, name, shift)
	local e = core.edit(g)
	local node = e.nodes[name]
	local old = node.inputs[3]
	local value = old and g.nodes[core.split(old)].value + shift or shift
	local results = {{shape = {value:size()}, dtype = value:dtype()}}
	if old and #e:users_of(old) == 1 then
		e:change(e.nodes[old], {value = value, results = results})
	else
		local const = e:fresh(old and old .. '_moved' or name .. '.bias')
		e:add({name = const, op = 'const', inputs = {}, attrs = {}, results = results, value = value, module = node.module, kind = node.kind}, name)
		e:set_input(e.nodes[name], 3, const)
	end
	return e:finish()
end

local function has_bias(g, node)
	local producer = node.inputs[3] and g.nodes[core.split(node.inputs[3])]
	return not node.inputs[3] or producer.op == 'const' and producer.value:dtype() == 'float32'
end

-- Corrects the bias of each layer of `list`, from the first to the last, so that the mean of each channel equals that of the float
-- graph; returns the quantized graph.
function equalize.correct(float, quantized, list, data)
	for _, row in ipairs(list) do
		local name = row.node.name
		local node = row.mode and quantized.nodes[name]
		if node and (node.op == 'linear' or node.op == 'conv2d') and has_bias(quantized, node) then
			local want, have = mean_of(float, name, data), mean_of(quantized, name, data)
			quantized = with_bias(quantized, name, (want - have):to 'float32')
		end
	end
	return quantized
end

return equalize
