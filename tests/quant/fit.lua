-- SPDX-License-Identifier: MIT
-- Scale and zero point of one range: the zero point at a tie as ONNX DynamicQuantizeLinear finds it (in float32), and no
-- finite value that decodes to infinity.
local function f32(x) return (string.unpack('<f', string.pack('<f', x))) end
local MOST = string.unpack('<f', string.pack('<I4', 0x7f7fffff))

-- half to even
local function rint(x)
	local n = x // 1
	local rest = x - n
	return math.tointeger((rest > 0.5 or rest == 0.5 and n % 2 == 1) and n + 1 or n)
end

it('has the zero point of float32 division, half to even', function()
	tensor.seed(5)
	local ties = 0
	for _, a in ipairs(tensor.randn(2000):abs():totable()) do
		local scale = f32(2 * a / 255)
		local quotient = f32(a / scale) -- a double quotient rounded to float32 is the float32 quotient
		local p = quant.params(-a, a, 'uint8')
		assert(p.scale == scale and p.zero_point == rint(quotient), a)
		assert(quant.params(-a, a, {dtype='int8', scheme='asymmetric'}).zero_point == p.zero_point - 128)
		assert(tensor{-a, a}:quantize('uint8'):qparams().zero_point:item() == p.zero_point)
		ties = ties + (quotient == 127.5 and 1 or 0)
	end
	assert(ties > 200 and ties < 1800, ties)
end)

-- DynamicQuantizeLinear of {-a, a} by onnxruntime 1.32: a, scale, zero point.
it('agrees with onnxruntime', function()
	for _, case in ipairs {{0x1.ac221ap-2, 0x1.adcfeap-9, 128}, {0x1.bafd36p-1, 0x1.bcb9fp-8, 128}, {0x1.a9580cp+1, 0x1.ab031p-6, 127},
		{0x1.ce6936p-3, 0x1.d0397p-10, 128}, {0x1.560a2cp-1, 0x1.57618ep-8, 128}, {0x1.0e1e58p+0, 0x1.0f2d86p-7, 128},
		{0x1.902e22p-2, 0x1.91bfe2p-9, 128}, {0x1.e88eccp-3, 0x1.ea7946p-10, 128}, {0x1.ef61eep+0, 0x1.f15342p-7, 128}} do
		local p = quant.params(-case[1], case[1], 'uint8')
		assert(p.scale == case[2] and p.zero_point == case[3], case[1])
	end
end)

describe('the largest floats', function()
	local ends = {{MOST}, {-MOST}, {-MOST, MOST}, {-0.595 * MOST, MOST}, {-MOST, 0.3 * MOST}, {-MOST, 0.99 * MOST}, {0.9999 * MOST, -1}}
	for i = 1, 60 do ends[#ends + 1] = {-MOST * (i / 60), MOST, MOST * 0.999} end
	for _, spec in ipairs {'int8', 'uint8', 'int4', 'uint4', 'int16', 'uint16', 'int8 asymmetric', 'int4:2', 'uint4:2', 'int8/1', 'int8 log',
		'binary'} do
		it('decode to finite numbers within half a step: ' .. spec, function()
			local dtype, scheme = spec:match '^(%S+) ?(%S*)$'
			local table_of = quant.spec(dtype)
			local s = {dtype=table_of.dtype, axis=table_of.axis, block=table_of.block, scheme=scheme ~= '' and scheme or nil}
			for _, values in ipairs(ends) do
				local x = tensor(values)
				local q = x:quantize(s)
				local y = q:dequantize()
				assert(y:isfinite():all():item(), tostring(y))
				if q:spec().scheme:find 'symmetric' then
					local scale = q:qparams().scale:max():item()
					for i, v in ipairs(y:totable()) do assert(math.abs(v - x[i]:item()) <= scale / 2 * 1.00001 + MOST * 0x1p-23) end
				end
				q:check()
			end
		end)
	end
	it('are found by observers, too', function()
		local p = quant.observer('uint8'):update(tensor{-MOST, MOST}):params()
		assert(p.scale:item() == tensor{-MOST, MOST}:quantize('uint8'):qparams().scale:item())
		assert(tensor{-MOST, MOST}:fake('uint8'):isfinite():all():item())
	end)
end)
