-- SPDX-License-Identifier: MIT
-- softmax and logsoftmax; literals from PyTorch in float64.
local x = tensor{{3, -1, 4, 1}, {-5, 9, 2, -6}, {5, 3, -5, 8}}
local function near(got, want, bound)
	local a, b = got:totable(), want
	for i = 1, #b do
		assert(math.abs(a[i] - b[i]) <= bound * math.abs(b[i]), ('%d: %.9g, not %.9g'):format(i, a[i], b[i]))
	end
end
near(x:softmax()[1], {0.2582689485, 0.0047303608, 0.7020477895, 0.0349529013}, 4e-7)
near(x:softmax(1)[3], {8.8076185796e-01, 2.4725111824e-03, 1.0868718065e-04, 9.9908811879e-01}, 4e-7)
near(x:logsoftmax{axis = 2}[1], {-1.3537538011, -5.3537538011, -0.3537538011, -3.3537538011}, 4e-7)
print(x:softmax(-1):metrics(x:softmax(2)).max, x:softmax(1):metrics(x:t():softmax():t()).max)  --> 0.0 0.0

-- far from 0 and far apart: 3 units in the last place
near(tensor{-88.5, -20.25, -3.125}:softmax(), {8.358119797854e-38, 3.653482080242e-08, 9.999999634652e-01}, 4e-7)
near(tensor{88, 89, 90}:softmax(), {9.003057317038e-02, 2.447284710548e-01, 6.652409557748e-01}, 4e-7)
near(tensor{-50.123, 37.77}:logsoftmax(), {-87.893, 0}, 1e-6)
print(tensor{3e38, -3e38}:softmax(), tensor{-3e38, -3e38}:logsoftmax())  --> float32(2) 1 0 float32(2) -0.6931 -0.6931
print(tensor{0, -1000}:logsoftmax(), tensor{0, -103}:softmax()[2]:item() > 0)  --> float32(2) 0 -1000 true
print(tensor{1e4, 1e4}:softmax(), tensor{-1e30, -1e30}:softmax())  --> float32(2) 0.5 0.5 float32(2) 0.5 0.5

-- infinities and nan
print(tensor{-1/0, 0, -1/0}:softmax(), tensor{-1/0, 0}:logsoftmax())  --> float32(3) 0 1 0 float32(2) -inf 0
print(tensor{-1/0, -1/0}:softmax(), tensor{1/0, 0}:softmax(), tensor{0, 0/0}:softmax())  --> float32(2) nan nan float32(2) nan nan float32(2) nan nan

-- dtypes, shapes
print(x:to('int8'):softmax():dtype(), x:to('float16'):softmax():dtype(), x:to('float64'):logsoftmax():dtype())  --> float32 float16 float64
print(x:to('int32'):softmax():metrics(x:softmax()).max < 1e-7, x:to('float64'):softmax():to('float32'):metrics(x:softmax()).max < 1e-7)  --> true true
print(tensor(5):softmax(), tensor(5):logsoftmax(), tensor.zeros(2, 0):softmax():dim(), tensor.zeros(0, 2):softmax(1):size())  --> 1 0 2 0 2
print(pcall(function() return x:softmax(3) end))  --> false ...softmax: axis: wanted an axis from 1 to 2 (or -2 to -1), got 3
