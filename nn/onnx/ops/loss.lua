-- SPDX-License-Identifier: MIT
-- Losses: x (batch, classes, …), target (batch, …) with classes from 0; those of ignore_index count nothing, also in means.
local ops = {}

-- What each target weighs: a tensor, or nil if all weigh 1.
local function weights(n, x, target, counted, weight)
	if not weight then return counted and n.to(counted, x:dtype()) end
	local each = weight:unsqueeze(2):embedding(target):squeeze(target:dim() + 1)
	return counted and each * n.to(counted, each:dtype()) or each
end

local function reduced(n, loss, each)
	local kind = n:attr('reduction', 'mean')
	if each then loss = loss * each end
	if kind == 'none' then return loss end
	if kind == 'sum' then return loss:sum() end
	if kind ~= 'mean' then n:fail("reduction: wanted none, sum or mean, got '%s'", kind) end
	return each and loss:sum() / each:sum() or loss:mean()
end

local function likelihood(n, x, target, weight)
	if x:dim() < 2 or target:dim() ~= x:dim() - 1 then n:fail('wanted targets of one axis less than the input, got %d for %d', target:dim(), x:dim()) end
	local ignored = n:given('ignore_index', 'integer')
	target = n.to(target, 'int64')
	local counted = ignored and target:ne(ignored) or nil
	if counted then target = tensor.where(counted, target, n:quietly(function() return tensor {0, dtype = 'int64'} end)) end
	target = target + 1
	local loss = x:gather(2, target:unsqueeze(2)):squeeze(2):neg()
	return n.to(reduced(n, loss, weights(n, x, target, counted, weight)), x:dtype())
end

ops.NegativeLogLikelihoodLoss = likelihood

function ops.SoftmaxCrossEntropyLoss(n, x, target, weight)
	local y = x:logsoftmax(2)
	return likelihood(n, y, target, weight), y
end

return ops
