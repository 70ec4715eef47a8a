-- SPDX-License-Identifier: MIT
-- quantize and requantize over every dtype, scheme and granularity: half a step inside the range, equal to a loop over
-- slices, views as good as copies.
local seed = 1
local function noise(...)
	local n, shape = 1, {...}
	for _, d in ipairs(shape) do n = n * d end
	local t = {}
	for i = 1, n do
		seed = (seed * 1103515245 + 12345) % 2147483648
		t[i] = (seed / 2147483648 - 0.5) * 8
	end
	return tensor(t):view(shape)
end

local x = noise(6, 40)
local dtypes = {'int8', 'uint8', 'int4', 'uint4', 'int16', 'uint16'}
local grains = {'', '/1', '/2', ':32', ':8', ':7', '/1:4', '/1:6'}

describe('round trip', function()
	it('is within half a step', function()
		for _, dtype in ipairs(dtypes) do
			for _, grain in ipairs(grains) do
				local q = x:quantize(dtype .. grain)
				local bound = q:qparams().scale:max():item() / 2 * 1.0001
				assert(x:metrics(q).max <= bound, dtype .. grain .. ' ' .. x:metrics(q).max .. ' ' .. bound)
				q:check()
			end
		end
	end)
end)

describe('granularity', function()
	it('per axis equals per tensor on slices', function()
		for _, dtype in ipairs(dtypes) do
			local rows, columns = x:quantize(dtype .. '/1'), x:quantize(dtype .. '/2')
			for i = 1, 6 do
				local one = x[i]:quantize(dtype)
				assert(rows[i]:metrics(one).max == 0, dtype)
				assert(rows[i]:qparams().scale:item() == one:qparams().scale:item())
			end
			for j = 1, 40 do
				local one = x[{{}, j}]:clone():quantize(dtype)
				assert(columns:dequantize()[{{}, j}]:metrics(one).max == 0, dtype)
			end
		end
	end)
	it('by blocks of packed codes has zero points of their own in every row', function()
		local one_sided = tensor{{1, 2, 1, 2, 1, 2}, {-1, -2, -1, -2, -1, -2}} -- zero points 0 and 15, three in a row
		assert(one_sided:metrics(one_sided:quantize 'uint4:2').max < 0.1)
	end)
	it('by blocks equals per tensor on pieces, with float16 scales', function()
		local q = x:quantize 'int8:16'
		assert(q:qparams().scale:dtype() == 'float16' and q:qparams().scale:size(2) == 3)
		for i = 1, 6 do
			for b = 0, 2 do
				local piece = x[{i, {b * 16 + 1, math.min(40, b * 16 + 16)}}]
				local one = piece:quantize{dtype = 'int8', scale = q:qparams().scale[i][b + 1]:item()}
				assert(q:dequantize()[{i, {b * 16 + 1, math.min(40, b * 16 + 16)}}]:metrics(one).max < 0.05)
			end
		end
	end)
	it('takes float32 scales where float16 would underflow', function()
		assert((x * 1e-9):quantize('int8:16'):qparams().scale:dtype() == 'float32')
	end)
	it('of a strided view equals that of its copy', function()
		for _, dtype in ipairs(dtypes) do
			for _, grain in ipairs(grains) do
				local view = x:t()
				local a, b = view:quantize(dtype .. grain), view:clone():quantize(dtype .. grain)
				assert(a:codes():to('int64'):metrics(b:codes():to 'int64').max == 0, dtype .. grain)
			end
		end
	end)
end)

