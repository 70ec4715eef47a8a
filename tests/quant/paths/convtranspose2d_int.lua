-- SPDX-License-Identifier: MIT
-- labels: quick host
-- convtranspose2d of codes: exact sums of codes less their zero points by the op in float64, converted as in conv2d. Every level runs this.
tensor.seed(2)
local function zero_of(q)
	local zero = q:qparams().zero_point
	return zero and zero:to 'float64' or tensor {0.0, dtype='float64'}
end
local function by_output(t, groups) return t:nelem() > 1 and t:tile(groups):view(1, -1, 1, 1) or t end
local cases = {{{}, 2, 4, 4, 5, 3, 3}, {{stride=2, pad=1, outputpad=1}, 8, 16, 9, 9, 3, 3}, {{stride=2, pad=1}, 16, 16, 8, 8, 4, 4},
	{{stride={3, 2}, pad={1, 0}, dilation={2, 1}, groups=2, outputpad={2, 1}}, 4, 3, 3, 4, 2, 3}, {{stride={1, 2}, dilation=3, outputpad={2, 2}}, 2, 2, 3, 3, 2, 2},
	{{stride=3}, 4, 4, 3, 3, 2, 2}, {{stride=2, pad=3, outputpad=1}, 4, 4, 5, 5, 3, 3}, {{stride=2, groups=6, autopad='same'}, 6, 1, 6, 7, 3, 3}}
local kinds = {{'uint8', 'int8/2'}, {'int8', 'int8'}, {'uint8', 'int4/2'}, {'int16', 'int16/2'}, {'uint8', {dtype='uint8', axis=2}}, {'uint4', 'int8/2'}}

for i, c in ipairs(cases) do
	local o, ci, co, h, w, kh, kw = table.unpack(c)
	local groups = o.groups or 1
	for _, kind in ipairs(kinds) do
		it(('case %d, %s by %s'):format(i, kind[1], tostring(quant.spec(kind[2]))), function()
			local x, v, b = (tensor.randn(2, ci, h, w) + 0.3):quantize(kind[1]), tensor.randn(ci, co, kh, kw):quantize(kind[2]), tensor.randn(co * groups)
			local centred = v:codes():to 'float64' - (zero_of(v):nelem() > 1 and zero_of(v):view(1, -1, 1, 1) or zero_of(v))
			local sums = (x:codes():to 'float64' - zero_of(x)):convtranspose2d(centred, o)
			local scale = by_output(v:qparams().scale, groups) * x:qparams().scale
			local y = x:convtranspose2d(v, b, o)
			assert(y:origin().path == (kind[1] == 'int16' and 'int16' or 'int8'))
			assert(y:eq(sums:to 'float32' * scale + b:view(1, -1, 1, 1)):all():item())
			-- to codes: the rule of conv2d, with the bias in units of the sums
			local options = {out={dtype='uint8', scale=0.1, zero_point=100}, act='relu'}
			for name, value in pairs(o) do options[name] = value end
			local z = x:convtranspose2d(v, options)
			local factor = (scale:to 'float64' / z:qparams().scale:to 'float64'):to 'float32'
			local codes = ((sums:to 'float32' * factor):round() + 100):clamp(100, 255)
			assert(z:dtype() == 'uint8' and (z:codes():to 'float32' - codes):abs():max():item() <= (kind[1] == 'int16' and 1 or 0))
		end)
	end
end

it('specs without a scale, less than 8 bits, fixed point and other activations', function()
	local x, w = tensor.randn(2, 4, 5, 5):quantize 'int8', tensor.randn(4, 3, 3, 3):quantize 'int8/2'
	local floats = x:convtranspose2d(w, {stride=2})
	assert(x:convtranspose2d(w, {stride=2, out='int8'}):eq(floats:quantize 'int8'):all():item())
	assert(x:convtranspose2d(w, {stride=2, out={dtype='int4', scale=0.5}}):eq(floats:quantize {dtype='int4', scale=0.5}):all():item())
	assert(x:convtranspose2d(w, {stride=2, act='sigmoid'}):eq(floats:sigmoid()):all():item())
	local y = x:convtranspose2d(w, {stride=2, out={dtype='int8', scale=0.2, rounding='single'}})
	assert(y:origin().path:find 'single' and (y:dequantize() - floats:clamp(-25.6, 25.4)):abs():max():item() <= 0.1001)
	local last = x:conv2d(tensor.randn(8, 4, 3, 3):quantize 'int8/1', {out={dtype='int8', scale=0.2}}) -- its channels are last
	local v = tensor.randn(8, 2, 2, 2):quantize 'int8/2'
	assert(last:convtranspose2d(v, {stride=2}):eq(last:dequantize():quantize({dtype='int8', scale=0.2}):convtranspose2d(v, {stride=2})):all():item())
	assert(x:permute(1, 2, 4, 3):convtranspose2d(w, {stride=2}):origin().path == 'int8')
end)

it('what falls back', function()
	local x, w = tensor.randn(1, 4, 5, 5), tensor.randn(4, 3, 3, 3)
	local function reason(a, b) return a:convtranspose2d(b):origin().reason end
	assert(reason(x:quantize 'int8', w) == 'an operand is not quantized')
	assert(reason(x:quantize 'int8', w:quantize 'int8/1') == 'scale varies along the summed axes')
	assert(reason(x:quantize 'int8/2', w:quantize 'int8') == 'scale varies along the summed axes')
	assert(reason(x:quantize 'int8', w:quantize 'nf4') == 'codes of this scheme are not multiples of a scale')
	assert(reason(x:quantize 'binary', w:quantize 'int8') == '+-1 codes have no transposed convolution')
	local q = w:quantize 'int8/1'
	assert(x:convtranspose2d(q):eq(x:convtranspose2d(q:dequantize())):all():item())
end)
