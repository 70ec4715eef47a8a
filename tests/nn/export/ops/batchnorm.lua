-- SPDX-License-Identifier: MIT
-- Batch normalization in exported C: alone, before a layer that cannot take it in, and in float variants.
-- labels: once
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(29)
local function trained(m)
	for i = 1, #m do
		local norm = m[i]
		if tostring(norm):find '^BatchNorm' then
			tensor.nograd(function()
				norm.weight:copy_(tensor.randn(norm.weight:size(1)))
				norm.bias:copy_(tensor.randn(norm.bias:size(1)))
			end)
			norm.running_mean:copy_(tensor.randn(norm.running_mean:size(1)) * 3)
			norm.running_var:copy_(tensor.rand(norm.running_var:size(1)) * 2)
		end
	end
	return m:eval()
end
local image, rows = tensor.randn(20, 5, 6, 7), tensor.randn(20, 12)
it('images and rows, the same bits', function()
	exported.check('image', graph.trace(trained(nn.Sequential {nn.BatchNorm2d(5)}), image[{{1, 1}}]), image, {flags=exported.FLAGS})
	local vectors = {w=tensor.randn(12), b=tensor.randn(12), m=tensor.randn(12) * 3, v=tensor.rand(12) + 0.1}
	local m = nn.module(function(self, a) return nn.batchnorm(a, self.w, self.b, self.m, self.v, {eps=0.01}) end, vectors)
	exported.check('rows', graph.trace(m, rows[{{1, 1}}]), rows, {flags=exported.FLAGS})
end)
it('before a layer, float and in integers', function()
	local m = trained(nn.Sequential {nn.BatchNorm2d(5), nn.ReLU(), nn.Conv2d(5, 4, 3), nn.BatchNorm2d(4), nn.ReLU()})
	exported.check('float', graph.trace(m, image[{{1, 1}}]), image, {flags=exported.FLAGS})
	exported.check('static', exported.static(m, image), image, {flags=exported.FLAGS})
end)
it('not by the statistics of the batch', function()
	local g, folder = graph.trace(nn.module(function(self, a) return nn.batchnorm(a, self.w, self.w, self.w, self.w, {training=true}) end,
		{w=tensor.ones(5)}), image), os.tmpname()
	os.remove(folder)
	print(pcall(g.export, g, {dir=folder}))  --> false ...wanted inference with stored mean and variance, got training=true
end)
