-- SPDX-License-Identifier: MIT
-- Named formats against the codes, scales and values that other programs made (tests/quant/golden), bit for bit.
local FOLDER = 'tests/quant/golden/'
local inputs = tensor.load(FOLDER .. 'inputs.npz')
local count = 0

local function same(a, b, what)
	local difference = (a:to('float64'):reshape(-1) - b:to('float64'):reshape(-1)):abs():max():item()
	count = count + 1
	assert(difference == 0, ('%s differ by up to %g'):format(what, difference))
end

-- Compares one input of a golden file, where it has that input; its first rows.
local function check(spec, golden, prefix, input, field)
	local codes = golden[prefix .. input .. '_codes']
	if not codes then return end
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
	if quant.dtype(('uint%d'):format(bits)) then
		it(('uint%d:32+min'):format(bits), function()
			check_all(('uint%d:32+min'):format(bits), load(('uint%d_min'):format(bits)), '', '_scale')
		end)
	end
end
for _, name in ipairs {'nvfp4', 'nf4', 'af4', 'ternary'} do
	it(name, function() check_all(name, load(name), '', name == 'nvfp4' and '_scale' or nil) end)
end

-- Every float16 number: its code under a scale of 1.
it('small floating point: all codes and all float16 numbers', function()
	local golden = load 'elements'
	local bits = tensor.arange(0, 65535):to 'uint16'
	print(bits)
end)
