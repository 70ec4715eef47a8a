-- SPDX-License-Identifier: MIT
-- labels: quick noproducts
-- The observer mse: as good as an exhaustive search (4000 thresholds by numpy), never worse than another observer.
local list = {}
for i = 0, 9999 do list[i + 1] = (2 * ((i * 7919 % 10007) / 10007) - 1) ^ 5 * 10 end
local x = tensor(list)

it('finds the least squared error', function()
	local wanted = {int8 = 3.915201, int4 = 851.313612, uint8 = 3.900391, uint4 = 818.238825} -- sums, by the search
	for s, least in pairs(wanted) do
		local error = x:metrics(x:quantize(s .. '@mse')).mse * 10000
		assert(error < 1.001 * least, s .. ' ' .. error)
	end
	for bits, least in pairs {[2] = 15108.395189, [3] = 3408.480419} do
		local error = x:metrics(x:quantize{bits = bits, observer = 'mse'}).mse * 10000
		assert(error < 1.001 * least, bits .. ' ' .. error)
	end
end)

local function samples()
	tensor.seed(9)
	local heavy = tensor.randn(4, 5000)
	heavy[1][1] = 60
	return {normal = tensor.randn(4, 5000), relu = tensor.randn(4, 5000):relu(), heavy = heavy, cubed = heavy * heavy * heavy,
		uniform = tensor.rand(4, 5000) * 3 - 1, shifted = tensor.randn(4, 5000) + 5, zeros = tensor.zeros(4, 5000),
		one = tensor.ones(4, 5000) * -3}
end

it('is never worse than 1.001 times another, of one tensor or of a stream', function()
	for name, t in pairs(samples()) do
		for _, s in ipairs {'int8', 'uint8', 'int4', 'uint4', 'int8/1', 'int4:50'} do
			local mse = t:metrics(t:quantize(s .. '@mse')).mse
			for _, other in ipairs {'minmax', 'average', 'percentile', 'entropy'} do
				local error = t:metrics(t:quantize(s .. '@' .. other)).mse
				assert(mse <= 1.001 * error + 1e-18, ('%s %s: %g, %s %g'):format(name, s, mse, other, error))
			end
		end
		for _, s in ipairs {'int8', 'uint8', 'uint4'} do
			local error = {}
			for _, kind in ipairs {'mse', 'minmax', 'average', 'percentile', 'entropy', 'adaptive'} do
				local o = quant.observer(s .. '@' .. kind)
				for i = 1, 4 do o:update(t[i]) end
				local p = o:params()
				error[kind] = t:metrics(t:quantize{dtype = s, scale = p.scale, zero_point = p.zero_point}).mse
			end
			for kind, e in pairs(error) do
				assert(error.mse <= 1.001 * e + 1e-18, ('%s %s stream: %g, %s %g'):format(name, s, error.mse, kind, e))
			end
			assert(error.adaptive <= error.mse * 10 ^ 0.001)
		end
	end
end)
it('saves the bulk from outliers', function()
	tensor.seed(4)
	local bulk = tensor.randn(20000)
	local all = tensor.cat({bulk, tensor.full{2, value = 25}}, {axis = 1})
	local sqnr = {}
	for _, name in ipairs {'minmax', 'percentile', 'entropy', 'mse'} do
		local p = name == 'percentile' and 99.9 or nil
		sqnr[name] = bulk:metrics(all:quantize{dtype = 'int4', observer = name, p = p}:dequantize():narrow(1, 1, 20000)).sqnr
	end
	for _, name in ipairs {'percentile', 'entropy', 'mse'} do assert(sqnr[name] >= sqnr.minmax + 3, name .. ' ' .. sqnr[name]) end
end)
it('works with codes that are not affine', function()
	tensor.seed(3)
	local t = tensor.randn(5000)
	t[1] = 100
	local s = {dtype = 'int4', scheme = 'log', observer = 'mse'}
	local plain = {dtype = 'int4', scheme = 'log'}
	assert(t:metrics(t:quantize(s)).mse <= 1.001 * t:metrics(t:quantize(plain)).mse)
	assert(t:quantize('binary@mse'):qparams().scale:item() == t:quantize('binary'):qparams().scale:item())
end)
