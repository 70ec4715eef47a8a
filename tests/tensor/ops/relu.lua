-- SPDX-License-Identifier: MIT
-- labels: quick host
-- relu and relu6: dtypes, and the gradient that passes by one bit per element.
local inf, nan = math.huge, 0 / 0
print(tensor{-inf, inf, nan}:relu(), tensor{-inf, inf, nan}:relu6())  --> float32(3) 0 inf nan float32(3) 0 6 nan
print(tensor{-1, 3, 7}:relu6(), tensor({-1, 3, 7, dtype = 'int8'}):relu6())  --> float32(3) 0 3 6 int8(3) 0 3 6
print(tensor({-2, 3, dtype = 'int8'}):relu():dtype(), tensor({-2, dtype = 'float64'}):relu6():dtype())  --> int8 float64

-- What passes, element by element, beside the comparison that it stands for; all sizes around whole bytes and pieces.
local function passed(op, x)
	local g = tensor.randn(x:size()):to(x:dtype())
	local leaf = x:clone():requires_grad_()
	leaf[op](leaf):backward(g)
	return leaf:grad(), g
end
for _, dtype in ipairs{'float32', 'float64', 'float16'} do
	it('the gradient passes where the result says so, ' .. dtype, function()
		tensor.seed(3)
		for _, n in ipairs{1, 2, 7, 8, 9, 15, 17, 63, 500, 4095, 4096, 4097, 4103, 12289, 70001} do
			local x = (tensor.randn(n) * 5):to(dtype)
			x:narrow(1, 1, 1):fill_(0)
			local got, g = passed('relu', x)
			assert(got:eq(g * x:gt(0):to(dtype)):all():item(), n)
			got, g = passed('relu6', x)
			assert(got:eq(g * (x:gt(0):to(dtype) * x:lt(6):to(dtype))):all():item(), n)
		end
	end)
end
it('of nan it passes in relu, as in PyTorch', function()
	local got, g = passed('relu', tensor{nan, -1, 0, 1, -inf, inf})
	assert(got:eq(g * tensor{1, 0, 0, 1, 0, 1}):all():item())
	got, g = passed('relu6', tensor{nan, -1, 0, 6, 5, inf})
	assert(got:eq(g * tensor{0, 0, 0, 0, 1, 0}):all():item())
end)
it('views and gradients in another order', function()
	local x, g = tensor.randn(37, 53), tensor.randn(53, 37)
	local leaf = x:clone():requires_grad_()
	leaf:t():relu():t():backward(g:t())
	assert(leaf:grad():eq(g:t() * x:gt(0):to 'float32'):all():item())
	leaf = x:clone():requires_grad_()
	leaf:narrow(2, 3, 40):relu():backward(g:t():narrow(2, 3, 40))
	assert(leaf:grad():narrow(2, 3, 40):eq(g:t():narrow(2, 3, 40) * x:narrow(2, 3, 40):gt(0):to 'float32'):all():item())
	assert(leaf:grad():narrow(2, 1, 2):eq(0):all():item())
end)
it('of codes it passes where the result is between the ends', function()
	local x, g = tensor{-9, -0.1, 0, 0.25, 5, 9}, tensor{1, 2, 3, 4, 5, 6}
	for _, spec in ipairs{{dtype='int8', scale=0.125}, {dtype='uint8', scale=0.125, zero_point=80}, 'int4', 'mxfp4'} do
		for _, op in ipairs{'relu', 'relu6'} do
			local leaf = x:clone():requires_grad_()
			local codes = leaf:quantize(spec)
			local decoded = codes:detach():dequantize()
			local y = codes[op](codes)
			y:backward(g)
			local wanted = decoded:gt(0)
			if op == 'relu6' then wanted = wanted:band(decoded:lt(6)) end
			assert(leaf:grad():eq(g * wanted:to 'float32'):all():item(), op)
		end
	end
end)
it('backward keeps one bit per element, not the result', function()
	local x = tensor.randn(4096, 64):requires_grad_()
	collectgarbage()
	collectgarbage()
	local start = tensor.memory().now
	local sum = x:relu():sum() -- which reads sizes only
	collectgarbage()
	collectgarbage()
	local kept = tensor.memory().now - start
	assert(kept >= 4096 * 8 and kept < 4096 * 8 + 4096, kept)
	sum:backward()
end)
