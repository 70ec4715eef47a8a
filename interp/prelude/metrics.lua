-- SPDX-License-Identifier: MIT
-- Metrics of models: a number of a batch with the weight it counts with, and how the mean becomes the value.
local _, internal = ...
local base = internal.import 'base'
local fail, describe = base.fail, base.describe
local metrics = {}

-- Positions of a batch: all elements of the target.
local function positions(_, target) return target:nelem() end

local list = {
	loss = {text = 'the mean of the loss', of = function(y, target, loss) return loss(y, target):item() end, weight = positions},
	accuracy = {text = 'percent of targets that have the largest output', unit = '%', higher = true,
		of = function(y, target) return y:argmax(-1):eq(target):to('float32'):mean():item() end, weight = positions,
		value = function(mean) return 100 * mean end},
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
			total, weight = total + n * value, weight + n
		end,
		value = function()
			local mean = total / weight
			return metric.value and metric.value(mean) or mean
		end,
		count = function() return weight end,
	}
end

return metrics
