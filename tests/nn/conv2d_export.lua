-- SPDX-License-Identifier: MIT
-- labels: full
-- Convolutions of codes in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x = tensor.randn(12, 3, 10, 10)
exported.integers {
	{'plain', nn.Sequential {nn.Conv2d(3, 8, 3)}, x},
	{'pad', nn.Sequential {nn.Conv2d(3, 5, 3, {pad=1}), nn.ReLU(), nn.Conv2d(5, 4, 2, {pad={0, 1, 1, 0}})}, x},
	{'stride and dilation', nn.Sequential {nn.Conv2d(3, 8, 3, {stride={2, 1}, dilation=2})}, x},
	{'each channel by itself', nn.Sequential {nn.Conv2d(3, 6, 3, {groups=3, pad=1}), nn.ReLU(), nn.Conv2d(6, 6, 3, {groups=6})}, x},
}
it('floats', function()
	local m = nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.Conv2d(8, 8, 3, {groups=8})}:fuse()
	exported.check('floats', graph.trace(m, x:narrow(1, 1, 1)), x, {flags=exported.FLAGS, tolerance=2e-6})
end)
