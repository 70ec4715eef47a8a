-- SPDX-License-Identifier: MIT
-- labels: quick host
-- conv2d with 16-bit codes. The oracle: the convolution of codes minus zero points in float64 (exact below 2^53), then the rule of the
-- result step by step, as in conv2d_int.lua. Every kernel level runs this file.
tensor.seed(18)

local function centred(q)
	local p, codes = q:qparams(), q:codes():to 'float64'
	if not p.zero_point then return codes end
	local zero = p.zero_point:to 'float64'
	return codes - (zero:nelem() > 1 and zero:view(-1, 1, 1, 1) or zero:reshape(1))
end

local function per_output(s) return s:nelem() > 1 and s:view(1, -1, 1, 1) or s:reshape(1) end
local function same(a, b) return a:ne(b):any():item() == false end

local function check(x, w, o, bias)
	local function conv(a, b, out)
		local given = {stride=o.stride, pad=o.pad, dilation=o.dilation, groups=o.groups, act=out ~= 0 and o.act or nil, out=out ~= 0 and out or nil}
		if out ~= 0 and bias then return a:conv2d(b, bias, given) end
		return a:conv2d(b, given)
	end
	local sums = conv(centred(x), centred(w), 0)
	local sx, sw = x:qparams().scale, per_output(w:qparams().scale)
	local scale = sx:to 'float32':reshape(1) * sw:to 'float32'
	local want = sums:to 'float32' * scale
	if bias then want = want + bias:view(1, -1, 1, 1) end
	if o.act then want = want:relu() end
	local got = conv(x, w)
	assert(got:origin().path == 'int16' and got:origin().kernel:find '^gemm_i16', got:origin().path)
	assert(same(got, want), 'floats')
	for _, out in ipairs {{dtype='int16', scale=0.0004}, {dtype='uint8', scale=0.07, zero_point=30}, {dtype='uint16', scale=0.001, zero_point=20000}} do
		local q, total = conv(x, w, out), sums
		if bias then total = total + (bias:view(1, -1, 1, 1):to 'float64' / scale:to 'float64'):round() end
		if o.act then total = total:relu() end
		local factor = (sx:to 'float64':reshape(1) * sw:to 'float64' / q:qparams().scale:to 'float64':reshape(1)):to 'float32'
		local codes = ((total:to 'float32' * factor):round() + (out.zero_point or 0)):clamp(q:qparams().min, q:qparams().max)
		assert(q:dtype() == out.dtype and q:origin().path == 'int16')
		assert(same(q:codes():to 'float32', codes), 'codes ' .. out.dtype)
	end
end

local shapes = {
	{{2, 3, 8, 8}, {4, 3, 3, 3}, {pad=1}}, {{1, 4, 7, 5}, {6, 2, 3, 2}, {groups=2, stride=2, pad={1, 0}}},
	{{3, 6, 9, 9}, {6, 1, 3, 3}, {groups=6, pad=1}}, {{2, 5, 6, 6}, {3, 5, 1, 1}, {stride=2}},
	{{1, 2, 10, 11}, {5, 2, 3, 3}, {dilation={2, 3}, pad={2, 1, 3, 0}}}, {{2, 16, 4, 4}, {17, 16, 3, 3}, {pad=1, act='relu'}},
	{{1, 1, 3, 3}, {1, 1, 3, 3}, {}}, {{1, 64, 80, 100}, {2, 64, 3, 3}, {pad=1}}, -- the last one in several parts
}
for i, shape in ipairs(shapes) do
	it('shape ' .. i, function()
		for _, dtypes in ipairs {{'int16', 'int16/1'}, {'uint16', 'int8/1'}, {'uint8', 'int16'}, {'int16', 'int4/1'},
			{'int16', {dtype='uint16', axis=1}}} do
			local x = tensor.randn(table.unpack(shape[1])):quantize(dtypes[1])
			local w = tensor.randn(table.unpack(shape[2])):quantize(dtypes[2])
			check(x, w, shape[3])
			check(x, w, shape[3], tensor.randn(shape[2][1]))
		end
	end)
end

it('extreme codes are exact, an empty batch is empty, a strided view is read right', function()
	local x = tensor.full{1, 64, 4, 4, value=1}:quantize{dtype='int16', scale=1 / 32767}
	local y = x:conv2d(tensor.full{1, 64, 4, 4, value=-1}:quantize{dtype='int16', scale=1 / 32767})
	print(math.abs(y:item() + 1024) < 0.001, y:origin().path)  --> true int16
	print(tensor.zeros(0, 3, 4, 4):quantize('int16'):conv2d(tensor.randn(2, 3, 3, 3):quantize 'int16/1'):size())  --> 0 2 2 2
	local q, w = tensor.randn(2, 6, 6, 3):quantize 'int16', tensor.randn(4, 3, 3, 3):quantize 'int16/1'
	local view = q:permute(1, 4, 2, 3)
	print(same(view:conv2d(w), view:contiguous():conv2d(w)))  --> true
end)

it('a nan in a bias gives the zero point', function()
	local x, w = tensor.randn(1, 2, 3, 3):quantize 'int16', tensor.randn(2, 2, 3, 3):quantize 'int8/1'
	local y = x:conv2d(w, tensor{0 / 0, 1}, {out={dtype='uint8', scale=0.1, zero_point=7}})
	print(y:codes()[1][1]:totable()[1][1])  --> 7
end)

it('blocks, the scheme log and activations that are no relu', function()
	local x, w = tensor.randn(1, 4, 5, 5), tensor.randn(2, 4, 3, 3)
	print(x:quantize{dtype='int16', scheme='log'}:conv2d(w:quantize 'int16'):origin().path)  --> fallback
	local q = x:quantize('int16'):conv2d(w:quantize 'int16/1', {act='tanh', out={dtype='int8', scale=0.01}})
	local wanted = x:quantize('int16'):conv2d(w:quantize 'int16/1', {act='tanh'}):quantize{dtype='int8', scale=0.01}
	print(same(q:codes(), wanted:codes()))  --> true
end)
