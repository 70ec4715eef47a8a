-- SPDX-License-Identifier: MIT
-- nn.ConvTranspose2d and nn.ConvTranspose1d: sizes, where they begin, positions of options, fused activation, files; the values are those of
-- x:convtranspose2d (tests/tensor/ops/convtranspose2d.lua).
tensor.seed(6)
print(nn.ConvTranspose2d(3, 8, 4, 2, 1)(tensor.ones(2, 3, 6, 5)):size())  --> 2 8 12 10
print(nn.ConvTranspose2d(4, 8, {1, 3}, {stride=2, groups=2, outputpad={1, 0}}).weight:size())  --> 4 4 1 3
print(nn.ConvTranspose2d(3, 8, 3, 2, 'same')(tensor.ones(2, 3, 6, 5)):size())  --> 2 8 12 10
print(nn.ConvTranspose2d(4, 2, 3, 2, 1, 1, 2, false, 2))  --> ConvTranspose2d(4, 2, {3,3}, stride=2, pad=1, outputpad=1, groups=2, dilation=2, bias=false)  36 parameters
print(nn.ConvTranspose1d(3, 8, 4, {stride=2, pad={1, 0}})(tensor.ones(2, 3, 6)):size())  --> 2 8 13
print(nn.ConvTranspose1d(4, 8, 4, 2, 1, 1, 4))  --> ConvTranspose1d(4, 8, 4, stride=2, pad=1, outputpad=1, groups=4)  40 parameters
local m = nn.ConvTranspose2d(32, 16, 3)
local bound = 1 / math.sqrt(16 * 9)
assert(m.weight:abs():max():item() <= bound and m.weight:abs():max():item() > 0.97 * bound and m.bias:abs():max():item() <= bound)

it('fuse, files and quantized copies', function()
	local net = nn.Sequential {nn.ConvTranspose2d(3, 6, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(6, 2, 3), nn.Flatten(3), nn.ConvTranspose1d(2, 3, 5, 3), nn.ReLU6()}
	local x = tensor.randn(2, 3, 4, 4)
	local fused = net:fuse()
	assert(#fused == 4 and fused.conv1.act == 'relu' and fused.conv3.act == 'relu6' and fused(x):error(net(x):detach()).max < 1e-6)
	local file = os.tmpname() .. '.safetensors'
	net:save(file)
	local again = nn.Sequential {nn.ConvTranspose2d(3, 6, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(6, 2, 3), nn.Flatten(3), nn.ConvTranspose1d(2, 3, 5, 3), nn.ReLU6()}
	again:load(file)
	assert(again(x):eq(net(x)):all():item())
	net:calibrate({{x, x}}, {log=false})
	for _, mode in ipairs {'static', 'dynamic', 'weight_only'} do
		quant.log 'reset'
		local y = net:quantize {mode=mode, weight='int8/1'}(x)
		assert(y:error(net(x):detach()).sqnr > 30 and (mode == 'weight_only' or #quant.log():where {path='fallback'} == 0))
	end
end)

local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('ConvTranspose2d: groups: wanted a divisor of 3 inputs and 4 outputs, got 2', nn.ConvTranspose2d, 3, 4, 3, {groups=2})
refused('ConvTranspose2d: kernel: wanted a number or {height, width}, got nil', nn.ConvTranspose2d, 3, 4)
refused('ConvTranspose1d: stride: wanted', nn.ConvTranspose1d, 3, 4, 3, {stride={2, 2}})
refused("ConvTranspose2d: pad: wanted numbers, 'same'", nn.ConvTranspose2d, 3, 4, 3, 2, 'full')
