-- SPDX-License-Identifier: MIT
-- Learnable weight clipping of OmniQuant (arXiv 2308.13137): the ends of each range are times sigmoids, moved by gradients of the block's squared
-- error. Codes are decided by the methods that follow, under these scales.
local internal = select(2, ...)
local reconstruct = internal.import 'nn/quantize/reconstruct'
local Soft = internal.import 'nn/quantize/soft'

local STEPS, ROWS, RATE, START = 200, 8, 1e-2, 4 -- sigmoid(4) = 0.982

local function start(t)
	local s = Soft.of(t.weight, t.spec)
	local function leaf() return (s.scale * 0 + START):requires_grad_() end
	return {soft = s, zero = tensor.zeros {t.weight:size(1), t.weight:size(2), device = t.weight:device()}, high = leaf(), low = s.kind and leaf() or nil}
end

local function numbers(p) return p.soft:clipped(p.low and p.low:sigmoid(), p.high:sigmoid()) end

-- The specs of the ranges as they are.
local function specs(params)
	local list = {}
	for i, p in ipairs(params) do list[i] = p.soft:spec(numbers(p)) end
	return list
end

local function train(block, o, list)
	local params, variables, best, least = {}, {}, nil, nil
	for i, t in ipairs(list) do
		params[i] = start(t)
		variables[#variables + 1] = params[i].high
		variables[#variables + 1] = params[i].low
	end
	local adam = optim.adam(variables, {lr = o.rate or RATE})
	reconstruct.run(block, list, {steps = o.steps or STEPS, rows = o.rows or ROWS,
		weights = function()
			local weights = {}
			for i, p in ipairs(params) do weights[i] = p.soft:values(p.zero, numbers(p)) end
			return weights
		end,
		seen = function(_, loss)
			if not least or loss < least then least, best = loss, specs(params) end
		end,
		update = function()
			adam:step()
			adam:zero()
		end})
	return {specs(params), best}
end

-- The specs with which rounding gives the least error of the block, for all of the data: those given are among them.
local function choose(block, list, tries)
	local given, least, chosen = {}, nil, nil
	for i, t in ipairs(list) do given[i] = t.spec end
	for _, specs_of in ipairs {given, table.unpack(tries)} do
		for i, t in ipairs(list) do t:put(t.weight:quantize(specs_of[i])) end
		local noise = block:noise()
		if not least or noise < least then least, chosen = noise, specs_of end
	end
	for i, t in ipairs(list) do
		t.spec = chosen[i]
		t:put(t.float)
		if chosen == given then t:say 'clipping does not help' end
	end
end

return {
	phase = 'block', needs = 'gradients',
	text = [[Clipping of OmniQuant: the ends of each range are learned for all weights of a block together, on the block's result. Before a method that decides codes,
such as gptq, or alone.]],
	options = {{'steps', 'positive integer', 'of each block (default 200)'}, {'rows', 'positive integer', 'texts or images of a step (default 8)'},
		{'rate', 'number', 'of Adam (default 0.01)'}},
	refuses = function(item) return Soft.refuses(item, true) end,
	run = function(block, o, _, list) choose(block, list, internal.taped(train, block, o, list)) end,
}
