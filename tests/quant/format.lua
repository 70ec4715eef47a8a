-- SPDX-License-Identifier: MIT
-- labels: quick noproducts
-- Named formats against the codes, scales and values that other programs made (tests/quant/golden), bit for bit.
local FOLDER = 'tests/quant/golden/'
local inputs = tensor.load(FOLDER .. 'inputs.npz')
local count = 0

local function same(a, b, what)
	local difference = (a:to('float64'):reshape(-1) - b:to('float64'):reshape(-1)):abs():max():item()
	count = count + 1
	assert(difference == 0, ('%s differ by up to %g'):format(what, difference))
end

-- The scale of mxint8 includes the factor 2^-6, so that it ends 2^6 above the one of the judge: without the last rows, of subnormal numbers.
local function without_subnormal(codes) return codes:narrow(1, 1, codes:size(1) - 2) end

-- Compares one input of a golden file, where it has that input; its first rows.
local function check(spec, golden, prefix, input, field)
	local codes = golden[prefix .. input .. '_codes']
	if not codes then return end
	if spec:find '^mxint8' and codes:size(1) == 64 then codes = without_subnormal(codes) end
	local q = inputs[input]:narrow(1, 1, codes:size(1)):quantize(spec)
	local y, wanted = q:dequantize(), golden[prefix .. input .. '_y']
	same(q:codes(), codes, ('%s: codes of %s'):format(spec, input))
	same(y:narrow(1, 1, wanted:size(1)), wanted, ('%s: values of %s'):format(spec, input))
	local scales = field and golden[prefix .. input .. field]
	if scales then same(q:qparams().scale, scales, ('%s: scales of %s'):format(spec, input)) end
	q:check()
end

local function check_all(spec, golden, prefix, field)
	local before = count
	for _, input in ipairs {'x', 'w', 'v'} do check(spec, golden, prefix, input, field) end
	assert(count > before, spec)
end

local function load(name) return tensor.load(FOLDER .. name .. '.npz') end

for _, name in ipairs {'fp8_e4m3', 'fp8_e5m2', 'fp6_e2m3', 'fp6_e3m2', 'fp4_e2m1', 'int2', 'int3', 'int5', 'int6', 'uint2', 'uint3', 'uint5', 'uint6'} do
	it(name .. ' by tensor, row and block', function()
		local golden = load(name)
		check_all(name, golden, 'tensor_', '_scale')
		check_all(name .. '/1', golden, 'row_', '_scale')
		check_all(name .. ':32', golden, 'block_', '_scale')
	end)
end
for _, name in ipairs {'mxfp8_e4m3', 'mxfp8_e5m2', 'mxfp6_e2m3', 'mxfp6_e3m2', 'mxfp4', 'mxint8'} do
	it(name .. ': the rules of its powers of two', function()
		local golden = load(name)
		for _, scaling in ipairs {'floor', 'even', 'ceil'} do check_all(name .. ' scaling=' .. scaling, golden, scaling .. '_') end
		check_all(name, golden, 'floor_')
	end)
end
for bits = 2, 8 do
	local spec = bits == 7 and 'uint8:32+min bits=7' or ('uint%d:32+min'):format(bits)
	it(spec, function() check_all(spec, load(('uint%d_min'):format(bits)), '', '_scale') end)
end
for _, name in ipairs {'nvfp4', 'nf4', 'af4', 'ternary'} do
	it(name, function() check_all(name, load(name), '', name == 'nvfp4' and '_scale' or nil) end)
end

local function every_half()
	local list = {}
	for bits = 0, 65535 do
		local exponent, mantissa = bits >> 10 & 31, bits & 1023
		local value = exponent == 0 and mantissa * 2.0 ^ -24 or (1024 + mantissa) * 2.0 ^ (exponent - 25)
		if exponent == 31 then value = mantissa == 0 and 1 / 0 or 0 / 0 end
		list[bits + 1] = bits < 32768 and value or -value
	end
	return tensor(list)
end

