-- SPDX-License-Identifier: MIT
-- labels: quick
-- Joining, cutting and repeating of TFLite.
local tflite = dofile 'tests/tools/tflite.lua'
local run, equal = tflite.run, tflite.equal
tensor.seed(3)
local function ints(...) return tensor {dtype = 'int32', ...} end

local function several(n)
	local list = {}
	for i = 1, n do list[i] = {} end
	return {fixed = {2, 3, 4}, out = list}
end
local x = tensor.arange(1, 24):to 'float32':view(2, 3, 4)

it('joins and packs', function()
	assert(equal(run('CONCATENATION', {x, x:narrow(3, 1, 2):contiguous()}, {axis = -1}), tensor.cat({x, x:narrow(3, 1, 2)}, {axis = 3})))
	assert(equal(run('PACK', {x, x}, {count = 2, axis = 1}), tensor.stack({x, x}, {axis = 2})))
	local spec = {dtype = 'int8', scheme = 'asymmetric', scale = 0.2, zero_point = 3}
	local q = x:quantize(spec)
	local y = run('CONCATENATION', {q, q}, {axis = 1}, {out = {type = 'INT8', scale = 0.2, zero = 3}})
	assert(equal(y, tensor.cat({q:codes(), q:codes()}, {axis = 2}), 0))
end)

it('cuts', function()
	local a, b = table.unpack {run('UNPACK', {x}, {count = 2, axis = 0}, several(2))}
	assert(equal(a, x[1]) and equal(b, x[2]))
	local function parts(...) return {...} end
	local list = parts(run('SPLIT', {ints(-1):sum():to 'int32', x}, {count = 2}, {fixed = {1}, out = {{}, {}}}))
	assert(equal(list[2], x:narrow(3, 3, 2)))
	list = parts(run('SPLIT_V', {x, ints(1, -1), ints(2)}, {count = 2}, several(2)))
	assert(equal(list[1], x:narrow(3, 1, 1)) and equal(list[2], x:narrow(3, 2, 3)))
	local ok, message = pcall(run, 'SPLIT_V', {x, ints(1, 9), ints(2)}, {count = 2}, several(2))
	assert(not ok and message:find 'sizes: wanted 4 in all, got more', message)
	assert(equal(run('SLICE', {x, ints(1, 0, 1), ints(1, -1, 2)}, nil, {fixed = {2, 3}}), x:narrow(1, 2, 1):narrow(3, 2, 2)))
	ok, message = pcall(run, 'SLICE', {x, ints(1, 0, 1), ints(2, 3, 2)}, nil, {fixed = {2, 3}})
	assert(not ok and message:find 'axis 0: wanted a part of 2, got 2 from 1 on', message)
end)

it('cuts by strides and masks', function()
	local function cut(first, last, step, o) return run('STRIDED_SLICE', {x, first, last, step}, o or {}, {fixed = {2, 3, 4}}) end
	assert(equal(cut(ints(0, 2, 0), ints(2, 0, 4), ints(1, -1, 2)), tensor.stack({x:narrow(2, 2, 2):flip(2):select(3, 1), x:narrow(2, 2, 2):flip(2):select(3, 3)}, {axis = 3})))
	assert(equal(cut(ints(-1, 0, 0), ints(0, 0, 0), ints(1, 1, 1), {shrink_axis_mask = 1, end_mask = 6, begin_mask = 6}), x[2]))
	assert(equal(cut(ints(0, 0, 1), ints(0, 0, 3), ints(1, 1, 1), {new_axis_mask = 1, ellipsis_mask = 2}), x:narrow(3, 2, 2):contiguous():view(1, 2, 3, 2)))
	assert(equal(cut(ints(0, 1), ints(2, 2), ints(1, 1), {offset = true}), x:narrow(2, 2, 2)))
	assert(cut(ints(0, 2), ints(2, 1), ints(1, 1)):nelem() == 0)
	local ok, message = pcall(cut, ints(0), ints(1), ints(0))
	assert(not ok and message:find 'strides: wanted numbers other than 0, got 0', message)
	ok, message = pcall(cut, ints(0, 0, 0, 0), ints(1, 1, 1, 1), ints(1, 1, 1, 1))
	assert(not ok and message:find 'begin: wanted at most 3 axes, got more', message)
end)

