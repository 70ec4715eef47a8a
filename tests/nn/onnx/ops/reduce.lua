-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

local x = tensor {{1, -2}, {3, 4}}

it('reduces along axes of attributes and inputs', function()
	assert(equal(run('ReduceSum', {x}, {axes = {1}}, {opset = 11}), {{-1}, {7}}) and equal(run('ReduceMean', {x}, {keepdims = 0}), 1.5))
	assert(equal(run('ReduceSum', {x, tensor {0, dtype = 'int64'}}, {keepdims = 0}, {fixed = {2}}), {4, 2}))
	assert(equal(run('ReduceMax', {x}, {axes = {-1}, keepdims = 0}), {1, 4}) and equal(run('ReduceMin', {x}, {axes = {0}}), {{1, -2}}))
	assert(equal(run('ReduceL1', {x}, {keepdims = 0}), 10) and equal(run('ReduceL2', {x}, {axes = {1}, keepdims = 0}), {math.sqrt(5), 5}))
	assert(equal(run('ReduceSumSquare', {x}, {axes = {0}, keepdims = 0}), {10, 20}) and equal(run('ReduceLogSum', {x:abs()}, {keepdims = 0}), math.log(10)))
	assert(equal(run('ReduceSum', {x}, {noop_with_empty_axes = 1}), x) and equal(run('ReduceSumSquare', {x}, {noop_with_empty_axes = 1}), {{1, 4}, {9, 16}}))
	local ints = run('ReduceSum', {tensor {1, 2, dtype = 'int32'}})
	assert(ints:dtype() == 'int32' and equal(ints, {3}))
	assert(equal(run('CumSum', {x, tensor {1, dtype = 'int64'}:sum()}, nil, {fixed = {2}}), {{1, -1}, {3, 7}}))
end)

it('gives the ends of the numbers for no elements', function()
	local none = tensor.empty {2, 0}
	assert(run('ReduceMax', {none}, {axes = {1}, keepdims = 0}):totable()[1] == -math.huge and run('ReduceMin', {none}, {axes = {1}}):totable()[2][1] == math.huge)
	assert(run('ReduceMax', {tensor {true, false}}, {axes = {0}, keepdims = 0}, {opset = 20}):item() == true)
end)

it('multiplies, and adds exponentials', function()
	local y = tensor {{1, 2, 3}, {4, 5, 6}}
	assert(equal(run('ReduceProd', {y}, {axes = {1}, keepdims = 0}), {6, 120}) and equal(run('ReduceProd', {y}), {{720}}))
	local list = {}
	for i, row in ipairs(y:totable()) do list[i] = math.log(math.exp(row[1]) + math.exp(row[2]) + math.exp(row[3])) end
	assert(equal(run('ReduceLogSumExp', {y}, {axes = {1}, keepdims = 0}), list))
	local axis = tensor {1, dtype = 'int64'}:sum()
	local function running(op, o) return run(op, {y, axis}, o, {fixed = {2}, opset = op == 'CumProd' and 26 or 17}) end
	assert(equal(running('CumSum', {exclusive = 1}), {{0, 1, 3}, {0, 4, 9}}) and equal(running('CumSum', {reverse = 1}), {{6, 5, 3}, {15, 11, 6}}))
	assert(equal(running('CumSum', {reverse = 1, exclusive = 1}), {{5, 3, 0}, {11, 6, 0}}) and equal(running('CumProd'), {{1, 2, 6}, {4, 20, 120}}))
	assert(equal(running('CumProd', {exclusive = 1}), {{1, 1, 2}, {1, 4, 20}}) and equal(running('CumProd', {reverse = 1}), {{6, 6, 3}, {120, 30, 6}}))
end)
