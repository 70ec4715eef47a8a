-- SPDX-License-Identifier: MIT
-- labels: quick host
-- conv2d in integers. The oracle: the convolution of codes minus zero points in float64, which is exact below 2^53, then the rule
-- of the result step by step. Every kernel level runs this file.
tensor.seed(17)

-- codes less their zero points, exactly
local function centred(q)
	local p, codes = q:qparams(), q:codes():to 'float64'
	if not p.zero_point then return codes end
	local zero = p.zero_point:to 'float64'
	return codes - (zero:nelem() > 1 and zero:view(-1, 1, 1, 1) or zero:reshape(1))
end

local function exact(x, w, o)
	return centred(x):conv2d(centred(w), {stride=o.stride, pad=o.pad, dilation=o.dilation, groups=o.groups})
end

-- float32 products of the scales, one for each output
local function scales(x, w)
	local s = x:qparams().scale:to 'float32':reshape(1) * w:qparams().scale:to 'float32'
	return s:nelem() > 1 and s:view(1, -1, 1, 1) or s:reshape(1)
end

local function same(a, b) return a:ne(b):any():item() == false end

local function check(x, w, o, bias)
	local sums = exact(x, w, o)
	local want = sums:to 'float32' * scales(x, w)
	if bias then want = want + bias:view(1, -1, 1, 1) end
	if o.act then want = want:relu() end
	quant.log 'reset'
	local given = {stride=o.stride, pad=o.pad, dilation=o.dilation, groups=o.groups, act=o.act}
	local got = bias and x:conv2d(w, bias, given) or x:conv2d(w, given)
	-- up to four channels and 64 outputs of a group are summed tap by tap, but for strides above 2; up to 64 channels, too, where
	-- the result is no image of the same width and has few outputs
	local stride = type(o.stride) == 'table' and o.stride or {o.stride or 1, o.stride or 1}
	local outputs, moved = w:size(1) // (o.groups or 1), stride[1] > 1 or stride[2] > 1 or got:size(4) ~= x:size(4)
	local taps = w:size(2) <= 4 and outputs <= 64 or
		moved and w:size(2) <= 64 and outputs <= 16 * stride[2] and got:size(4) >= 10 and w:size(4) > 1
	local kernel = taps and stride[2] <= 2 and '^taps_i16' or '^gemm_i8'
	assert(got:origin().path == 'int8' and got:origin().kernel:find(kernel), got:origin().kernel)
	assert(same(got, want))
	-- codes: sums and bias as integers, one factor, one rounding. Tiles compute them unless the weight has zero points, or groups
	-- are so small that a panel of 16 outputs would be mostly empty. Where each channel is a group, vectors of 8 channels or more do.
	local groups, symmetric = o.groups or 1, w:dtype() ~= 'uint8' and (not w:qparams().zero_point or not w:qparams().zero_point:ne(0):any():item())
	local tiles, depth = groups == 1 or outputs >= 8 and w:size(2) >= 4, groups > 1 and w:size(2) == 1 and w:size(1) >= 8
	kernel = symmetric and (depth and '^depth_i8' or tiles and '^conv_i8') or kernel
	for _, out in ipairs {{dtype='uint8', scale=0.07, zero_point=30}, {dtype='int8', scale=0.04}} do
		given.out = out
		local q = bias and x:conv2d(w, bias, given) or x:conv2d(w, given)
		local total = sums
		if bias then total = total + (bias:view(1, -1, 1, 1):to 'float64' / scales(x, w):to 'float64'):round() end
		if o.act then total = total:relu() end
		local sx, sw = x:qparams().scale:to 'float64':reshape(1), w:qparams().scale:to 'float64'
		local factor = (sx * (sw:nelem() > 1 and sw:view(1, -1, 1, 1) or sw:reshape(1)) / q:qparams().scale:to 'float64':reshape(1)):to 'float32'
		local zero = out.zero_point or 0
		local codes = ((total:to 'float32' * factor):round() + zero):clamp(q:qparams().min, q:qparams().max)
		assert(q:quantized() and q:dtype() == out.dtype and q:origin().path == 'int8')
		assert(q:origin().kernel:find(kernel), q:origin().kernel)
		assert(same(q:codes():to 'float32', codes), 'codes')
	end
