-- SPDX-License-Identifier: MIT
-- Reconstruction of a block: parameters that weights are made of are moved by gradients of the squared error in the block's result, beside
-- that of the float block (BRECQ, arXiv 2102.05426, without second derivatives).
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'
local Samples = internal.import 'nn/quantize/samples'
local is_tensor = base.is_tensor
local reconstruct = {}

-- Nothing but the parameters of the methods needs a gradient.
local function freeze(block)
	for _, m in next, block.modules do
		module.each_tensor(m, function(_, t)
			if t:requires_grad() then t:requires_grad_(false) end
		end)
	end
end

-- Pairs of floats in two results.
local function pairs_of(y, float, list)
	if is_tensor(y) then
		if y:dtype():find 'float' then list[#list + 1] = {module.real(y), module.real(float)} end
	elseif type(y) == 'table' then
		for i, inner in ipairs(y) do pairs_of(inner, float[i], list) end
	end
	return list
end

-- Values of a position: channels of images are its second axis.
local function width(y)
	if y:dim() == 0 then return 1 end
	return y:dim() >= 4 and y:size(2) or y:size(-1)
end

-- The squared error of the groups, and the number of their positions.
local function error_of(block, groups)
	local sum, positions = nil, 0
	for _, g in ipairs(groups) do
		for _, pair in ipairs(pairs_of(block:compute(g.batch, g.operands), g.float, {})) do
			local e = (pair[1] - pair[2]):square():sum()
			sum, positions = sum and sum + e or e, positions + pair[2]:nelem() // width(pair[2])
		end
	end
	return sum, positions
end

-- The fields of the block's layers with these weights: list of targets, weights[i] of list[i].
local function fields_of(list, weights)
	local fields = {}
	for i, t in ipairs(list) do
		local w = t:shaped(weights[i])
		for _, child in ipairs(t.children) do table.move({child, t.place, w}, 1, 3, #fields + 1, fields) end
	end
	return fields
end

-- Runs o.steps steps on o.rows rows each. o: weights() -> the weights of `list`, with gradients; penalty(step), added to the mean squared error of a
-- position (nil: none); seen(step, error) before each step's gradient, update(step) after it.
function reconstruct.run(block, list, o)
	freeze(block)
	local samples = Samples.of(block)
	for step = 1, o.steps do
		local groups = samples:draw(o.rows)
		local loss
		do
			local _ <close> = internal.fields(fields_of(list, o.weights()))
			local sum, positions = error_of(block, groups)
			loss = sum / positions
		end
		if o.seen then o.seen(step, loss:item()) end
		local more = o.penalty and o.penalty(step)
		if more then loss = loss + more end
		loss:backward()
		o.update(step)
		block.run.bar:update(block.number - 1, function() return ('%s: step %d of %d'):format(block.part.name, step, o.steps) end)
	end
end

return reconstruct
