-- SPDX-License-Identifier: MIT
-- nn.Linear: where it begins, what it computes, how it trains.
tensor.seed(1)
local m = nn.Linear(400, 300)
print(m.weight:size())  --> 300 400
print(m.bias:size(), m.weight:requires_grad(), m.bias:requires_grad())  --> 300 true true
print(nn.Linear(2, 3, {bias=false}).bias)  --> false

it('begins uniform within 1/sqrt(inputs)', function()
	for _, t in ipairs {m.weight, m.bias} do
		local bound, n = 1 / 20, t:nelem()
		assert(t:abs():max():item() <= bound and t:abs():max():item() > 0.97 * bound)
		assert(math.abs(t:mean():item()) < 5 * bound / math.sqrt(3 * n))
		assert(math.abs(t:var():item() / (bound ^ 2 / 3) - 1) < 10 / math.sqrt(n))
	end
end)

it('computes x times the transpose of the weight plus the bias', function()
	local x = tensor.randn(7, 400)
	local want = x:matmul(m.weight:detach():t()) + m.bias:detach()
	assert(m(x):detach():error(want).max < 1e-5)
	assert(m(tensor.randn(2, 3, 400)):size() == 2)
end)

it('takes codes: they are decoded beside a float weight, and no fallback is counted', function()
	local x = tensor.rand(4, 400):quantize 'uint8'
	quant.log 'reset'
	local y = m(x)
	assert(y:detach():error(m(x:dequantize()):detach()).max == 0)
	assert(#quant.log():where{path='fallback'} == 0)
end)

local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('Linear: outputs: wanted an integer of at least 1, got nil', nn.Linear, 3)
refused('Linear: inputs: wanted an integer of at least 1, got 0', nn.Linear, 0, 3)
refused("Linear: unknown option 'biass'; did you mean 'bias'?", nn.Linear, 3, 2, {biass=true})
refused('linear: wanted x (…, k) and w (n, k), got (2, 3) and (300, 400)', m, tensor.ones(2, 3))
