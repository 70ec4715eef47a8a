-- SPDX-License-Identifier: MIT
-- labels: quick
-- Conditions of TFLite, and elements by their positions.
local tflite = dofile 'tests/tools/tflite.lua'
local run, equal = tflite.run, tflite.equal
tensor.seed(3)
local function ints(...) return tensor {dtype = 'int32', ...} end

it('selects', function()
	local c, a, b = tensor {1, -1, 2}:gt(0), tensor.randn(2, 3), tensor.randn(2, 3)
	assert(equal(run('SELECT_V2', {c, a, b}), tensor.where(c, a, b)))
	local rows = tensor {1, -1}:gt(0)
	assert(equal(run('SELECT', {rows, a, b}), tensor.where(rows:view(2, 1), a, b)))
end)

it('gathers, with positions that are known or computed', function()
	local x = tensor.arange(1, 24):to 'float32':view(2, 3, 4)
	for _, fixed in ipairs {{2}, {}} do
		local y = run('GATHER', {x, ints(2, 0, -1, 1)}, {axis = 1}, {fixed = fixed})
		assert(equal(y, tensor.cat({x:narrow(2, 3, 1), x:narrow(2, 1, 1), x:narrow(2, 3, 1), x:narrow(2, 2, 1)}, {axis = 2})))
		y = run('GATHER_ND', {x, tensor {{1, 2}, {0, 1}, dtype = 'int32'}}, nil, {fixed = fixed})
		assert(equal(y, tensor.stack {x[2][3], x[1][2]}))
		assert(equal(run('GATHER', {x, tensor {{1}, {0}, dtype = 'int32'}}, {axis = 0}, {fixed = fixed}), tensor.stack {x:narrow(1, 2, 1), x:narrow(1, 1, 1)}))
	end
	assert(equal(run('EMBEDDING_LOOKUP', {ints(1, 0), x:view(6, 4)}, nil, {fixed = {2}}), x:view(6, 4):narrow(1, 1, 2):flip(1)))
	local ok, message = pcall(run, 'GATHER', {x, ints(0)}, {batch = 1})
	assert(not ok and message:find 'batch_dims: wanted 0 to 0, got 1', message)
end)

it('gathers with batches, also of codes', function()
	local x, ids = tensor.randn(2, 3, 4, 5), tensor {{{0, 1}, {2, 3}, {1, 1}}, {{0, 0}, {2, 1}, {3, 3}}, dtype = 'int32'}
	local q = x:quantize {dtype = 'int8', scale = 0.02, zero_point = 3, scheme = 'asymmetric'}
	for _, fixed in ipairs {{}, {2}} do
		local one, two = {}, {}
		for a = 1, 2 do
			local list = ids[a]:contiguous():view(-1):totable()
			for i, at in ipairs(list) do list[i] = x[a]:narrow(2, at + 1, 1) end
			one[a] = tensor.cat(list, {axis = 2}):view(3, 3, 2, 5)
			for b = 1, 3 do
				local rows = {}
				for k = 1, 2 do rows[k] = x[a][b]:narrow(2, ids[a][b][k]:item() + 1, 1) end
				two[#two + 1] = tensor.cat(rows, {axis = 2})
			end
		end
		assert(equal(run('GATHER', {x, ids}, {axis = 2, batch = 1}, {fixed = fixed}), tensor.stack(one)))
		assert(equal(run('GATHER', {x, ids}, {axis = -1, batch = 2}, {fixed = fixed}), tensor.stack(two):view(2, 3, 4, 2)))
		assert(equal(run('GATHER', {x, ids}, {axis = 3, batch = -1}, {fixed = fixed}), tensor.stack(two):view(2, 3, 4, 2)))
		local y = run('GATHER', {q, ids}, {axis = 2, batch = 1}, {fixed = fixed, out = {type = 'INT8', scale = 0.02, zero = 3}})
		assert(y:quantized() and equal(y:dequantize(), tensor.stack(one):quantize {dtype = 'int8', scale = 0.02, zero_point = 3, scheme = 'asymmetric'}:dequantize(), 0))
	end
end)

it('finds the largest', function()
	local x = tensor {{1, 5, 2}, {7, 3, 7}}
	local y = run('ARG_MAX', {x, ints(1)}, {type = 2}, {fixed = {2}, out = {type = 'INT32'}})
	assert(y:dtype() == 'int32' and equal(y, {1, 0}) and equal(run('ARG_MIN', {x, ints(-1)}, {type = 2}, {fixed = {2}, out = {type = 'INT32'}}), {0, 1}))
end)
