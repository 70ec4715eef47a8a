-- SPDX-License-Identifier: MIT
-- prelu: one slope, slopes of channels, slopes that broadcast. Expected values from torch.nn.functional.prelu 2, which has no axis=.
local y = (tensor.arange(0, 11):to 'float32'):view(2, 3, 2) - 6
local w = tensor{0.1, 0.2, 0.3}
print(y:prelu(w)[1]:view(6), y:prelu(w)[2]:view(6))  --> float32(6) -0.6000 -0.5000 -0.8000 -0.6000 -0.6000 -0.3000 float32(6) 0 1 2 3 4 5
assert(y:prelu(w):eq(y:prelu(w:view(3, 1))):all():item())
assert(y:prelu(0.25):eq(y:leakyrelu(0.25)):all():item())
assert(y:prelu(tensor{0.25}):eq(y:leakyrelu(0.25)):all():item())
assert(y:prelu(tensor{{{{0.25}}}}):eq(y:leakyrelu(0.25)):all():item()) -- one number of any rank
assert(y:prelu(tensor{0.1, 0.2}, {axis = -1}):eq(y:prelu(tensor{{0.1, 0.2}})):all():item())
assert(y:prelu(tensor{0.1, 0.2}, {axis = 1}):eq(y:prelu(tensor{0.1, 0.2}:view(2, 1, 1))):all():item())
print(tensor{-1, -2, 3}:prelu(w))  --> float32(3) -0.1000 -0.4000 3.0000

it('gradients', function() -- torch: of (prelu(x, w) * (1 .. 12)):sum()
	local a, b = y:to 'float64':requires_grad_(), w:to 'float64':requires_grad_()
	local loss = (a:prelu(b) * tensor.arange(1, 12):to 'float64':view(2, 3, 2)):sum()
	loss:backward()
	for i, v in ipairs {0.1, 0.2, 0.6, 0.8, 1.5, 1.8, 0.7, 8, 9, 10, 11, 12} do assert(math.abs(a:grad():view(12)[i]:item() - v) < 1e-6, i) end
	print(b:grad())  --> float64(3) -16 -24 -16
	local only = tensor{0.5, grad = true}
	local sum = y:prelu(only):sum()
	sum:backward()
	print(only:grad())  --> float32(1) -21
end)

it('strides, dtypes, empty tensors', function()
	local turned = y:permute(3, 1, 2)
	assert(turned:prelu(tensor{0.5, 2}):eq(turned:contiguous():prelu(tensor{0.5, 2})):all():item())
	local spread = tensor{0.1, 9, 0.2, 9, 0.3, 9}:view(3, 2):select(2, 1)
	assert(y:prelu(spread):eq(y:prelu(w)):all():item())
	print(y:to 'int32':prelu(w):dtype(), y:to 'float16':prelu(w:to 'float16'):dtype(), y:prelu(w:to 'float64'):dtype())  --> float32 float16 float64
	print(tensor.zeros(0, 3, 2):prelu(w):size())  --> 0 3 2
	print(tensor.zeros(2, 0):prelu(tensor.zeros(0)):size())  --> 2 0
	print(tensor{-4}:squeeze():prelu(0.5))  --> -2
	local nan = 0 / 0
	print(tensor{nan, -0.0, 1}:prelu(0.5), tensor{-1, 1}:prelu(nan))  --> float32(3) nan -0 1 float32(2) nan 1
	local z = y:clone()
	print(z:prelu_(w) == z, z:eq(y:prelu(w)):all():item())  --> true true
end)

it('codes', function()
	local q = (tensor.randn(4, 3) * 2):quantize {dtype = 'int8', scale = 0.05}
	local out = {dtype = 'int8', scale = 0.03}
	local r = q:prelu(0.25, {out = out})
	print(r:origin().kernel, r:codes():eq(q:dequantize():prelu(0.25):quantize(out):codes()):all():item())  --> table true
	assert(q:prelu(w, {out = out}):codes():eq(q:dequantize():prelu(w):quantize(out):codes()):all():item())
	assert(q:prelu(w):eq(q:dequantize():prelu(w)):all():item())
end)

it('errors', function()
	print(pcall(function() return y:prelu(tensor{1, 2}) end))  --> false ...prelu: slope: wanted 3 numbers, one for each channel along axis 2 of (2, 3, 2), got 2
	print(pcall(function() return y:prelu(tensor{{1, 2, 3}}) end))  --> false ...prelu: slope: wanted a shape that broadcasts to (2, 3, 2), got (1, 3)
	print(pcall(function() return w:prelu(y) end))  --> false ...prelu: slope: wanted a shape that broadcasts to (3), got (2, 3, 2)
	print(pcall(function() return y:prelu(tensor{{1, 2}}, {axis = 3}) end))  --> false ...prelu: axis: wanted it for a slope with one axis only, got 2 axes
	print(pcall(function() return y:prelu(w, {axis = 4}) end))  --> false ...prelu: axis: wanted an axis from 1 to 3 (or -3 to -1), got 4
	print(pcall(function() return y:prelu() end))  --> false ...prelu: operand 2: wanted a tensor or a number...
end)
