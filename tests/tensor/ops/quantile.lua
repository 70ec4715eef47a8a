-- SPDX-License-Identifier: MIT
-- quantile and median; literals from NumPy 2.
local x = tensor{{3, -1, 4, 1}, {-5, 9, 2, -6}, {5, 3, -5, 8}}
print(x:quantile(tensor{0, 0.1, 0.5, 0.9, 1, dtype = 'float64'}))  --> float32(5) -6.0 -5.0 2.5 7.7 9.0
print(x:quantile(0.3, 1))  --> float32(4) -0.2 1.4 -0.8 -1.8
print(x:quantile(0.3, {axis = 2, keep = true}):view(3))  --> float32(3) 0.8 -5.1 2.2
print(x:quantile(tensor{0, 1}, 2))  --> float32(2, 3)
                                    --> -1 -6 -5
                                    -->  4  9  8
print(x:median(), x:median(2), x:median{axis = {1, 2}, keep = true}:size())  --> 2.5 float32(3) 2.0 -1.5 4.0 1 1
print(tensor{5, 1, 3}:median():item(), tensor{2}:median():item(), tensor(7):median():item())  --> 3.0 2.0 7.0
print(tensor{1, 2, dtype = 'int8'}:median(), tensor{1, 2, dtype = 'int8'}:median():dtype())  --> 1.5 float32
print(tensor{(1 << 40) + 1, 1 << 40, dtype = 'int64'}:median():item() == 2.0^40)  --> true
print(tensor{1, 2, dtype = 'float16'}:median():dtype(), tensor{1, 2, dtype = 'float64'}:quantile(0.25):item())  --> float16 1.25

-- nan, infinities, nothing
print(tensor{1, 0/0, 2}:median(), tensor.zeros(0):median(), tensor.zeros(0, 2):quantile(0.5, 1))  --> nan nan float32(2) nan nan
print(tensor{-1/0, 1/0}:median(), tensor{1, 1/0}:quantile(0.25), tensor{-1/0, 3}:quantile(0.75))  --> nan inf -inf
print(tensor{1/0, 1/0}:median(), tensor{1, 1/0}:quantile(0))  --> inf 1

it('finds order statistics of long lines', function()
	local state, list = 7, {}
	for i = 1, 3001 do
		state = (state * 1103515245 + 12345) % 2147483648
		list[i] = state / 2^20 - 1000
	end
	for _, dtype in ipairs{'float32', 'float64'} do
		local t = tensor(list):to(dtype)
		local sorted = t:sort()
		for k = 0, 3000, 250 do assert(t:quantile(k / 3000):item() == sorted[k + 1]:item()) end
		assert(t:median():item() == sorted[1501]:item())
	end
end)

print(pcall(function() return x:quantile(1.5) end))  --> false ...quantile: q: wanted numbers from 0 to 1, got 1.5
print(pcall(function() return x:quantile(0/0) end))  --> false ...quantile: q: wanted numbers from 0 to 1, got ...nan
print(pcall(function() return x:quantile() end))  --> false ...operand 2: wanted a tensor or a number, got nothing...
print(pcall(function() return x:quantile(tensor{{0.5}}) end))  --> false ...q: wanted a number or a tensor with one axis, got float32(1, 1)

it('takes packed integers whose rows end within a byte', function()
	local x = tensor{{{1, 2, 3}, {4, 5, 6}, {-1, -2, -3}}, {{1, 1, 1}, {2, 2, 2}, {3, 3, 3}}}:to 'int4'
	print(x:median {axis={2, 3}}, x:logsumexp {axis={2, 3}}:eq(x:to('float32'):logsumexp {axis={2, 3}}):all():item())  --> float32(2)  2  2 true
end)
