-- SPDX-License-Identifier: MIT
-- Steps of optimizers on a device: parameters, states and norms have the bits of the CPU, and the kernels are in the ledger.
local D = dofile 'tests/tools/gpu_tested.lua'

local same = dofile 'tests/tools/same.lua'

-- 18 tensors of different dtypes and sizes, and their squares as gradients.
local function parameters()
	local list = {}
	tensor.seed(7)
	for i = 1, 18 do
		local x = tensor.randn(i % 7 + 1, 3 * i + 1)
		list[i] = x:to(({'float32', 'float32', 'float64', 'bfloat16', 'float16'})[i % 5 + 1])
	end
	return list
end

local function train(device, make, steps)
	local list = parameters()
	for i, x in ipairs(list) do list[i] = x:to(device):clone():requires_grad_() end
	local o, norms = make(list), {}
	for _ = 1, steps do
		o:zero()
		for i, x in ipairs(list) do
			local y = i % 4 == 1 and x:t() or x
			y:mul(y):sum():backward()
		end
		norms[#norms + 1] = o:step()
	end
	return list, norms, o
end

local rules = {
	sgd = function(list) return optim.sgd(list, {lr=0.1}) end,
	momentum = function(list) return optim.sgd(list, {lr=0.1, momentum=0.9, decay=0.01, limit=0.5}) end,
	nesterov = function(list) return optim.sgd(list, {lr=0.1, momentum=0.9, nesterov=true, clip=2}) end,
	adam = function(list) return optim.adam(list, {lr=0.01, decay=0.1, clip=1}) end,
	adamw = function(list) return optim.adamw(list, {lr=0.01, limit=0.25}) end,
}

it('has the bits of the CPU', function()
	for name, rule in pairs(rules) do
		local a, an, ao = train('cpu', rule, 2)
		quant.log 'reset'
		local b, bn, bo = train(D, rule, 2)
		for i = 1, #a do assert(same(a[i]:detach(), b[i]:detach()), name .. ' ' .. i) end
		for i = 1, 2 do assert(an[i] == bn[i], name) end
		for key, value in pairs(ao:state()) do
			if type(value) ~= 'number' then assert(same(value, bo:state()[key]), key) end
		end
		for _, row in ipairs(quant.log()) do
			assert(not row.op:find '_step' and not row.op:find 'gradient' or row.kernel == 'optimizer', row.op .. ' ' .. tostring(row.reason))
		end
	end
end)

it('runs rules without a kernel on the host, with the same bits', function()
	for name, rule in pairs {rmsprop = function(list) return optim.rmsprop(list, {lr=0.01, momentum=0.9, centered=true, clip=1}) end,
		adagrad = function(list) return optim.adagrad(list, {lr=0.1, lrdecay=0.1, initial=0.5, decay=0.1}) end} do
		local a, _, ao = train('cpu', rule, 2)
		quant.log 'reset'
		local b, _, bo = train(D, rule, 2)
		for i = 1, #a do assert(b[i]:device() == D and same(a[i]:detach(), b[i]:detach()), name .. ' ' .. i) end
		for key, value in pairs(ao:state()) do
			if type(value) ~= 'number' then assert(same(value, bo:state()[key]), key) end
		end
		local noted = false
		for _, row in ipairs(quant.log()) do noted = noted or row.op == name end
		assert(noted, name .. ' is not in the ledger')
		gpu.fallback 'error'
		local ok, message = pcall(bo.step, bo)
		gpu.fallback 'silent'
		assert(not ok and message:find(name .. ': wanted a kernel of ', 1, true), message)
	end
end)

it('keeps states where the parameters are', function()
	local list, _, o = train(D, rules.adam, 1)
	print(o:state()['first.1']:device() == D, o:state()['second.18']:device() == D)  --> true	true
	-- a state of the CPU goes there
	local host, _, p = train('cpu', rules.adam, 1)
	o:load(p:state())
	for i = 1, #host do
		list[i]:sum():backward()
		host[i]:sum():backward()
	end
	o:step()
	p:step()
	for i = 1, #host do assert(same(list[i]:detach(), host[i]:detach()), i) end
end)

it('clips and measures', function()
	local a, b = tensor{3, 4, grad=true}, tensor{3, 4}:to(D):requires_grad_()
	a:mul(a):sum():backward()
	b:mul(b):sum():backward()
	print(optim.norm{b} == optim.norm{a}, optim.clip({b}, {clip=1, limit=0.7}) == optim.clip({a}, {clip=1, limit=0.7}))  --> true	true
	print(same(a:grad(), b:grad()))  --> true
	local empty = tensor.zeros{0, device=D}:requires_grad_()
	empty:sum():backward()
	print(optim.norm{empty})  --> 0.0
end)

it('refuses lists in several places', function()
	local a, b = tensor{3, 4, grad=true}, tensor{3, 4}:to(D):requires_grad_()
	a:sum():backward()
	b:sum():backward()
	local _, said = pcall(function() optim.sgd({a, b}, {lr=1}):step() end)
	assert(said:match 'sgd:.*' == ("sgd: wanted all tensors on one device, got cpu and %s; use :to '%s'"):format(D, D), said)
	_, said = pcall(optim.norm, {b, a})
	assert(said:match 'norm:.*' == ("norm: wanted all tensors on one device, got %s and cpu; use :to '%s'"):format(D, D), said)
end)
