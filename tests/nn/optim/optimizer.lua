-- SPDX-License-Identifier: MIT
-- labels: quick noproducts
-- What all optimizers share: the same bits on any number of threads, many tensors, views, 16 bits, clipping and norms,
-- gradients that are not finite, checkpoints, memory, versions, errors.
local function worst(a, b)
	return (a:to 'float64' - b:to 'float64'):abs():max():item()
end

local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end

local KINDS = {
	{'sgd', {lr = 0.1, momentum = 0.9, decay = 0.01, clip = 3}},
	{'adam', {lr = 0.01, decay = 0.01, limit = 0.5}},
	{'adamw', {lr = 0.01, clip = 2}},
}

local function model(seed, dtype, shapes)
	tensor.seed(seed)
	local list = {}
	for i, shape in ipairs(shapes) do list[i] = tensor.randn(table.unpack(shape)):to(dtype):requires_grad_() end
	return list
end

-- Gradients that depend on the values, so that errors spread.
local function backward(list)
	for _, x in ipairs(list) do
		x:zero_grad()
		local loss = (x * x * x):sum()
		loss:backward()
	end
end

local SHAPES = {{300, 70}, {}, {8191}, {3, 1, 5}, {0, 4}, {8192}, {8193}, {1}}

it('has the same bits on any number of threads', function()
	local before = tensor.threads()
	for _, kind in ipairs(KINDS) do
		local reference
		for _, threads in ipairs {1, 2, 3} do
			tensor.threads(threads)
			local list = model(7, 'float32', SHAPES)
			local o = optim[kind[1]](list, kind[2])
			local norms = {}
			for i = 1, 3 do
				backward(list)
				norms[i] = o:step() or 0
			end
			if reference then
				for i, x in ipairs(list) do assert(x:nelem() == 0 or worst(x:detach(), reference[i]:detach()) == 0) end
				for i, norm in ipairs(norms) do assert(norm == reference.norms[i]) end
			else
				reference = list
				reference.norms = norms
			end
		end
	end
	tensor.threads(before)
end)

it('treats many tensors as each alone', function()
	local together, alone = model(9, 'float32', SHAPES), model(9, 'float32', SHAPES)
	local options = {lr = 0.1, momentum = 0.5}
	local all = optim.sgd(together, options)
	backward(together)
	all:step()
	for i, x in ipairs(alone) do
		local o = optim.sgd({x}, options)
		backward{x}
		o:step()
		assert(x:nelem() == 0 or worst(x:detach(), together[i]:detach()) == 0)
	end
end)

it('trains views and 16-bit tensors', function()
	for _, kind in ipairs(KINDS) do
		local whole = model(3, 'float32', {{20, 30}})[1]:detach()
		local x = whole:clone():t():requires_grad_()
		local y = whole:t():contiguous():requires_grad_()
		assert(not x:iscontiguous() and y:iscontiguous())
		for _, t in ipairs {x, y} do
			backward{t}
			optim[kind[1]]({t}, kind[2]):step()
		end
		assert(worst(x:detach(), y:detach()) == 0)
	end
	for _, dtype in ipairs {'float16', 'bfloat16'} do
		local half = model(4, dtype, {{3000}})[1]
		local wide = half:detach():to 'float32':requires_grad_()
		backward{half, wide}
		wide:zero_grad()
		local seed = half:grad():to 'float32'
		wide:backward(seed)
		for _, t in ipairs {half, wide} do optim.adam({t}, {lr = 0.01}):step() end
		assert(worst(half:detach(), wide:detach():to(dtype)) == 0)
	end
end)

it('gives the norm of all gradients', function()
	local list = model(5, 'float32', {{100, 100}, {7}})
	backward(list)
	local sum = 0
	for _, x in ipairs(list) do
		for _, g in ipairs(x:grad():view(x:nelem()):totable()) do sum = sum + g * g end
	end
	local norm = optim.norm(list)
	assert(math.abs(norm - math.sqrt(sum)) < 1e-12 * norm)
	local o = optim.sgd(list, {lr = 1, clip = 1e9})
	assert(o:step() == norm)
	print(optim.norm{tensor{1, grad = true}})  --> 0.0
	local tiny = tensor{dtype = 'float64', 3e-30, 4e-30}:requires_grad_()
	tiny:backward(tiny:detach())
	print(optim.norm{tiny})  --> 5e-30
	local wide = tensor{3e30, 4e30, grad = true} -- squares beyond float32
	wide:backward(wide:detach())
	assert(math.abs(optim.norm{wide} / 5e30 - 1) < 1e-6)
end)

it('clips gradients in place', function()
	local x = tensor{0, 0, 0, grad = true}
	x:backward(tensor{3, -4, 0})
	print(optim.clip({x}, {clip = 2.5}))  --> 5.0
	print(x:grad())  --> float32(3)   1.5000  -2.0000   0.0000
	print(optim.clip({x}, {limit = 0.5}))  --> 2.5000
	print(x:grad())  --> float32(3)   0.5000  -0.5000   0.0000
	print(optim.clip({x}, {clip = 100}))  --> 0.7071
	print(x:grad())  --> float32(3)   0.5000  -0.5000   0.0000
	refused('clip: wanted clip= or limit= above 0, got none', optim.clip, {x})
	refused('clip: wanted clip= or limit= above 0, got none', optim.clip, {x}, {limit = 0})
	x:zero_grad()
	x:backward(tensor{3, math.huge, 0})
	print(optim.clip({x}, {clip = 1}), x:grad())  --> inf float32(3)    3  inf    0
end)

