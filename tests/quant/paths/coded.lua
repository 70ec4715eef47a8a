-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Products of floats with matrices of codes: every format and granularity, sizes around tiles and depths, both directions of the
-- matrix; against the product with the decoded matrix, whose bits the ordered kernels and those of tiles share.
local formats = {'int8', 'uint8', 'int8/1', 'uint8/2', 'int16', 'uint16/1', 'binary', 'int4', 'uint4:8', 'int4:32', 'int4:128', 'int8:32', 'uint8:16',
	'int4/1:8', 'int8:32+min', 'int2:16', 'int3:32', 'uint5/1', 'int6:64', 'nf4', 'af4:64', 'nf4:64:256', 'kmeans4', 'fp8_e4m3', 'fp8_e5m2', 'fp6_e2m3:32', 'fp4_e2m1:16',
	'mxfp8_e4m3', 'mxfp6_e3m2', 'mxfp4', 'mxint8', 'nvfp4', 'ternary', 'dynamic8', {dtype = 'int8', scheme = 'log'}, {dtype = 'int8', scheme = 'asymmetric', axis = 1}}
local whole = {'q8_0', 'q4_0', 'q5_0', 'q4_1', 'q5_1', 'iq4_nl', 'gguf.mxfp4', 'q2_k', 'q3_k', 'q4_k', 'q5_k', 'q6_k', 'tq1_0', 'tq2_0'}

-- Whether y differs from the product of x and the values of w by no more than a float32 product may.
local function close(y, x, d)
	local exact = x:to 'float64':matmul(d:to 'float64':t())
	local bound = x:abs():to 'float64':matmul(d:abs():to 'float64':t()) * (2.0 ^ -23 * (d:size(2) + 4)) + 1e-30
	return (y:to 'float64' - exact):abs():le(bound):all():item()
end

local function check(spec, m, n, k)
	local what = ('%s %d x %d x %d'):format(tostring(quant.spec(spec)), m, n, k)
	local w, x = tensor.randn(n, k):quantize(spec), tensor.randn(m, k)
	local d = w:dequantize()
	local y = x:linear(w)
	assert(y:origin().path == 'weight_only', what .. y:origin().path)
	assert(y:size(1) == m and y:size(2) == n and close(y, x, d), what)
	local z = x:matmul(w:t())
	assert(z:origin().path == 'weight_only' and z:eq(y):all():item(), what .. ' turned')
	if k == n or not quant.spec(spec).format then -- the summed axis is the other one
		local g = tensor.randn(m, n)
		local dx = g:matmul(w)
		assert(dx:origin().path == 'weight_only' and close(dx, g, d:t():contiguous()), what .. ' back')
	end
end

for _, spec in ipairs(formats) do
	it('of ' .. tostring(quant.spec(spec)), function()
		for _, s in ipairs {{1, 1, 1}, {1, 70, 33}, {2, 5, 300}, {7, 64, 256}, {13, 65, 257}, {33, 130, 520}} do check(spec, table.unpack(s)) end
	end)
end
for _, spec in ipairs(whole) do
	it('of ' .. spec, function()
		for _, s in ipairs {{1, 5, 256}, {3, 70, 512}, {14, 33, 768}} do check(spec, table.unpack(s)) end
	end)
end

local function same(a, b) return a:ne(b):any():item() == false end

