-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

local x = tensor {{1, 2, 3}, {4, 5, 6}}

it('picks by condition and position', function()
	assert(equal(run('Where', {tensor {true, false, true}, x, x * -1}), {{1, -2, 3}, {4, -5, 6}}))
	assert(equal(run('Gather', {x, tensor {2, 0, -1, dtype = 'int64'}}, {axis = 1}, {fixed = {2}}), {{3, 1, 3}, {6, 4, 6}}))
	assert(equal(run('Gather', {x, tensor {1, dtype = 'int64'}:sum()}, nil, {fixed = {2}}), {4, 5, 6}))
	assert(equal(run('Gather', {x, tensor {{0, 1}, {1, 1}, dtype = 'int32'}}, nil, {fixed = {1}}), {{{1, 2, 3}, {4, 5, 6}}, {{4, 5, 6}, {4, 5, 6}}}))
	assert(equal(run('GatherElements', {x, tensor {{0, -1}, {2, 0}, dtype = 'int64'}}, {axis = 1}), {{1, 3}, {6, 4}}))
	assert(equal(run('Trilu', {x}, {upper = 0}), {{1, 0, 0}, {4, 5, 0}}) and equal(run('Trilu', {x, tensor {1, dtype = 'int64'}:sum()}, nil, {fixed = {2}}), {{0, 2, 3}, {0, 0, 6}}))
end)

it('counts positions from 0', function()
	local y = tensor {{3, 1, 3}, {0, 2, 0}}
	assert(equal(run('ArgMax', {y}, {axis = 1}), {{0}, {1}}) and equal(run('ArgMax', {y}, {axis = 1, keepdims = 0, select_last_index = 1}), {2, 1}))
	assert(equal(run('ArgMin', {y}, {axis = 0, keepdims = 0}), {1, 0, 1}))
	local values, places = run('TopK', {y, tensor {2, dtype = 'int64'}}, nil, {fixed = {2}, outputs = 2})
	assert(equal(values, {{3, 3}, {2, 0}}) and equal(places, {{0, 2}, {1, 0}}))
end)

it('makes vectors of positions', function()
	local ids, depth, values = tensor {{1, -1}, {5, 0}, dtype = 'int64'}, tensor {3, dtype = 'int64'}:sum(), tensor {2, 7}
	assert(equal(run('OneHot', {ids, depth, values}, nil, {fixed = {2, 3}}), {{{2, 7, 2}, {2, 2, 7}}, {{2, 2, 2}, {7, 2, 2}}}))
	assert(equal(run('OneHot', {tensor {1.0, 2.0}, depth, values}, {axis = 0}, {fixed = {2}}), {{2, 2}, {7, 2}, {2, 7}}))
	local ok, message = pcall(run, 'OneHot', {ids, tensor {0, dtype = 'int64'}, values}, nil, {fixed = {2}})
	assert(not ok and message:find 'depth: wanted 1 or more, got 0', message)
	local y = tensor {{1, 3, 3}, {0, -1, -2}}
	assert(equal(run('Hardmax', {y}), {{0, 1, 0}, {1, 0, 0}}) and equal(run('Hardmax', {y}, {axis = 0}), {{1, 1, 1}, {0, 0, 0}}))
	assert(equal(run('Hardmax', {y:view(1, 2, 3)}, {axis = 1}, {opset = 11}), {{{0, 1, 0}, {0, 0, 0}}}))
end)

it('takes the branch of an If whose condition is known, and refuses others', function()
	local function branch(op) return onnx.graph {nodes = {onnx.node(op, {'x'}, {'r'})}, outputs = {'r'}} end
	local function model(o, rank)
		local nodes = {onnx.node('Shape', {'x'}, {'s'}), onnx.node('Size', {'s'}, {'n'}), onnx.node('Equal', {'n', 'two'}, {'c'}),
			onnx.node('If', {o or 'c'}, {'y'}, {then_branch = branch 'Neg', else_branch = branch 'Abs'}, {name = 'if'})}
		return {nodes = nodes, inputs = {{'x', 'float32', {2, 3}}, {'u', 'bool', {1}}}, outputs = {'y'}, initializers = {two = tensor {rank or 2, dtype = 'int64'}:sum()}}
	end
	local g = onnx.load(model())
	assert(equal(g:run {x, tensor {true}}, x * -1))
	assert(equal(onnx.load(model(nil, 3)):run {x * -1, tensor {true}}, x))
	local ok, message = pcall(onnx.load, model 'u')
	assert(not ok and message:find "node 'if' %(If%): cond: wanted numbers that do not depend on the values of the inputs, got others", message)
end)

-- What a branch computes from the inputs is recorded: for each batch, also where constants are computed beside it.
it('records the nodes of a branch', function()
	local yes = onnx.graph {nodes = {onnx.node('Constant', {}, {'k'}, {value = tensor {2}}), onnx.node('Neg', {'k'}, {'l'}), onnx.node('Mul', {'x', 'l'}, {'r'})}, outputs = {'r'}}
	local no = onnx.graph {nodes = {onnx.node('Abs', {'x'}, {'r'})}, outputs = {'r'}}
	for _, condition in ipairs {true, false} do
		local g = onnx.load {nodes = {onnx.node('If', {'c'}, {'y'}, {then_branch = yes, else_branch = no})}, inputs = {{'x', 'float32', {'n', 3}}}, outputs = {'y'},
			initializers = {c = tensor {condition}}}
		assert(equal(g:run(x), condition and x * -2 or x) and equal(g:run(x[1]:unsqueeze(1) * -1), condition and {{2, 4, 6}} or {{1, 2, 3}}))
	end
end)
