-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Convolutions of floats with codes of every format, granularity and layout: the bits of the convolution with the decoded weight, for
-- every way in which one is computed.
local left_out = dofile 'tests/tools/sanitizers.lua'.left_out
local formats = {'int8', 'uint8/1', 'int8/1', 'uint8/2', 'int16', 'uint16/1', 'binary', 'binary/1', 'int4', 'int4/1', 'uint4/2', 'int8:32', 'uint8:16', 'int4:32', 'int4:128', 'uint4:8',
	'int8:32+min', 'uint4:32+min', 'int2/1', 'int3/1', 'uint5/1', 'int6/1', 'nf4', 'af4:64', 'nf4:64:256', 'kmeans4', 'fp8_e4m3', 'fp8_e5m2', 'fp6_e2m3:32', 'fp4_e2m1:16', 'mxfp8_e4m3', 'mxfp6_e3m2',
	'mxfp4', 'mxint8', 'nvfp4', 'ternary', 'dynamic8', {dtype = 'int8', scheme = 'log'}, {dtype = 'int8', scheme = 'asymmetric', axis = 1}, {dtype = 'uint4', scheme = 'asymmetric', axis = 1}}
local whole = {'q8_0', 'q4_0', 'q4_1', 'iq4_nl', 'q4_k', 'q6_k', 'tq2_0'} -- of rows of 256 codes
-- images, channels, outputs, height, width, kernel {h, w}, stride, pad, dilation, groups
local small = {
	{1, 40, 50, 4, 4, {3, 3}, 1, 1, 1, 1}, {2, 48, 70, 5, 7, {3, 3}, 2, 1, 1, 1}, {33, 16, 40, 4, 4, {3, 3}, 1, 1, 1, 1}, {3, 24, 48, 9, 9, {5, 5}, 1, 2, 2, 4},
	{2, 32, 32, 7, 8, {3, 3}, 1, 1, 1, 32}, {1, 13, 17, 6, 6, {1, 1}, 1, 0, 1, 1}, {2, 6, 3, 9, 16, {3, 2}, {1, 3}, {1, 0, 2, 1}, 1, 1}, {1, 256, 3, 8, 8, {1, 1}, 1, 0, 1, 1},
}
-- more numbers than are decoded at once: by tasks, and by chunks of rows
local large = {{1, 128, 240, 4, 4, {3, 3}, 1, 1, 1, 1}, {1, 256, 130, 5, 6, {3, 3}, 1, 0, 1, 1}, {3, 260, 120, 8, 8, {3, 3}, 2, 1, 1, 2},
	{40, 136, 258, 4, 4, {3, 3}, 1, 1, 1, 2}, {1, 600, 260, 12, 16, {3, 1}, 1, {1, 0}, 1, 1}}

local function same(a, b) return not a:ne(b):any():item() end

-- w in the order of its axes, with channels innermost in memory as module.weight_codes has it, and as a matrix (k=)
local layouts = {
	function(w, f) return w:quantize(f) end,
	function(w, f) return w:permute(1, 3, 4, 2):contiguous():quantize(f):permute(1, 4, 2, 3) end,
	function(w, f) return w:view(w:size(1), -1):quantize(f) end,
}

