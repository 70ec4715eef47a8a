-- SPDX-License-Identifier: MIT
-- labels: quick noproducts host
-- Elementwise functions of codes with out=: the codes that decoding, computing and quantizing give, all of them, for every dtype.
tensor.seed(31)
local x = tensor.randn(300, 40) * 2

local function same(a, b) return a:codes():to 'int64':eq(b:codes():to 'int64'):all():item() end

local function clamped(v, o)
	o.low, o.high = -0.5, 1
	return v:clamp(o)
end

local NAMES = {'sigmoid', 'tanh', 'gelu', 'silu', 'hardswish', 'relu', 'relu6', 'leakyrelu', 'softplus', 'exp', 'log', 'sqrt', 'rsqrt', 'neg', 'abs',
	'square', 'reciprocal', 'round', 'sign', 'erf', 'clamp', 'elu', 'selu', 'mish', 'hardsigmoid', 'shrink', 'threshold'}
local OUTS = {{dtype='int8', scale=0.02, zero_point=-5}, {dtype='uint8', scale=0.015, zero_point=7}, {dtype='int16', scale=1e-4},
	{dtype='int4', scale=0.3}, 'int8', 'uint8'}

it('no code differs from the rounded float result', function()
	for _, input in ipairs {'int8', 'uint8', 'int4', 'uint4', 'int16', 'uint16'} do
		local q = x:quantize(input)
		local d = q:dequantize()
		for _, out in ipairs(OUTS) do
			for _, op in ipairs(NAMES) do
				local f = op == 'clamp' and clamped or x[op]
				quant.log 'reset'
				local y = f(q, {out=out})
				local log = quant.log()
				assert(#log == 1 and log.path == 'integer' and log.kernel == (input:find '16' and 'function' or 'table'), tostring(log))
				assert(same(y, f(d, {}):quantize(out)), op .. ' ' .. input)
			end
		end
	end
end)

it('16-bit codes have a table of 65536 results where there are more elements', function()
	local q = tensor.randn(300, 300):quantize 'int16'
	for _, out in ipairs {{dtype='int16', scale=1e-4}, 'int16', 'uint8'} do
		local y = q:gelu {out=out}
		assert(y:origin().kernel == 'table' and same(y, q:dequantize():gelu():quantize(out)))
	end
end)

it('numbers beside the tensor are part of the function', function()
	local q, out = x:quantize 'uint8', {dtype='int8', scale=0.03}
	for name, f in pairs {
		mul = function(v, o) return v:mul(0.5, o) end, div = function(v, o) return v:div(3, o) end, sub = function(v, o) return v:sub(1.5, o) end,
		add = function(v, o) return v:add(1, o) end, pow = function(v, o) return v:pow(2, o) end,
		prelu = function(v, o) return v:prelu(0.3, o) end,
		maximum = function(v, o) return v:maximum(0.25, o) end, minimum = function(v, o) return v:minimum(0.25, o) end,
	} do
		local y = f(q, {out=out})
		assert(y:origin().kernel == 'table' and same(y, f(q:dequantize()):quantize(out)), name)
	end
end)

it('views, empty tensors, other schemes, options', function()
	local q, out = x:quantize 'int8', {dtype='int8', scale=0.02}
	assert(same(q:t():narrow(1, 3, 20):tanh {out=out}, q:dequantize():t():narrow(1, 3, 20):tanh():quantize(out)))
	print(q:narrow(1, 1, 0):gelu {out=out}:size())  --> 0 40
	local log = x:quantize {dtype='int8', scheme='log'}
	local y = log:tanh {out=out}
	print(y:origin().kernel, same(y, log:dequantize():tanh():quantize(out)))  --> table true
	assert(same(q:gelu {approximate='tanh', out=out}, q:dequantize():gelu {approximate='tanh'}:quantize(out)))
	assert(same(q:leakyrelu {slope=0.3, out=out}, q:dequantize():leakyrelu(0.3):quantize(out)))
	assert(same(q:silu {alpha=1.702, out=out}, q:dequantize():silu(1.702):quantize(out)))
	assert(same(q:softplus {beta=2, threshold=1, out=out}, q:dequantize():softplus(2, 1):quantize(out)))
	assert(same(q:hardtanh {low=-0.5, high=0.75, out=out}, q:dequantize():hardtanh(-0.5, 0.75):quantize(out)))
	print(q:relu():origin().kernel, q:relu {out=out}:origin().kernel)  --> relu_int table
end)

it('falls back and says why', function()
	print((x:quantize 'int8/1':gelu {out='int8'}:explain()))  --> ...fallback...each scale would need its own table
	print((x:quantize 'int8':gelu {out='int8/1'}:explain()))  --> ...fallback...out= is not a spec of codes with one scale
	print((x:quantize 'int8':gelu():dtype()))  --> float32
	print(pcall(x.gelu, x:quantize 'int8', {out='int99'}))  --> false ...int99...
	print(pcall(x.gelu, x:quantize 'int8', {ouT='int8'}))  --> false ...did you mean 'out'?...
	print(quant.ops():where{op='gelu'}.int8, quant.ops():where{op='gelu'}.binary)  --> integer fallback
end)
