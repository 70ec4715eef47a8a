-- SPDX-License-Identifier: MIT
-- max, min, aminmax, argmax, argmin: values, positions of the first, nan, integers beyond float.
local x = tensor{{3, -1, 4, 1}, {-5, 9, 2, -6}, {5, 3, -5, 9}}
print(x:max(), x:min(), x:argmax(), x:argmin())  --> 9 -6 6 8
print(x:max(1), x:min(2))  --> float32(4) 5 9 4 9 float32(3) -1 -6 -5
print(x:argmax(1), x:argmin(2))  --> int64(4) 3 2 1 3 int64(3) 2 4 3
print(x:argmax{axis = {1, 2}}, x:argmax{axis = 2, keep = true}:size())  --> 6 3 1
print(x:max():dtype(), x:argmax():dtype())  --> float32 int64

-- the first of equals, also far apart; -0 equals 0
local y = tensor.zeros(5000)
y[1500] = 7
y[4000] = 7
print(y:argmax(), y:view(5, 1000):argmax(2), y:argmin())  --> 1500 int64(5) 1 500 1 1000 1 1
print(tensor{-0.0, 0.0}:argmax(), tensor{0.0, -0.0}:argmin())  --> 1 1

-- of equal zeros the value is 0 for max and -0 for min, wherever they are; the position is that of the first
for _, at in ipairs{{1, 2}, {2, 1}, {2, 17}, {17, 2}, {3, 70000}, {70000, 3}} do
	local z = tensor.full{100000, value = -1}
	z[at[1]], z[at[2]] = 0.0, -0.0
	for _, v in ipairs{z, z:to 'float64', z:view(10, 10000):contiguous():view(-1)} do
		assert(1 / v:max():item() == 1 / 0 and 1 / (-v):min():item() == -1 / 0, table.concat(at, ' '))
		assert(v:argmax():item() == math.min(at[1], at[2]) and (-v):argmin():item() == math.min(at[1], at[2]))
	end
	assert(1 / z:view(100000, 1):max(1):item() == 1 / 0 and 1 / z:view(1, 100000):max(2):item() == 1 / 0)
end

-- nan wins, the first one
local n = tensor{1, 5, 0/0, 9, 0/0}
print(n:max(), n:min(), n:argmax(), n:argmin())  --> nan nan 3 3
y[4100] = 0/0
print(y:max(), y:argmax(), y:view(5, 1000):max(2))  --> nan 4100 float32(5) 0 7 0 7 nan
print(tensor{-1/0, -1/0}:max(), tensor{-1/0, -1/0}:argmax(), tensor{1/0}:min())  --> -inf 1 inf

-- dtypes are kept, integers are exact
for _, dtype in ipairs{'int8', 'uint8', 'int16', 'uint16', 'int32', 'int64', 'float16', 'bfloat16', 'float64'} do
	local t = tensor{{3, 100, 7}, {2, 1, 100}, dtype = dtype}
	assert(t:max():dtype() == dtype and t:max():item() == 100 and t:min():item() == 1, dtype)
	assert(t:argmax():item() == 2 and t:argmax(1)[3]:item() == 2, dtype)
end
print(tensor{(1 << 53) + 1, 1 << 53, dtype = 'int64'}:argmin())  --> 2
print(tensor{math.mininteger, math.mininteger, dtype = 'int64'}:max():item())  --> -9223372036854775808
print(tensor{true, false}:max(), tensor{true, false}:min(), tensor{true, false}:max():dtype())  --> true false bool
local packed = tensor{{1, -8, 7}, {3, 5, -2}, dtype = 'int4'}
print(packed:max(1), packed:min(2), packed:argmax(2))  --> int4(3) 3 5 7 int4(2) -8 -2 int64(2) 3 2
print(tensor{1, -1, dtype = 'binary'}:min())  --> -1