-- From the second product on strips are in the place of the codes.
local function check_stored(spec, n, k)
	local what = ('%s %d x %d'):format(tostring(quant.spec(spec)), n, k)
	local w, x = tensor.randn(n, k):quantize(spec), tensor.randn(3, k)
	local copy, codes, text = w:clone(), w:codes():clone(), tostring(w)
	local d, want = w:dequantize(), x:linear(copy)
	for _ = 1, 3 do assert(same(x:linear(w), want), what) end
	assert(same(w:codes(), codes) and same(w:dequantize(), d) and same(w:clone():dequantize(), d) and tostring(w) == text, what)
	for i = 1, n, 31 do assert(same(w[{{i, i}}]:dequantize(), d[{{i, i}}]), what) end
	for _ = 1, 3 do assert(same(x:linear(w[{{2, n}}]), want[{{}, {2, n}}]), what) end
	local g = tensor.randn(2, n)
	if k == n or not quant.spec(spec).format then assert(same(g:matmul(w), g:matmul(copy)), what) end
	local file = os.tmpname() .. '.safetensors'
	tensor.save(file, {w = w})
	assert(same(tensor.load(file).w:codes(), codes), what)
	os.remove(file)
	assert(same(x:linear(w), want), what)
	if w:codes():dtype() == 'binary' then return end
	w:codes():copy_(codes:flip(1)) -- the same storage
	assert(same(w:codes(), codes:flip(1)) and same(x:linear(w), x:linear(w:clone())), what)
end

for _, spec in ipairs {'int4/1', 'uint4', 'int4:32', 'uint4:8', 'int8:32', 'uint8:16', 'int2:16', 'uint2/1', 'binary/1', {dtype = 'int8', scheme = 'log'}, {dtype = 'uint4', scheme = 'log', axis = 1}, 'int3:32', 'uint3:16', 'uint5/1', 'int5:24', 'int6:64', 'nf4', 'nf4:64:256',
	'dynamic8', 'fp8_e4m3', 'fp6_e2m3', 'mxfp4', 'mxfp6_e3m2', 'nvfp4'} do
	it('finds codes in whose place are strips: ' .. tostring(quant.spec(spec)), function()
		for _, s in ipairs {{130, 264}, {33, 512}, {1030, 72}} do check_stored(spec, table.unpack(s)) end
	end)
end
for _, spec in ipairs(whole) do
	it('finds codes in whose place are strips: ' .. tostring(quant.spec(spec)), function()
		for _, s in ipairs {{33, 512}, {130, 768}} do check_stored(spec, table.unpack(s)) end
	end)
end

it('reads scales, minimums and zero points where the tensor has them', function()
	for _, spec in ipairs {'int4:32', 'uint3:16', 'int8:32+min', 'nvfp4', 'mxfp4', 'q4_k', 'q6_k', 'nf4:64:256'} do
		local w, x = tensor.randn(48, 512):quantize(spec), tensor.randn(3, 512)
		for _ = 1, 3 do x:linear(w) end
		for _, part in ipairs {'scale', 'minimum', 'zero_point'} do
			local t = w:qparams()[part]
			if t then
				local codes = pcall(t.codes, t) and t:codes() or t
				codes:copy_(codes:flip(1):clone())
				assert(close(x:linear(w), x, w:dequantize()) and same(x:linear(w), x:linear(w:clone())), spec .. part)
			end
		end
	end
end)

it('keeps the ends of rows that a view cuts within a byte', function()
	local x, file = tensor.randn(3, 129), os.tmpname() .. '.safetensors'
	for _, spec in ipairs {'int4/1', 'int2/1', 'uint5/1'} do
		local w = tensor.randn(128, 130):quantize(spec)
		local d, codes = w:dequantize(), w:codes():clone()
		local part = w:narrow(2, 1, 129)
		local want = x:linear(part:dequantize():quantize {dtype = part:dtype(), scale = part:qparams().scale, zero_point = part:qparams().zero_point, axis = 1})
		for _ = 1, 3 do assert(same(x:linear(part), want), spec) end
		assert(same(w:codes(), codes), spec)
		for _ = 1, 3 do tensor.randn(2, 130):linear(w) end
		assert(same(w:codes(), codes) and same(x:linear(part), want) and same(part:dequantize(), d[{{}, {1, 129}}]), spec)
		tensor.save(file, {part = part})
		assert(same(tensor.load(file).part:dequantize(), d[{{}, {1, 129}}]), spec)
		os.remove(file)
	end
end)

