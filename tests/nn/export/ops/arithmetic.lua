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
for _, rule in ipairs {'single', 'double', 'exact'} do
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

-- Codes that broadcast, differences and products, under every rule of rounding.
tensor.seed(47)
local codes, A, B = {}, {dtype='int8', scale=0.03, zero_point=5}, {dtype='uint8', scale=0.02, zero_point=120}
local wide = {dtype='int16', scale=2e-4, zero_point=-300}
local row = tensor.randn(8):quantize {dtype='uint8', scale=0.015, zero_point=130}
for _, op in ipairs {'add', 'sub', 'mul'} do
	for _, rule in ipairs {'float', 'single', 'double', 'exact'} do
		local out = {dtype='int8', scale=0.04, zero_point=-6, rounding=rule}
		codes[op .. ' ' .. rule] = function(_, a) return a:quantize(A)[op](a:quantize(A), (a * 0.5):quantize(B), {out=out}) end
		codes[op .. ' of a column ' .. rule] = function(_, a) return a:quantize(A)[op](a:quantize(A), a:narrow(3, 2, 1):quantize(B), {out=out}) end
		codes[op .. ' of a constant ' .. rule] = function(_, a) return a:quantize(B)[op](a:quantize(B), row, {out=out}) end
		if op == 'add' then
			codes['relu of a sum ' .. rule] = function(_, a) return a:quantize(A):add((a * 0.5):quantize(A), {out=out, act='relu'}) end
			codes['relu of a sum with a column ' .. rule] = function(_, a)
				return a:quantize(A):add(a:narrow(3, 2, 1):quantize(B), {out=out, act='relu'})
			end
		end
		codes[op .. ' of 16 bits ' .. rule] = function(_, a)
			return a:quantize(wide)[op](a:quantize(wide), a:narrow(2, 1, 1):quantize(A), {out={dtype='int16', scale=3e-4, rounding=rule}})
		end
	end
end
exported.functions(codes, tensor.randn(1000, 6, 8))
