-- SPDX-License-Identifier: MIT
-- nn.Conv3d, nn.MaxPool3d and nn.AvgPool3d: sizes, options by position, texts; tests/tensor/volumes.lua has the values.
local x = tensor.randn(2, 4, 5, 6, 7)
print(nn.Conv3d(4, 6, 3, 2, 1)(x):size())  --> 2 6 3 3 4
print(nn.Conv3d(4, 6, {1, 3, 2}, {stride=2, pad={0, 1, 1}, groups=2, bias=false}))  --> Conv3d(4, 6, {1,3,2}, stride=2, pad={0,1,1}, groups=2, bias=false)  72 parameters
print(nn.MaxPool3d(2, {stride={1, 2, 2}}), nn.AvgPool3d(), nn.AvgPool3d({1, 2, 2}, {countincludepad=false}))  --> MaxPool3d(2, stride={1,2,2})  0 parameters AvgPool3d(all)  0 parameters AvgPool3d({1,2,2}, countincludepad=false)  0 parameters
local m = nn.Conv3d(4, 6, 3, 1, {0, 1, 1, 0, 2, 2}, 1, 2)
assert(m(x):eq(x:conv3d(m.weight, m.bias, {pad={0, 1, 1, 0, 2, 2}, groups=2})):all():item())
assert(nn.MaxPool3d(2, 1, 1)(x):eq(x:maxpool3d(2, {stride=1, pad=1})):all():item())
assert(nn.AvgPool3d(2, 1, 1, true, false)(x):eq(x:avgpool3d(2, {stride=1, pad=1, ceilmode=true, countincludepad=false})):all():item())
local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('Conv3d: groups: wanted a divisor of 3 inputs and 4 outputs, got 2', nn.Conv3d, 3, 4, 3, {groups=2})
refused('Conv3d: kernel: wanted a number or {depth, height, width}, got a table of 2', nn.Conv3d, 3, 4, {1, 2})
refused('MaxPool3d: kernel: wanted a number', nn.MaxPool3d)
