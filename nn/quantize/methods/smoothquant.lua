-- SPDX-License-Identifier: MIT
-- SmoothQuant (arXiv 2211.10438): channels of inputs with outliers are divided before the layer, and its weights multiplied:
--   s_j = max|x_j|^alpha / max|w_j|^(1 - alpha)
local internal = select(2, ...)
local folds = internal.import 'nn/quantize/folds'

local ALPHA, LEAST = 0.5, 1e-5

-- The largest of each channel, of which a convolution has several columns.
local function by_channel(v, n)
	return (v:size(1) == n and v or v:view(n, v:size(1) // n):max {axis = 2}):to 'float32':clamp {low = LEAST}
end

local function largest_weights(stage)
	local most
	for _, t in ipairs(stage) do
		local w = t.float:abs():max {axis = 1}
		most = most and most:maximum(w) or w
	end
	return most
end

local function smooth(block, stage, alpha)
	block:measure(stage, {'largest'})
	local f, why = folds.find(block, stage)
	if not f then return why end
	local x, w = by_channel(stage[1].largest, f.size), by_channel(largest_weights(stage), f.size)
	f:apply((x ^ alpha / w ^ (1 - alpha)):clamp {low = LEAST})
	block.folds[#block.folds + 1] = f
	return ("smoothed by '%s'"):format(f.path)
end

return {
	phase = 'block', needs = 'moments', rounds_inputs = true,
	text = [[SmoothQuant: where few channels of the inputs are much larger than the others, they are made smaller before the layer, and its weights larger, so that one
scale fits all channels. For modes static and dynamic; needs a norm or layer before that can take the factors. Does not help models without such
channels.]],
	options = {{'alpha', 'number', 'how much of the range goes to the weights, 0 to 1 (default 0.5; 0.85 for models with extreme channels)'}},
	refuses = function(item, o)
		if (o.alpha or ALPHA) < 0 or (o.alpha or ALPHA) > 1 then return ('wanted alpha= of 0 to 1, got %g'):format(o.alpha) end
		if item.mode == 'weight_only' and item.input then return "wanted mode 'static' or 'dynamic', got 'weight_only', whose inputs are not rounded" end
	end,
	run = function(block, o)
		for _, stage in ipairs(block.stages) do
			if #block:with_columns(stage) == #stage then
				local why = smooth(block, stage, o.alpha or ALPHA)
				for _, t in ipairs(stage) do t:say(why) end
			end
		end
	end,
}