it('nf4:64:256: scales of 8 bits around their mean', function()
	local golden, w = load 'nf4', inputs.w:reshape(1, -1)
	local x = tensor.cat({w, w * 4}, 2)
	x = x:narrow(2, 1, golden.double_scale:nelem() * 64)
	local q = x:quantize 'nf4:64:256'
	same(tensor(q:qparams().scale:codes():totable()), golden.double_scale_codes, 'codes of scales')
	same(q:qparams().scale:dequantize(), golden.double_scale, 'scales')
	local y, list = q:dequantize():reshape(-1):totable(), {}
	for i = 1, #y, 32 do list[#list + 1] = y[i] end
	same(tensor(list), golden.double_y, 'values')
	assert(tostring(q:spec()) == 'nf4:64:256' and q:spec() == quant.spec {dtype = 'nf4', block = 64, outer = 256})
	assert(q:nbytes() == quant.bytes({1, x:size(2)}, 'nf4:64:256'), q:nbytes())
end)

-- Every float16 number under a scale of 1, saturating and not.
it('small floating point: all codes and all float16 numbers', function()
	local golden, halves = load 'elements', every_half()
	for _, name in ipairs {'e4m3', 'e5m2', 'e2m3', 'e3m2', 'e2m1'} do
		local spec = ({e4m3 = 'fp8_', e5m2 = 'fp8_', e2m3 = 'fp6_', e3m2 = 'fp6_', e2m1 = 'fp4_'})[name] .. name
		local values = tensor(quant.spec(spec).values)
		local wanted = golden[name .. '_values']
		for i = 1, values:nelem() do
			local v, w = values[i]:item(), wanted[i]:item()
			assert(v == w or v ~= v and w ~= w, ('%s: code %d'):format(spec, i - 1))
		end
		local number = halves:eq(halves):to 'uint8' -- the sign of NaN is not asked; 4 and 6 bits have none
		same(halves:quantize {dtype = spec, scale = 1}:codes() * number, golden[name .. '_saturated'] * number, spec .. ': saturated codes')
	end
	for _, name in ipairs {'e4m3', 'e5m2'} do
		local q = halves:quantize {dtype = 'fp8_' .. name, scale = 1, saturate = false}
		local number = halves:eq(halves):to 'uint8'
		same(q:codes() * number, golden[name .. '_codes'] * number, name .. ': codes')
		same(halves:to('float8_' .. name):to 'float32':ne(q:dequantize()), q:dequantize():ne(q:dequantize()), name .. ': the plain dtype')
	end
end)

it('names, printing, refusals', function()
	local function refused(spec) return select(2, pcall(quant.spec, spec)) end
	assert(tostring(quant.spec 'mxfp4') == 'mxfp4' and tostring(quant.spec 'nf4:64') == 'nf4' and tostring(quant.spec 'nf4:32') == 'nf4:32')
	assert(tostring(quant.spec {dtype = 'mxfp4', scaling = 'even'}) == 'mxfp4 scaling=even' and quant.spec 'mxfp4 scaling=floor' == quant.spec 'mxfp4')
	assert(quant.spec 'nvfp4'.format == 'nvfp4' and quant.spec 'nvfp4'.dtype == 'uint4' and not quant.spec 'nvfp4'.affine and quant.spec 'mxint8'.affine)
	assert(refused 'mxfp4:16' == 'spec: block: wanted 32, the block of the format mxfp4, got 16', refused 'mxfp4:16')
	assert(refused 'nf4 log' == 'spec: scheme: wanted none beside the format nf4, which decides it', refused 'nf4 log')
	assert(refused {dtype = 'nf4', bits = 3}:find 'bits: wanted none beside the format nf4')
	assert(refused 'nf5':find "got 'nf5'; did you mean 'nf4'")
	assert(refused 'fp4_e2m1 saturate=false':find 'saturate: wanted a format with infinity or NaN')
	assert(refused 'mxfp4 scaling=exact':find 'scaling: wanted a power of two for the format mxfp4')
	assert(refused 'mxfp4 scaling=up':find "scaling: wanted one of exact floor even ceil pow2, got 'up'")
	assert(refused 'uint4 grid':find 'wanted the name of a format')
end)

it('blocks of zeros, NaN and Inf', function()
	local x = tensor.randn(4, 64)
	x[{1, {1, 32}}] = 0
	x[{2, 5}], x[{3, 5}] = 0 / 0, 1 / 0
	for _, spec in ipairs {'nvfp4', 'mxfp4', 'mxint8', 'nf4:32', 'fp8_e4m3', 'fp4_e2m1:16', 'int4:32+min', 'mxfp6_e3m2'} do
		local q = x:quantize(spec)
		local y, p = q:check():dequantize(), q:qparams()
		assert(y[{1, {1, 32}}]:abs():max():item() < 1e-6, spec)
		assert(p.nan == 1 and p.inf == 1, spec)
	end
end)
