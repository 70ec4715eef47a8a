-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Functions of codes with rounding='double': every code of LiteRT 2.3's reference kernels (BUILTIN_REF), as a sum with weights and
-- as each sixteenth of all codes, made with it.
local CASES = {
	{'sigmoid', 'int16', 1 / 4096, 0, 1 / 32768, 0, 52602247982, {11, 30, 81, 219, 589, 1554, 3906, 8812, 16384, 23956, 28862, 31214, 32179, 32549, 32687, 32738}},
	{'sigmoid', 'int16', 0.000311, 0, 1 / 32768, 0, 52602261734, {1, 4, 16, 56, 200, 702, 2378, 7163, 16384, 25605, 30390, 32066, 32568, 32712, 32752, 32764}},
	{'tanh', 'int16', 1 / 4096, 0, 1 / 32768, 0, 13795020,
		{-32767, -32767, -32767, -32765, -32746, -32606, -31589, -24956, 0, 24956, 31589, 32606, 32746, 32765, 32767, 32767}},
	{'tanh', 'int16', 0.000311, 0, 1 / 32768, 0, 13794626,
		{-32767, -32767, -32767, -32767, -32766, -32736, -32369, -28011, 0, 28011, 32369, 32736, 32766, 32767, 32767, 32767}},
	{'leakyrelu', 'int16', 0.0001, 0, 0.00013, 0, 17599111272,
		{-3277, -2867, -2458, -2048, -1638, -1229, -819, -410, 0, 3151, 6302, 9452, 12603, 15754, 18905, 22055}},
	{'leakyrelu', 'int8', 0.025, 5, 0.03, -7, 166938, {-21, -20, -18, -16, -15, -13, -11, -9, -8, 2, 16, 29, 42, 56, 69, 82}},
	{'hardswish', 'int8', 0.025, 5, 0.03, -7, 102599, {-7, -8, -14, -17, -19, -19, -18, -14, -9, -2, 7, 17, 30, 44, 60, 77}},
	{'hardswish', 'int8', 0.1, -20, 0.06, -110, -440247, {-110, -110, -110, -110, -110, -112, -116, -106, -82, -50, -23, 3, 30, 57, 83, 110}},
	{'abs', 'int8', 0.025, 5, 0.03, -7, 484486, {104, 91, 77, 64, 51, 37, 24, 11, -3, 2, 16, 29, 42, 56, 69, 82}},
	{'abs', 'int16', 0.0001, 0, 0.00013, 0, 40444123188, {25206, 22055, 18905, 15754, 12603, 9452, 6302, 3151, 0, 3151, 6302, 9452, 12603, 15754, 18905, 22055}},
	{'sqrt', 'int8', 0.025, -128, 0.03, -120, -709926, {-120, -99, -91, -84, -78, -73, -69, -65, -61, -57, -54, -51, -47, -44, -42, -39}},
	{'sqrt', 'int16', 0.0001, 0, 0.00013, 0, 14904914017,
		{0, 3481, 4923, 6029, 6962, 7784, 8527, 9210, 9846, 10443, 11008, 11545, 12059, 12551, 13025, 13482}, from=0},
	{'log', 'int8', 0.025, -20, 0.03, 5, -485963, {-128, -128, -128, -128, -128, -128, -128, -72, -18, 1, 14, 23, 30, 36, 40, 45}},
	{'log', 'int16', 0.0003, 0, 0.00013, 0, -36695831414,
		{-32768, -32768, -32768, -32768, -32768, -32768, -32768, -32768, -32768, 1585, 6916, 10035, 12249, 13965, 15368, 16554}},
	{'exp', 'int16', 0.0001, 0, 0.0009, 0, 14391199258, {42, 64, 95, 143, 216, 325, 490, 737, 1111, 1673, 2521, 3797, 5718, 8612, 12973, 19540}},
	{'rsqrt', 'int16', 0.0003, 0, 0.0002, 0, 4961301531,
		{32767, 6378, 4510, 3683, 3190, 2853, 2605, 2411, 2255, 2126, 2017, 1924, 1841, 1769, 1705, 1647}, from=0},
	{'gelu', 'int16', 0.0001, 0, 0.00011, 0, 21681386758, {-16, -54, -156, -378, -755, -1224, -1537, -1270, 0, 2454, 5910, 9947, 14139, 18240, 22185, 26011}},
	{'gelu', 'int16', 0.0001, 0, 0.00011, 0, 21683874390,
		{-13, -50, -152, -376, -756, -1226, -1537, -1270, 0, 2453, 5909, 9945, 14138, 18241, 22189, 26015}, o={approximate='tanh'}},
}