it('repeats, turns and borders', function()
	assert(equal(run('TILE', {x, ints(1, 2, 1)}, nil, {fixed = {2}}), x:tile(1, 2, 1)) and equal(run('REVERSE_V2', {x, ints(-1)}, nil, {fixed = {2}}), x:flip(3)))
	local pads = tensor {{0, 1}, {2, 0}, {0, 0}, dtype = 'int32'}
	assert(equal(run('PAD', {x, pads}, nil, {fixed = {2}}), x:pad(0, 0, 2, 0, 0, 1)))
	assert(equal(run('PADV2', {x, pads, tensor {1.5}}, nil, {fixed = {2, 3}}), x:pad {sizes = {0, 0, 2, 0, 0, 1}, value = 1.5}))
	local q = x:quantize {dtype = 'int8', scale = 0.02, zero_point = 3, scheme = 'asymmetric'}
	local edge = tensor {0.5}:sum():quantize {dtype = 'int8', scale = 0.02, zero_point = 3, scheme = 'asymmetric'}
	local y = run('PADV2', {q, pads, edge}, nil, {fixed = {2, 3}, out = {type = 'INT8', scale = 0.02, zero = 3}})
	assert(y:dtype() == 'int8' and equal(y:codes():to 'float32', q:codes():to 'float32':pad {sizes = {0, 0, 2, 0, 0, 1}, value = 28}, 0))
	local row, both = tensor {{1, 2, 3}}, tensor {{0, 0}, {2, 1}, dtype = 'int32'}
	assert(equal(run('MIRROR_PAD', {row, both}, {mode = 0}, {fixed = {2}}), {{3, 2, 1, 2, 3, 2}}))
	assert(equal(run('MIRROR_PAD', {row, both}, {mode = 1}, {fixed = {2}}), {{2, 1, 1, 2, 3, 3}}))
	local ok, message = pcall(run, 'MIRROR_PAD', {row, tensor {{0, 0}, {3, 1}, dtype = 'int32'}}, {mode = 0}, {fixed = {2}})
	assert(not ok and message:find 'paddings: wanted at most 2, got 3', message)
end)

it('is one op of Quoll', function()
	local function ops_of(...)
		local g = tflite.load((tflite.single(...)))
		local list = {}
		for _, name in ipairs(g.order) do
			local op = g:node(name).op
			if op ~= 'input' and op ~= 'const' then list[#list + 1] = op end
		end
		return table.concat(list, ' ')
	end
	local v = tensor.randn(2, 6)
	assert(ops_of('STRIDED_SLICE', {v, ints(0, 5), ints(2, 0), ints(1, -2)}, {}, {fixed = {2, 3, 4}}) == 'slice')
	assert(ops_of('MIRROR_PAD', {v, tensor {{0, 0}, {2, 1}, dtype = 'int32'}}, {mode = 0}, {fixed = {2}}) == 'pad')
	assert(ops_of('ELU', {v}) == 'elu' and ops_of('PRELU', {v, tensor.randn(6)}, nil, {fixed = {2}}) == 'prelu')
	-- with channels after a convolution
	local image = tensor.randn(1, 4, 5, 3)
	local y = tflite.run('PRELU', {image, tensor {1, 2, 3}:view(1, 1, 3)}, nil, {fixed = {2}})
	assert(tflite.equal(y, tensor.where(image:gt(0), image, image * tensor {1, 2, 3})))
	local pads = tensor {{0, 0}, {1, 2}, {2, 0}, {0, 0}, dtype = 'int32'}
	y = tflite.run('MIRROR_PAD', {image, pads}, {mode = 0}, {fixed = {2}})
	assert(tflite.equal(y, image:pad {sizes = {0, 0, 2, 0, 1, 2}, mode = 'reflect'}))
end)
