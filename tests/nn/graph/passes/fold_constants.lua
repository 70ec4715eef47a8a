-- SPDX-License-Identifier: MIT
-- Pass fold_constants: what is constant is computed once; random numbers, codes, big results and sizes with B are not.
tensor.seed(5)
local x = tensor.randn(2, 4)

local function folded(run, parts)
	local m = nn.module(run, parts or {}):eval()
	local g = graph.trace(m, x)
	local h, r = g:pass 'fold_constants'
	return g, h, r, m
end

it('computes chains of constant nodes', function()
	local _, h, r, m = folded(function(self, v) return v * (self.gain:exp() + 1):relu() end, {gain=tensor.randn(4)})
	print(#r, r[1].what, #h.order, h:node('mul1').inputs[2], h:node('relu1').op)  --> 3 exp computed 3 relu1 const
	print(h:run(x):error(m(x)).max)  --> 0.0
end)

it('keeps what depends on the batch, random numbers, large results and codes', function()
	print(#select(3, folded(function(_, v) return v + tensor.zeros(v:size(1), 4):exp() end)))  --> 0
	print(#select(3, folded(function(_, v) return v + tensor.randn(4) end)))  --> 0
	print(#select(3, folded(function(self, v) return v + self.a:expand(512, 1024):contiguous():sum() end, {a=tensor.ones(1, 1)})))  --> 0
	print(#select(3, folded(function(self, v) return v + self.a:dequantize() end, {a=tensor.randn(4):quantize 'int8'})))  --> 0
end)