local function quantized(codes, dtype, scale, zero)
	return ((codes:to 'float32' - zero) * tensor.full {1, value=scale}):quantize {dtype=dtype, scale=scale, zero_point=zero ~= 0 and zero or nil,
		scheme=zero ~= 0 and 'asymmetric' or 'symmetric'}
end
local function out_of(dtype, scale, zero, rule)
	return {dtype=dtype, scale=scale, zero_point=zero ~= 0 and zero or nil, scheme=zero ~= 0 and 'asymmetric' or 'symmetric', rounding=rule or 'double'}
end

for _, case in ipairs(CASES) do
	local op, dtype, scale, zero, to, zero_out, sum, some = table.unpack(case)
	it(('%s of %s, scale %g'):format(op, dtype, scale), function()
		local n = 1 << quant.dtype(dtype).bits
		local x = quantized(tensor.arange(case.from or -(n // 2), n // 2 - 1), dtype, scale, zero)
		local o = {slope=op == 'leakyrelu' and 0.13 or nil, approximate=case.o and case.o.approximate, out=out_of(dtype, to, zero_out)}
		local result = x[op](x, o)
		local y = result:codes():to 'int64'
		assert(result:origin().path == 'integer double' and result:origin().kernel == 'table')
		local list, total = y:totable(), 0
		for i, code in ipairs(list) do total = total + code * ((i - 1) % 97 + 1) end
		for i, code in ipairs(some) do assert(list[(i - 1) * (#list // 16) + 1] == code, i) end
		assert(total == sum, total)
		local few = x:narrow(1, n // 4, 6):view(2, 3):t() -- fewer than codes, not in order
		assert(few[op](few, o):codes():to 'int64':eq(y:narrow(1, n // 4, 6):view(2, 3):t()):all():item())
	end)
end

it('negative factors and results above those of x', function()
	local x = quantized(tensor.arange(-128, 127), 'int8', 0.5, 0)
	local y = x:leakyrelu {slope=2, out=out_of('int8', 0.02, 0)}:codes():totable()
	assert(y[1] == -128 and y[129] == 0 and y[130] == 25 and y[128] == -50 and y[256] == 127)
	y = x:leakyrelu {slope=-0.1, out=out_of('int8', 0.02, 0)}:codes():totable()
	assert(y[129] == 0 and y[130] == 25 and y[128] == 3 and y[109] == 50 and y[1] == 127) -- 0.5 * 0.1 / 0.02, halves away from 0
	assert(not pcall(x.leakyrelu, x, {slope=0 / 0, out=out_of('int8', 0.02, 0)}))
	local z = x:hardswish {out=out_of('int8', 0.001, 0)}:codes():totable()
	assert(z[1] == 0 and z[129] == 0 and z[256] == 127)
	local root, log = x:sqrt {out=out_of('int8', 0.05, -20)}:codes():totable(), x:log {out=out_of('int8', 0.02, 0)}:codes():totable()
	assert(root[1] == -20 and root[128] == -20 and root[129] == -20 and root[130] == -6 and root[137] == 20 and root[256] == 127)
	assert(log[1] == -128 and log[129] == -128 and log[130] == -35 and log[131] == 0 and log[256] == 127) -- log(0.5) / 0.02 = -34.7
end)

it('refuses other codes', function()
	local x, wide = quantized(tensor.arange(-128, 127), 'int8', 0.5, 0), quantized(tensor.arange(-128, 127), 'int16', 0.5, 0)
	for _, c in ipairs {{'sigmoid', x, 'int8', 1 / 256, -128, "sigmoid: out: wanted 16 bits with zero points of 0 for rounding='double', got int8 of scale 0.00390625"},
		{'sigmoid', wide, 'int16', 1 / 32767, 0, "sigmoid: out: wanted the scale 1/32768 for rounding='double', got int16 of scale"},
		{'tanh', wide, 'int8', 1 / 128, 0, 'wanted 16 bits'}, {'leakyrelu', x, 'int16', 0.1, 0, 'wanted 8 bits, or 16 with zero points of 0, for x and out'},
		{'hardswish', wide, 'int16', 0.1, 0, 'wanted 8 bits for x and out'}, {'gelu', x, 'int8', 0.1, 0, 'wanted 16 bits with zero points of 0'}, {'silu', x, 'int8', 0.1, 0, "wanted 'float', the only rule of this op, got 'double'"},
		{'sigmoid', wide, 'int16', 1 / 32768, 0, "the only rule of this op, got 'single'", 'single'}} do
		local ok, message = pcall(c[2][c[1]], c[2], {out=out_of(c[3], c[4], c[5], c[7])})
		assert(not ok and message:find(c[6], 1, true) and not message:find '\n', message)
	end
	local ok, message = pcall(x.leakyrelu, x, {out={dtype='int8', rounding='double'}})
	assert(not ok and message:find('wanted a given scale', 1, true), message)
end)
