-- SPDX-License-Identifier: MIT
-- labels: quick host
-- x:conv3d, x:maxpool3d and x:avgpool3d: against PyTorch 2 (float64), codes, graphs, and what is refused.
local function sequence(k, ...)
	local n = 1
	for _, size in ipairs {...} do n = n * size end
	return (tensor.arange(1, n):to 'float64' * k):sin():view(...):detach()
end
local function near(got, wanted)
	wanted.dtype = 'float64'
	assert(got:nelem() == #wanted and (got:to('float64'):reshape(-1) - tensor(wanted)):abs():max():item() < 2e-4)
end

it('conv3d, values and gradients of PyTorch', function()
	for dtype in ('float32 float64'):gmatch '%w+' do
		local function leaf(k, ...) return sequence(k, ...):to(dtype):detach():requires_grad_() end
		local x, w, b = leaf(0.37, 1, 2, 4, 3, 3), leaf(0.53, 2, 1, 2, 2, 2), leaf(0.9, 2)
		local y = x:conv3d(w, b, {stride={2, 1, 2}, pad={1, 0, 1}, dilation={2, 1, 1}, groups=2})
		near(y, {1.6899, 1.5188, 1.1379, 0.056336, 0.29528, -1.674, -0.36587, -1.042, -0.43732, -0.72147, 0.68432, 2.2162, 0.55451, 2.099, 1.8092,
	3.145})
		y:backward(sequence(0.11, y:size()):to(dtype))
		near(x:grad(), {0, 0, 0, 0, 0, 0, 0, 0, 0, 0.45175, 0.41296, 0.52648, 0.9429, 1.0862, 0.98463, 0.30521, 0.54132, 0.2781, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	-0.02007, 0.28941, -0.023542, -0.49217, 0.033777, -0.57557, -0.6199, -0.41488, -0.68633, 0, 0, 0, 0, 0, 0, 0, 0, 0, -0.065506,
	-0.48965, -0.023282, 0.77269, 0.021367, 0.86041, 0.83469, 0.53423, 0.86038, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.89832, 0.56998, 0.90687,
	1.7068, 1.555, 1.7011, 0.80783, 0.97763, 0.79591})
		near(w:grad(), {-1.1789, -2.0761, -0.54205, -0.89422, -1.6585, -2.7944, -0.31063, -0.35566, -1.3297, -2.4801, 0.33463, 0.63577, -2.0735, -3.7868,
	1.281, 2.4258})
	end
end)

it('pooling, values of PyTorch', function()
	local x = sequence(0.37, 1, 1, 5, 4, 5)
	near(x:maxpool3d({3, 2, 2}, {stride={2, 1, 2}, pad=1, dilation={2, 1, 1}, ceilmode=true}), {0.99648, 0.95937, 0.51823, 0.99648, 0.95937, 0.69416, 0.90749, 0.99798, 0.77979, 0.90749, 0.99798, 0.95743, 0.68429, 0.99702,
	0.95743, 0.99648, 0.95937, 0.51823, 0.99648, 0.95937, 0.69416, 0.90749, 0.99798, 0.77979, 0.90749, 0.99798, 0.95743, 0.68429,
	0.99702, 0.95743})
	near(x:avgpool3d({3, 2, 2}, {stride={2, 1, 2}, pad=1, ceilmode=true, countincludepad=false}), {0.67905, 0.83045, 0.66232, 0.49017, 0.33576, -0.0034189, -0.27191, -0.45089, -0.48132, -0.3403, -0.087241, 0.26872, 0.16452,
	0.56837, 0.83092, 0.3206, -0.010477, -0.42238, -0.14213, -0.29935, -0.36785, -0.29604, -0.12677, 0.14088, 0.3053, 0.36923, 0.29021,
	0.59782, 0.40375, -0.014668, -0.76964, -0.82749, -0.54297, -0.45, -0.25117, 0.10736, 0.35556, 0.48671, 0.44152, 0.25403, -0.017092,
	-0.35072, -0.33344, -0.68246, -0.82678})
	near(x:avgpool3d({2, 2, 3}, {stride=2, pad={1, 0, 1}, ceilmode=true}), {0.19638, 0.25693, 0.10334, -0.17602, -0.14974, 0.0013438, -0.0045585, -0.26245, -0.30158, 0.18106, 0.44018, 0.3324, -0.26082,
	-0.16223, 0.071576, 0.11026, -0.10592, -0.23381})
	assert((x:avgpool3d():item() - x:mean():item()) ^ 2 < 1e-24 and x:maxpool3d({5, 4, 5}):item() == x:max():item())
	local a = x:detach():requires_grad_()
	a:maxpool3d(2):add(a:avgpool3d(2)):sum():backward()
	assert(math.abs(a:grad():sum():item() - 16) < 1e-12)
end)

it('unequal padding, groups and steps against the sum by its definition', function()
	local x, w = sequence(0.7, 2, 4, 5, 4, 3), sequence(0.3, 6, 2, 3, 2, 2)
	local y = x:conv3d(w, {stride={2, 1, 1}, pad={2, 0, 1, 0, 0, 1}, groups=2})
	print(y:size())  --> 2 6 3 4 3
	local p = x:pad {0, 1, 1, 0, 2, 0}
	for _, at in ipairs {{1, 1, 1, 1, 1}, {2, 5, 3, 4, 3}, {1, 3, 2, 2, 2}, {2, 6, 1, 3, 3}} do
		local n, o, d, i, j = table.unpack(at)
		local first = o <= 3 and 1 or 3
		local window = p[{{n, n}, {first, first + 1}, {2 * d - 1, 2 * d + 1}, {i, i + 1}, {j, j + 1}}]
		assert(math.abs((window * w[{{o, o}}]):sum():item() - y[n][o][d][i][j]:item()) < 1e-12)
	end
end)

it('codes and graphs', function()
	local x = sequence(0.7, 2, 2, 4, 4, 4):to 'float32'
	local q = x:quantize 'uint8'
	local most = q:maxpool3d(2, {stride=1})
	assert(most:quantized() and most:dequantize():eq(q:dequantize():maxpool3d(2, {stride=1})):all():item())
	local m = nn.Sequential {nn.Conv3d(2, 4, 3, 1, 1), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(4, 2, {1, 2, 2}), nn.AvgPool3d()}
	local g = graph.trace(m, x)
	local more = sequence(0.9, 5, 2, 4, 4, 4):to 'float32'
	assert(g:run(more):eq(m(more):detach()):all():item())
	m:calibrate({{more, more}}, {log=false})
	for _, o in ipairs {{mode='static'}, {mode='static', weight='int4/1'}, {mode='dynamic', weight='int8/1'}, {mode='weight_only', weight='int8:9'}, {mode='weight_only', weight='nf4'}} do
		local quantized = m:quantize(o)
		quant.log 'reset'
		local y = quantized(more)
		for _, row in ipairs(quant.log()) do
			if row.op == 'conv2d' then assert(row.path == (o.mode == 'weight_only' and 'weight_only' or 'int8'), row.path) end
			assert(o.mode ~= 'static' or row.path ~= 'fallback' or row.op == 'avgpool2d', row.op)
		end
		assert(y:error(m(more)).sqnr > (o.weight and o.weight:find '4' and 10 or 25))
		if not (o.weight or ''):find ':' and o.weight ~= 'nf4' then
			assert(graph.trace(m, x):calibrate({{more, more}}, {log=false}):quantize(o):run(more):error(y).max < (o.mode == 'static' and 0.1 or 1e-6))
		end
	end
end)

it('conv3d of codes: exact sums, the codes of conv2d of the slices, on every level', function()
	local x, w, b = sequence(0.7, 2, 4, 5, 6, 6):to 'float32', sequence(0.3, 6, 2, 3, 2, 2):to 'float32', sequence(0.9, 6):to 'float32'
	local o = {stride={2, 1, 1}, pad={2, 1, 1, 0, 0, 1}, groups=2, dilation={1, 2, 1}}
	local levels = 0
	for _, types in ipairs {{'uint8', 'int8/1'}, {'int8', 'int8'}, {'int8', 'int4/1'}, {'int16', 'int8/1'}, {{dtype='uint8', scheme='asymmetric'}, {dtype='uint8', scheme='asymmetric'}}} do
		local q, v = x:quantize(types[1]), w:quantize(types[2])
		local want = q:dequantize():to('float64'):conv3d(v:dequantize():to 'float64', b:to 'float64', o)
		local out = {dtype='int8', scale=0.05, zero_point=3}
		o.out = out
		local codes = q:conv3d(v, b, o)
		o.out = nil
		assert((q:conv3d(v, b, o):to 'float64' - want):abs():max():item() < 1e-5 and codes:dtype() == 'int8')
		local off = (codes:codes():to 'int32' - want:to('float32'):quantize(out):codes():to 'int32'):abs()
		assert(off:max():item() <= 1 and off:sum():item() <= 10)
		for _, level in ipairs {'ref', 'avx2', 'avxvnni', 'avx512vnni', 'amx'} do
			if pcall(hw.force, level) then
				levels = levels + 1
				o.out = out
				assert(q:conv3d(v, b, o):codes():eq(codes:codes()):all():item(), level)
				o.out = nil
			end
		end
		hw.force(os.getenv 'QUOLL_KERNEL' or 'native')
		local slices = {}
		local p = q:pad {0, 0, 0, 0, 2, 1}
		for d = 1, 3 do -- of the second window; the channels' slices one after the other
			slices[d] = p:select(3, 2 + d):dequantize():unsqueeze(3)
		end
		local image = tensor.cat(slices, {axis=3}):view(2, 12, 6, 6):quantize {dtype=q:dtype(), scheme=q:spec().scheme, scale=q:qparams().scale:item(),
			zero_point=q:qparams().zero_point and q:qparams().zero_point:item() or nil}
		local second = image:conv2d(v:reshape(6, 6, 2, 2), b, {pad={1, 0, 0, 1}, groups=2, dilation={2, 1}, out=out})
		assert(codes:select(3, 2):codes():eq(second:codes()):all():item())
	end
	assert(levels > 4)
	local rows = x:quantize 'uint8:12' -- many scales: decoded
	assert((rows:conv3d(w:quantize 'int8/2', o) - rows:dequantize():conv3d(w:quantize('int8/2'):dequantize(), o)):abs():max():item() == 0)
	local flat = w:reshape(6, 24):quantize 'int8:8'
	assert((x:conv3d(flat, {k={3, 2, 2}, groups=2}) - x:conv3d(flat:dequantize():view(6, 2, 3, 2, 2), {groups=2})):abs():max():item() < 1e-5)
end)

local x = tensor.ones(1, 2, 4, 4, 4)
local function refused(pattern, f, ...)
	local ok, message = pcall(f, ...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('conv3d: wanted x (n, c, d, h, w), got float32(2, 4, 4, 4)', x.conv3d, x[1], x)
refused('conv3d: wanted w (out, c / groups, kd, kh, kw), got float32(2, 4, 4, 4)', x.conv3d, x, x[1])
refused('conv3d: wanted a kernel no larger than the padded input, got one that reaches over 5 slices of 4', x.conv3d, x, tensor.ones(1, 2, 5, 1, 1))
refused('conv3d: stride: wanted a number or {d, h, w}, got 2 numbers', x.conv3d, x, x, {stride={1, 2}})
refused('conv3d: pad: wanted integers of at least 0, got -1', x.conv3d, x, x, {pad=-1})
refused('maxpool3d: k: wanted the window', x.maxpool3d, x)
refused('avgpool3d: k: wanted integers of at least 1, got 0', x.avgpool3d, x, {0, 1, 1})