end

local shapes = {
	{{2, 3, 8, 8}, {4, 3, 3, 3}, {pad=1}}, {{1, 4, 7, 5}, {6, 2, 3, 2}, {groups=2, stride=2, pad={1, 0}}},
	{{3, 6, 9, 9}, {6, 1, 3, 3}, {groups=6, pad=1}}, {{2, 5, 6, 6}, {3, 5, 1, 1}, {stride=2}},
	{{1, 2, 10, 11}, {5, 2, 3, 3}, {dilation={2, 3}, pad={2, 1, 3, 0}}}, {{2, 16, 4, 4}, {17, 16, 3, 3}, {pad=1, act='relu'}},
	{{1, 1, 3, 3}, {1, 1, 3, 3}, {}}, {{5, 3, 32, 31}, {8, 3, 5, 4}, {pad=2, stride={2, 1}}},
	-- rows of the image that are copied one by one, unfolded and tap by tap
	{{2, 5, 6, 3}, {17, 5, 2, 2}, {}}, {{3, 5, 5, 18}, {20, 5, 3, 2}, {pad={0, 2}}}, {{2, 6, 20, 17}, {33, 6, 4, 3}, {pad={3, 0}}},
	{{1, 7, 9, 40}, {18, 7, 1, 24}, {}}, {{2, 9, 4, 4}, {5, 9, 4, 4}, {pad=3}}, {{2, 6, 14, 14}, {16, 6, 5, 5}, {}},
	{{1, 33, 12, 23}, {32, 33, 3, 3}, {pad=1, stride=2}}, {{1, 12, 12, 12}, {16, 12, 3, 3}, {}}, {{1, 65, 12, 12}, {3, 65, 3, 3}, {}},
	-- short lines, whose pixels lie in turn: two to eight of them, whole images, groups, dilation, uneven padding
	{{9, 64, 4, 4}, {40, 64, 3, 3}, {pad=1}}, {{2, 32, 8, 8}, {33, 32, 3, 3}, {pad=1, act='relu'}}, {{17, 32, 2, 2}, {16, 32, 3, 3}, {pad=1}},
	{{2, 64, 4, 7}, {32, 32, 3, 3}, {groups=2, pad=1}}, {{1, 96, 9, 3}, {17, 96, 3, 3}, {dilation={2, 1}, pad={2, 1}}},
	{{3, 32, 12, 6}, {16, 32, 3, 2}, {pad={0, 2, 1, 1}, stride={2, 1}}}, {{2, 64, 7, 1}, {20, 64, 2, 1}, {}}, {{1, 160, 5, 20}, {70, 160, 3, 3}, {pad=1}},
	-- tap by tap: a multiplier, wide and long images, strides, dilation, more padding than kernel, one tap, one row
	{{2, 3, 9, 7}, {6, 1, 3, 3}, {groups=3, pad=1, stride=2}}, {{1, 4, 70, 131}, {4, 1, 3, 3}, {groups=4, pad=1, act='relu'}},
	{{1, 2, 150, 140}, {4, 1, 5, 5}, {groups=2, pad=2, stride=2}}, {{2, 8, 14, 14}, {8, 4, 3, 3}, {groups=2, pad=1}},
	{{1, 5, 20, 21}, {5, 1, 3, 3}, {groups=5, dilation={3, 2}, pad={3, 2}, stride={1, 2}}},
	{{1, 2, 3, 4}, {2, 1, 2, 2}, {groups=2, pad={5, 0, 1, 9}}}, {{2, 4, 6, 6}, {4, 1, 1, 1}, {groups=4, stride={3, 2}}},
	{{3, 3, 1, 40}, {3, 1, 1, 7}, {groups=3, pad={0, 3}}}, {{3, 3, 40, 1}, {6, 3, 7, 1}, {pad={3, 0}}},
	{{1, 3, 12, 12}, {3, 1, 3, 3}, {groups=3, stride=3}}, {{1, 2, 9, 9}, {132, 1, 3, 3}, {groups=2, pad=1}}, {{9, 6, 7, 7}, {6, 1, 3, 3}, {groups=6, pad=1}},
	-- depthwise: tails of vectors, a multiplier, strides, dilation, kernels of one to 36 taps, uneven padding, results narrower than tiles
	{{2, 8, 9, 7}, {8, 1, 3, 3}, {groups=8, pad=1}}, {{2, 15, 9, 9}, {30, 1, 3, 3}, {groups=15, pad=1, stride=2, act='relu'}},
	{{1, 64, 12, 13}, {64, 1, 5, 5}, {groups=64, pad=2}}, {{3, 33, 8, 8}, {99, 1, 3, 2}, {groups=33, pad={0, 1, 1, 0}}},
	{{1, 130, 11, 10}, {130, 1, 5, 5}, {groups=130, pad=2, stride={2, 3}}}, {{1, 20, 16, 17}, {20, 1, 3, 3}, {groups=20, dilation={2, 3}, pad={2, 3}}},
	{{2, 40, 5, 5}, {40, 1, 1, 1}, {groups=40, stride=2}}, {{1, 17, 7, 8}, {17, 1, 6, 6}, {groups=17, pad={5, 0, 2, 3}}}, {{2, 96, 3, 1}, {96, 1, 3, 1}, {groups=96}},
	{{2, 16, 6, 23}, {16, 1, 3, 3}, {groups=16, pad=1}}, {{1, 16, 5, 9}, {32, 1, 5, 3}, {groups=16, pad={2, 1}, act='relu'}}, -- pixels side by side
}
for i, shape in ipairs(shapes) do
	it('shape ' .. i, function()
		for _, dtype in ipairs {'uint8', 'int8', {dtype='int8', scheme='asymmetric'}} do
			for _, weight in ipairs {'int8/1', 'int8', 'uint8/1', 'int4/1'} do
				local x = (tensor.randn(table.unpack(shape[1])) + 0.5):quantize(dtype)
				local w = tensor.randn(table.unpack(shape[2])):quantize(weight)
				check(x, w, shape[3], nil)
				check(x, w, shape[3], tensor.randn(shape[2][1]))
			end
		end
	end)
