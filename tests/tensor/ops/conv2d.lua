-- SPDX-License-Identifier: MIT
-- labels: quick noproducts host
-- conv2d and its gradients: against PyTorch 2 (float64), the float32 ways against the loops in float64, which way is
-- taken, same bits on any number of threads, bounded memory, and what is refused. tests/nn/gradients.lua compares the
-- gradients with finite differences.
local function sequence(k, ...)
	local n = 1
	for _, size in ipairs {...} do n = n * size end
	return (tensor.arange(1, n):to 'float64' * k):sin():view(...):detach()
end

local function near(got, wanted, tolerance)
	local worst = (got:to('float64'):reshape(-1) - tensor(wanted):to 'float64'):abs():max():item()
	assert(worst <= tolerance, ('off by %g'):format(worst))
end

-- option, sizes of x and w, then what PyTorch gives for y, dx, dw, db with the gradient sin(0.11 i)
local literals = {
	{{}, {1, 2, 3, 4}, {2, 2, 2, 2}, {0.6835, 1.50541, 2.18846, 2.79948, 2.64476, 2.19697, 2.23923,
		2.21152, 1.99838, 1.15239,
		0.634041, 0.14377}, {0.636209, 1.29428, 1.4795, 0.767287, 1.34913, 2.7223, 3.06695, 1.56371,
		0.782833, 1.54068, 1.71075,
		0.848545, 0.205327, 0.368844, 0.575925, 0.252679, 0.421754, 0.699763, 1.03102, 0.409798,
		0.155094, 0.191902, 0.342707,
		0.0943068}, {1.62419, 1.31612, -0.398443, -0.97436, 0.0908036, 0.703647, 1.71291, 1.62042,
		3.62989, 3.36748, 0.282977,
		-1.04491, -0.931926, 0.399876, 3.40957, 3.62949}, {2.21379, 5.09844}},
	{{stride={2, 1}, groups=2, dilation={1, 2}, pad={1, 0, 0, 1}}, {2, 2, 4, 5}, {4, 1, 3, 2},
		{2.32662, 1.99539, 1.45898,
		0.942385, -0.523248, -0.134316, 0.337683, 0.488568, 2.3515, 2.40725, 2.25107, 1.60828, 0.299455,
		-0.0697974, -0.315714,
		0.260645, 1.09997, 1.62393, 2.06311, 1.51082, 0.166459, -0.244676, -0.48769, 0.182234, -0.10656,
		0.585023, 1.3205,
		1.20305, 1.84065, 1.60223, 1.27002, 1.00259, -1.10678, -1.39907, -1.43711, -0.466719, 1.79631,
		1.79542, 1.61642, 1.05144,
		0.256533, -0.231493, -0.574298, -0.0122196, 0.290147, 0.731746, 1.1882, 1.06926, 2.09168,
		1.66174, 1.14189, 1.03004,
		0.49009, 1.04891, 1.60077, 1.38682, 2.89207, 2.66419, 2.1988, 1.57135, -0.0461357, -0.139026,
		-0.0900306, 0.454662},
		{0.803879, 0.921359, 1.73847, 1.95983, 0.955503, 1.68873, 1.84943, 3.59339, 3.88397, 1.93659,
		1.20199, 1.26782, 2.4725,
		2.58605, 1.29721, 1.04558, 1.13353, 2.0897, 2.24164, 1.05473, -0.66908, -0.554447, -1.28193,
		-1.03824, -0.605733,
		-0.826679, -0.62207, -1.48682, -1.05114, -0.629308, -0.176265, -0.0438579, -0.244366, 0.0305242,
		-0.0450833, -0.473064,
		-0.326943, -0.764639, -0.470914, -0.299344, -1.15872, -1.2328, -2.39577, -2.52624, -1.26323,
		-2.14443, -2.2218, -4.39017,
		-4.5081, -2.28089, -1.36295, -1.37389, -2.72999, -2.73261, -1.39466, -1.28886, -1.32627,
		-2.49571, -2.54881, -1.22964,
		0.249575, 0.118165, 0.397208, 0.123564, 0.126639, 0.0964319, -0.123169, -0.0543386, -0.510818,
		-0.198582, -0.278214,
		-0.40573, -0.693049, -0.952842, -0.448113, -0.0425253, -0.19458, -0.262387, -0.560463, -0.22232},
		{3.78497, 1.20067,
		-3.13116, -2.22203, 0.794869, 1.69703, 4.5334, 1.25182, -2.60784, -0.880037, 3.03067, 2.83739,
		-1.07764, -2.10569, 2.7338,
		2.56001, 0.734352, -0.681885, 0.503277, 1.08238, 2.46586, 1.2222, -2.05055, -2.20495}, {-2.25854,
		-0.0192144, 2.23406,
		2.86608}},
}
for i, c in ipairs(literals) do
	for dtype in ('float64 float32'):gmatch '%w+' do
		it(('PyTorch case %d in %s'):format(i, dtype), function()
			local x = sequence(0.37, table.unpack(c[2])):to(dtype):detach():requires_grad_()
			local w = sequence(0.23, table.unpack(c[3])):to(dtype):detach():requires_grad_()
			local b = sequence(0.5, c[3][1]):to(dtype):detach():requires_grad_()
			local y = x:conv2d(w, b, c[1])
			near(y, c[4], 2e-5)
			y:backward(sequence(0.11, y:size()):to(dtype))
			near(x:grad(), c[5], 2e-5)
			near(w:grad(), c[6], 2e-5)
			near(b:grad(), c[7], 2e-5)
		end)
	end
