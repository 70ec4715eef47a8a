-- SPDX-License-Identifier: MIT
-- Pass fold_norm: the batch norm goes, the values stay within rounding, and are those of m:fuse bit for bit.
tensor.seed(4)
local function norm(n)
	local b = nn.BatchNorm2d(n)
	tensor.nograd(function()
		b.running_mean:copy_(tensor.randn(n))
		b.running_var:copy_(tensor.rand(n) + 0.5)
		b.weight:copy_(tensor.randn(n))
		b.bias:copy_(tensor.randn(n))
	end)
	return b
end
local m = nn.Sequential{nn.Conv2d(3, 8, 3, {bias=false}), norm(8), nn.ReLU(), nn.Conv2d(8, 4, 3, {groups=4}), norm(4)}:eval()
local x = tensor.randn(2, 3, 9, 9)
local g = graph.trace(m, x)

it('folds with and without a bias, and behind groups', function()
	local h, r = g:pass 'fold_norm'
	print(#r, r[1].node, r[1].what, r[2].what)  --> 2 batchnorm1 folded into conv1 folded into conv2
	print(h:node('conv1').inputs[3], h:node('relu1').inputs[1], pcall(h.node, h, 'batchnorm1'))  --> conv1.bias conv1 false ...
	assert(h:run(x):error(m(x)).max < 1e-5)
	assert(h:pass('fuse_activation'):run(x):error(m:fuse()(x)).max == 0)
end)

it('leaves the graph that it was given as it was', function()
	print(g:node('batchnorm1').op, g:run(x):error(m(x)).max, g:node('conv1').inputs[3])  --> batchnorm 0.0 nil
	print(g:node('conv1.weight').value == m[1].weight:detach())  --> true
end)

it('does nothing twice, nothing behind an activation, nothing where others read the convolution', function()
	local h = g:pass 'fold_norm'
	print(#select(2, h:pass 'fold_norm'), h:pass('fold_norm') == h)  --> 0 true
	local behind = graph.trace(nn.Sequential{nn.Conv2d(3, 4, 3), nn.ReLU(), norm(4)}:eval(), x)
	print(#select(2, behind:pass 'fold_norm'), #select(2, behind:pass {'fuse_activation', 'fold_norm'}))  --> 0 1
	local both = graph.trace(nn.module(function(self, v)
		v = self.c(v)
		return v + self.n(v)
	end, {c=nn.Conv2d(3, 4, 3), n=norm(4)}):eval(), x)
	print(#select(2, both:pass 'fold_norm'))  --> 0
end)

it('two convolutions that share a weight get one each', function()
	local c = nn.Conv2d(3, 3, 3, {pad=1, bias=false})
	local shared = nn.Sequential{c, norm(3), nn.ReLU(), c, norm(3)}:eval()
	local h = graph.trace(shared, x):pass 'fold'
	assert(h:run(x):error(shared(x)).max < 1e-4)
	print(h:node('conv1').inputs[2] ~= h:node('conv1_2').inputs[2])  --> true
end)
