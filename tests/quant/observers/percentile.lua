-- SPDX-License-Identifier: MIT
-- The observer percentile against numpy.percentile(…, method='inverted_cdf') of the same numbers.
local list = {}
for i = 0, 9999 do list[i + 1] = (2 * ((i * 7919 % 10007) / 10007) - 1) ^ 5 * 10 end
local x = tensor(list)

local function near(a, b) return math.abs(a - b) <= 0.002 * math.abs(b) end

it('cuts |x| for symmetric codes', function()
	for p, wanted in pairs {[95] = 7.739234, [99] = 9.510237, [99.9] = 9.950134} do
		local lo, hi = quant.observer{dtype = 'int8', observer = 'percentile', p = p}:update(x):range()
		assert(near(hi, wanted) and lo == -hi, p .. ' ' .. lo .. ' ' .. hi)
	end
end)
it('cuts both ends for asymmetric codes', function()
	for p, wanted in pairs {[95] = {-7.747378, 7.7310967}, [99] = {-9.51984, 9.500641}, [99.9] = {-9.960092, 9.940186}} do
		local lo, hi = quant.observer{dtype = 'uint8', observer = 'percentile', p = p}:update(x):range()
		assert(near(lo, wanted[1]) and near(hi, wanted[2]), p .. ' ' .. lo .. ' ' .. hi)
	end
end)
it('keeps everything at 100, and never goes beyond the values', function()
	local lo, hi = quant.observer{dtype = 'uint8', observer = 'percentile', p = 100}:update(x):range()
	assert(lo == x:min():item() and hi == x:max():item())
	lo, hi = quant.observer 'int8@percentile':update(tensor{1, 2, 3}):range()
	assert(lo == 1 and hi == 3)
end)
it('does not depend on order or cuts', function()
	local whole, parts = quant.observer 'uint8@percentile':update(x), quant.observer 'uint8@percentile'
	for i = 10, 1, -1 do parts:update(x:narrow(1, (i - 1) * 1000 + 1, 1000)) end
	local a, b = {whole:range()}, {parts:range()}
	assert(a[1] == b[1] and a[2] == b[2])
end)
it('wants a percentage above 50, at most 100', function()
	for _, p in ipairs {50, 0, -1, 100.1, 0 / 0} do
		local ok, message = pcall(quant.spec, {dtype = 'int8', observer = 'percentile', p = p})
		assert(not ok and message:find('p: wanted a percentage above 50, at most 100', 1, true), message)
	end
end)
print(pcall(quant.spec, {dtype = 'int8', observer = 'mse', p = 99}))  --> false ...p: wanted together with the observer percentile...
print(quant.spec{dtype = 'int8', observer = 'percentile', p = 99.9})  --> int8@percentile p=99.9
print(quant.spec 'int8@percentile'.p, quant.spec 'int8'.p)  --> 99.99 nil
