-- SPDX-License-Identifier: MIT
-- quant.compare: a row for each spec, whose text quantizes; bad specs cost their own row; few runs where one takes long.
tensor.seed(2)
local x = tensor.randn(16, 64)

it('names specs by texts that x:quantize takes', function()
	local specs = {'int8', {bits=3, axis=1}, 'uint8 symmetric', {dtype='int8', scheme='log', octaves=8}, {dtype='int4', block=32, observer='mse'},
		{dtype='int8', axis=1, scale=tensor.full {16, value=0.05}}, {bits={8, 4, 2, 3, 8, 4, 2, 3, 8, 4, 2, 3, 8, 4, 2, 3}, axis=1}}
	local r = quant.compare(x, specs)
	for i, row in ipairs(r) do
		assert(quant.spec(row.spec) == quant.spec(specs[i]))
		assert(math.abs(x:error(x:quantize(row.spec)).sqnr - row.sqnr) < 1e-9, row.spec)
	end
	assert(x:error(x:quantize(r:best 'sqnr'.spec)).sqnr == r:best 'sqnr'.sqnr and r[1].runs == 5)
end)
it('keeps the other rows when a spec is bad', function()
	local r = quant.compare(x, {'int8', 'log', 'int4', {dtype='int8', axis=7}, {bogus=1}})
	print(#r, r[1].bytes, r[3].spec)  --> 5 1028 int4
	print(r[2].spec, r[2].why)  --> log spec: dtype: wanted one of...the scheme 'log' follows the dtype: 'int8 log'
	print(r[4].spec, r[4].why)  --> item 4 ...axis...7...
	print(r[5].spec, r[5].why)  --> item 5 ...unknown field 'bogus'...
	print(r:best('sqnr').spec, tostring(r):find 'why' ~= nil)  --> int8 true
	print(select(2, pcall(quant.compare, x, {'int9'})))  --> ...compare: ...dtype: wanted a dtype like...
	print(select(2, pcall(quant.compare, x, {})))  --> ...compare: wanted a list of specs, got an empty one
end)
