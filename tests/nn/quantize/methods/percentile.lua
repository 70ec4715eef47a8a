-- SPDX-License-Identifier: MIT
-- method='percentile' has the codes of the observer where they are better on the data.
tensor.seed(2)
local m = nn.Sequential {nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 8)}
tensor.nograd(function() m.linear1.weight[1]:narrow(1, 1, 1):fill_(30) end)
local x = tensor.randn(50, 64)
x:narrow(2, 1, 1):fill_(0) -- what is cut off does not count
local q = m:quantize {mode = 'weight_only', weight = 'int4', method = {'percentile', p = 99}, data = {{x}}, log = false}
print(q.linear1.weight:codes():eq(m.linear1.weight:detach():quantize {dtype = 'int4', observer = 'percentile', p = 99}:codes()):all():item())  --> true
