-- SPDX-License-Identifier: MIT
-- Layers with float columns beside their codes (method='outliers') as C: the results are those of g:run.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(15)
local m = nn.Sequential {nn.RMSNorm(24), nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 5)}
tensor.nograd(function() m[1].weight:narrow(1, 5, 1):mul_(64) end)
local x = tensor.randn(20, 24)
for _, mode in ipairs {'dynamic', 'weight_only'} do
	it(mode, function()
		local q = m:quantize {mode = mode, method = {'outliers', most = 0.2}, data = {{x}}, log = false}
		assert(q[2].outliers:size(1) >= 1)
		exported.check(mode, graph.trace(q, x:narrow(1, 1, 1)), x)
	end)
end
