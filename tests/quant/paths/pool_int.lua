-- SPDX-License-Identifier: MIT
-- labels: quick host
-- maxpool2d and avgpool2d of codes. The largest: what it gives decodes to what the op gives on the decoded operand, bit for
-- bit. The mean: exact sums by a depthwise convolution of the codes in float64, divided in float64 and rounded half to
-- even; and PyTorch's (2.15, quantized avg_pool2d). Every kernel level runs this file.
tensor.seed(21)

local function same(a, b) return a:ne(b):any():item() == false end
local function zero_of(q)
	local zero = q:qparams().zero_point
	return zero and zero:to 'float64' or tensor {0.0, dtype='float64'}
end
-- along axis 1 or 2 of four, or one for all
local function along(values, axis)
	return axis == 1 and values:view(-1, 1, 1, 1) or axis == 2 and values:view(1, -1, 1, 1) or values:reshape(1)
end

local kinds = {'uint8', 'int8', 'int16', 'uint16', 'int4', 'uint4', {dtype='int8', scheme='asymmetric'}, 'uint8/1', 'int8/2', 'uint4/2'}
local windows = {{2}, {3, {stride=2, pad=1}}, {{3, 2}, {stride={1, 3}, pad={1, 0}}}, {2, {stride=1}}, {{6, 5}}, {{5, 1}, {stride=1}},
	{{4, 4}, {pad=2, stride=3}}}

for _, spec in ipairs(kinds) do
	describe(tostring(quant.spec(spec)), function()
		local q = (tensor.randn(3, 4, 6, 5) - 0.3):quantize(spec)
		local axis = q:qparams().axis

		it('the largest', function()
			for _, w in ipairs(windows) do
				local got, want = q:maxpool2d(w[1], w[2]), q:dequantize():maxpool2d(w[1], w[2])
				assert(got:origin().path == 'integer' and got:origin().kernel == 'maxpool2d_int' and got:dtype() == q:dtype())
				assert(same(got:qparams().scale, q:qparams().scale) and got:qparams().axis == axis)
				assert(same(got:dequantize(), want))
			end
		end)

		it('the mean', function()
			local centred = q:codes():to 'float64' - along(zero_of(q), axis)
			for i = 1, #windows + 1 do
				local k, o = table.unpack(windows[i] or {{6, 5}})
				local h, w = table.unpack(type(k) == 'table' and k or {k, k})
				local sums = centred:conv2d(tensor.ones {4, 1, h, w, dtype='float64'}, {groups=4, stride=o and o.stride or {h, w}, pad=o and o.pad})
				local got
				if windows[i] then got = q:avgpool2d(k, o) else got = q:avgpool2d() end
				assert(got:origin().path == 'integer' and got:origin().kernel == 'avgpool2d_int' and got:dtype() == q:dtype())
				assert(same(got:qparams().scale, q:qparams().scale))
				assert(same(got:codes():to 'float64', (sums / (h * w)):round() + along(zero_of(q), axis)))
				-- out=: sums to units of the result in float32, rounded once
				for _, out in ipairs {{dtype='uint8', scale=0.02, zero_point=77}, {dtype='int4', scale=0.1}, {dtype='int16', scale=1e-5}} do
					local t = o and {stride=o.stride, pad=o.pad} or {}
					t.out = out
					local y = q:avgpool2d(k, t)
					local factor = (q:qparams().scale:to 'float64' / (y:qparams().scale:to 'float64' * (h * w))):to 'float32'
					local codes = ((sums:to 'float32' * along(factor, axis)):round() + (out.zero_point or 0)):clamp(y:qparams().min, y:qparams().max)
					assert(y:origin().path == 'integer' and y:dtype() == out.dtype and same(y:codes():to 'float32', codes))
				end
			end
		end)
	end)
end