end

it('extreme codes and long sums', function()
	local x = (tensor.full {1, 300, 5, 5, value=1.0}):quantize {dtype='uint8', scale=1 / 255, zero_point=0}
	assert(x:codes():min():item() == 255)
	local w = (tensor.full {3, 300, 5, 5, value=-1.0}):quantize {dtype='int8', scale=1 / 128}
	assert(w:codes():max():item() == -128)
	check(x, w, {pad=2})
end)

it('views, empty batches, and what falls back', function()
	local x, w = tensor.randn(4, 3, 6, 6):quantize 'uint8', tensor.randn(2, 3, 3, 3):quantize 'int8/1'
	assert(same(x[{{2, 3}}]:conv2d(w), x:conv2d(w)[{{2, 3}}]))
	assert(x:narrow(1, 1, 0 + 1):conv2d(w):size(1) == 1)
	local function reason(a, b) return a:conv2d(b):origin().reason end
	assert(reason(x, tensor.randn(2, 3, 3, 3)) == 'an operand is not quantized')
	assert(reason(tensor.randn(2, 3, 6, 6):quantize 'int8/1', w) == 'scale varies along the summed axes')
	assert(reason(x, tensor.randn(2, 3, 3, 3):quantize 'int8/2') == 'scale varies along the summed axes')
	assert(tensor.randn(1, 3, 6, 6):quantize('int16'):conv2d(w):origin().path == 'int16')
end)

it('no images, and no channels to sum', function()
	local w, spec = tensor.randn(2, 3, 3, 3):quantize 'int8/1', {dtype='uint8', scale=0.1, zero_point=3}
	local none = tensor.zeros(0, 3, 4, 4):quantize(spec):conv2d(w)
	assert(none:nelem() == 0 and none:size(2) == 2 and none:origin().path == 'int8')
	local empty, bias = tensor.zeros(1, 0, 4, 4):quantize(spec), tensor{0.5, -2}
	local y = empty:conv2d(tensor.zeros(2, 0, 3, 3):quantize {dtype='int8', scale=0.1}, bias)
	assert(y:origin().path == 'int8' and same(y, tensor.zeros(1, 2, 2, 2) + bias:view(1, 2, 1, 1)))
end)

