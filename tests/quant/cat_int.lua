-- SPDX-License-Identifier: MIT
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
-- packed codes: pieces that would share a byte are refused, not corrupted
print(pcall(tensor.cat, {a[{{}, {1, 1}}]:clone():quantize 'int4', a:quantize 'int4'}, {axis = 2, out = 'int4'}))  --> false ...whole bytes...
print(tensor.cat({a:quantize 'int4', b:quantize 'int4'}, {out = 'int4'}):dequantize():size())  --> 3 2
