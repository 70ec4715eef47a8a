-- SPDX-License-Identifier: MIT
-- labels: quick host
-- x:conv1d, x:maxpool1d and x:avgpool1d: values, gradients and places are those of images of one row; what is refused.
-- tests/nn/modules/conv1d.lua compares with PyTorch.
tensor.seed(9)
local x = tensor.randn(16, 3, 32)
it('values, gradients and places of the methods', function()
	local w, b = tensor.randn(4, 3, 5):requires_grad_(), tensor.randn(4):requires_grad_()
	local a = x:detach():requires_grad_()
	a:conv1d(w, b, {stride=3, pad={1, 2}, dilation=2}):sin():sum():backward()
	local v, c, d = w:detach():unsqueeze(3):requires_grad_(), b:detach():requires_grad_(), x:unsqueeze(3):requires_grad_()
	d:conv2d(v, c, {stride={1, 3}, pad={0, 0, 1, 2}, dilation={1, 2}}):sin():sum():backward()
	assert(a:grad():eq(d:grad():squeeze(3)):all():item() and w:grad():eq(v:grad():squeeze(3)):all():item() and b:grad():eq(c:grad()):all():item())
	local y, places = x:maxpool1d(4, {stride=3, indices=true})
	assert(x:gather(3, places):eq(y):all():item())
	print(tensor{1, 5, 2, 4}:view(1, 1, 4):avgpool1d{k=2, stride=1}:view(3))  --> float32(3) 3.0000 3.5000 3.0000
	print(x:maxpool1d('all'):eq(x:max(3):unsqueeze(3)):all():item())  --> true
end)

local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('conv1d: wanted x (n, c, l), got float32(3, 32)', x.conv1d, x[1], tensor.ones(2, 3, 3))
refused('conv1d: wanted w (out, c / groups, k), got float32(2, 3)', x.conv1d, x, tensor.ones(2, 3))
refused('conv1d: stride: wanted integer, got table', x.conv1d, x, tensor.ones(2, 3, 3), {stride={1, 2}})
refused("conv1d: unknown option 'padding'", x.conv1d, x, tensor.ones(2, 3, 3), {padding=1})
refused('conv1d: wanted no argument', x.conv1d, x, tensor.ones(2, 3, 3), tensor.ones(2), {}, 1)
refused("maxpool1d: unknown option '1'", x.maxpool1d, x, {2, 3})
