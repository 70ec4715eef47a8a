-- SPDX-License-Identifier: MIT
-- AutoRound (SignRound, arXiv 2309.05516): W = s clip(rne(w / s + V), …) with offsets V of -0.5 .. 0.5 and ranges of 0.5 .. 1 times their ends,
-- moved by signed gradients of the block's squared error; the rate falls from 1 / steps to 0, the best step is kept.
local internal = select(2, ...)
local reconstruct = internal.import 'nn/quantize/reconstruct'
local Soft = internal.import 'nn/quantize/soft'

local STEPS, ROWS, LEAST = 200, 8, 0.5

local function start(t)
	local s = Soft.of(t.weight, t.spec)
	local v = tensor.zeros {t.weight:size(1), t.weight:size(2), device = t.weight:device()}
	local p = {soft = s, v = v:requires_grad_()}
	if s:moves() then
		p.high = (s.scale * 0 + 1):requires_grad_()
		p.low = s.kind and (s.scale * 0 + 1):requires_grad_() or nil
	end
	return p
end

local function values(p)
	local scale, origin = p.soft.scale, p.soft.origin
	if p.high then scale, origin = p.soft:clipped(p.low, p.high) end
	return p.soft:values(p.v, scale, origin), scale, origin
end

local function copy(x) return x and x:detach():clone() end

-- One step against the sign of the gradient, within low .. high.
local function step(x, rate, low, high)
	local g = x and x:grad()
	if not g then return end
	x:sub_(g:sign() * rate):clamp_ {low = low, high = high}
	x:zero_grad()
end

local function update(list, rate)
	local _ <close> = internal.nograd()
	for _, p in ipairs(list) do
		step(p.v, rate, -0.5, 0.5)
		step(p.low, rate, LEAST, 1)
		step(p.high, rate, LEAST, 1)
	end
end

local function codes_of(p)
	local w, scale, origin = values(p)
	return p.soft:codes(w, scale, origin)
end

-- The better one of the best step and the last one, for all of the data.
local function choose(block, list, params, best)
	local _ <close> = internal.nograd()
	local least, chosen
	for _, which in ipairs {params, best} do
		local all = {}
		for i, t in ipairs(list) do
			all[i] = codes_of(which[i])
			t:put(all[i])
		end
		local noise = block:noise()
		if not least or noise < least then least, chosen = noise, all end
	end
	return chosen
end

local function run(block, o, list)
	local steps, params, best, least = o.steps or STEPS, {}, {}, nil
	for i, t in ipairs(list) do params[i] = start(t) end
	reconstruct.run(block, list, {steps = steps, rows = o.rows or ROWS,
		weights = function()
			local all = {}
			for i, p in ipairs(params) do all[i] = (values(p)) end
			return all
		end,
		seen = function(_, loss)
			if least and loss >= least then return end
			least = loss
			for i, p in ipairs(params) do best[i] = {soft = p.soft, v = copy(p.v), low = copy(p.low), high = copy(p.high)} end
		end,
		update = function(i) update(params, (o.rate or 1 / steps) * (1 - (i - 1) / steps)) end})
	return choose(block, list, params, best)
end

return {
	phase = 'codes', needs = 'gradients',
	text = [[AutoRound: rounding up or down and the ends of each range are learned for all weights of a block together, by 200 steps on the signs of gradients. The best of
the methods for language models at 4 bits and below where blocks of 32 weights have a scale; takes minutes where gptq takes seconds.]],
	options = {{'steps', 'positive integer', 'of each block (default 200)'}, {'rows', 'positive integer', 'texts or images of a step (default 8)'},
		{'rate', 'number', 'of the first step (default 1 / steps)'}},
	refuses = function(item) return Soft.refuses(item) end,
	run_block = function(block, o, list) return internal.taped(run, block, o, list) end,
}
