-- SPDX-License-Identifier: MIT
-- rounding='stochastic': the mean of the codes is the value; the bits depend on the seed and the position only.
it('integers: between the two neighbours, with the right frequency', function()
	tensor.seed(3)
	local n = 100000
	for _, value in ipairs {0.25, -1.75, 2.9, -0.1} do
		local q = (tensor.ones(n) * value):quantize 'int8 scale=1 rounding=stochastic'
		local codes = q:codes():to 'float64'
		local low, high, mean = codes:min():item(), codes:max():item(), codes:mean():item()
		assert(low == math.floor(value) and high == math.floor(value) + 1, value)
		local p = value - math.floor(value)
		assert(math.abs(mean - value) < 5 * math.sqrt(p * (1 - p) / n), ('%g: %g'):format(value, mean))
	end
end)

it('codes stay codes, ends saturate, NaN is the zero point', function()
	local x = tensor{-300, -127, -5, 0, 7, 126, 300, 0 / 0}
	for _ = 1, 50 do
		local c = x:quantize 'int8 scale=1 rounding=stochastic':codes():totable()
		assert(c[1] == -128 and c[2] == -127 and c[3] == -5 and c[4] == 0 and c[5] == 7 and c[6] == 126 and c[7] == 127 and c[8] == 0)
	end
end)

it('grids: unevenly spaced neighbours', function()
	tensor.seed(5)
	local n = 100000
	for _, value in ipairs {2.25, -3.5, 0.1, 5.5} do
		local y = (tensor.ones(n) * value):quantize{dtype = 'fp4_e2m1', scale = 1, rounding = 'stochastic'}:dequantize():to 'float64'
		assert(math.abs(y:mean():item() - value) < 0.03 and y:max():item() > value and y:min():item() < value, value)
	end
	local x = tensor.randn(64, 64)
	for _, f in ipairs {'nf4', 'mxfp4', 'nvfp4', 'fp8_e4m3/1', 'int4:32', 'int4:32+min', 'uint8', 'int16', 'int3:32'} do
		local spec = f .. ' rounding=stochastic'
		local q, mean = x:quantize(spec):check(), tensor.zeros(64, 64)
		for _ = 1, 64 do mean = mean + x:quantize(spec):dequantize() / 64 end
		assert(x:error(mean).rmse < 0.6 * x:error(q).rmse, ('%s: %g of %g'):format(f, x:error(mean).rmse, x:error(q).rmse))
		assert(quant.spec(tostring(quant.spec(spec))) == quant.spec(spec) and quant.spec(spec).rounding == 'stochastic', spec)
	end
end)

it('the seed and the position decide, not the threads', function()
	local x = tensor.randn(300, 700)
	local function codes(threads)
		tensor.threads(threads)
		tensor.seed(11)
		return x:quantize 'int4:32 rounding=stochastic':codes()
	end
	local threads = tensor.threads()
	local one, two = codes(1), codes(2)
	assert(one:ne(two):sum():item() == 0)
	tensor.seed(12)
	assert(x:quantize 'int4:32 rounding=stochastic':codes():ne(one):sum():item() > 1000)
	tensor.threads(threads)
end)

it('results of ops are rounded as floats: integer paths do not take it', function()
	local a, w = tensor.randn(4, 32):quantize 'int8', tensor.randn(8, 32):quantize 'int8/1'
	for _, call in ipairs {
		function() return a:linear(w, {out = 'int8 scale=0.1 rounding=stochastic'}) end,
		function() return a:add(a, {out = 'int8 scale=0.1 rounding=stochastic'}) end,
		function() return a:requantize 'int8 scale=0.1 rounding=stochastic' end,
		function() return a:exp{out = 'int8 scale=0.1 rounding=stochastic'} end,
	} do
		local y = call()
		assert(y:quantized() and y:codes():ne(call():codes()):sum():item() > 0)
	end
	assert(select(2, pcall(quant.spec, 'int8 log rounding=stochastic')):find 'got log')
	assert(select(2, pcall(quant.spec, 'binary rounding=stochastic')):find 'got binary')
end)

it('fake rounds the same way', function()
	local x = tensor.randn(1000)
	tensor.seed(4)
	local y = x:fake 'int8 scale=0.1 rounding=stochastic'
	tensor.seed(4)
	assert(y:error(x:quantize 'int8 scale=0.1 rounding=stochastic':dequantize()).max == 0)
end)
