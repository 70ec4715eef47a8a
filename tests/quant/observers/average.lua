-- SPDX-License-Identifier: MIT
-- The observer average: the closed form of three batches, the first of which sets the ends.
local batches = {tensor{-1, 2}, tensor{-3, 1}, tensor{-2, 8}}
local o = quant.observer{dtype = 'int8', observer = 'average', momentum = 0.25}
for _, x in ipairs(batches) do o:update(x) end
-- lo: -1, then -1 + (-3 + 1) / 4 = -1.5, then -1.5 + (-2 + 1.5) / 4; hi: 2, 1.75, 1.75 + 6.25 / 4
local lo, hi = o:range()
assert(math.abs(lo + 1.625) < 1e-6 and math.abs(hi - 3.3125) < 1e-6)

local default = quant.observer 'int8@average'
for _, x in ipairs(batches) do default:update(x) end
lo, hi = default:range()
assert(math.abs(lo - (-1.02 + 0.01 * (-2 + 1.02))) < 1e-6 and math.abs(hi - (1.99 + 0.01 * (8 - 1.99))) < 1e-6)

it('merges by the number of batches', function()
	local a, b = quant.observer 'int8@average', quant.observer 'int8@average'
	a:update(tensor{0, 1}):update(tensor{0, 1})
	b:update(tensor{-3, 4})
	print(a:merge(b):range())  --> -1.0 2.0
end)
it('of one tensor is minmax', function()
	local x = tensor{-1, 0.5, 7}
	assert(x:quantize('uint8@average'):qparams().scale:item() == x:quantize('uint8'):qparams().scale:item())
end)
it('does not take empty or non-finite batches for data', function()
	local one = quant.observer 'int8@average'
	one:update(tensor{0 / 0}):update(tensor.zeros(0)):update(tensor{-4, 5})
	print(one:range())  --> -4.0 5.0
end)
print(pcall(quant.spec, {dtype = 'int8', observer = 'average', momentum = 0}))  --> false ...momentum: wanted a number above 0...
print(pcall(quant.spec, {dtype = 'int8', momentum = 0.5}))  --> false ...together with the observer average, got it with minmax...
print(pcall(quant.spec, {dtype = 'int8', observer = 'average', momentun = 0.5}))  --> false ...did you mean 'momentum'?...
