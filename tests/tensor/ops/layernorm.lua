-- SPDX-License-Identifier: MIT
-- labels: quick noproducts host
-- layernorm and rmsnorm; literals from PyTorch in float64.
local checks = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checks.lua')
local near, check_gradient, wide, check_bits, refused = checks.near, checks.gradient, checks.wide, checks.bits, checks.refused
tensor.seed(1)

local rows, g = {{3, -1, 4, 1}, {-5, 9, 2, -6}, {5, 3, -5, 8}}, {{1, 2, -1, 0.5}, {0.3, -2, 1, 4}, {-1, 1, 3, -0.5}}
local weight, bias = {0.5, -1, 2, 1.5}, {0.1, 0.2, -0.3, 0.4}
local function of(list, dtype) return tensor {dtype = dtype, table.unpack(list)} end

for dtype, bound in pairs {float32 = 2e-6, float64 = 1e-9} do
	it('values and gradients in ' .. dtype, function()
		local x, w, b, seed = of(rows, dtype), of(weight, dtype), of(bias, dtype), of(g, dtype)
		for _, t in ipairs {x, w, b} do t:requires_grad_() end
		local y = x:layernorm(w, b)
		near(y, {0.4254718361, 1.632076079, 2.04339722, -0.185849305, -0.3138028876, -1.289690395, 0.3620846202, -1.089690395,
			0.3336283089, 0.148082598, -3.518878922, 2.035398162}, bound)
		y:backward(seed)
		near(x:grad(), {0.5715066055, -0.580333113, -0.7678926455, 0.776719153, -0.4787925922, 0.0615318813, -0.05552328703,
			0.4727839979, -0.03750378839, -0.3733575016, 0.1522541164, 0.2586071736}, bound)
		near(w:grad(), {-0.06459467803, -5.791615547, -5.668974683, -4.712923543}, bound)
		near(b:grad(), {0.3, 1, 3, 4}, bound)
		x:zero_grad()
		w:zero_grad()
		y = x:rmsnorm(w, {eps = 1e-6})
		near(y, {0.5773502264, 0.3849001509, 3.079201208, 0.5773502264, -0.4138029386, -1.489690579, 0.6620847018, -1.489690579,
			0.45083481, -0.541001772, -1.80333924, 2.164007088}, bound)
		y:backward(seed)
		near(x:grad(), {0.3528251146, -0.8232586483, -0.5559669164, 0.3421334596, -0.05878268913, 0.4815419087, 0.3644866971,
			0.8927940142, 0.2140548918, 0.002199188259, 0.7777816902, 0.351504523}, bound)
		near(w:grad(), {0.00474906966, -3.208179688, -3.913567113, -4.501393831}, bound)
	end)
end

it('gradients against finite differences', function()
	check_gradient(function(x, w, b) return x:layernorm(w, b, {eps = 1e-3}) end, wide(2, 3, 5), wide(5), wide(5))
	check_gradient(function(x) return x:layernorm() end, wide(3, 37))
	check_gradient(function(x, w) return x:rmsnorm(w, {eps = 0.1}) end, wide(4, 3), wide(3))
end)

it('float32 is near float64, also far from 0 and for long rows', function()
	for _, c in ipairs {{40, 7, 0, 1}, {5, 1000, 1000, 0.1}, {2, 70000, -3, 100}, {3, 256, 1e4, 1}, {33, 288, 0, 1e-3}} do
		local x = tensor.randn(c[1], c[2]) * c[4] + c[3]
		local want = x:to 'float64':layernorm()
		assert(x:layernorm():to 'float64':metrics(want).max < 2e-5, c[2])
		assert(x:rmsnorm():to 'float64':metrics(x:to 'float64':rmsnorm()).max < 2e-5, c[2])
	end
end)

it('gradients of many rows, beside float64', function()
	local x, w, b, seed = tensor.randn(1000, 40), tensor.randn(40), tensor.randn(40), tensor.randn(1000, 40)
	local function gradients(dtype)
		local t = {x:to(dtype):clone(), w:to(dtype):clone(), b:to(dtype):clone()}
		for _, p in ipairs(t) do p:requires_grad_() end
		t[1]:layernorm(t[2], t[3]):backward(seed)
		return t[1]:grad():to 'float64', t[2]:grad():to 'float64', t[3]:grad():to 'float64'
	end
	local a, d = {gradients 'float32'}, {gradients 'float64'}
	for i = 1, 3 do assert(a[i]:metrics(d[i]).max < 5e-5 * d[i]:abs():max():item(), i) end
end)

it('gives the same bits everywhere', function()
	local x, w, b, seed = tensor.randn(700, 999), tensor.randn(999), tensor.randn(999), tensor.randn(700, 999)
	for _, t in ipairs {x, w, b} do t:requires_grad_() end
	check_bits(function()
		for _, t in ipairs {x, w, b} do t:zero_grad() end
		local y = x:layernorm(w, b)
		y:backward(seed)
		return y:detach(), x:grad(), w:grad(), b:grad(), x:detach():rmsnorm(w:detach())
	end)
end)

