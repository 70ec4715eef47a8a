-- SPDX-License-Identifier: MIT
-- labels: quick host
-- cat with out= rescales codes; without it, it falls back.
local a, b = tensor{{1, -2}, {3, 4}}, tensor{{-8, 0.5}}
local q = tensor.cat({a:quantize 'int8/1', b:quantize 'uint8'}, {out = 'int8'})
print(q:origin().path, q:origin().kernel, q:dtype(), q:size())  --> integer cat_int int8 3 2
print(tensor.cat{a, b}:metrics(q).max <= q:qparams().scale:item())  --> true
-- rescaling to the params an item already has changes no code
local qa = a:quantize 'int8'
local spec = {dtype = 'int8', scale = qa:qparams().scale:item()}
print(tensor.cat({qa, qa}, {axis = 2, out = spec})[{{}, {1, 2}}]:codes():to('int64'):metrics(qa:codes():to 'int64').max)  --> 0.0
print(tensor.cat{qa, qa}:origin().path, tensor.cat{qa, qa}:dtype())  --> fallback float32
print(tensor.cat({qa, b}, {out = 'int8'}):origin().path)  --> fallback
print(tensor.cat({qa, b}, {out = 'int8'}):dtype())  --> int8
-- packed codes: pieces may share a byte
for _, dtype in ipairs {'int4', 'uint4'} do
	local four, parts = {dtype=dtype, scale=0.5, zero_point=dtype == 'uint4' and 7 or nil}, {}
	for i, n in ipairs {5, 4, 1, 3, 2} do parts[i] = tensor.randn(3, n) * 3 end
	for _, axis in ipairs {1, 2} do
		local codes, floats = {}, {}
		for i, x in ipairs(parts) do
			floats[i] = axis == 1 and x:t():contiguous() or x
			codes[i] = floats[i]:quantize(four)
		end
		local y = tensor.cat(codes, {axis=axis, out=four})
		assert(y:origin().path == 'integer' and y:dtype() == dtype)
		assert(y:codes():to('int64'):metrics(tensor.cat(floats, {axis=axis}):quantize(four):codes():to 'int64').max == 0)
		local pair = tensor.stack({codes[1], codes[1]}, {axis=-1, out=four})
		assert(pair:codes():to('int64'):metrics(tensor.stack({floats[1], floats[1]}, {axis=-1}):quantize(four):codes():to 'int64').max == 0)
	end
end
print(tensor.cat({a:quantize 'int4', b:quantize 'int4'}, {out = 'int4'}):dequantize():size())  --> 3 2
-- stack is the same along a new axis
local s = tensor.stack({a:quantize 'int8/1', a:quantize 'uint8'}, {axis = 2, out = {dtype = 'int8', scale = 0.04}})
print(s:origin().path, s:origin().kernel, s:size())  --> integer stack_int 2 2 2
print(s:metrics(tensor.stack({a, a}, {axis = 2})).max <= 0.05)  --> true
print(tensor.stack({qa, qa}, {axis = -1, out = spec}):select(3, 1):codes():to('int64'):metrics(qa:codes():to 'int64').max)  --> 0.0
print(tensor.stack{qa, qa}:origin().path, tensor.stack({qa, b:expand(2, 2)}, {out = 'int8'}):origin().path)  --> fallback fallback
print(pcall(tensor.stack, {qa, qa}, {axis = 4, out = spec}))  --> false ...got 4