it('out= holds for what falls back too', function()
	local x, w = tensor.randn(2, 3, 5, 5):quantize 'uint8', tensor.randn(2, 3, 3, 3)
	local out = {dtype='uint8', scale=0.1, zero_point=90}
	local y = x:conv2d(w, {out=out})
	assert(y:quantized() and y:dtype() == 'uint8' and y:origin().path == 'fallback')
	assert(y:origin().reason == 'an operand is not quantized')
	assert(same(y:codes(), x:dequantize():conv2d(w):quantize(out):codes()))
end)

it('refuses what has no meaning', function()
	local x, w = tensor.randn(1, 3, 4, 4):quantize 'uint8', tensor.randn(2, 3, 3, 3):quantize 'int8/1'
	local function message(...)
		local ok, text = pcall(...)
		assert(not ok)
		return text
	end
	assert(message(x.conv2d, x, w, {pad=-1}):find 'conv2d: pad: wanted 0 or more')
	assert(message(x.conv2d, x, w, {out='nope'}):find 'conv2d: out: spec: dtype: wanted a dtype like')
	assert(message(x.conv2d, x, tensor.randn(2, 4, 3, 3):quantize 'int8', {}):find 'conv2d: wanted w %(out, 3, kh, kw%)')
end)

it('a nan in the bias gives the zero point, infinities saturate', function()
	for _, groups in ipairs {1, 4} do -- by products, and tap by tap
		local x, w = tensor.randn(2, groups == 1 and 20 or 4, 5, 5):quantize 'uint8', tensor.randn(4, groups == 1 and 20 or 1, 3, 3):quantize 'int8/1'
		local bias, o = tensor {0 / 0, 1, 1 / 0, -1 / 0}, {groups=groups, out={dtype='uint8', scale=0.05, zero_point=100}}
		for _, act in ipairs {false, 'relu'} do
			o.act = act or nil
			local codes = x:conv2d(w, bias, o):codes():to 'int64'
			assert(codes[{{}, 1}]:eq(100):all():item() and codes[{{}, 3}]:eq(255):all():item())
			assert(codes[{{}, 4}]:eq(act and 100 or 0):all():item())
			local second = x:conv2d(w, tensor.ones(4), o):codes():to 'int64'
			assert(same(codes[{{}, 2}], second[{{}, 2}]))
		end
	end
end)

it('taps of the largest codes and zero points', function()
	for _, spec in ipairs {{dtype='uint8', scale=1.0, zero_point=0}, {dtype='uint8', scale=1.0, zero_point=255}, {dtype='int8', scale=1.0, zero_point=-128, scheme='asymmetric'}} do
		for _, value in ipairs {-1000.0, 1000.0} do
			local x = tensor.full({1, 4, 9, 9, value=value}):quantize(spec)
			for _, w in ipairs {{dtype='int8', scale=1 / 128}, {dtype='uint8', scale=1 / 255, zero_point=255}, {dtype='uint8', scale=1 / 255, zero_point=0}} do
				for _, sign in ipairs {-1.0, 1.0} do
					check(x, tensor.full({4, 4, 5, 5, value=sign}):quantize(w), {pad=2})
				end
			end
		end
	end
end)

it('taps too far apart for a copy, and no height', function()
	local x, w = tensor.randn(1, 2, 3, 3):quantize 'uint8', tensor.randn(2, 1, 2, 2):quantize 'int8/1'
	local y = x:conv2d(w, {groups=2, dilation={1, 700000}, pad={0, 700000}})
	assert(y:origin().kernel:find '^gemm_i8' and y:size(4) == 700003)
	assert(same(y[{{}, {}, {}, {350000, 350010}}], tensor.zeros(1, 2, 2, 11)))
	check(tensor.zeros(1, 2, 0, 3):quantize {dtype='uint8', scale=0.1, zero_point=7}, tensor.randn(2, 1, 2, 2):quantize 'int8', {groups=2, pad=1})
end)

