-- SPDX-License-Identifier: MIT
-- labels: quick noproducts
-- What tests/nn/gradients.lua does not ask of every op: many operands, what a graph keeps, kinks and ties, accuracy in
-- float32, and the same bits on any number of threads.
local function settled()
	collectgarbage()
	collectgarbage()
	return tensor.memory().now
end

it('many operands', function()
	local parts = {}
	for i = 1, 300 do parts[i] = tensor{i, i, grad=true} end
	tensor.cat(parts):backward(tensor.arange(1, 600))
	print(parts[300]:grad())  --> float32(2)  599 600
	tensor.stack(parts):backward(tensor.ones(300, 2))
	print(parts[7]:grad())  --> float32(2)  14 15
	local x = tensor.zeros(300):requires_grad_()
	local loss = 0
	for i, p in ipairs(x:split(1)) do loss = loss + p * i end
	loss:backward()
	print(x:grad()[{{298, 300}}])  --> float32(3)  298 299 300
end)

it('a graph keeps only what its backward reads', function()
	local big = tensor.ones(1000, 100)
	local w = tensor.ones(100):requires_grad_()
	local before = settled()
	local y = ((big * 2 + w) - 1) / 3    -- nothing of the results' size is needed
	local kept = settled() - before
	assert(kept < 1.1 * 4 * big:nelem(), ('%d bytes kept'):format(kept))
	y:sum():backward()
	assert(math.abs(w:grad():sum():item() - 1000 * 100 / 3) < 1)
	print(w:grad()[1]:item() > 333)  --> true
end)

-- The same calls in PyTorch 2.15: kinks, ties, and where a norm or a deviation is 0.
local function slope(fn, x, seed)
	x = x:clone():requires_grad_()
	local y = fn(x)
	y:backward(seed or y:detach():isnan():to(y:dtype()) * 0 + 1)
	return x:grad()
end
local nan, huge = 0 / 0, math.huge
local two = tensor{2, 2, 2, 1}
print(slope(function(x) return x:maximum(two) end, tensor{1, 2, 3, nan}))  --> float32(4)  0.0000  0.5000  1.0000  1.0000
print(slope(function(x) return x:minimum(two) end, tensor{1, 2, 3, nan}))  --> float32(4)  1.0000  0.5000  0.0000  1.0000
print(slope(function(x) return x:abs() end, tensor{0, -1, 2}))  --> float32(3)  0  -1   1
print(slope(function(x) return x:relu() end, tensor{nan, 0, 1}, tensor{1, 1, 1}))  --> float32(3)  1  0  1
print(slope(function(x) return x:relu6() end, tensor{-1, 0, 3, 6, 7}))  --> float32(5)  0  0  1  0  0
print(slope(function(x) return x:clamp(-1, 1) end, tensor{-2, -1, 0, 1, 2}))  --> float32(5)  0  0  1  0  0
print(slope(function(x) return x:hardswish() end, tensor{-4, -3, 0, 3, 4}))  --> float32(5)  0.0000  0.0000  0.5000  1.0000  1.0000
print(slope(function(x) return x:leakyrelu(0.5) end, tensor{-2, 0, 3}))  --> float32(3)  0.5000  0.5000  1.0000
print(slope(function(x) return x:norm() end, tensor{0, 0}))  --> float32(2)  0  0
print(slope(function(x) return x:norm(3) end, tensor{0, 0}))  --> float32(2)  0  0
print(slope(function(x) return x:norm(1) end, tensor{0, 2, -3}))  --> float32(3)  0  1  -1
print(slope(function(x) return x:norm(0.5) end, tensor{0, 4, 9}))  --> float32(3)  0.0000  2.5000  1.6667
print(slope(function(x) return x:norm(huge) end, tensor{3, -3, 1}))  --> float32(3)  0.5000  -0.5000   0.0000
print(slope(function(x) return x:norm(-huge) end, tensor{3, -1, 1}))  --> float32(3)  0.0000  -0.5000   0.5000
print(slope(function(x) return x:std() end, tensor{2, 2, 2}))  --> float32(3)  0  0  0
print(slope(function(x) return x ^ tensor{0, 2, 0, 1, 3} end, tensor{0, 0, 2, 0, -2}))  --> float32(5)  0  0  0  1  12
print(slope(function(y) return tensor{0, 0, 2, 0} ^ y end, tensor{0, 2, 0, 1}))  --> float32(4)  0.0000  0.0000  0.6931  0.0000
print(slope(function(x) return x ^ 0 end, tensor{0, 3}))  --> float32(2)  0  0
print(slope(function(x) return x ^ 0.5 end, tensor{0, 4}))  --> float32(2)     inf  0.2500
print(slope(function(x) return x ^ 2 end, tensor{0, -3}))  --> float32(2)  0  -6
print(slope(function(x) return x % tensor{3, 3, -2} end, tensor{5, -5, 5.5}))  --> float32(3)  1  1  1
print(slope(function(y) return tensor{5, -5, 5.5} % y end, tensor{3, 3, -2}))  --> float32(3)  -1   2   3
print(slope(function(x) return x:max(1) end, tensor{{1, 2}, {1, 2}})[1])  --> float32(2)  1  1
print(slope(function(x) return x:max() end, tensor{3, 1, 3}))  --> float32(3)  1  0  0
print(slope(function(x) return (x:topk(2)) end, tensor{2, 2, 2}))  --> float32(3)  1  1  0
print(slope(function(x) return x:softmax() end, tensor{1, 2, 3}, tensor{1, 0, 0}))  --> float32(3)  0.0819  -0.0220  -0.0599
print(slope(function(x) return x:sqrt() end, tensor{0}))  --> float32(1)  inf
print(slope(function(x) return x:log() end, tensor{0}))  --> float32(1)  inf
print(slope(function(x) return x:silu() end, tensor{-huge, -200, 200, huge}):abs())  --> float32(4)  0  0  1  1
print(slope(function(x) return x:gelu() end, tensor{-huge, -30, 30, huge}):abs():round())  --> float32(4)  0  0  1  1
print(slope(function(x) return x:gelu{approximate='tanh'} end, tensor{-1e30, -30, 30, 1e30}):abs():round())  --> float32(4)  0  0  1  1

