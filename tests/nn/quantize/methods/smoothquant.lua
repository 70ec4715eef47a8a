-- SPDX-License-Identifier: MIT
-- method='smoothquant': its factors, the function stays, and models with outliers in their activations become as good as without.
local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end
tensor.seed(15)
local norm = nn.RMSNorm(32)
local m = nn.Sequential {norm, nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 24), nn.Sigmoid(), nn.Linear(24, 4)}
local x = tensor.randn(200, 32)
local clean = m:clone()
tensor.nograd(function() -- an outlier that leaves the function as it is
	m[1].weight:narrow(1, 5, 1):mul_(64)
	m[2].weight:narrow(2, 5, 1):div_(64)
end)
local data = {{x:narrow(1, 1, 80)}, {x:narrow(1, 81, 120)}}
local function quantize(model, mode, method, o)
	o = o or {}
	if mode == 'static' then model:calibrate(data, {log = false}) end
	return model:quantize {mode = mode, weight = o.weight, input = o.input, method = method, data = method and data, log = false}
end
local function off(q) return m(x):detach():error(q(x)).sqnr end

it('has the factors of the formula', function()
	for _, alpha in ipairs {0.5, 0.8} do
		local q = quantize(m, 'dynamic', {'smoothquant', alpha = alpha})
		local inputs = m[1](x):detach():abs():max {axis = 1}
		local s = inputs ^ alpha / m[2].weight:detach():abs():max {axis = 1} ^ (1 - alpha)
		assert((q[1].weight * s / m[1].weight:detach() - 1):abs():max():item() < 1e-5)
	end
end)
it('keeps the function', function()
	local q = quantize(m, 'dynamic', 'smoothquant', {weight = 'int16/1', input = 'int16'})
	assert(m(x):detach():error(q:dequantize()(x)).sqnr > 85)
	assert((q[2].weight:dequantize() / m[2].weight:detach()):max():item() > 2)
end)
it('outliers no longer count', function()
	for _, mode in ipairs {'static', 'dynamic'} do
		local before, after, without = off(quantize(m, mode)), off(quantize(m, mode, 'smoothquant')), off(quantize(clean, mode))
		assert(after > before + 10 and after > without - 1, ('%s %g %g %g'):format(mode, before, after, without))
	end
end)
it('is left out of a block that it makes worse', function()
	local q, r = quantize(clean, 'dynamic', {'smoothquant', alpha = 0})
	assert(off(q) >= off(quantize(clean, 'dynamic')) - 0.5)
	for _, row in ipairs(r) do
		if row.name == 'linear1' then print(row.method, row.mode) end  --> smoothquant rtn	dynamic
	end
end)
it('in a block whose layers feed each other', function()
	local t = nn.Transformer {vocab = 20, d = 32, layers = 1, heads = 2, context = 12, norm = 'rmsnorm', act = 'swiglu'}
	local ids = tensor.randint {6, 12, low = 1, high = 20}
	local q, r = t:quantize {mode = 'dynamic', weight = 'int16/1', input = 'int16', method = 'smoothquant', data = {{ids}}, log = false}
	assert(t(ids):detach():error(q(ids)).sqnr > 60)
	local smoothed = 0
	for _, row in ipairs(r) do smoothed = smoothed + (row.why:find('smoothed by', 1, true) and 1 or 0) end
	assert(smoothed >= 5, smoothed)
end)
it('is for inputs that are rounded', function()
	refused("method 'smoothquant': linear1: wanted mode 'static' or 'dynamic', got 'weight_only'", quantize, m, 'weight_only', 'smoothquant')
	refused('wanted alpha= of 0 to 1, got 2', quantize, m, 'dynamic', {'smoothquant', alpha = 2})
end)
