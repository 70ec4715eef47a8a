-- SPDX-License-Identifier: MIT
-- quant.lsq: values and gradients in closed form and against PyTorch, finite differences of the surrogate in float64, any
-- layout of the scales, what is refused.
local xs = tensor{{-3.0, 0.3, 1.0, 9.0, -0.26}, {0.11, -0.75, 2.4, 0.05, -5.0}}
local g = tensor{{1, -2, 3, 0.5, 2}, {0.25, 1, -1, 4, 2}}

local function near(a, b, tolerance) return math.abs(a - b) <= (tolerance or 1e-6) * math.max(1, math.abs(b)) end
local function list_near(t, wanted)
	for i, v in ipairs(t:view(t:nelem()):totable()) do
		if not near(v, wanted[i]) then return false end
	end
	return true
end

it('is LSQ in closed form', function()
	local s, x = tensor{0.5}:requires_grad_(), tensor{-3, 0.3, 1, 9}:requires_grad_()
	local y = quant.lsq(x, s, {bits = 3})
	print(y)  --> float32(4)  -2.0000   0.5000   1.0000   1.5000
	y:sum():backward()
	print(x:grad())  --> float32(4)  0  1  1  0
	assert(near(s:grad():item(), (-4 + (1 - 0.6) + 0 + 3) / math.sqrt(4 * 3)))
	s:zero_grad()
	x:lsq(s, {bits = 3, features = 2}):sum():backward()
	assert(near(s:grad():item(), -0.6 / math.sqrt(2 * 3)))
end)
it('uses the narrow range from 4 bits on, the full one below, none below 0 without sign', function()
	local wide, s = tensor{-1000, 1000}, tensor{1}
	for bits, lo in pairs {[2] = -2, [3] = -4, [4] = -7, [8] = -127, [16] = -32767} do
		local y = wide:to('float64') * 100
		local v = y:lsq(s, {bits = bits}):totable()
		assert(v[1] == lo and v[2] == 2 ^ (bits - 1) - 1, bits)
	end
	print(wide:lsq(s, {bits = 4, signed = false}))  --> float32(2)   0  15
end)
it('agrees with torch._fake_quantize_learnable_per_tensor_affine', function()
	local x, s, z = xs:clone():requires_grad_(), tensor{0.25}:requires_grad_(), tensor{5.3}:requires_grad_()
	local y = x:lsq(s, z, {bits = 4, signed = false})
	y:backward(g)
	assert(list_near(y, {-1.25, 0.25, 1, 2.5, -0.25, 0, -0.75, 2.5, 0, -1.25}))
	assert(list_near(x:grad(), {0, -2, 3, 0, 2, 0.25, 1, -1, 4, 0}))
	assert(near(s:grad():item(), -0.8842657) and near(z:grad():item(), -0.07144345))
end)
it('agrees with torch._fake_quantize_learnable_per_channel_affine on either axis', function()
	for axis = 1, 2 do
		local function turned(t) return axis == 1 and t or t:t() end
		local x = turned(xs):contiguous():requires_grad_()
		local s, z = tensor{0.25, 0.5}:requires_grad_(), tensor{5.3, 2.2}:requires_grad_()
		local y = x:lsq(s, z, {bits = 4, signed = false, axis = axis})
		y:backward(turned(g))
		assert(list_near(turned(y):contiguous(), {-1.25, 0.25, 1, 2.5, -0.25, 0, -1, 2.5, 0, -1}))
		assert(list_near(turned(x:grad()):contiguous(), {0, -2, 3, 0, 2, 0.25, 1, -1, 4, 0}))
		assert(list_near(s:grad(), {0.05542564, -0.59524804}) and list_near(z:grad(), {-0.04330127, -0.11547005}))
	end
end)
it('per axis equals per tensor on the slices', function()
	tensor.seed(31)
	for axis = 1, 3 do
		local x = tensor.randn(3, 4, 5):requires_grad_()
		local n = x:size(axis)
		local s = (tensor.rand(n) * 0.3 + 0.05):detach():requires_grad_()
		local w = tensor.randn(3, 4, 5)
		local y = x:lsq(s, {bits = 4, axis = axis})
		y:backward(w)
		for i = 1, n do
			local xi, si = x:detach():select(axis, i):contiguous():requires_grad_(), tensor{s[i]:item()}:requires_grad_()
			local yi = xi:lsq(si, {bits = 4})
			yi:backward(w:select(axis, i))
			assert(y:detach():select(axis, i):metrics(yi:detach()).max == 0)
			assert(x:grad():select(axis, i):metrics(xi:grad()).max == 0)
			assert(near(s:grad()[i]:item(), si:grad():item(), 1e-5))
		end
	end
end)
-- The surrogate whose derivative LSQ is: rounding is replaced by its constant difference r - u inside the range.
it('has the gradient of the surrogate, by finite differences in float64', function()
	tensor.seed(32)
	local x = (tensor.randn(7, 9) * 2):to('float64'):requires_grad_()
	local w = tensor.randn(7, 9):to 'float64'
	local s0, lo, hi = 0.3, -7, 7
	local s = tensor.full{1, value = s0, dtype = 'float64'}:requires_grad_()
	local u = x:detach() / s0
	local rest = (u:clamp(lo, hi):round() - u:clamp(lo, hi))
	local function surrogate(step, shift)
		return ((((x:detach() + shift) / step):clamp(lo, hi) + rest) * step * w):sum():item()
	end
	(x:lsq(s, {bits = 4}) * w):sum():backward()
	local d = 1e-6
	local ds = (surrogate(s0 + d, 0) - surrogate(s0 - d, 0)) / (2 * d)
	assert(near(s:grad():item(), ds / math.sqrt(63 * 7), 1e-5), s:grad():item() .. ' ' .. ds)
	local dx = (surrogate(s0, d) - surrogate(s0, -d)) / (2 * d)
	assert(near(x:grad():sum():item(), dx, 1e-5))
end)
it('sums a large tensor in parts', function()
	tensor.seed(33)
	local x = tensor.randn(300, 1000)
	local s = tensor{0.25}:requires_grad_()
	x:lsq(s, {bits = 3}):sum():backward()
	local u = (x / 0.25):to 'float64'
	local c = u:clamp(-4, 3)
	local inside = u:ge(-4):to('float64') * u:le(3):to 'float64'
	local ds = (c:round() - u * inside - c:round() * (1 - inside) + c * (1 - inside)):sum():item()
	assert(near(s:grad():item(), ds / math.sqrt(300000 * 3), 1e-4))
	local first, threads = s:grad():item(), tensor.threads()
	for _, n in ipairs {1, 2} do
		tensor.threads(n)
		s:zero_grad()
		x:lsq(s, {bits = 3}):sum():backward()
		assert(s:grad():item() == first)
	end
	tensor.threads(threads)
end)
it('gives what quantize with the learned scale gives', function()
	tensor.seed(34)
	local x, s = tensor.randn(50), tensor{0.1}
	local y = x:lsq(s, {bits = 8})
	assert(y:metrics(y:quantize{dtype = 'int8', scale = 0.1}).max == 0)
	assert(y:metrics(x:fake{dtype = 'int8', scale = 0.1}).max == 0)
end)
it('survives scales of 0 and below, and NaN', function()
	print(tensor{1, 0 / 0}:lsq(tensor{-1}, {bits = 8}):max():item() < 2e-6)  --> true
	assert(tensor.zeros(0):lsq(tensor{1}):nelem() == 0)
end)
it('learns the step of least error', function()
	tensor.seed(35)
	local x, s = tensor.randn(4000), tensor{0.05}:requires_grad_()
	for _ = 1, 200 do
		nn.mse(x:lsq(s, {bits = 2}) * math.sqrt(4000), x * math.sqrt(4000)):backward()
		tensor.nograd(function() s:sub_(s:grad() * 0.002) end)
		s:zero_grad()
	end
	local function error_of(step) return x:metrics(x:lsq(step, {bits = 2})).mse end
	local least = math.huge
	for i = 1, 300 do least = math.min(least, error_of(tensor{i / 100})) end
	local learned = error_of(s:detach())
	assert(learned < 1.01 * least and learned < 0.2 * error_of(tensor{0.05}), learned .. ' ' .. least)
end)
print(pcall(xs.lsq, xs, tensor{1, 2}))  --> false ...lsq: scale: wanted 1 number, one for the tensor, got shape (2)
print(pcall(xs.lsq, xs, tensor{1}, {axis = 2}))  --> false ...wanted 5 numbers, one for each index of the axis, got shape (1)
print(pcall(xs.lsq, xs, tensor{1}, {bits = 1}))  --> false ...bits: wanted 2 to 16, got 1
print(pcall(xs.lsq, xs, tensor{1, dtype = 'int8'}))  --> false ...scale: wanted plain floats...
print(pcall(xs.lsq, xs, tensor{1}, tensor{1, 2}))  --> false ...zero_point: wanted 1 number...
print(pcall(xs.lsq, xs, tensor{1}, {bit = 4}))  --> false ...did you mean 'bits'?...
print(pcall(xs.lsq, xs, tensor{1}, {features = 0}))  --> false ...features: wanted 1 or more...
print(pcall(xs.lsq, xs, tensor{1}, {axis = 3}))  --> false ...axis...

it('the gradients of codes are those of their values', function()
	local x = tensor.arange(-20, 19):to 'float32' / 10
	local function gradients(decode)
		local leaf, scale = x:clone():requires_grad_(), tensor{0.3, grad=true}
		local codes = leaf:quantize{dtype='int8', scale=0.05}
		local y = (decode and codes:dequantize() or codes):lsq(scale, {bits=3})
		y:backward(x:abs())
		return leaf:grad(), scale:grad()
	end
	local a, b = gradients(false)
	local c, d = gradients(true)
	assert(a:eq(c):all():item() and b:eq(d):all():item())
end)
