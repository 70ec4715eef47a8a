-- SPDX-License-Identifier: MIT
-- Normalisation layers as modules: what the ops give, running statistics, what is trained and saved.
tensor.seed(2)
local x = tensor.randn(8, 3, 4, 4) * 2 + 1
local m = nn.BatchNorm2d(3)
local function names(t)
	local list = {}
	for name in pairs(t) do list[#list + 1] = name end
	return table.concat(list, ' ')
end
print(names(m:state()), #m:parameters())  --> weight bias running_mean running_var 2

it('batch norm: training follows the batch, use the running statistics', function()
	local y = m(x):detach()
	assert(math.abs(y:mean():item()) < 1e-5 and math.abs(y:var():item() - 1) < 0.01)
	local mean = x:mean {1, 3, 4}
	assert((m.running_mean - mean * 0.1):abs():max():item() < 1e-6)
	m:eval()
	local before = m.running_mean:clone()
	local shape = {1, 3, 1, 1}
	local want = (x - m.running_mean:view(table.unpack(shape))) / (m.running_var:view(table.unpack(shape)) + 1e-5):sqrt()
	assert(m(x):detach():error(want).max < 1e-4)
	assert(m.running_mean:error(before).max == 0)
end)

it('layer norm and rms norm', function()
	local rows = tensor.randn(5, 16) * 3 + 2
	local y = nn.LayerNorm(16)(rows):detach()
	assert(y:mean(2):abs():max():item() < 1e-5)
	assert(nn.RMSNorm(16)(rows):detach():error(rows / ((rows * rows):mean(2, {keep=true}) + 1e-5):sqrt()).max < 1e-5)
	assert(nn.LayerNorm(16, {bias=false}).bias == false and #nn.LayerNorm(16, {bias=false}):parameters() == 1)
end)

it('group, instance and layer norm over several axes', function()
	local g, i = nn.GroupNorm(3, 6), nn.InstanceNorm2d(6, {affine=true, eps=0.1})
	local t = tensor.randn(2, 6, 4, 5)
	local parts = t:view(2, 3, 40)
	local want = (parts - parts:mean(3, {keep=true})) / (parts:var {axis=3, keep=true, unbiased=false} + 1e-5):sqrt()
	assert(g(t):detach():error(want:view(2, 6, 4, 5)).max < 1e-5)
	local rows = t:view(2, 6, 20)
	want = (rows - rows:mean(3, {keep=true})) / (rows:var {axis=3, keep=true, unbiased=false} + 0.1):sqrt()
	assert(i(t):detach():error(want:view(2, 6, 4, 5)).max < 1e-5)
	assert(nn.InstanceNorm1d(6, {eps=0.1})(rows):error(want).max < 1e-5)
	local l = nn.LayerNorm {4, 5}
	assert(l(t):detach():view(-1):error(nn.LayerNorm(20)(rows):detach():view(-1)).max == 0)
	print(g, i, nn.InstanceNorm1d(2), l)  --> GroupNorm(3, 6) 12 parameters InstanceNorm2d(6, eps=0.1, affine=true) 12 parameters InstanceNorm1d(2) 0 parameters LayerNorm({4, 5}) 40 parameters
	print(#g:parameters(), #nn.GroupNorm(3, 6, {affine=false}):parameters())  --> 2 0
end)

it('batch norm with a biased running variance', function()
	local b = nn.BatchNorm2d(3, {unbiased=false, momentum=1})
	b(x)
	assert(b.running_var:error(x:var {axis={1, 3, 4}, unbiased=false}).max < 1e-5)
	assert(b.running_var:error(x:var {axis={1, 3, 4}}).max > 1e-4)
end)

local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('BatchNorm2d: channels: wanted an integer of at least 1, got 0', nn.BatchNorm2d, 0)
refused('LayerNorm: size: wanted an integer of at least 1, got nil', nn.LayerNorm)
refused('GroupNorm: groups: wanted a divisor of 6, got 4', nn.GroupNorm, 4, 6)
refused('InstanceNorm2d: wanted x (N, C, H, W) with 3 channels, got float32(2, 4, 4, 4)', nn.InstanceNorm2d(3), tensor.zeros(2, 4, 4, 4))
refused('LayerNorm: size: wanted an integer of at least 1, got 0', nn.LayerNorm, {3, 0})

it('local response norm', function()
	local m, v = nn.LocalResponseNorm(3, 0.5, 1, 2), tensor.randn(2, 5, 3, 3)
	print(m, nn.LocalResponseNorm(5))  --> LocalResponseNorm(3, alpha=0.5, beta=1, k=2) 0 parameters LocalResponseNorm(5) 0 parameters
	assert(m(v):eq(nn.localresponsenorm(v, 3, 0.5, 1, 2)):all():item())
	local g = graph.trace(nn.Sequential {nn.Conv2d(5, 4, 1), m}, v)
	assert(tostring(nn.Graph(g)):find('LocalResponseNorm(3, alpha=0.5, beta=1, k=2)', 1, true) and nn.Graph(g)(v):eq(g:run(v)):all():item())
end)
