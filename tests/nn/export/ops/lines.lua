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
-- zeros of both signs: which one is found may not depend on how a line is cut into lanes
local zeros = tensor.where(tensor.rand(12, 6, 40):lt(0.9), -1, tensor.where(tensor.rand(12, 6, 40):lt(0.5), 0.0, -0.0))
exported.functions({
	max = function(_, a) return 1 / a:max {axis=3} end, min = function(_, a) return 1 / (-a):min {axis=3} end,
	maximum = function(_, a) return 1 / a:maximum(a:transpose(2, 3):contiguous():view(-1, 6, 40)) end,
	minimum = function(_, a) return 1 / a:minimum(a:transpose(2, 3):contiguous():view(-1, 6, 40)) end,
}, zeros)
-- sums in the same order
exported.functions({
	softmax = function(_, a) return a:softmax() end, logsoftmax = function(_, a) return a:logsoftmax(2) end,
	mean = function(_, a) return a:mean {axis={2, 3}} end, sum = function(_, a) return a:sum {axis=2} end,
	layernorm = function(self, a) return a:layernorm(self.b * self.b, self.b) end, rmsnorm = function(self, a) return a:rmsnorm(self.b) end,
}, x, parts)

exported.functions({
	['local response norm'] = function(_, a) return nn.localresponsenorm(a, 3, 0.5) + nn.localresponsenorm(a, 4, {alpha=2, beta=0.5, k=1.5}) end,
	['of rows'] = function(_, a) return nn.localresponsenorm(a:select(2, 1), 11, 1, 1.25, 0.5) end,
}, x)

-- rows whose squares are no floats, beside others
local far = tensor.randn(4, 3, 300) * tensor{1, 1e25, 1e37, 1e-30}:view(4, 1, 1)
exported.functions({layernorm = function(_, a) return a:layernorm() end, rmsnorm = function(_, a) return a:rmsnorm() end}, far)

-- Longer than the runs, blocks and parts that sums are cut into (tensor/loops/reduce.h), and than the depth of a product's tiles.
local long = tensor.randn(2, 2, 70001) * tensor.randn(70001):exp()
exported.functions({
	sum = function(_, a) return a:sum {axis=3} end, mean = function(_, a) return a:mean {axis={2, 3}} end,
	['sum of columns'] = function(_, a) return a:transpose(2, 3):contiguous():sum {axis=2} end, var = function(_, a) return a:var {axis={2, 3}} end,
	std = function(_, a) return a:std {axis=3} end, norm = function(_, a) return a:norm {axis={2, 3}} end,
	logsumexp = function(_, a) return a:logsumexp {axis={2, 3}} end, prod = function(_, a) return (a * 1e-4 + 1):prod {axis=3} end,
	['prod along axes apart'] = function(_, a) return (a * 1e-5 + 1):prod {axis={2, 3}} end, cumprod = function(_, a) return (a * 1e-5 + 1):cumprod(3) end,
	['norm 1'] = function(_, a) return a:norm {p=1, axis=3} end, softmax = function(_, a) return (a * 0.1):softmax() end,
	logsoftmax = function(_, a) return (a * 0.1):logsoftmax() end, layernorm = function(_, a) return a:layernorm() end,
	rmsnorm = function(_, a) return a:rmsnorm() end, dot = function(_, a) return a:select(1, 1):select(1, 1):dot(a:select(1, 1):select(1, 2)):view(1, 1) end,
}, long)
local wide = tensor.randn(3, 8, 700) * tensor.randn(700):exp()
exported.functions({
	linear = function(self, a) return a:linear(self.w) end, matmul = function(_, a) return a:matmul(a:transpose(2, 3)) end,
	attention = function(_, a) return nn.attention(a, a * 0.1, a, {heads=2}) end,
	einsum = function(self, a) return tensor.einsum('bik,jk->ib', a, self.w) end, conv2d = function(self, a) return a:view(-1, 56, 10, 10):conv2d(self.k, {pad=1}) end,
	avgpool2d = function(_, a) return a:view(-1, 2, 28, 100):avgpool2d {28, 100} end, ['avgpool2d of few'] = function(_, a) return a:view(-1, 56, 10, 10):avgpool2d(10) end,
}, wide, {w=tensor.randn(5, 700), k=tensor.randn(6, 56, 3, 3)})

-- norms of codes: groups of channels, rows of several axes
local image, nets = tensor.randn(6, 3, 6, 6), {}
for _, norm in ipairs {nn.GroupNorm(3, 6), nn.InstanceNorm2d(6, {affine=true}), nn.LayerNorm {6, 6}, nn.GroupNorm(2, 6, {affine=false})} do
	local net = nn.Sequential {nn.Conv2d(3, 6, 3, {pad=1}), norm, nn.ReLU(), nn.Conv2d(6, 2, 3)}
	for _, p in ipairs(norm:parameters()) do tensor.nograd(function() p:copy_(tensor.rand(p:size()) + 0.5) end) end
	nets[#nets + 1] = {name=tostring(norm), x=image, graph=function() return exported.quantized(net, image, {mode='static', input='uint8'}) end}
end
exported.together(nets, {compilers={'cc -O2'}, alone=true})