it('leaves all as it is when the norm is not finite', function()
	for _, bad in ipairs {math.huge, -math.huge, 0/0} do
		for _, kind in ipairs(KINDS) do
			local x, y = tensor{1, 2, grad = true}, tensor{3, grad = true}
			local o = optim[kind[1]]({x, y}, {lr = 0.1, clip = 1})
			x:backward(tensor{1, bad})
			y:backward()
			local norm = o:step()
			assert(norm ~= norm or norm == math.huge)
			assert(x[1]:item() == 1 and x[2]:item() == 2 and y:item() == 3)
			assert(o:state().count == 0 and tostring(o):find '1 skipped')
			o:zero()
			x:backward(tensor{1, 0})
			assert(o:step() == 1 and x[1]:item() < 1)
		end
	end
end)

it('goes on from a saved state with the same bits', function()
	local file = os.tmpname()
	for _, kind in ipairs(KINDS) do
		local list = model(11, 'float32', SHAPES)
		local o = optim[kind[1]](list, kind[2])
		for i = 1, 3 do
			backward(list)
			if i == 2 then list[3]:zero_grad() end -- has made fewer steps than the others
			o:step()
		end
		o:lr(0.007)
		local state, values = {}, {}
		for name, value in pairs(o:state()) do
			state[name] = type(value) == 'number' and tensor{value, dtype = 'float64'} or value
		end
		for i, x in ipairs(list) do values[i] = x:detach():clone():requires_grad_() end
		tensor.save(file .. '.safetensors', state)
		for _ = 1, 3 do backward(list) o:step() end
		local again = optim[kind[1]](values, kind[2]):load(tensor.load(file .. '.safetensors'))
		assert(again:lr() == 0.007)
		for _ = 1, 3 do backward(values) again:step() end
		for i, x in ipairs(list) do assert(x:nelem() == 0 or worst(x:detach(), values[i]:detach()) == 0, kind[1] .. i) end
		assert(tostring(o) == tostring(again))
	end
	os.remove(file)
	os.remove(file .. '.safetensors')
end)

it('keeps a saved state apart from later steps', function()
	local x = tensor{1, grad = true}
	local o = optim.sgd({x}, {lr = 1, momentum = 0.5})
	backward{x}
	o:step()
	local state = o:state()
	backward{x}
	o:step()
	assert(state['momentum.1']:item() == 3 and state.count == 1)
	o:load(state)
	backward{x}
	o:step()
	assert(state['momentum.1']:item() == 3)
end)

it('refuses a state that does not fit, and stays as it is', function()
	local x, y = tensor{1, 2, grad = true}, tensor{{1}, {2}, {3}}:requires_grad_()
	local o = optim.adam({x, y}, {lr = 0.5})
	backward{x, y}
	o:step()
	local before = tostring(o)
	local function with(changes)
		local state = o:state()
		for name, value in pairs(changes) do state[name] = value or nil end
		return state
	end
	refused("load: unknown name 'frist.1'; did you mean 'first.1'?", o.load, o, with{['frist.1'] = tensor{1, 2}})
	refused("load: wanted 'second.2', got none", o.load, o, with{['second.2'] = false})
	refused('load: first.1: wanted float32(2), got float32(3)', o.load, o, with{['first.1'] = tensor{1, 2, 3}})
	refused('load: first.1: wanted float32(2), got float64(2)', o.load, o, with{['first.1'] = tensor{1, 2, dtype = 'float64'}})
	refused('load: steps: wanted one number for each of 2 tensors, got 3', o.load, o, with{steps = tensor{1, 2, 3, dtype = 'int64'}})
	refused('load: count: wanted a number of steps, got nil', o.load, o, with{count = false})
	refused('load: count: wanted a number of steps, got -1', o.load, o, with{count = -1})
	refused('load: wanted a table from o:state(), got nil', o.load, o)
	assert(tostring(o) == before)
end)

it('skips tensors without a gradient, and counts a tensor once', function()
	local x, y = tensor{1, grad = true}, tensor{1, grad = true}
	local o = optim.adam({x, y, x}, {lr = 0.5, decay = 1})
	backward{x}
	o:step()
	print(o)  --> optim.adam: 2 tensors, 2 parameters, lr 0.5, 1 steps
	assert(y:item() == 1 and math.abs(x:item() - 0.5) < 1e-6)
	local state = o:state()
	assert(state['first.1'] and not state['first.2'])
	print(state.steps)  --> int64(2)  1 0
end)

it('marks what it writes', function()
	local x = tensor{2, grad = true}
	local o = optim.sgd({x}, {lr = 0.1})
	backward{x}
	local y = x * x
	o:step()
	refused('backward: mul: wanted operand 1 as it was', y.backward, y)
end)

it('allocates nothing after the first step', function()
	for _, kind in ipairs(KINDS) do
		local list = model(1, 'float32', {{500, 40}, {40}})
		local o = optim[kind[1]](list, kind[2])
		backward(list)
		o:step()
		collectgarbage() collectgarbage()
		local before = tensor.memory().now
		for _ = 1, 5 do o:step() end
		collectgarbage() collectgarbage()
		assert(tensor.memory().now == before)
	end
end)

it('takes a module', function()
	local m = {parameters = function() return {tensor{1, grad = true}, tensor{1, 2, grad = true}} end}
	print(optim.sgd(m, {lr = 1}))  --> optim.sgd: 2 tensors, 3 parameters, lr 1, 0 steps
end)

refused('sgd: wanted a module or a list of tensors, got 3', optim.sgd, 3)
refused('sgd: wanted at least one tensor to train, got none', optim.sgd, {})
refused('sgd: item 1: wanted a tensor, got 3', optim.sgd, {3})
refused('sgd: item 2: wanted a tensor with requires_grad, got float32(1) without', optim.sgd,
	{tensor{1, grad = true}, tensor{1}})
refused('step: wanted an optimizer, as in o:step(…), got nil', optim.sgd({tensor{1, grad = true}}).step)