it('packed weights that come again are unpacked once', function()
	for _, groups in ipairs {1, 6} do
		local x, w = tensor.randn(2, 6, 7, 7):quantize 'uint8', tensor.randn(6, 6 // groups, 3, 3):quantize 'int4/1'
		local function run(weight) return x:conv2d(weight, {groups=groups, pad=1}) end
		local want = run(w:clone())
		for _ = 1, 4 do assert(same(run(w), want)) end
		w[2][1][1][1] = w[2][1][1][1]:item() > 0 and -1 or 1
		local other = run(w)
		assert(not same(other, want))
		for _ = 1, 3 do assert(same(run(w), run(w:clone()))) end
		local bytes = tensor.memory().now
		w = nil -- luacheck: ignore 311
		collectgarbage() collectgarbage()
		assert(bytes - tensor.memory().now >= 36 * 9 // groups)
	end
end)

it('binary weights and inputs', function()
	for _, types in ipairs {{'uint8', 'binary/1'}, {'int4', 'binary'}, {'binary', 'binary/1'}, {'binary', 'int8/1'}} do
		for _, groups in ipairs {1, 6} do
			local x, w = tensor.randn(2, 6, 7, 7):quantize(types[1]), tensor.randn(6, 6 // groups, 3, 3):quantize(types[2])
			check(x, w, {groups=groups, pad=1})
			assert(x:conv2d(w, {groups=groups}):origin().path == 'int8')
		end
	end
end)

-- conv1d lays its images in one column
it('images of one column', function()
	for _, c in ipairs {{8, 20, 5, {}}, {16, 33, 3, {stride = 2, pad = 1}}, {12, 40, 3, {dilation = 2, pad = 2}}, {16, 21, 3, {groups = 16, pad = 1}}} do
		local planes, n, k, o = table.unpack(c)
		local groups, function_of = o.groups or 1, function(turned, extra)
			local function along(value, rest) return turned and {rest, value} or {value, rest} end
			local all = {stride = along(o.stride or 1, 1), dilation = along(o.dilation or 1, 1), pad = along(o.pad or 0, 0), groups = o.groups}
			for key, value in pairs(extra) do all[key] = value end
			return all
		end
		local x = (tensor.randn(2, planes, n, 1)):quantize 'uint8'
		local w = tensor.randn(groups > 1 and planes or 20, planes // groups, k, 1):quantize 'int8/1'
		local b = tensor.randn(w:size(1))
		local xt, wt = x:permute(1, 2, 4, 3), w:permute(1, 2, 4, 3)
		for _, extra in ipairs {{}, {act = 'relu'}, {out = {dtype = 'uint8', scale = 0.05, zero_point = 120}}} do
			local y, want = x:conv2d(w, b, function_of(false, extra)), xt:contiguous():conv2d(wt:contiguous(), b, function_of(true, extra))
			assert(y:origin().path:find 'int8' and y:size(4) == 1 and y:size(3) == want:size(4))
			local got, expected = y:permute(1, 2, 4, 3), want
			if extra.out then got, expected = got:codes(), expected:codes() end
			assert(got:eq(expected):all():item())
			assert(extra.out or (y - x:dequantize():conv2d(w:dequantize(), b, function_of(false, extra))):abs():max():item() < 1e-3)
		end
	end
end)

it('images that are one window', function()
	for _, n in ipairs {1, 5} do
		for _, size in ipairs {{1, 1}, {3, 2}} do
			for _, xs in ipairs {{dtype='uint8', scale=0.03, zero_point=100}, {dtype='int8', scale=0.02}} do
				local x = tensor.randn(n, 70, size[1], size[2]):quantize(xs)
				for _, ws in ipairs {'int8/1', 'uint8', 'int4/1'} do
					local w = tensor.randn(67, 70, size[1], size[2]):quantize(ws)
					check(x, w, {})
					check(x, w, {act='relu'}, tensor.randn(67))
				end
			end
		end
	end
end)
