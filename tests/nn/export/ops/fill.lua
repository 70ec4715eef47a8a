-- SPDX-License-Identifier: MIT
-- labels: full
-- Tensors made of their sizes in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
exported.functions({
	zeros = function(_, a) return tensor.zeros(a:size(1), 5) + a end,
	ones = function(_, a) return a * tensor.ones(1, 5) end,
	full = function(_, a) return a - tensor.full {a:size(1), 1, value=0.3} end,
	linspace = function(_, a) return a + tensor.linspace(0, 1, 5) end,
}, tensor.randn(6, 5))
