-- SPDX-License-Identifier: MIT
-- BRECQ (arXiv 2102.05426): AdaRound's variables for all weights of a block, trained on the block's result.
local internal = select(2, ...)
local reconstruct = internal.import 'nn/quantize/reconstruct'
local Rectified = internal.import 'nn/quantize/rectified'
local Soft = internal.import 'nn/quantize/soft'

local STEPS, ROWS, RATE, SLOW, PENALTY = 1000, 32, 1e-2, 1e-3, 0.01

local function run(block, o, list)
	local steps, all, offsets, factors = o.steps or STEPS, {}, {}, {}
	for i, t in ipairs(list) do
		all[i] = Rectified.of(t, o)
		offsets[i], factors[i] = all[i].v, all[i].factor
	end
	local optimizers = {optim.adam(offsets, {lr = o.rate or RATE}), o.scale and optim.adam(factors, {lr = SLOW}) or nil}
	reconstruct.run(block, list, {steps = steps, rows = o.rows or ROWS,
		weights = function()
			local weights = {}
			for i, r in ipairs(all) do weights[i] = r:weight() end
			return weights
		end,
		penalty = function(step)
			local beta, sum = Rectified.beta(step - 1, steps), nil
			for _, r in ipairs(beta and all or {}) do
				local one = r:penalty(beta)
				sum = sum and sum + one or one
			end
			return sum and sum * (o.penalty or PENALTY)
		end,
		update = function()
			for _, optimizer in ipairs(optimizers) do
				optimizer:step()
				optimizer:zero()
			end
		end})
	local codes = {}
	for i, r in ipairs(all) do codes[i] = r:codes() end
	return codes
end

return {
	phase = 'codes', needs = 'gradients',
	text = [[BRECQ: rounding up or down is learned for all weights of a block together, by AdaRound's variables and the squared error of the block's result. For
images at 4 bits and below with a scale for each output; takes minutes.]],
	options = {{'steps', 'positive integer', 'of each block (default 1000)'}, {'rows', 'positive integer', 'images or texts of a step (default 32)'},
		{'rate', 'number', "of Adam (default 0.01)"}, {'penalty', 'number', 'weight of the penalty of values between two codes (default 0.01)'},
		{'scale', 'true or false', 'learn a factor of each scale, too (default false)'}},
	refuses = function(item, o) return Soft.refuses(item, o.scale) end,
	run_block = function(block, o, list) return internal.taped(run, block, o, list) end,
}
