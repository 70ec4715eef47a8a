-- SPDX-License-Identifier: MIT
-- Metrics of models: a number per batch with its weight, and the conversion of the mean to the value. A metric that
-- counts (accuracy) sums integers, and its value is 100 * right / n, rounded once, so printed results and decisions
-- of a search do not depend on the division into batches.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, describe, is_tensor = base.fail, base.describe, base.is_tensor
local metrics = {}

-- Positions of a batch: all elements of the target.
local function positions(_, target) return target:nelem() end

-- Labels count from 1, as in nn.crossentropy: with those of PyTorch every answer would be wrong, and nothing would say so.
local function check_classes(y, target)
	if not is_tensor(y) or not is_tensor(target) or target:nelem() == 0 then return end
	local lo, hi, classes = target:min():item(), target:max():item(), y:size(-1)
	if lo < 1 or hi > classes then
		fail('accuracy: target: wanted classes 1 to %d, got %g%s', classes, lo < 1 and lo or hi, lo == 0 and '; labels that count from 0 are target + 1' or '')
	end
end

local list = {
	loss = {text = 'the mean of the loss', of = function(y, target, loss) return loss(y, target):item() end, weight = positions},
	accuracy = {text = 'percent of targets that have the largest output', unit = '%', higher = true, counts = true,
		of = function(y, target)
			check_classes(y, target)
			return y:argmax(-1):eq(target):sum():item()
		end, weight = positions},
	perplexity = {text = 'exp of the mean cross entropy',
		of = function(y, target) return nn.crossentropy(y, target):item() end, weight = positions, value = math.exp},
	mse = {text = 'mean squared error', of = function(y, target) return nn.mse(y, target):item() end,
		weight = function(y) return y:nelem() end},
}
metrics.list = list

function metrics.names()
	local names = {}
	for name in pairs(list) do names[#names + 1] = name end
	table.sort(names)
	return names
end

-- The metric called so; a function(y, target) -> number counts by the positions of the target.
function metrics.get(what, given)
	if type(given) == 'function' then return {of = given, weight = positions, name = 'metric'} end
	local metric = list[given]
	if not metric then
		fail("%s: metric: wanted %s or a function, got %s%s", what, table.concat(metrics.names(), ', '), describe(given),
			base.near(given, metrics.names()))
	end
	metric.name = given
	return metric
end

-- Adds a batch to the sum; the value of all.
function metrics.sum(metric)
	local total, weight = 0, 0
	return {
		add = function(y, target, loss)
			local n, value = metric.weight(y, target), metric.of(y, target, loss)
			if type(value) ~= 'number' then fail('metric: wanted a function that returns a number, got %s', describe(value)) end
			total, weight = total + (metric.counts and value or n * value), weight + n
		end,
		value = function()
			if metric.counts then return 100 * total / weight end
			local mean = total / weight
			return metric.value and metric.value(mean) or mean
		end,
		count = function() return weight end,
	}
end

-- The relative error that a float32 mean may carry.
local ROUNDING = 1e-6

-- How much worse `value` is than `reference`, in the metric's unit; `n`: the targets that both were measured on. The value of a metric
-- that counts gives the count back exactly, so the difference is one of integers.
function metrics.drop(metric, reference, value, n)
	local sign = metric.higher and 1 or -1
	if not metric.counts then return sign * (reference - value) end
	return 100 * (sign * (math.floor(reference * n / 100 + 0.5) - math.floor(value * n / 100 + 0.5))) / n
end

-- Sums drops of single layers.
function metrics.sum_drops(metric, n, a, b)
	if not metric.counts then return a + b end
	return 100 * (math.floor(a * n / 100 + 0.5) + math.floor(b * n / 100 + 0.5)) / n
end

-- Whether a drop keeps a budget: a count exactly, another metric within the rounding of its value.
function metrics.keeps(metric, drop, budget, reference)
	return drop <= budget + (metric.counts and 0 or ROUNDING * math.abs(reference))
end

return metrics
