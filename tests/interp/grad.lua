-- SPDX-License-Identifier: MIT
-- The tape: what backward gives, what is refused, and that nothing is kept.
local x = tensor{3, 4, grad=true}
local y = (x * x):sum()
y:backward()
print(x:grad())  --> float32(2)  6 8
y = (x * 2 + 1):relu():mean()
y:backward()
print(x:grad())  --> float32(2)  7 9
print(x:zero_grad():grad())  --> nil
print(x:requires_grad(), (x + 1):requires_grad(), (x + 1):detach():requires_grad(), x:gt(0):requires_grad())  --> true true false false

local function refused(pattern, fn, ...)
	local ok, message = pcall(fn, ...)
	assert(not ok and message:find(pattern, 1, true), ('wanted "%s", got %s'):format(pattern, message))
end

it('a value may be used often, by views, and broadcast', function()
	local a, b = tensor.ones(2, 3):requires_grad_(), tensor{1, 2, 3, grad=true}
	local s = (a * b + b + a):sum()
	s:backward()
	assert(tostring(a:grad()) == tostring(tensor{{2, 3, 4}, {2, 3, 4}}))
	assert(tostring(b:grad()) == tostring(tensor{4, 4, 4}))
end)

it('a gradient to begin with', function()
	local a = tensor{1, 2, grad=true}
	local b = a * 3
	refused('backward: wanted one element or a gradient to begin with, got float32(2)', b.backward, b)
	b:backward(tensor{1, 10})
	print(a:grad())  --> float32(2)  3 30
	b = a * 3
	refused('backward: gradient: wanted shape (2), got (3)', b.backward, b, tensor{1, 2, 3})
	refused('backward: gradient: wanted plain numbers, got int8(2)', b.backward, b, tensor{1, 2}:quantize 'int8')
	local seed = tensor{1, 2}
	a:zero_grad()
	b = a * 1 + a
	b:backward(seed)
	assert(a:grad()[2]:item() == 4 and seed[2]:item() == 2, 'the gradient that was given is as it was')
	a:zero_grad()
	b = a + 0
	b:backward(seed)
	a:grad():mul_(5)
	assert(seed[1]:item() == 1, 'the sum shares no bytes with the gradient that was given')
end)

it('leaves add up, and their sums belong to them alone', function()
	local a, b = tensor{1, grad=true}, tensor{2, grad=true}
	local s = (a + b):sum()
	s:backward()
	a:grad():mul_(10)
	assert(a:grad():item() == 10 and b:grad():item() == 1)
	s = (a + b):sum()
	s:backward()
	assert(a:grad():item() == 11 and b:grad():item() == 2)
end)

it('a graph serves one backward', function()
	local a = tensor{2, grad=true}
	local square = a * a
	local s = square:sum()
	s:backward()
	refused('backward: wanted a graph that was not used yet', s.backward, s)
	local other = square + 1
	refused('backward: wanted a graph that was not used yet', other.backward, other)
	assert(a:grad():item() == 4, 'the failed backwards changed the sum')
end)

it('writing', function()
	local a, c = tensor{1, 2, grad=true}, tensor{1, 2}
	refused('add_: wanted a tensor that takes no part in gradients', a.add_, a, 1)
	refused('copy_: wanted a tensor that takes no part in gradients', a.copy_, a, c)
	refused('index: wanted a tensor that takes no part in gradients', function() a[1] = 5 end)
	refused('got a value that has one', function() c[1] = a[1] * 1 end)
	local s = (a * c):sum()
	c:add_(1)
	refused("backward: mul: wanted operand 2 as it was", s.backward, s)
	assert(a:grad() == nil)
	tensor.nograd(function() a[1] = 5 a:mul_(2) end)
	print(a)  --> float32(2)  10 4
	assert(a:requires_grad())
end)

it('nograd ends with its function, also by an error', function()
	local a = tensor{1, grad=true}
	assert(not tensor.nograd(function() return (a * 2):requires_grad() end))
	assert(not pcall(tensor.nograd, function() error 'x' end))
	assert((a * 2):requires_grad())
	assert(not tensor.nograd(function() return tensor.nograd(function() return 1 end) and (a * 2):requires_grad() end))
	refused('nograd: wanted a function, got 1', tensor.nograd, 1)
end)

it('who may ask for a gradient', function()
	local a = tensor{1, 2, grad=true}
	local made, whole, codes = a * 2, tensor{1, dtype='int32'}, tensor{1, 2}:quantize 'int8'
	refused("got a result of 'mul'; use :detach() first", made.requires_grad_, made)
	refused('requires_grad: wanted a plain float tensor, got int32(1)', whole.requires_grad_, whole)
	refused('requires_grad: wanted a plain float tensor', codes.requires_grad_, codes)
	refused('backward: wanted a value that depends on a tensor with requires_grad', codes.backward, codes)
	assert(not a:requires_grad_(false):requires_grad())
end)

it('a chain of 200 000 ops is walked and freed', function()
	local a = tensor{1, grad=true}
	local function chain()
		local b = a
		for _ = 1, 200000 do b = b + 1 end
		return b
	end
	chain()
	collectgarbage()
	local b = chain()
	b:backward()
	assert(a:grad():item() == 1)
end)

it('a training step gives its memory back', function()
	local w = tensor.randn(64, 64):requires_grad_()
	local function step()
		local input <const> = tensor.ones(32, 64)
		local loss = input:matmul(w):relu():matmul(w):mean()
		loss:backward()
		w:zero_grad()
	end
	step()
	collectgarbage()
	collectgarbage()
	local before = tensor.memory().now
	for _ = 1, 20 do step() end
	collectgarbage()
	collectgarbage()
	assert(tensor.memory().now == before, ('%d bytes, %d before'):format(tensor.memory().now, before))
end)
