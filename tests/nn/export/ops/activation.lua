-- SPDX-License-Identifier: MIT
-- labels: full
-- Modules with options in exported C: slope, axis, formula and window get there.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(23)
local modules = {slope = nn.LeakyReLU(0.2), ['formula with tanh'] = nn.GELU 'tanh', ['first axis of a sample'] = nn.Softmax(2), flat = nn.Flatten(3),
	['largest of windows'] = nn.MaxPool2d(3, 2, 1), ['mean of windows'] = nn.AvgPool2d({2, 3}, {1, 2}, {1, 1, 0, 0})}
local functions = {}
for name in pairs(modules) do functions[name] = function(self, x) return self[(name:gsub(' ', '_'))](x) end end
local parts = {}
for name, m in pairs(modules) do parts[(name:gsub(' ', '_'))] = m end
exported.functions(functions, tensor.randn(6, 3, 6, 6), parts)
exported.integers {
	{'slope of codes', nn.Sequential{nn.Conv2d(3, 4, 3), nn.LeakyReLU(0.2), nn.Conv2d(4, 2, 1)}, tensor.randn(6, 3, 6, 6)},
	{'formula with tanh of codes', nn.Sequential{nn.Conv2d(3, 4, 3), nn.GELU 'tanh', nn.Conv2d(4, 2, 1)}, tensor.randn(6, 3, 6, 6)},
}
