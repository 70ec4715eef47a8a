-- SPDX-License-Identifier: MIT
-- Tensors in GGUF's formats: views, axes, sizes, odd values, refusals. Codes and values are in golden.lua.
local NAMES, SEARCHED = {}, {}
for name in ('q8_0 q4_0 q4_1 q5_0 q5_1 q2_k q3_k q4_k q5_k q6_k iq4_nl tq1_0 tq2_0 gguf.mxfp4'):gmatch '%S+' do NAMES[#NAMES + 1] = name end
for name in ('q4_0 q4_1 q5_0 q5_1 q2_k q3_k q4_k q5_k q6_k iq4_nl'):gmatch '%S+' do SEARCHED[#SEARCHED + 1] = name end
-- Bits of a weight: those of ggml's blocks; tq1_0 is denser in files only.
local BITS = {q8_0 = 8.5, q4_0 = 4.5, q4_1 = 5, q5_0 = 5.5, q5_1 = 6, q2_k = 2.625, q3_k = 3.4375, q4_k = 4.5, q5_k = 5.5, q6_k = 6.5625, iq4_nl = 4.5,
	tq1_0 = 2.0625, tq2_0 = 2.0625, ['gguf.mxfp4'] = 4.25}
local function equal(a, b, what) assert(a:eq(b):all():item(), what) end

tensor.seed(11)
local x = tensor.randn(6, 512)
for _, name in ipairs(NAMES) do
	it(name .. ': sizes, views, fake', function()
		local q = x:quantize(name)
		local y = q:check():dequantize()
		assert(q:nbytes() * 8 == BITS[name] * x:nelem() and quant.bytes({6, 512}, name) == q:nbytes(), name)
		assert(tostring(q:spec()) == name and q:qparams().format == name)
		equal(q:narrow(2, 257, 256):dequantize(), y:narrow(2, 257, 256), 'columns')
		equal(q:narrow(1, 2, 3):dequantize(), y:narrow(1, 2, 3), 'rows')
		equal(q[4]:dequantize(), y[4], 'one row')
		equal(q:t():dequantize(), y:t(), 'transposed')
		equal(q:view(2, 3, 512):dequantize(), y:view(2, 3, 512), 'another shape')
		equal(x:fake(name), y, 'fake')
		equal(x:t():contiguous():quantize(name .. '/1'):check():dequantize(), y:t(), 'the first axis')
		equal(x:view(3, 2, 512):permute(1, 3, 2):quantize(name .. '/2'):dequantize(), y:view(3, 2, 512):permute(1, 3, 2), 'an axis in the middle')
		equal(x:to 'float64':quantize(name):dequantize(), y, 'float64')
		local most = x:device() == 'cpu' and 0 or 1e-3 -- sums up to 550; devices may add in another order
		assert(x:matmul(q:t()):error(x:matmul(y:t())).max <= most, 'a product')
		assert(tensor.zeros {6, 512, quant = name}:dequantize():abs():max():item() == 0, 'zeros')
		assert(tensor.randn(0, 512):quantize(name):dequantize():nelem() == 0, 'nothing')
	end)
	it(name .. ': odd values', function()
		local odd = tensor.randn(12, 512)
		odd[{1, {1, 256}}] = 0 / 0
		odd[{2, 5}], odd[{2, 300}] = 0 / 0, 1 / 0
		odd[3] = 1 / 0
		odd[{4, 77}] = -1 / 0
		for row, value in ipairs {[5] = 1e-45, [6] = 1e-38, [7] = 1e-20, [8] = 1e20, [9] = 3.4e38, [10] = -3.4e38} do odd[row] = value end
		odd[5], odd[6], odd[7] = odd[5] * 1e-45, odd[6] * 1e-38, odd[7] * 1e-20
		odd[8], odd[9], odd[10] = odd[8] * 1e20, odd[9] * 3.4e37, odd[10]:abs() * -3.4e37
		odd[11], odd[12] = 0, odd[12] * 6e4
		local p = odd:quantize(name):check():qparams()
		assert(p.nan == 257 and p.inf == 514, ('%d %d'):format(p.nan, p.inf))
		local y = odd:quantize(name):dequantize()
		assert(y:eq(y):all():item() and y:abs():max():item() < 1 / 0 and y[11]:abs():max():item() == 0)
		local before = tensor.randn(1, 256)
		local spoiled = before:clone()
		spoiled[{1, 9}] = 0 / 0
		before[{1, 9}] = 0
		equal(spoiled:quantize(name):dequantize(), before:quantize(name):dequantize(), 'NaN is 0')
	end)
end

it('short rows of blocks of 32', function()
	for _, name in ipairs(NAMES) do
		local n = 32 * 5
		local small = tensor.randn(3, n)
		if name:find '_k$' or name:find '^tq' then
			local message = select(2, pcall(small.quantize, small, name))
			assert(message:find('quantize: block: wanted K a multiple of 256 for the format ' .. name .. ', got 160', 1, true), message)
			assert(not pcall(quant.bytes, {3, n}, name))
		else
			local wide = tensor.zeros {3, 256}
			wide:narrow(2, 1, n):copy_(small)
			equal(small:quantize(name):dequantize(), wide:quantize(name):dequantize():narrow(2, 1, n), name)
		end
	end
end)

it('importance moves the error to columns of less weight', function()
	local w = tensor.ones {512}
	w:narrow(1, 1, 128):fill_(100)
	for _, name in ipairs(SEARCHED) do
		local plain, weighted = x:quantize(name):dequantize(), x:quantize {dtype = name, importance = w}:dequantize()
		local function loss(y) return ((y - x) ^ 2 * w):sum():item() end
		assert(loss(weighted) < loss(plain), ('%s: %g, %g'):format(name, loss(weighted), loss(plain)))
		local s = quant.spec {dtype = name, importance = w}
		assert(s.importance:eq(w):all():item() and s ~= quant.spec(name) and s == quant.spec {dtype = name, importance = w:clone()})
		equal(x:quantize(s):dequantize(), weighted, name)
		assert(x:t():contiguous():quantize {dtype = name, axis = 1, importance = w}:dequantize():eq(weighted:t()):all():item(), name)
	end
end)

it('refusals', function()
	local function refused(spec, wanted)
		local good, message = pcall(x.quantize, x, spec)
		assert(not good and message:find(wanted, 1, true), tostring(message))
	end
	refused('q4_k:16', 'block: wanted 32, the block of the format q4_k, got 16')
	refused('q4_0@mse', 'observer: wanted none beside the format q4_0')
	refused('q4_k scale=1', 'scale: wanted none beside the format q4_k')
	refused('iq4_nl scaling=floor', 'scaling: wanted none beside the format iq4_nl')
	refused('q4_k rounding=stochastic', 'rounding: wanted none beside the format q4_k')
	refused('gguf.mxfp4 bins=1024', 'bins: wanted none beside the format gguf.mxfp4')
	refused({dtype = 'q8_0', importance = tensor.ones {512}}, 'importance: wanted none beside q8_0, which does not use it')
	refused({dtype = 'int8', importance = tensor.ones {512}}, 'importance: wanted none beside int8, which does not use it')
	refused({dtype = 'q4_k', importance = tensor.ones {500}}, 'importance: wanted a plain tensor of the 512 columns, got 500 numbers')
	refused({dtype = 'q4_k', importance = -tensor.ones {512}}, 'importance: wanted 0 to 1e+10 for every column, got -1 for column 1')
	refused({dtype = 'q4_k', importance = tensor.ones {512} * (0 / 0)}, 'importance: wanted 0 to 1e+10')
	refused('q4_k importance=3', 'importance')
	refused('q9_k', "did you mean 'q")
	assert(quant.spec 'q4_k priority=accuracy' == quant.spec 'q4_k')
end)

-- Codes by hand: max 6.9 gives 2^0; 0.75, 1.75 and 3.5 are ties.
it('gguf.mxfp4 and mxfp4 differ in ties', function()
	local t = tensor.zeros {1, 32}
	for i, v in ipairs {6.9, 0.75, 1.75, 3.5, -0.75, -0.1} do t[{1, i}] = v end
	local function first(name) return table.concat(t:quantize(name):dequantize()[1]:narrow(1, 1, 6):totable(), ' ') end
	assert(first 'gguf.mxfp4' == '6.0 0.5 1.5 3.0 -0.5 0.0', first 'gguf.mxfp4')
	assert(first 'mxfp4' == '6.0 1.0 2.0 4.0 -1.0 -0.0', first 'mxfp4')
end)
