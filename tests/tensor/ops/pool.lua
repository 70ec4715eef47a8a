-- SPDX-License-Identifier: MIT
-- labels: quick host
-- maxpool2d and avgpool2d: against PyTorch 2, the float32 shortcuts against the plain rows, nan, ties, and what is
-- refused. tests/nn/gradients.lua compares the gradients with finite differences.
local function sequence(k, ...)
	local n = 1
	for _, size in ipairs {...} do n = n * size end
	return (tensor.arange(1, n):to 'float64' * k):sin():view(...):detach()
end
local function near(got, wanted)
	assert((got:to('float64'):reshape(-1) - tensor(wanted):to 'float64'):abs():max():item() <= 2e-6)
end

-- name, arguments, then what PyTorch gives for y and dx with the gradient sin(0.7 i)
for _, c in ipairs {
	{'maxpool2d', {3, {stride=2, pad=1}}, {0.796565, 0.995881, 0.995881, 0.796565, 0.679305,
		0.898708}, {0, 0, 0, 1.84866, 0,
		0.979206, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -0.350783, -0.871576}},
	{'avgpool2d', {{3, 2}, {stride={2, 1}, pad={1, 1}}}, {0.19303, 0.392752, 0.379105, 0.314147,
		0.206671, 0.0719065, -0.0598925,
		-0.131938, -0.146492, -0.14122, -0.116834, -0.0500613}, {0.271611, 0.30811, 0.1997, -0.00263251,
		-0.203727, 0.00265803,
		0.205701, 0.312, 0.27156, 0.103401, -0.268953, -0.102409, 0.1123, 0.274192, 0.307128, -0.268953,
		-0.102409, 0.1123,
		0.274192, 0.307128}},
	{'avgpool2d', {}, {0.0974721}, {}},
} do
	for dtype in ('float32 float64'):gmatch '%w+' do
		it(('%s as PyTorch in %s'):format(c[1], dtype), function()
			local x = sequence(0.37, 1, 1, 4, 5):to(dtype):detach():requires_grad_()
			local y = x[c[1]](x, table.unpack(c[2]))
			near(y, c[3])
			y:backward(sequence(0.7, y:size()):to(dtype))
			if #c[4] > 0 then near(x:grad(), c[4]) else near(x:grad(), tensor.full{20, value=0.0322109}:totable()) end
		end)
	end
end

-- The shortcuts of float32 have the result and the gradient of float64, which has none.
tensor.seed(5)
local function same(op, x, ...)
	local a, b = x:detach():requires_grad_(), x:to('float64'):detach():requires_grad_()
	local y, z = a[op](a, ...), b[op](b, ...)
	local g = tensor.randn(y:size())
	y:backward(g)
	z:backward(g:to 'float64')
	local function equal(p, q)
		return ((p:to 'float64' - q):abs():le(1e-6) + (p:isnan() * q:isnan())):gt(0):all():item()
	end
	assert(equal(y, z) and equal(a:grad(), b:grad()), op)
end
it('windows of 2 x 2 side by side, any width', function()
	for _, width in ipairs {2, 4, 8, 16, 34, 130, 300} do same('maxpool2d', tensor.randn(3, 2, 4, width), 2) end
	same('maxpool2d', tensor.randn(2, 2, 5, 7), 2)
	same('maxpool2d', tensor.randn(2, 2, 6, 600), 2, {stride=1})
	same('maxpool2d', tensor.randn(2, 2, 9, 900), 3, {stride=3, pad=1})
end)
it('equal numbers and nan', function()
	same('maxpool2d', tensor.ones(1, 1, 4, 40), 2)
	same('maxpool2d', tensor.ones(1, 1, 4, 40), 3, {stride=1})
	local x = tensor.randn(1, 1, 8, 40)
	for i = 1, 8 do x[1][1][i][5 * i - 2] = 0 / 0 end
	assert(x:maxpool2d(2):isnan():sum():item() == 8)
	same('maxpool2d', x, 2)
	same('maxpool2d', x, 3, {stride=2, pad=1})
	assert(tensor.full{1, 1, 2, 2, value=-math.huge}:maxpool2d(2):item() == -math.huge)
end)
it('whole planes of any size', function()
	for _, s in ipairs {{1, 1}, {3, 5}, {4, 4}, {16, 16}, {17, 40}} do
		same('avgpool2d', tensor.randn(3, 2, table.unpack(s)))
	end
	print(tensor.randn(2, 3, 4, 5):avgpool2d('all'):size())  --> 2 3 1 1
	print(tensor.randn(2, 3, 4, 5):avgpool2d{k='all'}:size())  --> 2 3 1 1
end)
it('other dtypes, nothing to do, and the ledger', function()
	local x = tensor.randn(2, 3, 4, 4)
	assert(x:to('float16'):maxpool2d(2):eq(x:to('float16'):to('float32'):maxpool2d(2):to 'float16'):all():item())
	assert(x:permute(1, 2, 4, 3):maxpool2d(2):eq(x:maxpool2d(2):permute(1, 2, 4, 3)):all():item())
	print(tensor.zeros(0, 3, 4, 4):maxpool2d(2):size())  --> 0 3 2 2
	quant.log(true)
	x:maxpool2d(2)
	x:to('float64'):avgpool2d(2)
	for _, row in ipairs(quant.log()) do
		local path = {maxpool2d='float32', avgpool2d='float64'}
		if path[row.op] then assert(row.kernel:find '^simd' and row.path == path[row.op]) end
	end
	local q = x:quantize 'int8'
	assert(q:maxpool2d(2):eq(q:dequantize():maxpool2d(2)):all():item())
end)