end

-- y, dx, dw, db of random operands
tensor.seed(3)
local function operands(n, c, h, w, o, kh, kw, option)
	return {tensor.randn(n, c, h, w), tensor.randn(o, c // (option.groups or 1), kh, kw), tensor.randn(o)}
end
local function run(given, option, dtype)
	local t = {}
	for i, x in ipairs(given) do t[i] = x:to(dtype or 'float32'):detach():clone():requires_grad_() end
	local y = t[1]:conv2d(t[2], t[3], option)
	y:backward(y:detach())
	return {y, t[1]:grad(), t[2]:grad(), t[3]:grad()}
end

local function rows_of(op)
	local found = {}
	for _, row in ipairs(quant.log()) do if row.op == op then found[#found + 1] = row end end
	return found
end

local function agree(name, n, c, h, w, o, kh, kw, option, kernels)
	it(name, function()
		local given = operands(n, c, h, w, o, kh, kw, option)
		quant.log(true)
		local got = run(given, option)
		for i, op in ipairs {'conv2d', 'conv2d_input', 'conv2d_weight'} do
			local rows = rows_of(op)
			assert(#rows == 1 and rows[1].path == 'float32' and rows[1].kernel:find(kernels[i]),
				('%s: %s'):format(op, rows[1].kernel))
		end
		quant.log(true)
		local wanted = run(given, option, 'float64')
		assert(rows_of('conv2d')[1].kernel == 'ref' and rows_of('conv2d_weight')[1].path == 'float64')
		for i = 1, 4 do
			local error = (got[i]:to 'float64' - wanted[i]):abs():max():item() / wanted[i]:abs():max():item()
			assert(error < 3e-6, ('%d: %g'):format(i, error))
		end
	end)
end
it('autopad pads for ceil(size / stride) results, odd rows last or first', function()
	local x, w, b = tensor.randn(2, 4, 7, 9), tensor.randn(6, 2, 4, 2), tensor.randn(6)
	for _, c in ipairs {{'same', {1, 2, 0, 1}, 1}, {'same_upper', {1, 2, 0, 1}, 1}, {'same_lower', {2, 1, 1, 0}, 1}, {'valid', {0, 0, 0, 0}, 1},
		{'same', {1, 2, 0, 1}, {2, 1}}, {'same_lower', {1, 0, 1, 0}, {3, 1}, 1}} do
		local o, p = {autopad=c[1], stride=c[3], groups=2}, {pad=c[2], stride=c[3], groups=2}
		local a = x
		if c[4] then a = x[{{}, {}, {1, 6}}] end -- 6 rows in steps of 3: one row is padded
		for _, dtype in ipairs {'float32', 'float64'} do
			local got, want = run({a, w, b}, o, dtype), run({a, w, b}, p, dtype)
			for i = 1, 4 do assert(got[i]:eq(want[i]):all():item()) end
		end
		local q, v = a:quantize 'uint8', w:quantize 'int8/1'
		local y = q:conv2d(v, o)
		assert(y:origin().path == 'int8' and y:eq(q:conv2d(v, p)):all():item())
	end
	local ok, message = pcall(x.conv2d, x, w, {autopad='same', pad=1, groups=2})
	assert(not ok and message:find 'conv2d: autopad: wanted pad= or autopad=, got both')
end)
local tiles, simd = {'^gemm_f32', '^gemm_f32', '^gemm_f32'}, {'^simd', '^simd', '^simd'}
agree('padding', 5, 7, 9, 11, 10, 3, 3, {pad=1}, tiles)
agree('stride', 5, 7, 9, 11, 10, 3, 3, {pad=1, stride=2}, tiles)
agree('padding at the bottom and right only', 3, 8, 8, 8, 12, 3, 3, {stride=2, pad={0, 1, 0, 1}}, tiles)
agree('everything uneven', 5, 7, 9, 11, 10, 3, 2, {pad={1, 0, 2, 1}, stride={2, 3}, dilation={2, 1}}, tiles)
agree('steps longer than the kernel', 2, 3, 7, 8, 4, 2, 2, {stride=3}, tiles)
agree('several pieces of channels, rows cut into blocks', 1, 64, 6, 19, 70, 3, 3, {pad=1}, tiles)
agree('columns cut into blocks', 2, 4, 1, 1500, 5, 1, 9, {pad={0, 4}}, tiles)
agree('one column', 2, 4, 1500, 1, 5, 9, 1, {pad={4, 0}}, tiles)
agree('points', 3, 20, 7, 7, 33, 1, 1, {}, tiles)
agree('large kernel', 2, 3, 24, 24, 8, 17, 17, {pad=3}, tiles)
agree('groups', 3, 12, 10, 11, 16, 3, 3, {pad=1, groups=4, stride={1, 2}}, tiles)
agree('one channel', 2, 1, 28, 28, 20, 5, 5, {}, {'^gemm_f32', '^simd', '^gemm_f32'})
agree('depthwise', 3, 8, 20, 21, 8, 3, 3, {pad=1, groups=8}, simd)
agree('depthwise, two of each, stride', 3, 8, 20, 37, 16, 3, 3, {pad=1, groups=8, stride=2}, simd)
agree('few small images', 5, 40, 4, 4, 23, 3, 3, {pad=1}, tiles)
agree('few images of 3 x 3, groups', 3, 12, 3, 3, 14, 3, 3, {pad=1, groups=2}, tiles)
agree('few images of 2 x 4', 3, 12, 2, 4, 14, 3, 3, {pad=1}, tiles)
agree('many small images', 70, 12, 4, 4, 23, 3, 3, {pad=1}, tiles)
agree('many small images, groups, stride', 33, 12, 5, 4, 24, 5, 3, {pad={2, 2, 1, 1}, stride={2, 1}, groups=3}, tiles)
agree('windows in the padding alone', 130, 3, 2, 3, 24, 3, 3, {pad={3, 1}}, tiles)

it('the same bits on any number of threads', function()
	local before = tensor.threads()
	for _, c in ipairs {{40, 30, 9, 9, 20, 3, 3, {pad=1}}, {9, 16, 20, 20, 16, 3, 3, {groups=16}},
		{70, 40, 4, 4, 40, 3, 3, {pad=1}}} do
		local given, first = operands(table.unpack(c)), nil
		for threads = 1, 3 do
			tensor.threads(threads)
			local got = run(given, c[8])
			first = first or got
			for i = 1, 4 do assert(got[i]:eq(first[i]):all():item(), ('%d threads, %d'):format(threads, i)) end
		end
	end
	tensor.threads(before)
end)

it('bias and activation are those of the ops, bit by bit', function()
	for _, c in ipairs {{3, 4, 9, 9, 5, 3, 3, {}}, {70, 4, 4, 4, 5, 3, 3, {pad=1}}, {3, 6, 9, 9, 6, 3, 3, {groups=6}}} do
		local x, w, b = table.unpack(operands(table.unpack(c)))
		local plain = x:conv2d(w, c[8]) + b:view(1, -1, 1, 1)
		assert(x:conv2d(w, b, c[8]):eq(plain):all():item())
		for _, act in ipairs {'relu', 'silu', 'hardswish'} do
			c[8].act = act
			assert(x:conv2d(w, b, c[8]):eq(plain[act](plain)):all():item(), act)
			c[8].act = nil
		end
	end
end)

it('with steps the results are those of some pixels, bit by bit', function()
	local before = tensor.threads()
	for i, c in ipairs {{3, 5, 16, 16, 7, 3, 3, {2, 2}, {pad=1}}, {2, 40, 15, 32, 70, 3, 3, {2, 2}, {pad=1}},
		{40, 16, 32, 32, 19, 1, 1, {2, 2}, {}}, {2, 6, 17, 19, 8, 5, 3, {3, 2}, {pad={2, 1}, groups=2}},
		{2, 4, 20, 24, 9, 3, 3, {2, 2}, {pad={2, 4}, dilation={2, 3}}}, {2, 4, 9, 50, 5, 3, 3, {1, 3}, {pad={1, 0, 0, 2}}},
		{3, 4, 21, 9, 5, 3, 1, {2, 1}, {pad={0, 2, 0, 0}}}, {3, 40, 8, 8, 70, 3, 3, {2, 2}, {pad=1}},
		{90, 20, 20, 21, 8, 3, 3, {2, 2}, {pad=1, dilation=1}},
		{1, 3, 500, 720, 4, 3, 3, {2, 2}, {pad=1}}} do
		local n, inputs, h, w, outputs, kh, kw, step, option = table.unpack(c)
		local x, weight, b = table.unpack(operands(n, inputs, h, w, outputs, kh, kw, option))
		local wanted = x:conv2d(weight, b, option):maxpool2d(1, {stride=step})
		option.stride = step
		for threads = 1, 3 do
			tensor.threads(threads)
			assert(x:conv2d(weight, b, option):eq(wanted):all():item(), ('%d, %d threads'):format(i, threads))
		end
	end
	tensor.threads(before)
end)

it('other dtypes, views and quantized operands', function()
	local x, w, b = table.unpack(operands(2, 3, 6, 5, 4, 3, 3, {}))
	local y = x:conv2d(w, b)
	local half = x:to('float16'):conv2d(w:to 'float16')
	assert(half:dtype() == 'float16' and x:to('float16'):conv2d(w):dtype() == 'float32')
	assert((half:to 'float32' - x:conv2d(w)):abs():max():item() < 0.05)
	local turned = x:permute(1, 2, 4, 3):contiguous():permute(1, 2, 4, 3)
	assert(turned:conv2d(w:flip(1):flip(1), b):eq(y):all():item())
	quant.log(true)
	local q = x:quantize 'int8'
	assert(q:conv2d(w, b):eq(q:dequantize():conv2d(w, b)):all():item())
	local fallbacks = 0
	for _, row in ipairs(rows_of 'conv2d') do fallbacks = fallbacks + (row.path == 'fallback' and row.count or 0) end
	assert(fallbacks == 1)
end)

it('nothing to do', function()
	local w = tensor.ones(4, 3, 3, 3)
	print(tensor.zeros(0, 3, 5, 5):conv2d(w):size())  --> 0 4 3 3
	print(tensor.ones(2, 3, 5, 5):conv2d(tensor.zeros(0, 3, 3, 3)):size())  --> 2 0 3 3
	local none, bias = tensor.ones(1, 0, 3, 3), tensor{1, -2}
	print(none:conv2d(tensor.ones(2, 0, 3, 3), bias, {act='relu'}):view(2))  --> float32(2)  1 0
	local x, v = tensor.zeros(0, 3, 5, 5):requires_grad_(), tensor.ones(4, 3, 3, 3):requires_grad_()
	x:conv2d(v):sum():backward()
	print(x:grad():size())  --> 0 3 5 5
	print(v:grad():abs():sum():item())  --> 0.0
end)

it('taps that lie too far apart for patches', function()
	quant.log(true)
	local x, w, far = tensor{{{{3}}}}, tensor.arange(1, 9):to('float32'):view(1, 1, 3, 3), 1000000
	print(x:conv2d(w, tensor{1}, {pad=far, dilation=far}):item(), rows_of('conv2d')[1].kernel)  --> 16.0 ref
	local v, u = x:detach():requires_grad_(), w:detach():requires_grad_()
	v:conv2d(u, {pad=far, dilation=far, act='relu'}):sum():backward()
	print(v:grad():item(), u:grad():sum():item())  --> 5.0 3.0
end)

it('does not unfold the batch', function()
	local x, w = tensor.zeros(64, 64, 32, 32):requires_grad_(), tensor.zeros(8, 64, 3, 3):requires_grad_()
	collectgarbage()
	collectgarbage()
	local before = tensor.memory().now
	local y = x:conv2d(w, {pad=1})
	y:backward(y:detach())
	local more = tensor.memory().peak - before
	assert(more < 40 << 20, ('%d bytes; unfolded it is 151 MB'):format(more)) -- x's gradient is 16.8 MB, y 2.1 MB
end)

local x, w = tensor.ones(2, 4, 5, 6), tensor.ones(6, 4, 3, 3)
local function refused(pattern, ...)
	local ok, message = pcall(x.conv2d, ...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('conv2d: wanted x (n, c, h, w) and w (out, c / groups, kh, kw), got (4, 5, 6) and (6, 4, 3, 3)', x[1], w)
refused('conv2d: wanted w (out, 4, kh, kw) for x (2, 4, 5, 6) in 1 group, got (6, 2, 3, 3)', x, tensor.ones(6, 2, 3, 3))
refused('conv2d: groups: wanted a divisor of 4 channels and of 6 outputs, got 4', x, w, {groups=4})
refused('conv2d: groups: wanted a divisor of 4 channels and of 6 outputs, got 0', x, w, {groups=0})
refused('conv2d: bias: wanted shape (6), got (5)', x, w, tensor.ones(5))
refused('conv2d: stride: wanted 1 or more and at most 1073741824, got 0', x, w, {stride=0})
refused('conv2d: dilation: wanted 1 or more and at most 1073741824, got -1', x, w, {dilation={1, -1}})
refused('conv2d: pad: wanted 0 or more and at most 1073741824, got -1', x, w, {pad={0, 0, -1, 0}})
refused('conv2d: pad: wanted a number, {h, w} or {top, bottom, left, right}, got 3 numbers', x, w, {pad={1, 1, 1}})
refused('conv2d: stride: wanted a number or {h, w}, got 3 numbers', x, w, {stride={1, 1, 1}})
refused('a kernel of 3 x 3 that reaches over 7 rows of 5', x, w, {dilation=3})
refused('a kernel of 7 x 7 that reaches over 7 rows of 5', x, tensor.ones(1, 4, 7, 7))
refused('conv2d: wanted a kernel of at least 1 x 1, got 0 x 3', x, tensor.ones(6, 4, 0, 3))
refused('conv2d: operand 2: wanted floats, a quantized tensor, or integers only, got int32', x, w:to 'int32')
refused("conv2d: unknown option 'padding'", x, w, {padding=1})

it('leaves out what no tap reads, with larger steps', function()
	tensor.seed(5)
	for _, size in ipairs {{7, 9}, {8, 32}, {5, 33}, {16, 47}} do
		local x = tensor.randint{low=-8, high=8, 2, 3, size[1], size[2]}
		for _, kernel in ipairs {{1, 1}, {1, 2}, {2, 1}, {3, 3}, {1, 3}} do
			local w = tensor.randint{low=-8, high=8, 17, 3, kernel[1], kernel[2]}
			for stride = 2, 4 do
				for _, pad in ipairs {{0, 0, 0, 0}, {1, 0, 1, 0}, {0, 1, 0, 1}, {1, 1, 1, 1}} do
					local o = {stride=stride, pad=pad}
					local y, exact = x:to 'float32':conv2d(w:to 'float32', o), x:to 'float64':conv2d(w:to 'float64', o)
					assert(y:to 'float64':eq(exact):all():item(), ('%d x %d, kernel %d x %d, stride %d'):format(size[1], size[2], kernel[1], kernel[2], stride))
				end
			end
		end
	end
end)

it('sums plain integers exactly', function()
	local function codes(dtype, step, most, ...)
		local sizes, n, list = {...}, 1, {dtype=dtype}
		for _, size in ipairs(sizes) do n = n * size end
		for i = 1, n do list[i] = (i * step + i * i * 5) % most - (dtype:find '^u' and 0 or most // 2) end
		return tensor(list):view(table.unpack(sizes))
	end
	for _, c in ipairs {{'int8', 'int8', 256, 'int32'}, {'uint8', 'int8', 256, 'int32'}, {'int16', 'int8', 200, 'int64'}, {'int32', 'int32', 100001, 'int64'},
		{'int64', 'int64', 1 << 21, 'int64'}} do
		local x, w = codes(c[1], 37, c[1] == 'int16' and 65536 or c[3], 2, 4, 6, 7), codes(c[2], 53, c[3], 6, 2, 3, 2)
		local b = codes('int32', 7, 1000, 6)
		local y = x:conv2d(w, b, {pad={1, 0}, stride={2, 1}, dilation={1, 2}, groups=2})
		assert(y:dtype() == c[4] and x:conv2d(w, {groups=2}):dtype() == c[4], y:dtype())
		local X, W, B, Y = x:totable(), w:totable(), b:totable(), y:totable()
		for n = 1, 2 do
			for o = 1, 6 do
				for i, row in ipairs(Y[n][o]) do
					for j, got in ipairs(row) do
						local sum = B[o]
						for ch = 1, 2 do
							for p = 1, 3 do
								for q = 1, 2 do
									local line = X[n][(o > 3 and 2 or 0) + ch][(i - 1) * 2 + p - 1]
									sum = sum + (line and line[j + (q - 1) * 2] or 0) * W[o][ch][p][q]
								end
							end
						end
						assert(got == sum, ('%s: %d instead of %d'):format(c[1], got, sum))
					end
				end
			end
		end
	end
	local x, w = codes('int8', 37, 256, 2, 3, 5, 5), codes('int8', 53, 256, 2, 3, 3, 3)
	assert(x:conv2d(w, {act='relu'}):eq(x:conv2d(w):maximum(0)):all():item() and x:transpose(3, 4):conv2d(w):eq(x:transpose(3, 4):contiguous():conv2d(w)):all():item())
	assert(x:narrow(1, 1, 0):conv2d(w):nelem() == 0)
	print(pcall(x.conv2d, x, w:to 'float32'))  --> false conv2d: operand 1: wanted floats, a quantized tensor, or integers only, got int8(2, 3, 5, 5)
	print(pcall(x.conv2d, x:to 'int64' * (1 << 40), w:to 'int64'))  --> false conv2d: wanted integers whose sums are below 9007199254740992, got up to ...
end)
