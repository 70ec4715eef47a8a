-- SPDX-License-Identifier: MIT
-- labels: full
-- Softmax, norms, reductions and argmax in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x, parts = tensor.randn(12, 6, 8), {b=tensor.randn(8)}
exported.functions({
	max = function(_, a) return a:max {axis=3} end, min = function(_, a) return a:min {axis=2} end, argmax = function(_, a) return a:argmax(-1) end,
}, x)
-- sums in another order
exported.functions({
	softmax = function(_, a) return a:softmax() end, logsoftmax = function(_, a) return a:logsoftmax(2) end,
	mean = function(_, a) return a:mean {axis={2, 3}} end, sum = function(_, a) return a:sum {axis=2} end,
	layernorm = function(self, a) return a:layernorm(self.b * self.b, self.b) end, rmsnorm = function(self, a) return a:rmsnorm(self.b) end,
}, x, parts, 2e-6)
