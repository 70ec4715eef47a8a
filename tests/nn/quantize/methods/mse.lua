-- SPDX-License-Identifier: MIT
-- method='mse' has the codes of the observer.
tensor.seed(2)
local m = nn.Sequential {nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 8)}
for _, spec in ipairs {'int4:32', 'int4/1', 'uint4:16'} do
	local q = m:quantize {mode = 'weight_only', weight = spec, method = 'mse'}
	assert(q.linear1.weight:codes():eq(m.linear1.weight:detach():quantize(spec .. '@mse'):codes()):all():item(), spec)
	assert(tostring(q.linear1.weight:spec()) == spec)
end
