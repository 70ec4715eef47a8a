-- SPDX-License-Identifier: MIT
-- nn.Embedding as a module: rows, gradients, integer rows.
tensor.seed(8)
local m = nn.Embedding(10, 4)
local ids = tensor{{1, 10, 3}, {3, 3, 1}, dtype='int32'}
print(m(ids):size())  --> 2 3 4
assert(m(ids):detach()[{2, 1}]:error(m.weight:detach()[3]).max == 0)
m(ids):sum():backward()
print(m.weight:grad():select(2, 1))  --> float32(10)  2  0  3  0  0  0  0  0  0  1

it('quantized: only the rows that are needed are decoded', function()
	local q, coverage = nn.Sequential {m}:quantize {weight='int8/1'}
	assert(coverage.mode == 'weight_only' and coverage.kind == 'Embedding')
	quant.log 'reset'
	assert(q(ids):error(m.weight:detach():quantize('int8/1'):dequantize():embedding(ids)).max == 0)
	assert(#quant.log():where {path='fallback'} == 0)
end)

local ok, message = pcall(m, tensor{11, dtype='int32'})
assert(not ok and message:find('embedding: ids: wanted 1 to 10', 1, true), message)