it('PyTorch', function()
	local x = tensor {{3, 4, 250, 7}, {5, 9, 1, 0}, {255, 254, 2, 2}, {253, 255, 1, 2}}:view(1, 1, 4, 4)
	local function of(zero)
		local q = ((x - zero) * 0.5):quantize {dtype='uint8', scale=0.5, zero_point=zero}
		assert(same(q:codes():to 'float32', x))
		return q
	end
	local function shown(y) return table.concat(y:codes():to('int64'):reshape(y:nelem()):totable(), ' ') end
	assert(shown(of(10):avgpool2d(2)) == '5 64 254 2')
	assert(shown(of(10):avgpool2d(3, {stride=2, pad=1})) == '8 33 118 58')
	assert(shown(of(10):avgpool2d()) == '81')
	assert(shown(of(10):avgpool2d(2, {stride=1})) == '5 66 64 131 66 1 254 128 2')
	assert(shown(of(11):avgpool2d(2)) == '5 65 254 2')
	assert(shown(of(11):avgpool2d(2, {stride=1})) == '5 66 65 131 67 1 254 128 2')
	assert(shown(of(11):avgpool2d(3, {stride=2, pad=1})) == '8 34 118 58')
	x = tensor {{3, 4, -100, 7}, {5, 9, 1, 0}, {-128, 127, 2, 2}, {100, -1, 1, 2}}:view(1, 1, 4, 4)
	local q = ((x + 3) * 0.5):quantize {dtype='int8', scheme='asymmetric', scale=0.5, zero_point=-3}
	assert(same(q:codes():to 'float32', x))
	assert(shown(q:avgpool2d(2)) == '5 -23 25 2')
	assert(shown(q:avgpool2d(2, {stride=1})) == '5 -21 -23 3 35 1 25 32 2')
	assert(shown(q:avgpool2d(3, {stride=2, pad=1})) == '1 -10 11 16')
	assert(shown(q:maxpool2d(3, {stride=2, pad=1})) == '9 9 127 127')
end)

it('what is not one line after the other, long rows, and no images', function()
	local q = tensor.randn(4, 3, 7, 9):quantize 'uint8'
	local back = q:permute(1, 2, 4, 3)
	assert(same(back:maxpool2d(2):codes(), q:maxpool2d(2):codes():permute(1, 2, 4, 3)))
	assert(same(back:avgpool2d(3):codes(), q:avgpool2d(3):codes():permute(1, 2, 4, 3)))
	assert(same(q[{{2, 3}}]:avgpool2d(2):codes(), q:avgpool2d(2)[{{2, 3}}]:codes()))
	local long = tensor.randn(1, 1, 3, 3000):quantize 'int16'
	assert(same(long:maxpool2d(2):dequantize(), long:dequantize():maxpool2d(2)))
	assert(long:avgpool2d():codes():item() == (long:codes():to('float64'):sum() / 9000):round():item())
	assert(tensor.zeros(0, 3, 4, 4):quantize {dtype='uint8', scale=0.1, zero_point=3}:avgpool2d(2):size(1) == 0)
end)

it('means of more codes than 32 bits hold the sum of', function()
	local q = tensor.full {1, 1, 400, 300, value=1.0}:quantize {dtype='uint16', scale=1 / 65535, zero_point=0}
	assert(q:avgpool2d():codes():item() == 65535 and q:avgpool2d():origin().path == 'integer')
	local y = q:avgpool2d({400, 300}, {pad=1, stride=300})
	assert(y:origin().path == 'fallback' and y:origin().reason == 'the sum of a window does not fit 32 bits')
end)

it('what falls back', function()
	local x = tensor.randn(2, 2, 4, 4)
	local function reason(q, ...) return q:avgpool2d(2, ...):origin().reason end
	assert(x:quantize('int8/3'):maxpool2d(2):origin().reason == 'scale varies within a plane')
	assert(reason(x:quantize 'int8/4') == 'scale varies within a plane')
	assert(reason(x:quantize 'binary') == '+-1 codes of a zero scale have no order')
	assert(reason(x:quantize {dtype='int8', scheme='log'}) == 'codes of this scheme are not multiples of a scale')
	assert(reason(x:quantize 'int8', {out='int8'}) == 'out= is not an affine spec with one given scale')
	local y = x:quantize('int8'):avgpool2d(2, {out='uint8'})
	assert(y:quantized() and y:dtype() == 'uint8')
	assert(x:avgpool2d(2, {out='int8'}):dtype() == 'int8' and x:avgpool2d(2):dtype() == 'float32')
end)

