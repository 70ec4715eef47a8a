-- SPDX-License-Identifier: MIT
-- labels: quick host
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
	it("with act='relu' gives the codes of a relu behind it", function()
		tensor.seed(4)
		local x, y = tensor.randn(3, 5, 40), tensor.randn(3, 5, 40)
		for _, dtype in ipairs {'int8', 'uint8', 'int16', 'uint16', 'int4', 'uint4'} do
			for _, rounding in ipairs {'float', 'single', 'double', 'exact'} do
				local bits = tonumber(dtype:match '%d+')
				local to = {dtype=dtype, scale=5 / 2 ^ bits, zero_point=dtype:find '^u' and 2 ^ (bits - 1) - 3 or nil, rounding=rounding}
				for _, other in ipairs {y:quantize 'int8', y:quantize 'uint8/1', y[1]:quantize 'int16', y[{1, 1, {1, 1}}]:quantize 'uint4'} do
					local q = x:quantize(dtype)
					local want, got = q:add(other, {out=to}):relu(), q:add(other, {out=to, act='relu'})
					assert(got:origin().kernel == 'add_int' and got:codes():eq(want:codes()):all():item(), dtype .. rounding)
				end
			end
		end
		local q = x:quantize 'int8'
		assert(q:add(q, {out='uint8', act='relu'}):qparams().zero_point:item() == 0) -- its own range has no negative values
		local refused = 'add: act: wanted quantized operands and out= that an integer kernel takes, got none: '
		for reason, call in pairs {['no operand is quantized'] = {x, y}, ['act= needs'] = {q, 1, {out='int8'}}, ['the result is float32'] = {q, q},
			['an operand has'] = {x:quantize 'int8:4', q, {out='int8'}}} do
			local options = call[3] or {}
			options.act = 'relu'
			local good, why = pcall(call[1].add, call[1], call[2], options)
			assert(not good and why:find(refused, 1, true), reason .. why)
		end
	end)
	it("with act='relu' passes gradients where the sum is positive", function()
		local p, r = tensor{-1, 2, 3}:requires_grad_(), tensor{0.5, -4, 1}:requires_grad_()
		p:quantize('int8'):add(r:quantize 'int8', {out={dtype='int8', scale=0.1}, act='relu'}):sum():backward()
		print(p:grad(), r:grad())  --> float32(3)  0  0  1	float32(3)  0  0  1
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
	local target = {dtype = 'uint8', scale = 0.03, zero_point = 120}
	local u, v = x:quantize 'int8/1', y:quantize 'uint8'
	local d = u:sub(v, {out = target})
	print(d:origin().kernel, d:dtype(), d:metrics(x - y).max < 0.06)  --> sub_int uint8 true
	print((d:codes():to 'int64' - (u:dequantize() - v:dequantize()):quantize(target):codes():to 'int64'):abs():max():item() <= 1)  --> true
	print(u:sub(v):origin().path, u:sub(v, {out = 'int8'}):origin().path, u:sub(y, {out = 'int8'}):origin().path)  --> fallback integer fallback
	print(pcall(u.sub, u, tensor.ones(3):quantize 'int8', {out = 'int8'}))  --> false ...(6, 8) and (3)
end
-- dense bytes go in vectors: the codes that views of them give, whose last axis is not dense
do
	tensor.seed(36)
	local x, y = tensor.randn(33, 70), tensor.randn(33, 70)
	for _, specs in ipairs {{'int8', 'uint8', {dtype = 'int8', scale = 0.05}}, {'uint8', 'uint8', {dtype = 'uint8', scale = 0.04, zero_point = 99}},
		{'int8', 'int8', 'uint8'}} do
		local p, q = x:quantize(specs[1]), y:quantize(specs[2])
		local u, v = tensor.cat({p:t(), p:t()}, {out = {dtype = p:dtype(), scale = p:qparams().scale:item(), zero_point = p:qparams().zero_point and
			p:qparams().zero_point:item()}}):narrow(1, 1, 70):t(), q:t():contiguous():t()
		for _, op in ipairs {'add', 'sub', 'mul'} do
			local dense, strided = p[op](p, q, {out = specs[3]}), u[op](u, v, {out = specs[3]})
			assert(not u:iscontiguous() and dense:codes():to('int64'):eq(strided:codes():to 'int64'):all():item(), op)
			assert(dense:qparams().scale:item() == strided:qparams().scale:item())
		end
	end
	print 'same'  --> same
end
