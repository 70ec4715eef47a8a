-- SPDX-License-Identifier: MIT
-- Exponential linear units. Expected values and slopes from torch.nn.functional 2 in float64.
local elementwise = dofile 'tests/tools/elementwise.lua'
local list = {-20, -3, -1, -0.5, 0, 0.25, 1, 2.5, 10}
local x = tensor{dtype = 'float64', table.unpack(list)}
local want = {
	elu = {-0.9999999979, -0.9502129316, -0.6321205588, -0.3934693403, 0, 0.25, 1, 2.5, 10},
	['elu 0.5'] = {-0.499999999, -0.4751064658, -0.3160602794, -0.1967346701, 0, 0.25, 1, 2.5, 10},
	selu = {-1.758099337, -1.670568729, -1.111330738, -0.6917581878, 0, 0.2626752468, 1.050700987, 2.626752468, 10.50700987},
	['celu 0.5'] = {-0.5, -0.4987606239, -0.4323323584, -0.3160602794, 0, 0.25, 1, 2.5, 10},
}
want['celu'] = want.elu
for op, values in pairs(want) do elementwise(op, x, values, {float32 = 1e-6, float64 = 1e-9}) end

for op, slopes in pairs {
	elu = {2.061153622e-09, 0.04978706837, 0.3678794412, 0.6065306597, 1, 1, 1, 1, 1},
	selu = {3.623712825e-09, 0.08753061208, 0.646768603, 1.066341153, 1.758099341, 1.050700987, 1.050700987, 1.050700987, 1.050700987},
	celu = {4.248354255e-18, 0.002478752177, 0.1353352832, 0.3678794412, 1, 1, 1, 1, 1},
} do
	it('slope of ' .. op, function()
		local a = x:clone():requires_grad_()
		local y = op == 'celu' and a:celu(0.5) or a[op](a)
		y:sum():backward()
		for i, v in ipairs(a:grad():totable()) do assert(math.abs(v - slopes[i]) < 1e-9, i) end
	end)
end

local inf, nan = math.huge, 0 / 0
local ends = tensor{-inf, inf, nan}
print(ends:elu(), ends:celu(), ends:selu())  --> float32(3) -1 inf nan float32(3) -1 inf nan float32(3) -1.7581 inf nan
print(tensor{-1e-30}:elu():eq(-1e-30):item(), tensor{-1e-30}:celu():eq(-1e-30):item())  --> true true
print(tensor({-1, 2, dtype = 'int32'}):elu(2), tensor({dtype = 'float16', -1}):selu())  --> float32(2) -1.2642 2.0000 float16(1) -1.1113
print(tensor.zeros(0, 3):celu():size())  --> 0 3
print(tensor{{-1, 2}, {3, -4}}:t():elu{alpha = 2}:reshape(-1))  --> float32(4) -1.2642 3.0000 2.0000 -1.9634
print(pcall(function() return tensor{1}:celu(0) end))  --> false ...celu: alpha: wanted a number other than 0, got 0
print(pcall(function() return tensor{1}:elu{alpha = nan} end))  --> false ...elu: alpha: wanted a number, got nan
