-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Embedding of a quantized table: the rows that are asked for, decoded alone, equal to those of the decoded table.
tensor.seed(1)
local table_, ids = tensor.randn(50, 70), tensor.randint {3, 5, low = 1, high = 50, dtype = 'int32'}

for _, spec in ipairs {'int8', 'int8/1', 'int8/2', 'uint8/1', 'int16/1', 'uint16', 'int4/1', 'uint4', 'int4:32', 'uint4:32', 'binary/1',
	{dtype = 'int8', axis = 1, block = 16}, {dtype = 'uint4', axis = 1, block = 7}, {dtype = 'int8', scheme = 'log'}, 'mxfp4', 'nvfp4', 'nf4', 'nf4:16:3', 'fp6_e3m2/1',
	'uint4:32+min', 'int5:16', {dtype = 'nvfp4', axis = 1}, {dtype = 'nf4', axis = 1, block = 8}, {dtype = 'uint3', axis = 1, block = 8, scheme = 'minimum'}} do
	it('is bit-equal for ' .. tostring(quant.spec(spec)), function()
		local q = table_:quantize(spec)
		quant.log(true)
		quant.fallback 'error'
		local y = q:embedding(ids)
		quant.fallback 'silent'
		assert(y:size() == 3 and y:dtype() == 'float32')
		assert(y:explain():find('path ' .. q:dtype() .. ', kernel rows', 1, true), y:explain())
		for _, row in ipairs(quant.log()) do assert(row.op ~= 'dequantize' and row.path ~= 'fallback') end
		assert(y:eq(q:dequantize():embedding(ids)):all():item())
	end)
end

it('views of a table', function()
	local q = table_:quantize 'int8/1'
	local part = q[{ {11, 20} }]
	local few = tensor{10, 1, dtype = 'int64'}
	assert(part:embedding(few):eq(part:dequantize():embedding(few)):all():item())
	local turned = table_:quantize 'int4/2':t()
	assert(turned:embedding(few):eq(turned:dequantize():embedding(few)):all():item())
	print(q:embedding(tensor.zeros{0, dtype = 'int64'}):size())  --> 0 70
end)

it('is listed', function()
	assert(tostring(quant.ops()):find 'embedding')
end)

it('takes memory for the rows only', function()
	local q = tensor.randn(4000, 256):quantize 'int4:32'
	collectgarbage()
	collectgarbage()
	tensor.memory 'reset'
	local before = tensor.memory().now
	local y = q:embedding(tensor{7, 4000, dtype = 'int64'})
	assert(tensor.memory().peak - before < 100000, tensor.memory().peak - before)
	assert(y:size() == 2)
end)
it('out= gives the codes of a quantize behind it', function()
	local table_f = tensor.randn(10, 8)
	local numbers = tensor{{1, 5, 10}, {2, 2, 3}, dtype='int32'}
	for _, spec in ipairs {'int8', 'int8/1', 'uint8/1', 'int4/1', 'int4:4', 'int8/2'} do
		local t = table_f:quantize(spec)
		for _, out in ipairs {{dtype='int8', scale=0.02}, {dtype='uint8', scale=0.03, zero_point=99}, 'int16'} do
			local y = t:embedding(numbers, {out=out})
			local want = t:dequantize():embedding(numbers):quantize(out)
			assert(y:origin().kernel == 'rows' and y:origin().path ~= 'fallback')
			assert(y:codes():to 'int64':eq(want:codes():to 'int64'):all():item(), spec)
		end
	end
	-- the params that the table has already: its codes as they are
	local t = table_f:quantize 'int8'
	local same = t:embedding(numbers, {out={dtype='int8', scale=t:qparams().scale:item()}})
	print(same:codes():view(6, 8)[3]:eq(t:codes()[10]):all():item())  --> true
	print(table_f:embedding(numbers, {out='int8'}):dtype())  --> int8
end)
