-- SPDX-License-Identifier: MIT
-- nn.Conv2d as a module: sizes, where it begins, folding of batch norm.
tensor.seed(6)
print(nn.Conv2d(3, 8, 3, {pad=1})(tensor.ones(2, 3, 6, 5)):size())  --> 2 8 6 5
print(nn.Conv2d(4, 8, {1, 3}, {stride=2, groups=2}).weight:size())  --> 8 2 1 3
print(nn.Conv2d(3, 8, 3, {pad={0, 1, 0, 1}, stride=2})(tensor.ones(1, 3, 8, 8)):size())  --> 1 8 4 4
print(nn.Conv2d(3, 8, 3, 2, 'same')(tensor.ones(1, 3, 7, 8)):size())  --> 1 8 4 4
print(nn.Conv2d(3, 8, {2, 4}, {pad='same_lower', dilation=2}))  --> Conv2d(3, 8, {2,4}, autopad=same_lower, dilation=2)  200 parameters
local m = nn.Conv2d(16, 32, 3)
local bound = 1 / math.sqrt(16 * 9)
assert(m.weight:abs():max():item() <= bound and m.weight:abs():max():item() > 0.97 * bound and m.bias:abs():max():item() <= bound)

it('fuse folds batch norm and ReLU, and gives the same', function()
	local net = nn.Sequential {nn.Conv2d(3, 6, 3, {pad=1}), nn.BatchNorm2d(6), nn.ReLU(),
		nn.Residual {nn.Conv2d(6, 6, 3, {pad=1, bias=false}), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 6, 1), nn.BatchNorm2d(6)}, nn.ReLU(),
		nn.Flatten(), nn.Linear(6 * 64, 4), nn.ReLU()}
	for _ = 1, 3 do net(tensor.randn(4, 3, 8, 8) * 2 + 1) end -- running statistics
	net:eval()
	local x = tensor.randn(2, 3, 8, 8)
	local fused = net:fuse()
	local list = {}
	for name in pairs(fused:named()) do list[#list + 1] = name end
	assert(table.concat(list, ' ') == 'conv1 residual1 residual1.conv1 residual1.conv2 relu2 flatten1 linear1', table.concat(list, ' '))
	assert(fused.conv1.act == 'relu' and fused.residual1.conv1.act == 'relu' and fused.residual1.conv2.act == false)
	assert(fused(x):detach():error(net(x):detach()).max < 1e-4)
	assert(#net == 8 and net.conv1.act == false, 'the original has changed')
end)

local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('Conv2d: groups: wanted a divisor of 3 inputs and 4 outputs, got 2', nn.Conv2d, 3, 4, 3, {groups=2})
refused('Conv2d: kernel: wanted a number or {height, width}, got nil', nn.Conv2d, 3, 4)
refused("Conv2d: pad: wanted numbers, 'same', 'same_upper', 'same_lower' or 'valid', got 'full'", nn.Conv2d, 3, 4, 3, 1, 'full')
