-- SPDX-License-Identifier: MIT
-- labels: quick
-- linear of 8-bit codes and codes with scales in blocks: the same bits as the formula, step by step, for formats with and without
-- minimums and zero points, sizes around strips, blocks and rows, and every number of threads.
local function f32(t) return t:to 'float32' end

-- The sums of the formula, each step rounded to float32.
local function formula(x, w, block)
	local px, pw = x:qparams(), w:qparams()
	local k, n = w:size(2), w:size(1)
	local blocks = (k + block - 1) // block
	local xc, wc = x:codes():to 'float64', w:codes():to 'float64'
	if px.zero_point then xc = xc - px.zero_point:to 'float64':reshape(px.zero_point:nelem() > 1 and x:size(1) or 1, 1) end
	local function numbers(t)
		t = t:quantized() and t:dequantize() or f32(t)
		return t:nelem() == 1 and tensor.full {n, blocks, value = t:item()} or t:reshape(n, blocks)
	end
	local scale, least = numbers(pw.scale), pw.minimum and numbers(pw.minimum)
	local zero, unit = pw.zero_point and pw.zero_point:to 'float64':reshape(n, blocks), 1
	local values = w:spec().values
	if values and not w:spec().affine then -- a table of integers, of halves or of eighths
		for _, v in ipairs(values) do unit = math.min(unit, v % 1 == 0 and 1 or v * 2 % 1 == 0 and 0.5 or 0.125) end
		local list = w:codes():to 'int64':contiguous():view(w:nelem()):totable()
		for i, code in ipairs(list) do list[i] = values[code + 1] / unit end
		wc = tensor(list):to 'float64':view(n, k)
	end
	local s = tensor.zeros(x:size(1), n)
	for b = 1, blocks do
		local first, last = (b - 1) * block + 1, math.min(b * block, k)
		local a, c = xc[{{}, {first, last}}], wc[{{}, {first, last}}]
		if zero then c = c - zero[{{}, {b, b}}] end
		s = s + f32(a:matmul(c:t())) * scale[{{}, {b, b}}]:t()
		if least then s = s + f32(a:sum{axis = 2}):view(x:size(1), 1) * least[{{}, {b, b}}]:t() end
	end
	return s * (f32(px.scale) * unit):reshape(px.scale:nelem() > 1 and x:size(1) or 1, 1)
end

local function check(x, w, block, what)
	local y = x:linear(w)
	local from = y:origin()
	local spec = w:spec()
	if y:device() == 'cudaemu' and (spec.outer or not spec.affine and not w:qparams().minimum) then -- devices decode tables, and scales that are codes
		assert(from.path == 'fallback' and from.reason:find 'codes of this scheme', what)
		return assert(y:error(x:dequantize():linear(w:dequantize())).max <= 1e-4 * (1 + y:abs():max():item()), what)
	end
	if y:device() == 'ghost' then assert(from.path == 'host', what) -- it has no kernels
	else assert(from.path == 'int8' and from.kernel:find '^gemm_', ('%s: %s, %s'):format(what, from.path, from.reason)) end
	assert(y:eq(formula(x, w, block)):all():item(), what)
	for _, threads in ipairs {1, 3, 8} do
		local before = tensor.threads()
		tensor.threads(threads)
		local again = x:linear(w)
		tensor.threads(before)
		assert(again:eq(y):all():item(), what .. ', threads')
	end
end

local inputs = {'int8', 'uint8', 'int8/1', 'uint8/1', {dtype = 'uint8', scheme = 'symmetric'}}
for _, format in ipairs {{'int4:32', 32}, {'uint4:32', 32}, {'int4:128', 128}, {'int8:32', 32}, {'uint8:16', 16}, {'int2:16', 16}, {'int3:8', 8}, {'int5:64', 64},
	{'uint6:24', 24}, {'mxfp4', 32}, {'nvfp4', 16}, {'fp4_e2m1', 1024}, {'fp4_e2m1/1', 1024}, {'fp6_e2m3:40', 40}, {'mxfp6_e2m3', 32}, {'int4:32+min', 32}, {'int8:32+min', 32}, {'mxint8', 32}, {'int4:512', 512}, {'int4:32:64', 32}, {'int8:16:256', 16}} do
	it('of ' .. format[1], function()
		for i, s in ipairs {{1, 1, 1}, {1, 16, 64}, {2, 17, 70}, {7, 40, 96}, {8, 33, 257}, {9, 64, 300}, {70, 20, 520}} do
			local w, x = tensor.randn(s[2], s[3]):quantize(format[1]), tensor.randn(s[1], s[3])
			for j, input in ipairs(inputs) do
				local what = ('%s %d: %s'):format(format[1], i, tostring(quant.spec(input)))
				if i < 4 or j == i % #inputs + 1 then check(x:quantize(input), w, math.min(format[2], s[3]), what) end
			end
		end
	end)
