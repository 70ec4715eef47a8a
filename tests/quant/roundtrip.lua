-- SPDX-License-Identifier: MIT
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
