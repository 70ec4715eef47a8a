-- SPDX-License-Identifier: MIT
-- nn.MaxPool1d and nn.AvgPool1d: options, values of x:maxpool1d and x:avgpool1d. tests/nn/modules/conv1d.lua quantizes them.
local x = tensor.randn(2, 3, 9)
assert(nn.AvgPool1d(2, 1)(x):eq(x:avgpool1d(2, {stride=1})):all():item())
assert(nn.AvgPool1d(4, 3, {1, 2}, true, false)(x):eq(x:avgpool1d(4, {stride=3, pad={1, 2}, ceilmode=true, countincludepad=false})):all():item())
assert(nn.AvgPool1d(3, 2, 'same')(x):eq(x:avgpool1d(3, {stride=2, autopad='same'})):all():item())
assert(nn.AvgPool1d()(x):eq(x:avgpool1d()):all():item())
local y, places = nn.MaxPool1d(3, 2, 1, 2, true, true)(x)
assert(x:gather(3, places):eq(y):all():item() and y:eq(x:maxpool1d(3, {stride=2, pad=1, dilation=2, ceilmode=true})):all():item())
print(nn.MaxPool1d(3, {stride=2, pad={0, 1}, dilation=2}))  --> MaxPool1d(3, stride=2, pad={0,1}, dilation=2)  0 parameters
local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('AvgPool1d: stride: wanted a kernel with it, got none', nn.AvgPool1d, {stride=2})
refused('MaxPool1d: kernel: wanted an integer of at least 1, got', nn.MaxPool1d, {1, 2})
