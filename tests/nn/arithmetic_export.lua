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
exported.functions({add = function(self, a) return a + self.b end, number = function(_, a) return a + 0.1 end}, blocks, {b=tensor.randn(8)})
