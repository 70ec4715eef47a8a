-- SPDX-License-Identifier: MIT
-- labels: full
-- softmax, layernorm, rmsnorm and argmax of codes in exported C: 1000 inputs each, the codes of Quoll.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(46)
local x, list = tensor.randn(1000, 5, 12), {}
local w, b = tensor.randn(12), tensor.randn(12)
local INS = {{dtype='int8', scale=0.03, zero_point=5}, {dtype='uint8', scale=0.3, zero_point=128}, {dtype='int16', scale=2e-4}, {dtype='uint16', scale=1e-3,
	zero_point=30000}}
local SHARES = {{dtype='int8', scale=1 / 256, zero_point=-128}, {dtype='uint8', scale=1 / 255}, {dtype='int16', scale=1 / 32768}}
local NORMED = {{dtype='int8', scale=0.05}, {dtype='uint8', scale=0.04, zero_point=120}, {dtype='int16', scale=1e-3}}
for i, input in ipairs(INS) do
	for k = 1, 3 do
		local name = ('%s %d'):format(input.dtype, k)
		list['softmax ' .. name] = function(_, a) return a:quantize(input):softmax {axis=k == 2 and 2 or -1, out=SHARES[k]} end
		list['layernorm ' .. name] = function(_, a) return a:quantize(input):layernorm(w, b, {out=NORMED[k], eps=k == 1 and 0.01 or nil}) end
		list['rmsnorm ' .. name] = function(_, a) return a:quantize(input):rmsnorm(w, {out=NORMED[k]}) end
	end
	for k = 1, input.dtype:find '8' and 2 or 0 do
		local out = {dtype=k == 1 and 'int8' or 'uint8', scale=1 / 256, zero_point=k == 1 and -128 or 0, rounding='double'}
		list[('softmax in fixed point %s %d'):format(input.dtype, k)] = function(_, a) return a:quantize(input):softmax {axis=k == 2 and 2 or -1, out=out} end
	end
	list['argmax ' .. input.dtype] = function(_, a) return a:quantize(input):argmax(i % 2 == 0 and 2 or -1) end
end
list['mean of rows'] = function(_, a) return a:quantize(INS[1]):mean {axis=3, out=NORMED[1]} end
list['mean of two axes'] = function(_, a) return a:quantize(INS[2]):mean {axis={2, 3}, keep=true, out=NORMED[2]} end
for _, rule in ipairs {'single', 'double', 'exact'} do
	list['mean, ' .. rule] = function(_, a)
		return a:quantize(INS[1]):mean {axis={2, 3}, out={dtype='int8', scheme='asymmetric', scale=0.004, zero_point=-5, rounding=rule}}
	end
end
list['mean of 16 bits'] = function(_, a) return a:quantize(INS[4]):mean {axis=2, out=NORMED[3]} end
list['layernorm alone'] = function(_, a) return a:quantize(INS[1]):layernorm {out=NORMED[1]} end
list['layernorm of a weight'] = function(_, a) return a:quantize(INS[2]):layernorm(w, {out=NORMED[1]}) end
list['rows of equal codes'] = function(_, a) return (a * 0):quantize(INS[1]):layernorm(w, b, {out=NORMED[1], eps=0}) end
exported.functions(list, x)