it('means without the padding, with ceilmode, and codes whose channels are last', function()
	for _, spec in ipairs {'uint8', 'int8', 'int16', {dtype='int8', scheme='asymmetric'}} do
		local q = (tensor.randn(2, 3, 7, 6) - 0.3):quantize(spec)
		for _, o in ipairs {{stride=2, pad=1, countincludepad=false}, {stride=2, pad=1, ceilmode=true, countincludepad=false}} do
			local got = q:avgpool2d(3, o)
			-- codes of the mean: half to even of the exact quotient of the sum and the count, which float64 gives but at halves
			local mean = (q:codes():to 'float64' - zero_of(q)):avgpool2d(3, o)
			assert(got:origin().path == 'integer' and ((got:codes():to 'float64' - zero_of(q)) - mean):abs():max():item() <= 0.5 + 1e-9)
			local t = {stride=o.stride, pad=o.pad, ceilmode=o.ceilmode, countincludepad=false, out={dtype='int16', scale=1e-4}}
			local y = q:avgpool2d(3, t)
			local want = q:qparams().scale:to 'float64' * mean / 1e-4
			assert(y:origin().path == 'integer' and ((y:codes():to 'float64' - want):abs() - want:abs() * 1e-6):max():item() <= 0.5001)
		end
		local most = q:maxpool2d(2, {dilation=3, stride=2, pad={2, 0, 0, 3}, ceilmode=true})
		assert(most:origin().path == 'integer')
		local want = q:dequantize():maxpool2d(2, {dilation=3, stride=2, pad={2, 0, 0, 3}, ceilmode=true})
		assert(same(most:dequantize(), want:maximum(most:dequantize():min())))
	end
	-- after a convolution from codes to codes the channels are last
	local x = tensor.randn(2, 8, 9, 9):quantize 'int8'
	local w = tensor.randn(16, 8, 3, 3):quantize 'int8/1'
	local y = x:conv2d(w, {pad=1, out={dtype='int8', scale=0.4}})
	local again = y:dequantize():quantize {dtype='int8', scale=0.4}
	assert(same(again:codes(), y:codes()))
	for _, o in ipairs {{stride=2, pad=1, countincludepad=false, ceilmode=true}, {stride=1, pad={2, 0, 1, 1}, countincludepad=false, out={dtype='uint8', scale=0.3, zero_point=9}},
		{stride=2, ceilmode=true, out={dtype='int8', scale=0.2, rounding='single'}}} do
		local a = x:conv2d(w, {pad=1, out={dtype='int8', scale=0.4}}):avgpool2d(3, o)
		assert(a:origin().path:find '^integer' and same(a:codes(), again:avgpool2d(3, o):codes()))
	end
	local a = x:conv2d(w, {pad=1, out={dtype='int8', scale=0.4}}):maxpool2d(2, {dilation=2, pad=1, ceilmode=true, stride=2})
	assert(same(a:codes(), again:maxpool2d(2, {dilation=2, pad=1, ceilmode=true, stride=2}):codes()))
end)

-- As TFLite's AveragePool: the sum of the codes over their number, halves away from 0, whatever the zero point.
it('divides codes for the rule double under the params of x', function()
	tensor.seed(12)
	for _, spec in ipairs {{dtype='int8', scale=0.05, zero_point=-3}, {dtype='int8', scale=0.05, zero_point=90}, {dtype='uint8', scale=0.05, zero_point=120},
		{dtype='int16', scale=0.001}} do
		local out = {rounding='double'}
		for key, value in pairs(spec) do out[key] = value end
		local q = tensor.randn(2, 3, 9, 8):quantize(spec)
		local zero = spec.zero_point or 0
		for _, o in ipairs {{k=2, stride=2}, {k={4, 3}, stride=1}, {k={9, 8}}, {k=4, stride=3, pad=1}, {k=4, stride=3, pad=1, countincludepad=false}} do
			local k = type(o.k) == 'table' and o.k or {o.k, o.k}
			-- sums of codes in float64, where padding is the zero point or nothing
			local raw, ones = q:codes():to 'float64' - (o.countincludepad == false and 0 or zero), tensor.ones(2, 3, 9, 8):to 'float64'
			local t = {stride=o.stride, pad=o.pad}
			local number = o.countincludepad == false and ones:avgpool2d(o.k, t) * k[1] * k[2] or k[1] * k[2]
			local sum = raw:avgpool2d(o.k, t) * k[1] * k[2] + (o.countincludepad == false and 0 or zero * k[1] * k[2])
			sum, number = sum:round(), o.countincludepad == false and number:round() or number
			local want = sum:sign() * (sum:abs() / number + 0.5):floor()
			local y = q:avgpool2d(o.k, {stride=o.stride, pad=o.pad, countincludepad=o.countincludepad, out=out})
			assert(y:origin().path == 'integer double' and same(y:codes():to 'float64', want))
		end
	end
	-- channels last, after a convolution
	local w = tensor.randn(16, 8, 3, 3):quantize 'int8/1'
	local made = {dtype='int8', scale=0.4, zero_point=-5}
	local a = tensor.randn(2, 8, 9, 9):quantize 'int8':conv2d(w, {pad=1, out=made})
	local again = a:dequantize():quantize(made)
	local out = {dtype='int8', scale=0.4, zero_point=-5, rounding='double'}
	assert(same(a:avgpool2d(4, {stride=2, out=out}):codes(), again:avgpool2d(4, {stride=2, out=out}):codes()))
end)