local function check(f, s)
	local n, c, o, h, w, k, stride, pad, dilation, groups = table.unpack(s)
	local x, weight, bias = tensor.randn(n, c, h, w), tensor.randn(o, c // groups, k[1], k[2]), tensor.randn(o)
	local done = 0
	for i, layout in ipairs(layouts) do
		local fine, q = pcall(layout, weight, f) -- blocks of some formats must divide the last axis
		if fine then
			local options = {stride = stride, pad = pad, dilation = dilation, groups = groups, act = i == 2 and 'relu' or i == 3 and 'gelu' or nil}
			local want = x:conv2d(q:dequantize():view(o, c // groups, k[1], k[2]), bias, options)
			options.k = i == 3 and k or nil
			local y = x:conv2d(q, bias, options)
			assert(y:origin().path == 'weight_only' and same(y, want), ('%s, layout %d, %d -> %d, %d x %d'):format(tostring(quant.spec(f)), i, c, o, h, w))
			done = done + 1
		end
	end
	return done
end

tensor.seed(3)
local threads = tensor.threads()
for i, f in ipairs(formats) do
	it('of ' .. tostring(quant.spec(f)), function()
		for j, s in ipairs(small) do
			if not left_out(i + j, 4) then assert(check(f, s) > 0) end
		end
		if not left_out(i, 4) then check(f, large[1]) end
	end)
end
for _, f in ipairs(whole) do
	it('of ' .. f, function() assert(check(f, small[8]) > 0) end)
end
for i, s in ipairs(large) do
	it(('in parts: %d x %d -> %d, groups %d'):format(s[1], s[2], s[3], s[10]), function()
		for j, f in ipairs {'int8/1', 'int4/1', 'int4:32', 'nf4', 'int3/1', 'binary/1', 'fp8_e4m3', 'uint8:16'} do
			if not left_out(i + j, 4) then assert(check(f, s) > 0) end
		end
		for n, f in pairs {[1] = 'int4/1', [3] = 'int4:32'} do
			tensor.threads(n)
			if not left_out(i + n // 2, 2) then check(f, s) end
		end
		tensor.threads(threads)
	end)
end

it('of float16, with out=, and of float64', function()
	local x, w = tensor.randn(2, 8, 6, 6), tensor.randn(12, 8, 3, 3):quantize 'int4/1'
	local y = x:to 'float16':conv2d(w, {pad = 1})
	assert(y:dtype() == 'float32' and same(y, x:to 'float16':conv2d(w:dequantize(), {pad = 1})))
	local out = {dtype = 'uint8', scale = 0.1, zero_point = 90}
	local codes = x:conv2d(w, {out = out})
	assert(codes:origin().path == 'weight_only' and same(codes:codes(), x:conv2d(w:dequantize()):quantize(out):codes()))
	local wide = x:to 'float64':conv2d(w)
	assert(wide:dtype() == 'float64' and wide:origin().path == 'fallback' and same(wide, x:to 'float64':conv2d(w:dequantize())))
end)

it('of codes that have no integer product, too', function()
	local x = tensor.randn(2, 32, 5, 5):quantize 'uint8'
	for _, f in ipairs {'int8/2', 'nf4', 'fp8_e4m3', 'int4:32'} do
		local w = tensor.randn(24, 32, 3, 3):permute(1, 3, 4, 2):contiguous():quantize(f):permute(1, 4, 2, 3)
		local y = x:conv2d(w, {pad = 1, act = 'relu'})
		assert(y:origin().path == 'fallback' and y:origin().reason, f)
		assert(same(y, x:dequantize():conv2d(w:dequantize(), {pad = 1, act = 'relu'})), f)
	end
	local w = tensor.randn(24, 32, 3, 3)
	local flat = x:conv2d(w:view(24, -1):quantize 'int8/1', {k = 3})
	assert(flat:origin().reason == 'operand 2 is a matrix')
	local channels = w:quantize {bits = {2, 8, 3, 4, 5, 6, 8, 8, 2, 8, 3, 4, 5, 6, 8, 8, 2, 8, 3, 4, 5, 6, 8, 8}, axis = 1}
	local real = x:dequantize()
	assert(same(real:conv2d(channels), real:conv2d(channels:dequantize())))
end)

it('of views, and of codes that an integer product holds', function()
	local x, w = tensor.randn(2, 20, 6, 6), tensor.randn(40, 20, 3, 3):quantize 'int8/1'
	local part = w[{{3, 30}}]
	assert(same(x:conv2d(part), x:conv2d(part:dequantize())))
	local want = x:conv2d(w)
	for _ = 1, 3 do x:quantize('uint8'):conv2d(w) end
	assert(same(x:conv2d(w), want) and same(x:conv2d(part), want[{{}, {3, 30}}]))
	local turned = w:permute(1, 2, 4, 3)
	assert(same(x:conv2d(turned), x:conv2d(turned:dequantize():contiguous())))
end)

it('gives gradients of x and of the bias', function()
	local x, b, w = tensor.randn(2, 6, 5, 5), tensor.randn(8), tensor.randn(8, 6, 3, 3)
	local flat = w:view(8, -1):quantize 'int4:8'
	for _, act in ipairs {'none', 'relu', 'gelu'} do
		local grads = {}
		for i, q in ipairs {flat, flat:dequantize():view(8, 6, 3, 3)} do
			local p, c = x:clone():requires_grad_(), b:clone():requires_grad_()
			p:conv2d(q, c, {pad = 1, stride = 2, act = act ~= 'none' and act or nil, k = i == 1 and 3 or nil}):sum():backward()
			grads[i] = {p:grad(), c:grad()}
		end
		assert(same(grads[1][1], grads[2][1]) and same(grads[1][2], grads[2][2]), act)
	end
end)

it('layers hold and read codes only', function()
	local x = tensor.randn(1, 64, 4, 4)
	for _, f in ipairs {'int4', 'int4:32', 'nf4', 'int8/1'} do
		local m = nn.Sequential {nn.Conv2d(64, 64, 3, {pad = 1})}:eval():quantize {mode = 'weight_only', weight = f}
		local y = tensor.nograd(function() return m(x) end)
		assert(y:origin().op == 'conv2d' and y:origin().path == 'weight_only', f)
		local d = m[1].weight:dequantize():view(64, 64, 3, 3)
		assert(same(y, x:conv2d(d, m[1].bias, {pad = 1})), f)
	end
end)

it('refuses sizes of a kernel that do not fit', function()
	local x, w = tensor.randn(1, 3, 4, 4), tensor.randn(2, 27)
	local function message(...)
		local ok, text = pcall(...)
		assert(not ok)
		return text
	end
	for _, k in ipairs {2, {3, 4}, {3, 3, 3}, 0, -3} do assert(message(x.conv2d, x, w:quantize 'int8', {k = k}):find 'conv2d: k: wanted the size of the kernel') end
	assert(message(x.conv2d, x, w, {k = 3}):find 'conv2d: k: wanted a quantized w')
	assert(message(x.conv2d, x, w:view(2, 3, 3, 3):quantize 'int8', {k = 3}):find 'k: wanted')
	assert(message(x.conv2d, x, w:quantize 'int8'):find 'wanted x %(n, c, h, w%)')
end)