local x = tensor.ones(2, 3, 5, 6)
local function refused(pattern, op, ...)
	local ok, message = pcall(x[op], ...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('maxpool2d: k: wanted the window: a number, {h, w} or \'all\', got nothing', 'maxpool2d', x)
refused('maxpool2d: autopad: wanted pad= or autopad=, got both', 'maxpool2d', x, 3, {pad=1, autopad='same'})
refused("maxpool2d: autopad: wanted one of same same_upper same_lower valid, got 'full'", 'maxpool2d', x, 3, {autopad='full'})
refused('maxpool2d: wanted a kernel no larger than the padded input, got a kernel of 6 x 6', 'maxpool2d', x, 6)
refused('avgpool2d: wanted a kernel of at least 1 x 1, got 0 x 2', 'avgpool2d', x, {0, 2})
refused('avgpool2d: k: wanted a number or {h, w}, got 3 numbers', 'avgpool2d', x, {1, 2, 3})
refused("avgpool2d: k: wanted one of all, got 'any'", 'avgpool2d', x, 'any')
refused('avgpool2d: wanted a kernel of at least 1 x 1, got 0 x 4', 'avgpool2d', tensor.zeros(2, 3, 0, 4))
refused('maxpool2d: wanted x (n, c, h, w), got (3, 5, 6)', 'maxpool2d', x[1], 2)
refused('avgpool2d: wanted floats or a quantized tensor, got int32', 'avgpool2d', x:to 'int32', 2)
refused('maxpool2d: wanted floats, integers or a quantized tensor, got bool', 'maxpool2d', x:gt(0), 2)
refused('maxpool2d: stride: wanted 1 or more and at most 1073741824, got 0', 'maxpool2d', x, 2, {stride=0})

it('a window as large as the plane that begins in the padding', function()
	local x = tensor.arange(1, 16):to 'float32':view(1, 1, 4, 4)
	print(x:avgpool2d(4, {stride=2, pad={1, 0, 1, 0}}):item() * 16)  --> 54.0
	print(x:to('float64'):avgpool2d(4, {stride=2, pad={1, 0, 1, 0}}):item() * 16)  --> 54.0
	x:requires_grad_()
	x:avgpool2d(4, {stride=2, pad={1, 0, 1, 0}}):sum():backward()
	print(x:grad():sum():item() * 16)  --> 9.0
end)

-- op, arguments, then what PyTorch 2.x gives for y (values of sin(0.37 i), 2 planes of 7 x 6)
local wide = sequence(0.37, 1, 2, 7, 6)
for i, c in ipairs {
	{'maxpool2d', {3, {stride=2, pad=1, ceilmode=true, dilation={2, 1}}}, {0.8987, 0.9965, 0.9594, 0.5182, 0.8987, 0.9965, 0.9594, 0.6843, 0.8987,
		0.9965, 0.9594, 0.6843, -0.3425, 0.3806, 0.9046, 0.9046, 0.9534, 0.7798, 0.9046, 0.9046, 0.9534, 0.7798, 0.1537, -0.5528}},
	{'avgpool2d', {3, {stride=2, pad=1, ceilmode=true}}, {0.1934, 0.2255, 0.0511, -0.0278, 0.0439, 0.0445, -0.0005, -0.0128, 0.0005, 0.0356,
		0.0642, 0.0347, 0.0383, 0.1937, 0.2822, 0.1419, -0.1937, -0.2509, -0.0969, 0.0030, -0.0454, -0.0522, -0.0107, 0.0072, 0.0072, -0.0258,
		-0.0604, -0.0348, -0.0060, -0.1565, -0.2746, -0.1471}},
	{'avgpool2d', {3, {stride=2, pad=1, ceilmode=true, countincludepad=false}}, {0.4351, 0.3382, 0.0767, -0.0833, 0.0658, 0.0445, -0.0005,
		-0.0256, 0.0007, 0.0356, 0.0642, 0.0693, 0.0862, 0.2905, 0.4233, 0.4257, -0.4359, -0.3764, -0.1454, 0.0091, -0.0681, -0.0522, -0.0107,
		0.0145, 0.0108, -0.0258, -0.0604, -0.0696, -0.0134, -0.2347, -0.4119, -0.4412}},
	{'avgpool2d', {{2, 3}, {stride=2, ceilmode=true}}, {0.4082, 0.2225, -0.0015, 0.0029, 0.2884, 0.4214, -0.4097, -0.3777, -0.2252, 0.9520,
		0.7527, 0.3398, -0.4220, -0.2798, -0.0716, 0.0681, -0.2323, -0.3960, 0.3853, 0.4048, 0.2847, -0.9263, -0.8403, -0.4892}},
} do
	for dtype in ('float32 float64'):gmatch '%w+' do
		it(('options of %s as PyTorch, %d, in %s'):format(c[1], i, dtype), function()
			local y = wide:to(dtype)[c[1]](wide:to(dtype), table.unpack(c[2]))
			assert((y:to('float64'):reshape(-1) - tensor(c[3]):to 'float64'):abs():max():item() <= 6e-5)
		end)
	end
end

it('places of the largest numbers as PyTorch, less 1', function()
	local y, places = wide:maxpool2d(3, {stride=2, pad=1, indices=true})
	local want = {2, 4, 4, 20, 21, 22, 20, 21, 22, 38, 38, 40, 1, 10, 12, 13, 14, 12, 31, 32, 30, 31, 32, 34}
	assert(places:dtype() == 'int64' and places:view(24):eq(tensor(want)):all():item())
	assert(y:view(2, 12):eq(wide:view(2, 42):gather(2, places:view(2, 12))):all():item())
	local _, same = tensor.ones(1, 1, 4, 4):maxpool2d(2, {indices=true})
	print(same:view(4))  --> int64(4)  1  3  9 11
	local lone, none = tensor.ones(1, 1, 2, 2):maxpool2d(1, {pad=1, indices=true})
	print(none:view(4, 4)[2], lone:view(16)[1]:item())  --> int64(4) 0 1 2 0 -inf
	local q = wide:to('float32'):quantize 'int8'
	local codes, where = q:maxpool2d(3, {stride=2, indices=true})
	local _, again = q:dequantize():maxpool2d(3, {stride=2, indices=true})
	assert(codes:quantized() and codes:origin().path == 'integer' and where:eq(again):all():item())
	local x = wide:detach():requires_grad_()
	local v = x:maxpool2d(2, {indices=true})
	v:sum():backward()
	assert(x:grad():sum():item() == v:nelem())
end)

-- Any options against the definition, with padding as it is.
local function by_definition(op, x, k, o)
	local h, w = x:size(3), x:size(4)
	local plane, d = x:view(h, w):totable(), o.dilation or 1
	local function along(n, before, after)
		local room, s = n + before + after - d * (k - 1) - 1, o.stride
		local out = (o.ceilmode and -(-room // s) or room // s) + 1
		return o.ceilmode and (out - 1) * s >= n + before and out - 1 or out
	end
	local top, bottom, left, right = table.unpack(o.pad)
	local list = {}
	for i = 0, along(h, top, bottom) - 1 do
		for j = 0, along(w, left, right) - 1 do
			local sum, most, count = 0, -math.huge, 0
			for a = 0, k - 1 do
				for b = 0, k - 1 do
					local y, z = i * o.stride - top + a * d, j * o.stride - left + b * d
					local inside = y >= 0 and y < h and z >= 0 and z < w
					if inside then sum, most = sum + plane[y + 1][z + 1], math.max(most, plane[y + 1][z + 1]) end
					local padded = y < h + bottom and z < w + right
					if inside or o.countincludepad ~= false and padded then count = count + 1 end
				end
			end
			list[#list + 1] = op == 'maxpool2d' and most or sum / math.max(count, 1)
		end
	end
	list.dtype = 'float64'
	return tensor(list)
end
it('any options, wide padding too, against the definition', function()
	local x = sequence(0.53, 1, 1, 6, 9)
	for _, o in ipairs {{pad={3, 0, 1, 2}, stride=2}, {pad={0, 3, 3, 0}, stride=1, ceilmode=true}, {pad={2, 2, 2, 2}, stride=3, ceilmode=true},
		{pad={1, 0, 0, 1}, stride=4, ceilmode=true}, {pad={5, 5, 5, 5}, stride=2}} do
		for k = 1, 3 do
			for _, more in ipairs {{'maxpool2d', 'dilation', 2}, {'maxpool2d', 'dilation', 1}, {'avgpool2d', 'countincludepad', false}, {'avgpool2d', 'countincludepad', true}} do
				local op, options = more[1], {[more[2]] = more[3]}
				for name, value in pairs(o) do options[name] = value end
				local want, got = by_definition(op, x, k, options), x[op](x, k, options)
				assert(want:nelem() == got:nelem())
				local y = got:reshape(-1)
				assert((y:eq(want) + (y - want):abs():lt(1e-12)):gt(0):all():item())
				assert((x:to('float32')[op](x:to 'float32', k, options):reshape(-1):eq(want:to 'float32') +
					(x:to('float32')[op](x:to 'float32', k, options):reshape(-1) - want:to 'float32'):abs():lt(1e-6)):gt(0):all():item())
			end
		end
	end
end)

it('autopad: sizes are those of x divided by the stride, odd padding last or first', function()
	local x = tensor.arange(1, 5):to('float32'):view(1, 1, 1, 5)
	print(x:maxpool2d({1, 2}, {stride=1, autopad='same'}):view(5))  --> float32(5) 2 3 4 5 5
	print(x:maxpool2d({1, 2}, {stride=1, autopad='same_lower'}):view(5))  --> float32(5) 1 2 3 4 5
	print(x:avgpool2d({1, 3}, {stride=2, autopad='same_upper', countincludepad=false}):view(3))  --> float32(3) 1.5000 3.0000 4.5000
	print(x:avgpool2d({1, 3}, {stride=2, autopad='same'}):view(3))  --> float32(3) 1.0000 3.0000 3.0000
	print(x:maxpool2d({1, 2}, {autopad='valid'}):view(2))  --> float32(2) 2 4
	print(tensor.randn(2, 3, 4, 5):maxpool2d('all'):size())  --> 2 3 1 1
end)

it('takes the largest of integers', function()
	for _, dtype in ipairs {'int8', 'uint8', 'int16', 'int32', 'int64'} do
		local x = (tensor.rand(2, 3, 7, 8) * 100 - (dtype:find '^u' and 0 or 50)):to(dtype)
		for _, o in ipairs {{}, {stride=1, pad=1}, {stride=2, dilation=2}, {stride=2, ceilmode=true, pad={1, 0}}, {indices=true}} do
			local y, at = x:maxpool2d(3, o)
			local want, place = x:to 'float64':maxpool2d(3, o)
			assert(y:dtype() == dtype and y:to 'float64':eq(want):all():item() and (not at or at:eq(place):all():item()))
		end
		assert(x:permute(1, 2, 4, 3):maxpool2d 'all':eq(x:maxpool2d 'all'):all():item())
	end
	local big = tensor {dtype='int64', {1 << 62, (1 << 62) + 1}}:view(1, 1, 1, 2)
	assert(big:maxpool2d({1, 2}):item() == (1 << 62) + 1)
	local edge = tensor {dtype='int8', -5}:view(1, 1, 1, 1):maxpool2d(1, {pad=1}):view(-1):totable()
	assert(edge[1] == -128 and edge[5] == -5)
	print(pcall(big.avgpool2d, big))  --> false avgpool2d: wanted floats or a quantized tensor, got int64(1, 1, 1, 2)
end)
