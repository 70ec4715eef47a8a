-- SPDX-License-Identifier: MIT
-- labels: full
-- prelu of codes in exported C: 1000 inputs each, the codes of Quoll.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(51)
local x, list = tensor.randn(1000, 3, 4, 5), {}
local INS = {{dtype='int8', scale=0.03, zero_point=5}, {dtype='uint8', scale=0.03, zero_point=128}, {dtype='int16', scale=2e-4}, {dtype='uint16', scale=1e-3,
	zero_point=30000}}
local OUTS = {{dtype='int8', scale=0.02, zero_point=-9}, {dtype='uint8', scale=0.03, zero_point=120}, {dtype='int16', scale=3e-4}}
local SLOPES = {tensor {0.3}, tensor {0.2, -0.1, 1.5}, tensor.rand(4, 5) - 0.3, (tensor.rand(3) - 0.2):quantize {dtype='int8', scale=0.01, zero_point=3},
	tensor.rand(3, 1, 1):quantize {dtype='uint8', scale=0.004}}
for i, input in ipairs(INS) do
	for k, slope in ipairs(SLOPES) do
		for r, rule in ipairs {'float', 'single', 'double', 'exact'} do
			if r == 1 or (i + k + r) % 3 == 0 then
				local o = OUTS[(i + k) % 3 + 1]
				local out = {dtype=o.dtype, scale=o.scale, zero_point=o.zero_point, rounding=rule}
				list[('%s, slope %d, %s'):format(input.dtype, k, rule)] = function(_, a) return a:quantize(input):prelu(slope, {out=out}) end
			end
		end
	end
end
list['along the last axis'] = function(_, a) return a:quantize(INS[1]):prelu(tensor {0.1, 0.2, 0.3, 0.4, -0.5}, {axis=-1, out=OUTS[1]}) end
exported.functions(list, x)
