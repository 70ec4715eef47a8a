-- SPDX-License-Identifier: MIT
-- labels: full
-- Arithmetic of floats with broadcasting in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
exported.functions({
	numbers = function(_, x) return x * 2 - 1 end, column = function(self, x) return x * self.c end,
	mixed = function(self, x) return x * x:tanh() / (self.b:view(1, 1, 8) + 3) end,
	limits = function(self, x) return x:maximum(self.c):minimum(0.5) end,
}, tensor.randn(12, 6, 8), {b=tensor.randn(8), c=tensor.randn(6, 1)})
