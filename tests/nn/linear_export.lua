-- SPDX-License-Identifier: MIT
-- labels: full
-- Linear layers in exported C: specs of weights and inputs, float.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x = tensor.randn(12, 16)
local m = nn.Sequential {nn.Linear(16, 9), nn.ReLU(), nn.Linear(9, 5), nn.ReLU(), nn.Linear(5, 2, {bias=false})}
exported.integers {{'plain', m, x}}
for _, spec in ipairs {'int4/1', 'uint8/1', 'int8', 'uint4/1'} do
	it('weights ' .. spec, function()
		exported.check(spec, exported.static(m, x, {weight=spec, input=spec == 'int8' and 'int8' or 'uint8'}), x, {flags=exported.FLAGS})
	end)
end
it('floats', function() exported.check('floats', graph.trace(m:fuse(), x:narrow(1, 1, 1)), x, {flags=exported.FLAGS, tolerance=2e-6}) end)