describe('explicit numbers', function()
	it('skip the observer', function()
		local q = tensor{1, 2, 3}:quantize{dtype = 'uint8', scale = 0.5, zero_point = 10}
		assert(q:codes():totable()[3] == 16 and q:dequantize():totable()[3] == 3)
	end)
	it('may be tensors', function()
		local q = x:quantize{dtype = 'int8', axis = 1, scale = tensor{1, 2, 3, 4, 5, 6}}
		assert(q:qparams().scale:totable()[4] == 4)
	end)
	it('are checked one by one, when the spec is made and when it is used', function()
		local y = tensor{{-1, 1}, {-1, 1}, {-1, 1}}
		local function fails(fields, wanted)
			local t = {dtype = 'uint8', axis = 1, scale = tensor{.01, .01, .01}}
			for k, v in pairs(fields) do t[k] = v end
			for who, f in pairs{quantize = function() return y:quantize(t) end, spec = function() return quant.spec(t) end,
				zeros = function() return tensor.zeros{3, 2, quant = t} end, fake = function() return y:fake(t) end} do
				local ok, message = pcall(f)
				assert(not ok and message:find(wanted, 1, true), who .. ' ' .. tostring(message))
			end
		end
		fails({zero_point = tensor{1, 2, 300}}, 'zero_point: wanted 0 to 255 for uint8, got 300')
		fails({zero_point = tensor{1, 2, -5}}, 'zero_point: wanted 0 to 255 for uint8, got -5')
		fails({zero_point = tensor{1, 2, 2.5}}, 'zero_point: wanted whole numbers, got 2.5')
		fails({zero_point = tensor{1, 2, 0 / 0}}, 'zero_point: wanted whole numbers, got')
		fails({zero_point = tensor{1, 2}}, 'zero_point: wanted as many numbers as scale has, 3, got 2')
		fails({axis = false, scale = .01, zero_point = tensor{300}[1]}, 'zero_point: wanted 0 to 255 for uint8, got 300')
		fails({axis = false, scale = .01, zero_point = tensor{.5}}, 'zero_point: wanted whole numbers, got 0.5')
		fails({axis = false}, 'scale: wanted one number without an axis or block, got 3')
		fails({scale = tensor{.1, 0, .1}}, 'scale: wanted a finite number > 0, got 0')
		fails({scale = tensor{.1, -1, .1}}, 'scale: wanted a finite number > 0, got -1')
		fails({scale = tensor{.1, 1 / 0, .1}}, 'scale: wanted a finite number > 0, got inf')
		fails({axis = false, scale = 1e-60}, 'scale: wanted a finite number > 0, got 1e-60')
		fails({dtype = 'int8', bits = 3, zero_point = tensor{0, 0, 4}, scheme = 'asymmetric'}, 'zero_point: wanted -4 to 3 for int8 of fewer bits, got 4')
		fails({dtype = 'int8', bits = {8, 4, 2}, zero_point = tensor{127, 7, 2}, scheme = 'asymmetric'},
			'zero_point: wanted -2 to 1 for channel 3 of 2 bits, got 2')
		local zero = tensor{1, 2, 3}
		local s = quant.spec{dtype = 'uint8', axis = 1, scale = tensor{1, 1, 1}, zero_point = zero}
		zero[2] = 256
		assert(select(2, pcall(y.quantize, y, s)):find 'quantize: zero_point: wanted 0 to 255 for uint8, got 256')
	end)
	it('of symmetric codes leave the zero point where it is', function()
		assert(select(2, pcall(quant.spec, {dtype = 'int8', scheme = 'symmetric', scale = 1, zero_point = 3})):find
			"zero_point: wanted 0 with the scheme symmetric, got 3; scheme='asymmetric' takes others")
		assert(select(2, pcall(quant.spec, {dtype = 'uint8', scheme = 'symmetric', scale = 1, zero_point = 3})):find 'wanted 128 with')
		assert(quant.spec{dtype = 'int8', scheme = 'symmetric', scale = 1, zero_point = 0} == quant.spec{dtype = 'int8', scale = 1})
		assert(quant.spec{dtype = 'uint8', scheme = 'symmetric', scale = 1}.zero_point == 128)
	end)
	it('without a zero point have 0, as in ONNX', function()
		local y = tensor{-1, 0, 1}
		print(y:quantize{dtype = 'int8', scheme = 'asymmetric', scale = 0.01}:codes())  --> int8(3)  -100     0   100
		print(quant.spec{dtype = 'int8', scheme = 'asymmetric', scale = 0.01}.zero_point, quant.spec{dtype = 'uint8', scale = 0.01}.zero_point)  --> 0 0
		print(quant.spec{bits = {8, 4}, axis = 1, scheme = 'asymmetric', scale = 0.01}.zero_point)  --> 0
	end)
	it('of a quantized tensor quantize others as it is', function()
		for _, dtype in ipairs(dtypes) do
			for _, grain in ipairs(grains) do
				local q = x:quantize(dtype .. grain)
				local again, zeros = x:quantize(q:qparams()), tensor.zeros{6, 40, quant = q:qparams()}
				assert(again:dequantize():eq(q:dequantize()):all():item() and again:nbytes() == q:nbytes(), dtype .. grain)
				assert(zeros:qparams().scale:eq(q:qparams().scale):all():item() and zeros:dequantize():abs():max():item() == 0)
				assert(zeros:spec().scheme == q:spec().scheme and zeros:spec().block == q:spec().block)
			end
		end
		assert(x:quantize(x:quantize{bits = {8, 4, 2, 3, 5, 6}, axis = 1}:qparams()):spec().bits[3] == 2)
		local p = x:quantize('uint8/1'):qparams()
		p.bogus = 1
		assert(select(2, pcall(x.quantize, x, p)):find "unknown field 'bogus'")
	end)
	it('are printed with their values', function()
		local p = tensor{{0, 1}, {-1, 1}}:quantize('uint8/1'):qparams()
		local text = tostring(p)
		for _, line in ipairs{'qparams', 'dtype +uint8', 'scheme +asymmetric', 'axis +1', 'scale +float32%(2%) 0%.003921569 0%.007843138',
			'zero_point uint8%(2%) 0 127', 'bits +8', 'from +float32'} do assert(text:find('%f[%g]' .. line .. '\n'), line) end
		assert(tostring(tensor.randn(40, 2):quantize('int8/1'):qparams()):find 'float32%(40%) [%d. e-]+… %(40%)')
		assert(tostring(x:quantize{bits = {8, 4, 2, 3, 5, 6}, axis = 1}:qparams()):find 'bits +6 channels: 8 4 2 3 5 6')
	end)
	it('of the wrong size are refused', function()
		local ok, message = pcall(x.quantize, x, {dtype = 'int8', axis = 1, scale = tensor{1, 2}})
		assert(not ok and message:find 'scale: wanted a plain tensor of shape %(6%), got %(2%)', message)
	end)
end)

describe('requantize', function()
	it('equals dequantize and quantize', function()
		for _, from in ipairs{'int8', 'uint8/1', 'int16', 'int4:8'} do
			for _, to in ipairs{'int8', 'uint8', 'int4:32', 'int8/2', 'int16'} do
				local q = x:quantize(from)
				local a, b = q:requantize(to), q:dequantize():quantize(to)
				assert(a:codes():to('int64'):metrics(b:codes():to 'int64').max == 0, from .. ' ' .. to)
			end
		end
	end)
	it('wants a quantized tensor', function()
		assert(not pcall(x.requantize, x, 'int8'))
		assert(not pcall(function() return x:quantize('int8'):quantize 'int8' end))
	end)
end)

describe('a float spec', function()
	it('is a cast', function() assert(x:quantize('float16'):dtype() == 'float16') end)
end)
print(pcall(x.quantize, x, 'int8/3'))  --> false ...quantize: axis: wanted an axis from 1 to 2...got 3
print(tensor.zeros{2, 0}:quantize('int8/1'):size())  --> 2 0
print(tensor.zeros{2, 3, quant = 'uint8'}:dequantize():sum():item())  --> 0.0
