-- SPDX-License-Identifier: MIT
-- labels: quick noproducts host
-- Dropout: which elements, their share, the gradient, and that nothing happens outside training.
local checks = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checks.lua')
local check_bits, refused = checks.bits, checks.refused
tensor.seed(1)

it('drops the share and keeps the mean', function()
	for _, p in ipairs {0.1, 0.5, 0.9} do
		local y = nn.dropout(tensor.ones(100000), {p = p})
		local dropped = y:eq(0):sum():item() / 100000
		assert(math.abs(dropped - p) < 4 * math.sqrt(p * (1 - p) / 100000), dropped)
		assert(y:max():item() == (tensor{1} * (1 / (1 - p)))[1]:item())
	end
	assert(nn.dropout(tensor.ones(1000)):eq(0):sum():item() > 400, 'p is 0.5 by default')
end)

it('the gradient flows where the value did', function()
	for _, dtype in ipairs {'float32', 'float64', 'float16'} do
		local x = tensor.randn(3000):to(dtype):clone()
		x[7] = 0
		x:requires_grad_()
		local y = nn.dropout(x, 0.25)
		local drawn = nn.dropout(tensor.ones(10)) -- the mask is the one of y, whatever was drawn since
		y:sum():backward()
		local kept = x:grad():gt(0)
		assert(x:detach():ne(0):maximum(0):eq(1):all():item() == false and kept:sum():item() > 2000 and drawn:nelem() == 10)
		assert(y:detach():eq(x:detach() * x:grad()):all():item() or dtype == 'float16')
		assert(y:detach():ne(0):eq(kept):sum():item() >= 2999, 'element 7 alone may differ')
	end
end)

it('successive calls differ; the seed decides', function()
	local x = tensor.ones(1000)
	tensor.seed(5)
	local a, b = nn.dropout(x), nn.dropout(x)
	tensor.seed(5)
	local c = nn.dropout(x)
	assert(a:eq(c):all():item() and not a:eq(b):all():item())
end)

it('gives the same bits everywhere', function()
	local x = tensor.randn(1 << 20):requires_grad_()
	check_bits(function()
		x:zero_grad()
		tensor.seed(3)
		local y = nn.dropout(x, 0.3)
		y:sum():backward()
		return y:detach(), x:grad()
	end)
	assert(nn.dropout(x):explain():find 'path float32, kernel simd_')
end)

it('outside training, and for p = 0, it is x itself', function()
	local x, q = tensor.randn(4), tensor.randn(4):quantize 'int8'
	tensor.seed(1)
	local first = tensor.rand(1):item()
	tensor.seed(1)
	local y = nn.dropout(x, {p = 0.5, training = false})
	x[1] = 42
	assert(y[1]:item() == 42 and nn.dropout(x, 0):eq(x):all():item())
	assert(nn.dropout(q, {training = false}):dtype() == 'int8')
	assert(tensor.rand(1):item() == first, 'nothing was drawn')
	local w = tensor.ones(2):requires_grad_()
	nn.dropout(w, {training = false}):sum():backward()
	print(w:grad())  --> float32(2)  1 1
end)

it('keeps no mask', function()
	local x = tensor.randn(1 << 18):requires_grad_()
	collectgarbage()
	collectgarbage()
	local before = tensor.memory().now
	local y = nn.dropout(x)
	assert(tensor.memory().now - before < (1 << 20) + 10000, 'y and a few numbers')
	assert(y:nelem() == 1 << 18)
end)

print(nn.dropout(tensor{0/0}, {training = false}), nn.dropout(tensor.zeros(0, 3)):size())  --> float32(1) nan 0 3
refused('dropout: p: wanted a probability from 0 up to but not 1, got 1', nn.dropout, tensor.ones(2), 1)
refused('dropout: p: wanted a probability from 0 up to but not 1, got -0.1', nn.dropout, tensor.ones(2), {p = -0.1})
refused('dropout: p: wanted a probability from 0 up to but not 1, got', nn.dropout, tensor.ones(2), {p = 0/0})
refused('dropout: wanted floats while training, got int32(2)', nn.dropout, tensor.ones {2, dtype = 'int32'})
refused('use :dequantize()', nn.dropout, tensor.ones(2):quantize 'int8')
