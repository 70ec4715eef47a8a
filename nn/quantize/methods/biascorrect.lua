-- SPDX-License-Identifier: MIT
-- Bias correction (arXiv 1906.04721, section 4.2, empirical): b += E[W x] - E[Q x'] with the float inputs x and those behind quantized
-- weights x', for each output, from the first layer of a block to the last.
local module = (select(2, ...)).import 'nn/base/module'

-- The mean of each output without its bias.
local function outputs_of(t, w)
	local groups = t:groups()
	local rows, n = w:size(1), w:size(2)
	return (w:to 'float64':view(groups, rows // groups, n) * t.mean:view(groups, 1, n)):sum {axis = 3}:view(rows)
end

local function can(t) return not t.op and t:has_columns() and module.class_of(t.children[1]).scaled ~= nil and t.children[1].bias ~= nil end

local function each(block, link_of)
	for _, stage in ipairs(block.stages) do
		block:measure(stage, {'mean'})
		for _, t in ipairs(stage) do
			if can(t) and t.mean then link_of(t) end
		end
	end
end

local function set_bias(child, bias)
	if child.bias then
		module.set_tensor(child, 'bias', bias)
	elseif bias then
		module.parameter(child, 'bias', bias)
	end
end

local function shift(t)
	local by = (t.wanted - outputs_of(t, t:real(t.q))):to 'float32'
	t.old_bias = t.children[1].bias and t.children[1].bias:detach() or tensor.zeros {by:size(1), device = by:device()}
	for _, child in ipairs(t.children) do set_bias(child, t.old_bias + by) end
end

return {
	phase = 'biases', needs = 'inputs',
	text = [[Moves biases so that the mean of each output is that of the float model on the calibration data; a layer without a bias gets one. Cheap; helps
convolutions with few weights an output most. It is left out of a block that it makes worse.]],
	before = function(block)
		each(block, function(t) t.wanted = outputs_of(t, t.float) end)
	end,
	run = function(block)
		local without = block:noise()
		each(block, shift)
		if block:noise() <= without then
			for _, t in ipairs(block.targets) do t.bias = t.old_bias and t.children[1].bias:detach() or t.bias end
			return
		end
		for _, t in ipairs(block.targets) do
			for _, child in ipairs(t.old_bias and t.children or {}) do set_bias(child, t.old_bias) end
			if t.old_bias then t:say 'bias correction made the block worse: left out' end
		end
	end,
}
