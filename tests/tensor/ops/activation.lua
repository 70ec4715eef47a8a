-- SPDX-License-Identifier: MIT
-- Activation functions. Expected values from double precision, written with 7 digits.
local elementwise = dofile 'tests/tools/elementwise.lua'

local x = tensor{-20, -3, -1, -0.5, 0, 0.25, 1, 2.5, 10, dtype = 'float64'}
local want = {
	tanh = {-1, -0.9950548, -0.7615942, -0.4621172, 0, 0.2449187, 0.7615942, 0.9866143, 1},
	sigmoid = {2.061154e-09, 0.04742587, 0.2689414, 0.3775407, 0.5, 0.5621765, 0.7310586, 0.9241418, 0.9999546},
	gelu = {0, -0.004049694, -0.1586553, -0.1542688, 0, 0.1496766, 0.8413447, 2.484476, 10},
	silu = {-4.122307e-08, -0.1422776, -0.2689414, -0.1887703, 0, 0.1405441, 0.7310586, 2.310355, 9.999546},
	softplus = {2.061154e-09, 0.04858735, 0.3132617, 0.474077, 0.6931472, 0.8259394, 1.313262, 2.57889, 10.00005},
	hardswish = {0, 0, -0.3333333, -0.2083333, 0, 0.1354167, 0.6666667, 2.291667, 10},
	-- torch.nn.functional 2 in float64
	mish = {-4.122307241e-08, -0.1456474613, -0.3034014614, -0.2207437747, 0, 0.1695724097, 0.8650983883, 2.471392305, 9.999999959},
	softsign = {-0.9523809524, -0.75, -0.5, -0.3333333333, 0, 0.2, 0.5, 0.7142857143, 0.9090909091},
	logsigmoid = {-20, -3.048587352, -1.313261688, -0.9740769842, -0.6931471806, -0.5759394199, -0.3132616875, -0.07888973429, -4.539889922e-05},
}
want['softplus 2 3'] = {2.124177128e-18, 0.001237842569, 0.06346400552, 0.1566308438, 0.3465735903, 0.4870384921, 1.063464006, 2.5, 10}
want['silu 1.702'] = {-3.293410241e-14, -0.01807130971, -0.1542042341, -0.1496115634, 0, 0.1511996499, 0.8457957659, 2.465013835, 9.999999594}
want['leakyrelu 0.3'] = {-6, -0.9, -0.3, -0.15, 0, 0.25, 1, 2.5, 10}
for op, values in pairs(want) do elementwise(op, x, values, {float32 = 2e-6, float64 = 1e-6}) end
local inf, nan = math.huge, 0 / 0
print(tensor{-inf, inf, nan}:relu(), tensor{-inf, inf, nan}:tanh(), tensor{-inf, inf, nan}:sigmoid())  --> float32(3) 0 inf nan float32(3) -1 1 nan float32(3) 0 1 nan
print(tensor{inf, nan}:gelu(), tensor{inf, nan}:silu(), tensor{-inf, inf}:softplus())  --> float32(2) inf nan float32(2) inf nan float32(2) 0 inf
print(tensor{-2, 3}:leakyrelu(0.5), tensor{-2, 3}:leakyrelu())  --> float32(2) -1 3 float32(2) -0.0200 3.0000
print(tensor({1, dtype = 'int8'}):tanh():dtype())  --> float32
-- torch.nn.functional.gelu(x, approximate='tanh') in double precision
local by_tanh = {-3, -1, -0.5, 0, 1, 2.5}
for i, v in ipairs{-0.003637392, -0.1588080, -0.1542860, 0, 0.8411920, 2.4849155} do
	local got = tensor{by_tanh[i]}:gelu{approximate = 'tanh'}[1]:item()
	assert(math.abs(got - v) < 1e-6, got)
	assert(math.abs(tensor({by_tanh[i], dtype = 'float64'}):gelu{approximate = 'tanh'}[1]:item() - v) < 1e-6)
end
print(pcall(function() return tensor{1}:gelu{approximate = 'tanhh'} end))  --> false ...gelu: approximate: wanted one of none tanh, got 'tanhh'; did you mean 'tanh'?
for _, d in ipairs{'float32', 'float64', 'float16'} do
	local low = tensor({-inf, dtype = d})
	assert(low:gelu():item() == 0 and low:silu():item() == 0 and low:gelu{approximate = 'tanh'}:item() == 0 and low:softplus():item() == 0, d)
end
for _, d in ipairs{'float32', 'float64', 'float16'} do
	local ends = tensor({-inf, inf, nan, dtype = d})
	for op, values in pairs{mish = {0, inf}, softsign = {-1, 1}, logsigmoid = {-inf, 0}, silu = {0, inf}} do
		local got = ends[op](ends, op == 'silu' and 1.702 or nil):totable()
		assert(got[1] == values[1] and got[2] == values[2] and got[3] ~= got[3], op .. ' ' .. d)
	end
end
print(math.abs(tensor{-100}:mish():item() / (-100 * math.exp(-100)) - 1) < 1e-2)  --> true
print(pcall(function() return tensor{1}:silu(0) end))  --> false ...silu: alpha: wanted a finite number other than 0, got 0
print(pcall(function() return tensor{1}:softplus{beta = nan} end))  --> false ...softplus: beta: wanted a number, got nan
print(pcall(function() return tensor{1}:leakyrelu(nan) end))  --> false ...leakyrelu: slope: wanted a number, got nan
-- gelu in blocks: the bits of single elements, in blocks with and without |x| > 12
local line = {-12, 12, -12.000001, 12.000001, -0.0, 1e-40, -inf, inf, -11.999999, 13, -14.5, -14.6}
for i = #line + 1, 64 do line[i] = (i % 9 - 4) / 3 end
for i = 65, 331 do line[i] = (i % 97 - 48) / (i < 256 and 5 or 3) end
local whole, in_double = tensor(line):gelu(), tensor(line):to 'float64':gelu()
for i, v in ipairs(line) do
	assert(whole[i]:item() == tensor{v}:gelu()[1]:item(), v)
	local got, right = whole[i]:item(), in_double[i]:item()
	assert(got == right or math.abs(got - right) < 6e-7 * math.abs(right) + 1e-38, v)
end
assert(tensor{nan, table.unpack(line)}:gelu()[2]:item() == whole[1]:item())
