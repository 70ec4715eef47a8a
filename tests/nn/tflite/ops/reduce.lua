-- SPDX-License-Identifier: MIT
-- labels: quick
-- Reductions of TFLite, of plain values and of images.
local tflite = dofile 'tests/tools/tflite.lua'
local run, equal = tflite.run, tflite.equal
tensor.seed(3)
local function ints(...) return tensor {dtype = 'int32', ...} end

local x = tensor.randn(2, 3, 4)

it('reduces', function()
	for op, name in pairs {SUM = 'sum', MEAN = 'mean', REDUCE_MAX = 'max', REDUCE_MIN = 'min'} do
		for _, keep in ipairs {true, false} do
			assert(equal(run(op, {x, ints(0, -1)}, {keep = keep}, {fixed = {2}}), x[name](x, {axis = {1, 3}, keep = keep})), op)
		end
		assert(equal(run(op, {x, ints()}, {keep = true}, {fixed = {2}}), x))
	end
	local y = run('REDUCE_PROD', {x, ints(1, 0)}, {keep = false}, {fixed = {2}})
	local want = tensor.ones(4)
	for i = 1, 2 do
		for j = 1, 3 do want = want * x[i][j] end
	end
	assert(equal(y, want))
	local total = run('SUM', {ints(1, 2, 3), ints(0)}, {}, {fixed = {2}, out = {type = 'INT32'}})
	assert(total:dtype() == 'int32' and total:item() == 6)
	assert(equal(run('REDUCE_ANY', {x:gt(0), ints(2)}, {}, {fixed = {2}, out = {type = 'BOOL'}}):to 'float32', x:gt(0):any(3):to 'float32'))
	local ok, message = pcall(run, 'SUM', {x, ints(3)}, {}, {fixed = {2}})
	assert(not ok and message:find 'axis: wanted one of 3 axes, got 3', message)
end)

-- A reduction after an op on images, which has the channels second.
it('reduces images', function()
	local a = tensor.randn(2, 4, 6, 3)
	local pooled = a:permute(1, 4, 2, 3):maxpool2d(2):permute(1, 3, 4, 2)
	for _, keep in ipairs {true, false} do
		for _, axes in ipairs {{1, 2}, {3}, {1}, {0, 1, 2, 3}} do
			local m = tflite.single('MAX_POOL_2D', {a}, {padding = 1, stride_h = 2, stride_w = 2, filter_h = 2, filter_w = 2})
			m.tensors[3] = tflite.of(ints(table.unpack(axes)), 'axes', true)
			m.tensors[4] = {name = 'z', shape = {}, type = 'FLOAT32'}
			m.ops[2], m.outputs = {'MEAN', {2, 3}, {4}, {keep = keep}}, {4}
			local own = {}
			for i, axis in ipairs(axes) do own[i] = axis + 1 end
			assert(equal(tflite.load(m):run(a), pooled:mean {axis = own, keep = keep}))
		end
	end
end)

it('reduces codes', function()
	local q = x:quantize {dtype = 'int8', scheme = 'asymmetric', scale = 0.05, zero_point = 3}
	local out = {fixed = {2}, out = {type = 'INT8', scale = 0.05, zero = 3}}
	assert(equal(run('REDUCE_MAX', {q, ints(2)}, {}, out), q:codes():max(3), 0))
	local mean = run('MEAN', {q, ints(2)}, {}, out)
	assert((mean:dequantize() - q:dequantize():mean(3)):abs():max():item() <= 0.0251)
end)
