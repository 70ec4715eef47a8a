-- SPDX-License-Identifier: MIT
-- add and mul with out= stay in integers: M rounded to float32, one rounding of the sum or product.
local function f32(v) return string.unpack('f', string.pack('f', v)) end
local function rint(v)
	local r = math.floor(v + 0.5)
	return r - v == 0.5 and r % 2 == 1 and r - 1 or r
end
local a, b = tensor{{1, -2, 3}, {0.5, 0.25, -4}}, tensor{{2, 2, -1}, {1, -3, 0.125}}
local out = {dtype = 'int8', scale = 0.0625}

describe('add', function()
	it('follows the rule', function()
		local qa, qb = a:quantize 'int8', b:quantize 'uint8'
		local q = qa:add(qb, {out = out})
		assert(q:origin().path == 'integer' and q:origin().kernel == 'add_int')
		local ca, cb, z = qa:codes():totable(), qb:codes():totable(), qb:qparams().zero_point:item()
		local ma, mb = f32(qa:qparams().scale:item() / 0.0625), f32(qb:qparams().scale:item() / 0.0625)
		for i = 1, 2 do
			for j = 1, 3 do
				local v = f32(f32(ca[i][j] * ma) + f32((cb[i][j] - z) * mb))
				assert(q:codes():totable()[i][j] == math.max(-128, math.min(127, rint(v))))
			end
		end
	end)
	it('takes any mixture of granularities and broadcasts', function()
		local q = a:quantize('int8/1'):add(b[1]:clone():quantize 'uint4', {out = 'int16'})
		assert(q:origin().path == 'integer')
		local real = a:quantize('int8/1'):dequantize() + b[1]:clone():quantize('uint4'):dequantize()
		assert(real:metrics(q).max <= q:qparams().scale:item())
	end)
	it('without out= is float32 through the fallback', function()
		local y = a:quantize 'int8' + b:quantize 'int8'
		assert(y:dtype() == 'float32' and y:origin().path == 'fallback')
	end)
end)

describe('mul', function()
	it('follows the rule', function()
		local qa, qb = a:quantize 'int8/1', b:quantize 'uint8'
		local q = qa:mul(qb, {out = out})
		assert(q:origin().path == 'integer' and q:origin().kernel == 'mul_int')
		local ca, cb, z = qa:codes():totable(), qb:codes():totable(), qb:qparams().zero_point:item()
		for i = 1, 2 do
			local m = f32(qa:qparams().scale:totable()[i] * qb:qparams().scale:item() / 0.0625)
			for j = 1, 3 do
				local v = f32(ca[i][j] * (cb[i][j] - z) * m)
				assert(q:codes():totable()[i][j] == math.max(-128, math.min(127, rint(v))))
			end
		end
	end)
	it('finds its own range', function()
		local q = a:quantize('int8'):mul(b:quantize 'int8', {out = 'int8'})
		local real = a:quantize('int8'):dequantize() * b:quantize('int8'):dequantize()
		assert(real:metrics(q).max <= q:qparams().scale:item() * 0.5001)
	end)
end)

it('sums of 8-bit codes in vectors: the bits of the general way', function()
	for _, pair in ipairs {{'uint8', 'uint8'}, {'int8', 'uint8'}, {'int8', 'int8'}, {'uint8', {dtype='int8', scheme='asymmetric'}}} do
		for _, out in ipairs {{dtype='uint8', scale=0.03, zero_point=120}, {dtype='int8', scale=0.011}} do
			local a, b = tensor.randn(40, 77):quantize(pair[1]), (tensor.randn(40, 77) * 2):quantize(pair[2])
			local fast = a:add(b, {out=out})
			local slow = a:t():add(b:t(), {out=out}):t() -- not dense: element by element
			assert(fast:codes():ne(slow:codes()):any():item() == false)
		end
	end
end)
-- a difference, and one of tensors that broadcast, under scales per axis
do
	local x, y = tensor.randn(6, 8), tensor.randn(8)
	local out = {dtype = 'uint8', scale = 0.03, zero_point = 120}
	local a, b = x:quantize 'int8/1', y:quantize 'uint8'
	local d = a:sub(b, {out = out})
	print(d:origin().kernel, d:dtype(), d:metrics(x - y).max < 0.06)  --> sub_int uint8 true
	print((d:codes():to 'int64' - (a:dequantize() - b:dequantize()):quantize(out):codes():to 'int64'):abs():max():item() <= 1)  --> true
	print(a:sub(b):origin().path, a:sub(b, {out = 'int8'}):origin().path, a:sub(y, {out = 'int8'}):origin().path)  --> fallback integer fallback
	print(pcall(a.sub, a, tensor.ones(3):quantize 'int8', {out = 'int8'}))  --> false ...(6, 8) and (3)
end
-- dense bytes go in vectors: the codes that views of them give, whose last axis is not dense
do
	tensor.seed(36)
	local x, y = tensor.randn(33, 70), tensor.randn(33, 70)
	for _, specs in ipairs {{'int8', 'uint8', {dtype = 'int8', scale = 0.05}}, {'uint8', 'uint8', {dtype = 'uint8', scale = 0.04, zero_point = 99}},
		{'int8', 'int8', 'uint8'}} do
		local a, b = x:quantize(specs[1]), y:quantize(specs[2])
		local u, v = tensor.cat({a:t(), a:t()}, {out = {dtype = a:dtype(), scale = a:qparams().scale:item(), zero_point = a:qparams().zero_point and
			a:qparams().zero_point:item()}}):narrow(1, 1, 70):t(), b:t():contiguous():t()
		for _, op in ipairs {'add', 'sub', 'mul'} do
			local dense, strided = a[op](a, b, {out = specs[3]}), u[op](u, v, {out = specs[3]})
			assert(not u:iscontiguous() and dense:codes():to('int64'):eq(strided:codes():to 'int64'):all():item(), op)
			assert(dense:qparams().scale:item() == strided:qparams().scale:item())
		end
	end
	print 'same'  --> same
end
