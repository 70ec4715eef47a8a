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

local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('BatchNorm2d: channels: wanted an integer of at least 1, got 0', nn.BatchNorm2d, 0)
refused('LayerNorm: size: wanted an integer of at least 1, got nil', nn.LayerNorm)
