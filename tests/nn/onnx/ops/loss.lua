-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

local x = tensor {{{0.1, -0.5}, {0.7, 0.2}, {-1, 2}}, {{1, 3}, {0.5, -2}, {0.25, 0}}} -- (batch 2, classes 3, 2)
local target = tensor {{2, 0}, {1, -1}, dtype = 'int64'}
local X, T = x:totable(), target:totable()
local weight = {0.5, 2, 3}

-- Losses of f(batch, class, place), as the reduction says; those of -1 count nothing.
local function loss(f, reduction, weighted)
	local all, sum, weights = {{}, {}}, 0, 0
	for b = 1, 2 do
		for i = 1, 2 do
			local class = T[b][i] + 1
			local w = class < 1 and 0 or weighted and weight[class] or 1
			all[b][i] = w == 0 and 0 or -w * f(b, class, i)
			sum, weights = sum + all[b][i], weights + w
		end
	end
	return reduction == 'none' and all or reduction == 'sum' and sum or sum / weights
end

local function logsoftmax(b, class, i)
	local sum = 0
	for c = 1, 3 do sum = sum + math.exp(X[b][c][i]) end
	return X[b][class][i] - math.log(sum)
end

it('sums what is lost', function()
	for op, f in next, {NegativeLogLikelihoodLoss = function(b, class, i) return X[b][class][i] end, SoftmaxCrossEntropyLoss = logsoftmax} do
		for _, reduction in ipairs {'none', 'sum', 'mean'} do
			for _, weighted in ipairs {false, true} do
				local y = run(op, {x, target, weighted and tensor(weight)}, {reduction = reduction, ignore_index = -1}, {fixed = {3}})
				local want = loss(f, reduction, weighted)
				assert(reduction == 'none' and equal(y, want) or y:dim() == 0 and math.abs(y:item() - want) < 1e-5)
			end
		end
	end
	local _, log = run('SoftmaxCrossEntropyLoss', {x, target}, {ignore_index = -1}, {outputs = 2})
	assert(math.abs(log[2][3][1]:item() - logsoftmax(2, 3, 1)) < 1e-5)
	local y = run('NegativeLogLikelihoodLoss', {x:narrow(3, 1, 1):squeeze(3), tensor {2, 1, dtype = 'int32'}})
	assert(math.abs(y:item() - 0.25) < 1e-6) -- (1 - 0.5) / 2
end)

it('refuses targets of another shape', function()
	local ok, message = pcall(run, 'SoftmaxCrossEntropyLoss', {x, target:narrow(2, 1, 1):squeeze(2)})
	assert(not ok and message:find 'wanted targets of one axis less than the input, got 1 for 3', message)
	ok, message = pcall(run, 'NegativeLogLikelihoodLoss', {x, target}, {reduction = 'max', ignore_index = -1})
	assert(not ok and message:find "reduction: wanted none, sum or mean, got 'max'", message)
end)
