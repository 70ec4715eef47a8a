-- SPDX-License-Identifier: MIT
-- Schedules against PyTorch 2 (CosineAnnealingLR, OneCycleLR, StepLR), and what they refuse.
local function check(schedule, expected, behind)
	for i, value in ipairs(expected) do assert(math.abs(schedule(i) - value) < 1e-9, i) end
	assert(math.abs(schedule(#expected + 100) - behind) < 1e-9)
end

check(optim.cosine{lr = 0.3, steps = 8, last = 0.01},
	{0.3, 0.288962532, 0.257530483, 0.210489098, 0.155, 0.0995109023, 0.0524695167, 0.0210374678, 0.01}, 0.01)
check(optim.onecycle{lr = 0.5, steps = 10},
	{0.02, 0.26, 0.5, 0.475242316, 0.405872827, 0.305631011, 0.194370989, 0.094129173, 0.024759684, 2e-06}, 2e-6)
check(optim.onecycle{lr = 0.5, steps = 7, rise = 0.5, first = 4, last = 100},
	{0.125, 0.254559314, 0.464190686, 0.475304111, 0.306116158, 0.0951422307, 0.00125}, 0.00125)
check(optim.step{lr = 0.4, every = 3, factor = 0.5}, {0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.1, 0.1}, 0.4 * 0.5 ^ 35)

-- the rise in equal parts, then the cosine of the rest
local warm = optim.cosine{lr = 1, steps = 12, warmup = 4}
print(warm(1), warm(2), warm(4), warm(5), warm(9))  --> 0.25 0.5 1.0 1.0 0.5
print(warm)  --> optim.cosine{lr=1, steps=12, warmup=4, last=0}

it('drives an optimizer', function()
	local x = tensor{1, grad = true}
	local o = optim.sgd({x}, {lr = optim.step{lr = 0.5, every = 1, factor = 0.5}})
	assert(o:lr() == 0.5)
	for i = 1, 3 do
		o:zero()
		local y = x:sum()
		y:backward()
		o:step()
		assert(o:lr() == 0.5 ^ i)
	end
	assert(x:item() == 1 - 0.5 - 0.25 - 0.125)
	o:lr(function(step) return step end)
	assert(o:lr() == 3)
	local copy = optim.sgd({x}, {lr = optim.step{lr = 0.5, every = 1, factor = 0.5}}):load(o:state())
	assert(copy:lr() == 0.125)
	o:lr(function() return -1 end)
	local ok, message = pcall(o.step, o)
	assert(not ok and message:find('sgd: lr: the schedule at step 4: wanted a number of at least 0, got -1', 1, true), message)
	assert(x:item() == 0.125)
end)

local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('cosine: lr: wanted a number, got none; usage: optim.cosine{', optim.cosine, {steps = 3})
refused('cosine: steps: wanted a number of at least 1, got 0', optim.cosine, {lr = 1, steps = 0})
refused('cosine: warmup: wanted fewer than steps (3), got 3', optim.cosine, {lr = 1, steps = 3, warmup = 3})
refused('onecycle: rise: wanted a number from 0 to 1, got 2', optim.onecycle, {lr = 1, steps = 3, rise = 2})
refused("step: unknown option 'evry'; did you mean 'every'?", optim.step, {lr = 1, evry = 3})
refused('schedule: wanted the number of a step, from 1, got 0', warm, 0)
