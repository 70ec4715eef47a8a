-- SPDX-License-Identifier: MIT
-- labels: quick host
-- softmax of 8-bit codes with rounding='double': the codes of LiteRT 2.3's reference kernel (BUILTIN_REF), made with it.
local OUT = {dtype='int8', scale=1 / 256, zero_point=-128, rounding='double'}
local CASES = {
	{0.002, {{68, -111, 123, 119, -40, -89, 19}, {-98, 118, 48, -56, -77, 43, 49}, {-123, 113, 46, -97, -42, 50, 4}},
		{{-88, -100, -83, -83, -96, -99, -92}, {-98, -83, -88, -96, -97, -89, -88}, {-99, -82, -88, -98, -94, -88, -91}}},
	{0.05, {{126, 52, -50, 84, 35, 24, 115}, {-101, -76, -108, 117, 18, -39, 39}, {-107, -124, -112, -9, 63, 106, -123}},
		{{19, -124, -128, -110, -126, -127, -43}, {-128, -128, -128, 121, -126, -128, -123}, {-128, -128, -128, -127, -101, 101, -128}}},
	{0.3, {{-19, 99, 67, -77, 83, 71, -65}, {-47, -9, 56, 65, 92, -52, -1}, {8, 59, 106, 18, 84, 7, -24}},
		{{-128, 126, -128, -128, -126, -128, -128}, {-128, -128, -128, -128, 127, -128, -128}, {-128, -128, 127, -128, -128, -128, -128}}},
	{1, {{81, 24, 95, 71, -85, 119, 4}, {-54, 115, -9, 126, 17, 118, -63}, {-33, -111, 111, -36, 85, -73, -63}},
		{{-128, -128, -128, -128, -128, 127, -128}, {-128, -128, -128, 127, -128, -128, -128}, {-128, -128, 127, -128, -128, -128, -128}}},
}
local function codes(list, scale, zero)
	return ((tensor(list) - (zero or 0)) * scale):quantize {dtype='int8', scheme='asymmetric', scale=scale, zero_point=zero or 0}
end
local function same(y, want) return y:codes():to 'int64':eq(tensor(want):to 'int64'):all():item() end

it('has the codes of the reference kernel', function()
	for _, case in ipairs(CASES) do
		local q = codes(case[2], case[1])
		quant.log 'reset'
		local y = q:softmax {out=OUT}
		assert(quant.log()[1].path == 'integer double' and quant.log()[1].kernel == 'softmax_int')
		assert(same(y, case[3]), case[1])
		local turned = q:t():contiguous():view(7, 3, 1):softmax {axis=1, out=OUT}
		assert(same(turned:view(7, 3):t(), case[3]))
	end
end)

it('gives unsigned codes, shifted by 128', function()
	local q = codes(CASES[2][2], 0.05)
	local y = q:softmax {out={dtype='uint8', scale=1 / 256, zero_point=0, rounding='double'}}
	assert((y:codes():to 'int64' - 128):eq(tensor(CASES[2][3]):to 'int64'):all():item())
end)

it('is within two codes of the exact result', function()
	tensor.seed(3)
	for _, scale in ipairs {1e-6, 0.01, 0.2, 40} do
		for _, n in ipairs {1, 2, 33, 5000} do
			local q = (tensor.randn(4, n) * 50 * scale):quantize {dtype='int8', scale=scale}
			local want = q:dequantize():to 'float64':softmax():to 'float32':quantize {dtype='int8', scale=1 / 256, zero_point=-128}
			local off = (q:softmax {out=OUT}:codes():to 'int64' - want:codes():to 'int64'):abs():max():item()
			assert(off <= 2, ('%g %d: %d'):format(scale, n, off))
		end
	end
	assert(tensor.zeros(0, 3):quantize {dtype='int8', scale=1}:softmax {out=OUT}:nelem() == 0)
end)

it('refuses other results', function()
	local q = codes(CASES[1][2], 0.05)
	for _, out in ipairs {{dtype='int8', scale=1 / 255, zero_point=-128}, {dtype='int8', scale=1 / 256}, {dtype='int16', scale=1 / 256, zero_point=-128}} do
		out.rounding = 'double'
		local ok, message = pcall(q.softmax, q, {out=out})
		assert(not ok and message:find 'softmax: out: wanted 8 bits from 8 bits, the scale 1/256', message)
	end
end)