it('of channels that differ in bits', function()
	local w, x = tensor.randn(5, 40):quantize {bits = {2, 8, 3, 4, 5}, axis = 1}, tensor.randn(3, 40)
	assert(close(x:linear(w), x, w:dequantize()))
	assert(x:linear(w):origin().path == 'weight_only')
end)

it('of views', function()
	local q, x = tensor.randn(40, 64):quantize 'int4:16', tensor.randn(6, 3, 32)
	local part = q[{{3, 30}, {17, 48}}]
	local y = x:linear(part)
	assert(y:size(3) == 28 and close(y:view(18, 28), x:view(18, 32), part:dequantize()))
	local cut = x:transpose(1, 2):matmul(part:t())
	assert(cut:eq(y:transpose(1, 2)):all():item())
	assert(close(x:narrow(2, 2, 1):view(6, 32):linear(part), x:narrow(2, 2, 1):view(6, 32), part:dequantize()))
	assert(close(x[1][1]:matmul(part:t()):view(1, 28), x[1][1]:view(1, 32), part:dequantize()))
end)

it('of nothing', function()
	local w = tensor.zeros(4, 0):quantize 'int8'
	assert(tensor.zeros(3, 0):linear(w):eq(0):all():item() and tensor.zeros(0, 8):linear(tensor.ones(4, 8):quantize 'int8'):nelem() == 0)
	assert(tensor.ones(3, 8):linear(tensor.zeros(0, 8):quantize 'int8'):nelem() == 0)
end)

it('with bias, activation, out= and 16-bit floats', function()
	local w, x, b = tensor.randn(20, 64):quantize 'int4:32', tensor.randn(5, 64), tensor.randn(20)
	local d = w:dequantize()
	local y = x:linear(w, b, {act = 'relu'})
	assert(y:error(x:linear(d, b, {act = 'relu'})).max < 1e-5 and y:origin().path == 'weight_only')
	assert(x:linear(w, b, {out = 'int8'}):dtype() == 'int8')
	local h = x:to 'float16':linear(w)
	assert(h:dtype() == x:to 'float16':linear(d):dtype() and h:error(x:to 'float16':linear(d)).max < 1e-2)
	assert(x:to 'float64':linear(w):origin().path == 'fallback') -- the reference
end)

it('of codes without an integer product is the fallback, which decodes in parts, too', function()
	local w, x = tensor.randn(20, 64):quantize 'nf4', tensor.randn(5, 64):quantize 'int8'
	local y = x:linear(w)
	assert(y:origin().path == 'fallback' and y:origin().reason:find 'multiples' and close(y, x:dequantize(), w:dequantize()))
end)

it('gives gradients', function()
	local w, x = tensor.randn(20, 64):quantize 'int4:32', tensor.randn(5, 64):requires_grad_()
	local g = tensor.randn(5, 20)
	x:linear(w):backward(g)
	assert(close(x:grad(), g, w:dequantize():t():contiguous()))
end)

it('has the bits of the decoded matrix where products are ordered', function()
	local ordered = debug.getregistry()['quoll.internal'].ordered
	local _ <close> = ordered()
	for _, spec in ipairs {'int4:32', 'nf4', 'int8:32+min', 'fp8_e4m3'} do
		local w = tensor.randn(70, 520):quantize(spec)
		for _, m in ipairs {1, 3, 20} do
			local x = tensor.randn(m, 520)
			assert(x:linear(w):eq(x:linear(w:dequantize())):all():item(), spec)
		end
	end
end)

it('moves no decoded matrix', function()
	local w, x = tensor.randn(1024, 1024):quantize 'int4:32', tensor.randn(1, 1024)
	x:linear(w)
	local before = tensor.memory().peak
	local y = x:linear(w)
	assert(y:nelem() == 1024 and tensor.memory().peak - before < 1 << 20)
end)
