-- SPDX-License-Identifier: MIT
-- AdaRound (arXiv 2004.10568): rounding up or down is learned for each layer alone, from its inputs behind quantized weights and the
-- results of the float layer, behind the activation that follows.
local internal = select(2, ...)
local Columns = internal.import 'nn/quantize/columns'
local Rectified = internal.import 'nn/quantize/rectified'
local Soft = internal.import 'nn/quantize/soft'

local STEPS, ROWS, RATE, SLOW, PENALTY = 1000, 1024, 1e-2, 1e-3, 0.01

-- The bias of the layer as a variable.
local function bias_of(t, o)
	local bias = not t.op and t.children[1].bias
	if not o.bias or t.op then return bias and bias:detach() end
	return (bias and bias:detach():clone() or tensor.zeros {t.weight:size(1), device = t.weight:device()}):requires_grad_()
end

local function run(t, o, block)
	local sample, r, steps = t.sample, Rectified.of(t, o), o.steps or STEPS
	local x, bias = sample:arriving(block), bias_of(t, o)
	local adam, slow = optim.adam({r.v}, {lr = o.rate or RATE}), {r.factor}
	if o.bias then slow[#slow + 1] = bias end
	local other = #slow > 0 and optim.adam(slow, {lr = SLOW})
	for step = 1, steps do
		local columns, wanted = sample:draw(x, o.rows or ROWS)
		local loss = sample:loss(Columns.product(columns, r:weight(), bias), wanted)
		local beta = Rectified.beta(step - 1, steps)
		if beta then loss = loss + r:penalty(beta) * (o.penalty or PENALTY) end
		loss:backward()
		for _, optimizer in ipairs {adam, other or nil} do
			optimizer:step()
			optimizer:zero()
		end
	end
	t.sample = nil
	return r:codes(), o.bias and bias:detach()
end

return {
	phase = 'codes', needs = 'gradients',
	text = [[AdaRound: rounding up or down is learned for each weight from the inputs of its layer, which takes what earlier layers have changed into account. For images at 4
bits and below with a scale for each output; faster than brecq.]],
	options = {{'steps', 'positive integer', 'of each layer (default 1000)'}, {'rows', 'positive integer', 'rows of inputs of a step (default 1024)'},
		{'rate', 'number', 'of Adam (default 0.01)'}, {'penalty', 'number', 'weight of the penalty of values between two codes (default 0.01)'},
		{'scale', 'true or false', 'learn a factor of each scale, too (default false)'},
		{'bias', 'true or false', 'learn the bias, too (default false)'}},
	refuses = function(item, o) return Soft.refuses(item, o.scale) end,
	before = function(block) Columns.before(block, block.targets) end,
	run = function(t, o, block)
		if not t.sample then return nil, 'its inputs are no columns that it is multiplied with, so it is rounded' end
		local codes, bias = internal.taped(run, t, o, block)
		if bias then t:rebias(bias) end
		return codes
	end,
}