it('dtypes and shapes', function()
	local x = tensor(rows)
	print(x:to 'float16':layernorm():dtype(), x:to 'int8':layernorm():dtype(), x:layernorm(tensor(weight):to 'float64'):dtype())  --> float16 float32 float32
	assert(x:to 'int8':layernorm():eq(x:layernorm()):all():item())
	assert(x:t():layernorm():eq(x:t():contiguous():layernorm()):all():item())
	print(tensor.zeros(0, 4):layernorm():size())  --> 0 4
	print(tensor.zeros(3, 0):layernorm():size())  --> 3 0
	local w = tensor.ones(4):requires_grad_()
	tensor.zeros(0, 4):layernorm(w):sum():backward()
	print(w:grad())  --> float32(4)  0 0 0 0
	print(tensor.ones(2, 3):layernorm()[1], tensor{1, 0/0}:layernorm(), tensor{1, 1/0}:rmsnorm())  --> float32(3) 0 0 0 float32(2) nan nan float32(2) 0 nan
end)

it('rows whose squares leave the range', function()
	print(tensor{1e20, 0, 0}:layernorm(), tensor{3e19, 4e19}:rmsnorm())  --> float32(3) 1.4142 -0.7071 -0.7071 float32(2) 0.8485 1.1314
	print(tensor{3.4e38, -3.4e38, 3.4e38, 3.4e38}:layernorm(), tensor({1e200, 0, 0, dtype = 'float64'}):layernorm())  --> float32(4) 0.5774 -1.7321 0.5774 0.5774 float64(3) 1.4142 -0.7071 -0.7071
	print(tensor{1e38, 1 / 0}:layernorm(), tensor{1e38, 0 / 0}:rmsnorm())  --> float32(2) nan nan float32(2) nan nan
	tensor.seed(31)
	local function run(op, x, w, g)
		x, w = x:detach():requires_grad_(), w:detach():requires_grad_()
		local y = x[op](x, w, {eps = 0})
		y:backward(g)
		return y:detach(), x:grad(), w:grad()
	end
	for _, op in ipairs{'layernorm', 'rmsnorm'} do
		local x, w, g = tensor.randn(3, 300) * 1e25, tensor.randn(300), tensor.randn(3, 300)
		local got, wanted = {run(op, x, w, g)}, {run(op, x:to 'float64', w:to 'float64', g:to 'float64')}
		for i = 1, 3 do
			local off = (got[i]:to 'float64' - wanted[i]):abs():max():item() / wanted[i]:abs():max():item()
			assert(off < 3e-7, op .. i .. ' ' .. off)
		end
	end
end)

it('names its path, also the fallback of a quantized operand', function()
	assert(tensor(rows):layernorm():explain():find 'path float32, kernel simd_')
	assert(tensor(rows):to 'float64':layernorm():explain():find 'path float64')
	local q = tensor(rows):quantize 'int8'
	local y = q:layernorm(tensor(weight))
	assert(y:explain():find 'fallback' and y:eq(q:dequantize():layernorm(tensor(weight))):all():item())
end)

refused('layernorm: wanted x with at least one axis, got a number', function() return tensor(3):layernorm() end)
refused('layernorm: weight: wanted shape (4), the last axis of x, got (3)', function() return tensor(rows):layernorm(tensor.ones(3)) end)
refused('layernorm: bias: wanted shape (4), the last axis of x, got (1, 4)',
	function() return tensor(rows):layernorm(tensor.ones(4), tensor.ones(1, 4)) end)
refused('rmsnorm: weight: wanted floats, got int32', function() return tensor(rows):rmsnorm(tensor.ones{4, dtype = 'int32'}) end)
refused('rmsnorm: eps: wanted 0 or more, got -1', function() return tensor(rows):rmsnorm{eps = -1} end)

it('several last axes are one row', function()
	local t, w, b = tensor.randn(2, 3, 4, 5), tensor.randn(4, 5), tensor.randn(4, 5)
	assert(t:layernorm(w, b, {axes = 2}):view(6, 20):eq(t:view(6, 20):layernorm(w:view(20), b:view(20))):all():item())
	assert(t:rmsnorm(w, {axes = 2}):view(6, 20):eq(t:view(6, 20):rmsnorm(w:view(20))):all():item())
	assert(t:layernorm{axes = 4}:view(120):eq(t:view(120):layernorm()):all():item())
	local z, out = t:quantize 'int8', {dtype = 'int8', scale = 0.05}
	local y = z:layernorm(w, b, {axes = 2, out = out})
	assert(y:origin().path == 'integer')
	assert(y:codes():view(6, 20):eq(z:view(6, 20):layernorm(w:view(20), b:view(20), {out = out}):codes()):all():item())
	refused('layernorm: axes: wanted 1 to 4, got 5', t.layernorm, t, {axes = 5})
	refused('layernorm: weight: wanted shape (4, 5), the last axes of x, got (5)', t.layernorm, t, tensor.zeros(5), {axes = 2})
end)