-- of nothing
print(pcall(function() return tensor.zeros(0):max() end))  --> false ...max: wanted at least one element to reduce, got float32(0)
print(pcall(function() return tensor.zeros(2, 0):argmin(2) end))  --> false ...argmin: wanted at least one element...
print(tensor.zeros(2, 0):max(1):size())  --> 0

-- both at once: what min and max give, in every dtype, along any axes of any view
print(x:aminmax())  --> -6 9
print(x:aminmax(1))  --> float32(4) -5 -1 -5 -6 float32(4) 5 9 4 9
print(n:aminmax(), tensor{-0.0, 0.0}:aminmax())  --> nan -0 0
print(pcall(function() return tensor.zeros(2, 0):aminmax(2) end))  --> false ...aminmax: wanted at least one element...
print(tensor.zeros(2, 0):aminmax(1):size())  --> 0
local function same(a, b) return a:dtype() == b:dtype() and a:eq(b):bor(a:isnan():band(b:isnan())):all():item() end
local wide = (tensor.rand(70001) - 0.5) * 200
wide[69999], wide[5] = 0/0, -1/0
local views = {
	wide, wide:narrow(1, 3, 69000), wide:narrow(1, 1, 31), wide:narrow(1, 1, 1089):view(33, 33),
	wide:narrow(1, 2, 6160):view(5, 11, 112):permute(3, 1, 2), wide:narrow(1, 2, 6160):view(4, 1540):t(),
}
for _, dtype in ipairs{'float32', 'float64', 'float16', 'bfloat16', 'int8', 'uint8', 'int4', 'int16', 'int32', 'int64', 'bool'} do
	for i, v in ipairs(views) do
		if not dtype:find 'float' then v = tensor.where(v:isfinite(), v, 0):clamp(-7, 7):abs() end
		v = v:to(dtype)
		for axis = 0, v:dim() do
			local o = {axis = axis > 0 and axis or nil, keep = axis % 2 == 1}
			local least, most = v:aminmax(o)
			assert(same(least, v:min(o)) and same(most, v:max(o)), dtype .. ' ' .. i .. ' ' .. axis)
		end
	end
end

-- nan of either sign at each place of a block, and signed zeros: lanes of one side show those of the other
for at = 1, 70 do
	for _, bits in ipairs{0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff} do
		local t = tensor.full{70, value = -3}
		t[at] = string.unpack('f', string.pack('I4', bits))
		local least, most = t:aminmax()
		assert(least:isnan():item() and most:isnan():item() and t:max():isnan():item() and t:min():isnan():item(), at)
	end
end

-- the last of equal elements is the first one from the other end
do
	local ties = tensor.randint{3, 40, 700, low=1, high=9}
	for _, dtype in ipairs{'float32', 'float64', 'float16', 'int8', 'int64', 'uint4'} do
		for _, v in ipairs{ties:to(dtype), ties:to(dtype):permute(2, 1, 3)} do
			for _, op in ipairs{'argmax', 'argmin'} do
				for _, axis in ipairs{{1}, {2}, {3}, {1, 3}, {1, 2, 3}} do
					local count = 1
					for _, a in ipairs(axis) do count = count * v:size(a) end
					local want = count + 1 - v:flip{axes=axis}[op](v:flip{axes=axis}, {axis=axis})
					assert(v[op](v, {axis=axis, last=true}):eq(want):all():item(), op .. dtype)
				end
			end
		end
	end
	print(tensor{1, 0/0, 3, 0/0}:argmax{last=true}, tensor(2):argmin{last=true}, tensor{1, 1}:argmax{last=false})  --> 4 1 1
	local q = tensor{{1, 3, 3}, {0, 0, 2}}:quantize 'int8'
	print(q:argmax{axis=2, last=true}, q:argmin{axis=2, last=true})  --> int64(2) 3 3 int64(2) 1 2
	print(pcall(function() return tensor.zeros(0):argmax{last=true} end))  --> false ...argmax: wanted at least one element...
end
