-- SPDX-License-Identifier: MIT
-- labels: full
-- Sums of products in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x = tensor.randn(20, 3, 4, 4)
local w = {w=tensor.randn(4, 5), v=tensor.randn(3, 1, 4), i=tensor.randint {4, 5, low=-99, high=99}:to 'int32'}
exported.functions({
	product = function(self, a) return tensor.einsum('bcij,jk->bcik', a, self.w) end,
	implicit = function(self, a) return tensor.einsum('bcij, cij', a, self.v:expand(3, 4, 4)):view(1, -1) end,
	stretched = function(self, a) return tensor.einsum('bcij,cij->bji', a, self.v) end,
	dots = function(self, a) return tensor.einsum('...j,jk->k...', a, self.w):permute(2, 3, 4, 1) end,
	outer = function(self, a) return tensor.einsum('bcij,kl->bcijkl', a:narrow(2, 1, 1), self.w) end,
	diagonal = function(_, a) return tensor.einsum('bcii->bci', a) end,
	trace = function(_, a) return tensor.einsum('bcii->b', a) end,
	['turned round'] = function(_, a) return tensor.einsum('bcij->bjci', a) end,
	['of codes'] = function(self, a) return tensor.einsum('bcij,jk->bcik', a:quantize {dtype='int8', scale=0.03}, self.w) end,
}, x, w)
exported.functions({
	integers = function(self, a) return tensor.einsum('bcij,jk->bcik', (a * 50):to 'int32', self.i) end,
	['sum of integers'] = function(_, a) return tensor.einsum('bcij->bj', (a * 50):to 'int8') end,
	['inner product of integers'] = function(self, a) return a:mul(50):to('int32'):select(1, 1):select(1, 1):select(1, 1):dot(self.i:t():select(1, 2)):view(1, 1) end,
}, x, w)
exported.functions({['inner product'] = function(self, a) return a:select(1, 1):select(1, 2):select(1, 3):dot(self.w:t():select(1, 1)):view(1, 1) end}, x, w)
