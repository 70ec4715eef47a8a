-- SPDX-License-Identifier: MIT
-- labels: quick noproducts
-- Round trips of a million normal numbers: SQNR against the published figures for blocks and rows, and against
-- 10 log10(12 mean(x^2) / scale^2) for one scale per tensor, which depends on the largest sample.
tensor.seed(1)
local x = tensor.randn(1024, 1024)
local power = (x * x):mean():item()

describe('per tensor', function()
	for _, spec in ipairs{'int16', 'int8', 'uint8', 'int4', 'uint4', 'uint16'} do
		it(spec .. ' loses what its step says', function()
			local q = x:quantize(spec)
			local step = q:qparams().scale:item()
			assert(math.abs(x:error(q).sqnr - 10 * math.log(12 * power / step ^ 2, 10)) < (spec:find '4' and 0.3 or 0.1))
			assert(x:error(q).max <= step / 2 + x:abs():max():item() * 0x1p-23) -- half a step, and one unit in the last place
		end)
	end
end)

describe('finer', function()
	local published = {['int8/1'] = 42.1, ['int8:32'] = 45.4, ['int4/1'] = 16.9, ['int4:128'] = 18.6, ['int4:64'] = 19.4,
		['int4:32'] = 20.3, ['binary/1'] = 4.40, binary = 4.40}
	for spec, sqnr in pairs(published) do
		it(spec .. ' reaches the published figure', function()
			local got = x:error(x:quantize(spec)).sqnr
			assert(math.abs(got - sqnr) < 0.15, got)
		end)
	end
	it('is never worse than coarser', function()
		assert(x:error(x:quantize 'int8/1').sqnr > x:error(x:quantize 'int8').sqnr)
		assert(x:error(x:quantize 'int8:32').sqnr > x:error(x:quantize 'int8/1').sqnr)
		assert(x:error(x:quantize 'int4').sqnr < x:error(x:quantize 'int8').sqnr)
	end)
end)

-- |x - decoded| <= half a step for every value that the range was found from, plus what float32 itself rounds: the scale to
-- float32 (a relative 2^-24 over all steps of the range), the quotient x / scale, and the decoded product. Float16 scales of
-- symmetric blocks are rounded to nearest: 127 steps of a relative error of 2^-11 end 0.06 steps from the last code.
describe('half a step', function()
	local rows, columns = 6, 40
	local distributions = {
		normal = tensor.randn(rows, columns), uniform = tensor.rand(rows, columns), negative = -tensor.rand(rows, columns) - 3,
		laplace = (tensor.rand(rows, columns) + 1e-6):log() * tensor.randn(rows, columns):sign(),
		outliers = tensor.randn(rows, columns) * tensor.randn(rows, columns):exp():pow(3), relu = tensor.randn(rows, columns):relu(),
		large = tensor.randn(rows, columns) * 1e30, small = tensor.randn(rows, columns) * 1e-30, far = tensor.rand(rows, columns) + 100,
	}
	-- grain, and the index of the scale of element i, j
	local grains = {
		[''] = function() return 1, 1 end, ['/1'] = function(i) return i, 1 end, ['/2'] = function(_, j) return j, 1 end,
		[':32'] = function(i, j) return i, (j + 31) // 32 end, [':7'] = function(i, j) return i, (j + 6) // 7 end,
		[':128'] = function(i) return i, 1 end, ['/1:4'] = function(i, j) return (i + 3) // 4, j end,
		[':1'] = function(i, j) return i, j end,
	}
	local function groups(at, values)
		local lo, hi = {}, {}
		for i = 1, rows do
			for j = 1, columns do
				local a, b = at(i, j)
				local key, v = a * 1000 + b, values[i][j]
				lo[key], hi[key] = math.min(lo[key] or 0, v), math.max(hi[key] or 0, v)
			end
		end
		return lo, hi
	end
	local function scale_of(scales, a, b)
		if type(scales) == 'number' then return scales end
		return type(scales[a]) == 'number' and scales[a] or scales[a][b]
	end
	local function affine_bound(s, v, d, range) return s / 2 + 0x1p-24 * (range + math.abs(v) + math.abs(d)) end
	-- a relative error of half a step in logarithms, and that of a float16 scale; below the least magnitude: half of it
	local function log_bound(bits, octaves, half)
		local r = octaves / ((1 << (bits - 1)) - 2)
		local relative = 2 ^ (r / 2) - 1 + (half and 0x1p-11 or 0) + 0x1p-22
		return function(s, v) return math.max(math.abs(v) * relative, s * 2 ^ -octaves / 2 * (1 + 0x1p-20)) end
	end
	local function check(name, y, spec, at, bound)
		local q = y:quantize(spec)
		local p = q:qparams()
		local values, decoded = y:totable(), q:dequantize():totable()
		local scales = p.scale:dim() == 0 and p.scale:item() or p.scale:totable()
		local lo, hi = groups(at, values)
		bound = bound or log_bound(p.bits, p.octaves, p.scale:dtype() == 'float16')
		for i = 1, rows do
			for j = 1, columns do
				local a, b = at(i, j)
				local v, d, key = values[i][j], decoded[i][j], a * 1000 + b
				local most = bound(scale_of(scales, a, b), v, d, hi[key] - lo[key])
				assert(math.abs(v - d) <= most, ('%s %s: %.9g decodes to %.9g, %.4f of the bound'):format(name, quant.spec(spec), v, d,
					math.abs(v - d) / most))
			end
		end
		q:check()
	end
	for grain, at in pairs(grains) do
		it('holds for every dtype, scheme and distribution by scales ' .. grain, function()
			for name, y in pairs(distributions) do
				for _, dtype in ipairs {'int16', 'uint16', 'int8', 'uint8', 'int4', 'uint4'} do
					for _, scheme in ipairs {'symmetric', 'asymmetric'} do
						local s = quant.spec(dtype .. grain)
						check(name, y, {dtype=dtype, scheme=scheme, axis=s.axis, block=s.block}, at, affine_bound)
					end
				end
				for _, bits in ipairs {3, 5, 6, 7, 12} do
					local s = quant.spec('int8' .. grain)
					check(name, y, {bits=bits, scheme='asymmetric', axis=s.axis, block=s.block}, at, affine_bound)
				end
				for _, dtype in ipairs {'int16', 'int8', 'int4'} do
					local s = quant.spec(dtype .. grain)
					if name ~= 'small' then check(name, y, {dtype=dtype, scheme='log', axis=s.axis, block=s.block}, at) end
				end
			end
		end)
	end
	it('has float32 scales for blocks of 16-bit codes, float16 rounded up for asymmetric ones', function()
		local y = tensor.randn(64, 256)
		for spec, dtype in pairs {['int16:128']='float32', ['uint16:32']='float32', ['uint8:32']='float16', ['uint4:32']='float16',
			['int8:32']='float16', ['int4:32']='float16'} do
			assert(y:quantize(spec):qparams().scale:dtype() == dtype, spec)
			assert(quant.bytes({64, 256}, spec) == y:quantize(spec):nbytes(), spec)
		end
		local blocks = y:view(64, 8, 32)
		local exact = (blocks:max{axis=3} - blocks:min{axis=3}) / 255
		local scale = y:quantize('uint8:32'):qparams().scale:to 'float32'
		assert(scale:ge(exact):all():item() and (scale / exact):max():item() <= 1 + 0x1p-10)
		assert(y:error(y:quantize 'int16:128').sqnr > y:error(y:quantize 'int16/1').sqnr)
	end)
end)