end
for _, format in ipairs {{'q8_0', 32}, {'q4_0', 32}, {'q5_0', 32}, {'q4_1', 32}, {'q5_1', 32}, {'q2_k', 16}, {'q3_k', 16}, {'q4_k', 32}, {'q5_k', 32}, {'q6_k', 16}, {'iq4_nl', 32}, {'gguf.mxfp4', 32}} do
	it('of ' .. format[1], function()
		for _, s in ipairs {{1, 5, 256}, {9, 33, 512}} do
			check(tensor.randn(s[1], s[3]):quantize 'uint8', tensor.randn(s[2], s[3]):quantize(format[1]), format[2], format[1])
		end
	end)
end

it('of extreme codes and zero points', function()
	for format, block in pairs {mxfp4 = 32, iq4_nl = 32, mxfp6_e2m3 = 32} do
		for _, zero in ipairs {0, 255} do
			local x, w = tensor.zeros(9, 256):quantize {dtype = 'uint8', scale = 1, zero_point = zero}, tensor.randn(20, 256):quantize(format)
			x:codes():fill_(255 - zero)
			check(x, w, block, format)
		end
	end
	local x, w = tensor.zeros(9, 512):quantize {dtype = 'uint8', scale = 1, zero_point = 255}, tensor.ones(20, 512):quantize 'int8:256'
	x:codes():fill_(0)
	for _, code in ipairs {-128, 127} do
		w:codes():fill_(code)
		check(x, w, 256, tostring(code))
	end
end)

it('not of tables whose values are no integers of 8 bits times a power of two: these are decoded', function()
	local x = tensor.randn(3, 64):quantize 'int8'
	for _, format in ipairs {'nf4', 'af4', 'fp8_e4m3/1', 'fp6_e3m2:32', 'dynamic8', 'fp4_e2m1:4', 'kmeans4', 'int4 log'} do
		local w = tensor.randn(20, 64):quantize(format)
		local y = x:linear(w)
		assert(y:origin().path ~= 'int8' and y:error(x:dequantize():linear(w:dequantize())).max < 1e-4, format)
	end
end)

it('with bias, activation, out=, three axes and rows apart', function()
	local w, x, b = tensor.randn(20, 64):quantize 'int4:32', tensor.randn(2, 3, 64):quantize 'uint8', tensor.randn(20)
	local y = formula(x:view(6, 64), w, 32)
	assert(x:linear(w):view(6, 20):eq(y):all():item())
	assert(x:linear(w, b, {act = 'relu'}):view(6, 20):eq((y + b):relu()):all():item())
	assert(x:linear(w, {out = 'int8'}):eq(x:linear(w):quantize 'int8'):all():item())
	local part = tensor.randn(9, 80):quantize 'int8'[{{2, 7}, {5, 68}}]
	assert(part:linear(w):eq(formula(part, w, 32)):all():item())
end)

it('not of codes that are not contiguous, nor of blocks that strips do not have: these are decoded', function()
	local x = tensor.randn(3, 64):quantize 'int8'
	for what, w in pairs {['columns of int8'] = tensor.randn(20, 128):quantize 'int8:32'[{{}, {33, 96}}],
		['columns of int4'] = tensor.randn(20, 128):quantize 'int4:32'[{{}, {33, 96}}],
		['blocks of 4'] = tensor.randn(20, 64):quantize 'int8:4'} do
		local y = x:linear(w)
		assert(y:origin().path ~= 'int8', what)
		assert(y:error(x:dequantize():linear(w:dequantize())).max < 1e-4, what)
	end
end)

it('sees scales that are written', function()
	local w, x = tensor.randn(20, 64):quantize 'int4:32', tensor.randn(3, 64):quantize 'int8'
	check(x, w, 32, 'before')
	w:qparams().scale:mul_(2)
	check(x, w, 32, 'scales')
	w:codes():fill_(3)
	check(x, w, 32, 'codes')
	local y, v = tensor.randn(1, 64), w
	for _ = 1, 3 do assert(y:linear(v):error(y:linear(v:dequantize())).max < 1e-4) end
	v:qparams().scale:mul_(3)
	assert(y:linear(v):error(y:linear(v:dequantize())).max < 1e-4)
end)

it('names zero points that are no codes', function()
	local w, x = tensor.randn(20, 64):quantize {dtype = 'int4', scheme = 'asymmetric', block = 32}, tensor.randn(3, 64):quantize 'int8'
	w:qparams().zero_point:fill_(-100)
	local good, message = pcall(x.linear, x, w)
	if x:device() ~= 'cudaemu' then assert(not good and message:find('linear: zero points of w: wanted %-8 to 7, got %-100'), message)
	else assert(good and message:error(x:dequantize():linear(w:dequantize())).max < 1e-3, message) end -- it has room for them
end)

it('gives gradients', function()
	local w, x = tensor.randn(20, 64):quantize 'int4:32', tensor.randn(5, 64):requires_grad_()
	local g = tensor.randn(5, 20)
	x:quantize 'int8':linear(w):backward(g)
	assert(x:grad():error(g:matmul(w:dequantize())).max < 1e-4)
end)
