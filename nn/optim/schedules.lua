-- SPDX-License-Identifier: MIT
-- Learning rates as functions of the number of the step, from 1. Formulas of PyTorch's CosineAnnealingLR, OneCycleLR
-- and StepLR, whose first step has index 0; after the last step the rate is constant.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local number = internal.import('nn/optim/optimizer').number
local fail, doc, describe = base.fail, base.doc, base.describe
local schedules = {}

local meta = {__name = 'quoll.schedule', __call = function(s, step)
	if type(step) ~= 'number' or step < 1 then fail('schedule: wanted the number of a step, from 1, got %s', describe(step)) end
	return s.at(step - 1)
end, __tostring = function(s) return s.text end}

-- Defines schedules.<name>: make(read) gives the function of the step's index from 0, where read(name, lo, hi, default)
-- reads a number.
local function define(entry, make)
	doc(entry)
	local what = entry.name:match '[^.]+$'
	schedules[what] = function(options)
		options = base.options(entry, options)
		local words = {}
		local function read(name, lo, hi, default)
			local value = options[name]
			if value == nil then value = default end
			if value == nil then fail('%s: %s: wanted a number, got none; usage: %s', what, name, entry.usage) end
			words[#words + 1] = ('%s=%g'):format(name, number(what, name, value, lo, hi or math.huge))
			return value
		end
		local at = make(read)
		return setmetatable({at = at, text = ('optim.%s{%s}'):format(what, table.concat(words, ', '))}, meta)
	end
end

-- From a at 0 to b at 1 along half a cosine.
local function ease(a, b, part)
	return b + (a - b) * (1 + math.cos(math.pi * part)) / 2
end

define({name = 'optim.cosine', usage = 'optim.cosine{lr=, steps=, warmup=, last=}',
	text = [[A learning rate that rises linearly to lr within the first `warmup` steps and then falls along half a cosine to
`last`, which it reaches after `steps` steps. Give it as lr= of an optimizer, or call it with a step number.]],
	options = {{'lr', 'number', 'the highest rate'}, {'steps', 'integer', 'number of steps'},
		{'warmup', 'integer', 'steps of linear warmup (default 0)'}, {'last', 'number', 'rate at the end (default 0)'}},
	example = [[rate = optim.cosine{lr=0.1, steps=100}
print(rate(1), rate(51), rate(101))  --> 0.1 0.05 0.0
o = optim.sgd({tensor{1, grad=true}}, {lr=rate})
print(o:lr())  --> 0.1]]}, function(read)
	local lr, steps, warmup, last = read('lr', 0), read('steps', 1), read('warmup', 0, nil, 0), read('last', 0, nil, 0)
	if warmup >= steps then fail('cosine: warmup: wanted fewer than steps (%d), got %d', steps, warmup) end
	return function(i)
		if i < warmup then return lr * (i + 1) / warmup end
		return ease(lr, last, math.min(1, (i - warmup) / (steps - warmup)))
	end
end)

define({name = 'optim.onecycle', usage = 'optim.onecycle{lr=, steps=, rise=, first=, last=}',
	text = [[One cycle: up from lr/first to lr within the fraction `rise` of the steps, then down to lr/first/last at the last step, both along
half a cosine (Smith 2018, as in PyTorch's OneCycleLR; the momentum is constant).]],
	options = {{'lr', 'number', 'the highest rate'}, {'steps', 'integer', 'number of steps, at least 2'},
		{'rise', 'number', 'fraction of the steps in which the rate rises (default 0.3)'},
		{'first', 'number', 'how many times lower the first rate is (default 25)'},
		{'last', 'number', 'how many times lower than the first the last one is (default 10000)'}},
	example = [[rate = optim.onecycle{lr=0.5, steps=11, first=5, rise=0.5}
print(rate(1))  --> 0.1]]}, function(read)
	local lr, steps, rise = read('lr', 0), read('steps', 2), read('rise', 0, 1, 0.3)
	local first = lr / read('first', 1e-9, nil, 25)
	local lowest, top, stop = first / read('last', 1e-9, nil, 1e4), rise * steps - 1, steps - 1
	return function(i)
		i = math.min(i, stop)
		if i <= top and top > 0 then return ease(first, lr, i / top) end
		return ease(lr, lowest, (i - math.max(top, 0)) / (stop - math.max(top, 0)))
	end
end)

define({name = 'optim.step', usage = 'optim.step{lr=, every=, factor=}',
	text = [[A learning rate that is multiplied by `factor` every `every` steps.]],
	options = {{'lr', 'number', 'the first rate'}, {'every', 'integer', 'steps between two changes'},
		{'factor', 'number', 'what the rate is multiplied by (default 0.1)'}},
	example = [[rate = optim.step{lr=0.5, every=30, factor=0.5}
print(rate(30), rate(31), rate(61))  --> 0.5 0.25 0.125]]}, function(read)
	local lr, every, factor = read('lr', 0), read('every', 1), read('factor', 0, nil, 0.1)
	return function(i) return lr * factor ^ (i // every) end
end)

return schedules
