-- SPDX-License-Identifier: MIT
-- method='biascorrect': the mean of each output is that of the float model, also where layers had no bias.
tensor.seed(8)
local m = nn.Sequential {nn.Conv2d(3, 6, 3, {bias = false}), nn.Sigmoid(), nn.Conv2d(6, 4, 3, {groups = 2}), nn.Flatten(), nn.Linear(4 * 16, 5)}
local x = tensor.rand(40, 3, 8, 8)
local q, r = m:quantize {mode = 'weight_only', weight = 'int3/1', method = 'biascorrect', data = {{x:narrow(1, 1, 30)}, {x:narrow(1, 31, 10)}}, log = false}
local function gap(a, b, axes) return (a - b):to 'float64':mean {axis = axes}:abs():max():item() end
local y, z = x, x
for i = 1, 5 do
	y, z = m[i](y):detach(), q[i](z)
	if i == 1 or i == 3 then assert(gap(y, z, {1, 3, 4}) < 1e-6, i) end
	if i == 5 then assert(gap(y, z, {1}) < 1e-5) end
end
print(q.conv1.bias ~= false, m.conv1.bias, r[1].method)  --> true	false	rtn biascorrect
local plain = m:quantize {mode = 'weight_only', weight = 'int3/1'}
assert(gap(m(x):detach(), q(x), {1}) < 0.1 * gap(m(x):detach(), plain(x), {1}))
