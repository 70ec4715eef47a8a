-- SPDX-License-Identifier: MIT
-- method='awq': factors leave the float function as it is, and help where few inputs are large.
tensor.seed(6)
local norm = nn.RMSNorm(32)
tensor.nograd(function() norm.weight:narrow(1, 5, 2):mul_(20) end)
local m = nn.Sequential {norm, nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 16), nn.Sigmoid(), nn.Linear(16, 4)}
local x = tensor.randn(200, 32)
local function quantize(spec, method)
	return m:quantize {mode = 'weight_only', weight = spec, method = method, data = {{x}}, log = false}
end
local function off(q) return m(x):detach():error(q(x)).sqnr end

it('keeps the function', function()
	local q, r = quantize('int16:16', 'awq')
	assert(off(q) > 80, off(q))
	for _, row in ipairs(r) do
		if row.name == 'linear1' then print(row.why:find("factors of 'rmsnorm1'", 1, true)) end  --> 1	21
	end
end)
it('is better than rounding, also clipped and before gptq', function()
	local one = nn.Sequential {m[1], m[2]}
	local y = one(x):detach()
	local function lost(method)
		local q, r = one:quantize {mode = 'weight_only', weight = 'int4:16', method = method, data = {{x}}, log = false}
		return (q(x) - y):square():sum():item(), r[2]
	end
	local plain = lost 'rtn'
	for _, method in ipairs {'awq', {'awq', clip = true}, {'awq', 'gptq'}} do
		local noise, row = lost(method)
		assert(noise < 0.7 * plain and row.error > row.rtn + 1, noise / plain)
	end
end)
it('says where factors have no place', function()
	local _, r = quantize('int4:16', 'awq')
	for _, row in ipairs(r) do
		if row.name == 'linear3' then print(row.why) end  --> no factors: nothing with weights before it in its block
	end
	local t = nn.Transformer {vocab = 20, d = 32, layers = 1, heads = 4, kvheads = 2, context = 12, norm = 'rmsnorm'}
	_, r = t:quantize {mode = 'weight_only', weight = 'int4:16', method = 'awq', data = {{tensor.randint {4, 12, low = 1, high = 20}}}, log = false}
	for _, row in ipairs(r) do
		if row.name:find 'attention.out' then print(row.why) end  --> no factors: they do not pass from 'block1.attention.value'
	end
end)