it('activations in float32 are within a few units in the last place of the float64 gradient', function()
	local x = tensor.linspace(-9, 9, 4001)
	for name, ulp in pairs {tanh=8, sigmoid=8, gelu=8, silu=8, softplus=8, softmax=32, logsoftmax=32} do
		local function fn(t) return t[name](t) end
		local seed = tensor.linspace(0.5, 1.5, 4001)
		local exact = slope(fn, x:to 'float64', seed:to 'float64')
		local scale = name == 'softmax' and fn(x:to 'float64') or exact:abs() + 1
		local off = (slope(fn, x, seed):to 'float64' - exact):abs() / scale
		assert(off:max():item() < ulp * 2 ^ -24, ('%s: %g units'):format(name, off:max():item() * 2 ^ 24))
	end
	for _, name in ipairs {'gelu', 'silu'} do -- where it is small it keeps its digits
		local far = tensor.linspace(-9, -2, 100)
		local function fn(t) return t[name](t) end
		local exact = slope(fn, far:to 'float64')
		local off = ((slope(fn, far):to 'float64' - exact) / exact):abs():max():item()
		assert(off < 2e-6, ('%s: relative error %g'):format(name, off))
	end
end)

it('the same bits on any number of threads', function()
	local threads = tensor.threads()
	local x, w = tensor.randn(300, 500), tensor.randn(40, 500)
	local function run(n)
		tensor.threads(n)
		local a, b, c = x:clone():requires_grad_(), w:clone():requires_grad_(), tensor.zeros(40):requires_grad_()
		local y = a:linear(b, c, {act='gelu'}):logsoftmax()
		y:softmax(1):mul(y):backward(tensor.ones(300, 40))
		return a:grad(), b:grad(), c:grad()
	end
	local a, b, c = run(1)
	local d, e, f = run(2)
	tensor.threads(threads)
	assert((a - d):abs():max():item() == 0 and (b - e):abs():max():item() == 0 and (c - f):abs():max():item() == 0)
end)
