-- SPDX-License-Identifier: MIT
-- labels: full
-- Sums of codes and of floats in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x, blocks = tensor.randn(12, 3, 10, 10), tensor.randn(12, 6, 8)
exported.integers {
	{'residual', nn.Sequential {nn.Conv2d(3, 8, 1), nn.Residual {nn.Conv2d(8, 8, 3, {pad=1}), nn.ReLU(), nn.Conv2d(8, 8, 1)}, nn.ReLU(),
		nn.Conv2d(8, 5, 1)}, x},
}
local cases = {}
for _, rule in ipairs {'single', 'double'} do
	for dtype, scale in pairs {int8 = 0.03, uint8 = 0.02, int16 = 0.0002, uint16 = 0.0001} do
		cases[('%s, %s'):format(dtype, rule)] = function(_, a)
			local zero = dtype:find '^u' and 100 or nil
			local q = a:quantize {dtype=dtype, scale=scale, zero_point=zero}
			local r = (a * -0.7):quantize {dtype=dtype, scale=scale / 3, zero_point=zero}
			return q:add(r, {out={dtype=dtype, scale=scale * 1.3, zero_point=zero, rounding=rule}})
		end
	end
end
exported.functions(cases, blocks)
exported.functions({add = function(self, a) return a + self.b end, number = function(_, a) return a + 0.1 end}, blocks, {b=tensor.randn(8)})
