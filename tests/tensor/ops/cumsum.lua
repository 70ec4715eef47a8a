-- SPDX-License-Identifier: MIT
-- cumsum; literals from NumPy 2.
local x = tensor{{3, -1, 4}, {-5, 9, 2}}
print(x:cumsum())  --> float32(2, 3)
                   -->  3  2  6
                   --> -5  4  6
print(x:cumsum(1))  --> float32(2, 3)
                    -->  3 -1 4
                    --> -2  8 6
print(x:cumsum{axis = -2}[2], x:cumsum(2)[2])  --> float32(3) -2 8 6 float32(3) -5 4 6
print(tensor{100, 100, 100, dtype = 'int8'}:cumsum(), tensor{true, false, true}:cumsum())  --> int64(3) 100 200 300 int64(3) 1 1 2
print(tensor{math.maxinteger, 1, dtype = 'int64'}:cumsum()[2]:item() == math.mininteger)  --> true
print(tensor{1, 2, dtype = 'float16'}:cumsum():dtype(), tensor{1, 2, dtype = 'float64'}:cumsum():dtype())  --> float16 float64
print(tensor{1e8, 1, -1e8}:cumsum()[3]:item())  --> 1.0
print(tensor{1, 0/0, 2}:cumsum(), tensor{1/0, -1/0, 1}:cumsum())  --> float32(3) 1 nan nan float32(3) inf nan nan
print(tensor(3):cumsum(), tensor.zeros(2, 0):cumsum():dim(), tensor.zeros(0, 2):cumsum(1):size())  --> 3 2 0 2
print(pcall(function() return x:cumsum(3) end))  --> false ...cumsum: axis: wanted an axis from 1 to 2 (or -2 to -1), got 3
-- options, products and extremes: onnx.reference 1.17, PyTorch 2
local y = tensor{{0.5, -1.25, 3}, {2, 0.75, -4}}
print(y:cumsum{exclusive=true, reverse=true}:view(6))  --> float32(6) 1.7500 3.0000 0.0000 -3.2500 -4.0000 0.0000
print(y:cumprod():view(6))  --> float32(6) 0.5000 -0.6250 -1.8750 2.0000 1.5000 -6.0000
print(tensor{2, 3, 4}:cumprod{exclusive=true}, tensor{2, 3, 4}:cumprod{reverse=true}, tensor{2, 3, 4}:cumprod{reverse=true, exclusive=true})  --> float32(3) 1 2 6 float32(3) 24 12 4 float32(3) 12 4 1
print(tensor{100, 3, dtype='int8'}:cumprod(), tensor{true, false, true}:cumprod(), tensor{1e30, 1e30, 1e-30}:cumprod()[3]:item() > 1e29)  --> int64(2) 100 300 int64(3) 1 0 0 true
for _, o in ipairs{{axis=1}, {axis=2}} do
	for _, op in ipairs{'cumsum', 'cumprod'} do
		local turned = y:flip(o.axis)[op](y:flip(o.axis), o):flip(o.axis)
		assert(turned:eq(y[op](y, {axis=o.axis, reverse=true})):all():item())
	end
end
local v, i = tensor{{3, 1, 3, 0/0, 9}, {1, 2, 2, 0, 5}}:cummax()
print(v[1], i[1], v[2], i[2])  --> float32(5) 3 3 3 nan nan int64(5) 1 1 3 4 4 float32(5) 1 2 2 2 5 int64(5) 1 2 3 3 5
v, i = tensor{{3, 1, 3, 0/0, 9}, {4, 2, 2, 0, 5}}:cummin()
print(v[1], i[1], v[2], i[2])  --> float32(5) 3 1 1 nan nan int64(5) 1 2 2 4 4 float32(5) 4 2 2 0 0 int64(5) 1 2 3 4 4
print(tensor{{1, 5}, {4, 2}}:cummax(1))  --> float32(2, 2)
--> 1 5
--> 4 5 int64(2, 2)
--> 1 1
--> 2 1
print(tensor{3, 7, 5, dtype='uint8'}:cummax())  --> uint8(3) 3 7 7 int64(3) 1 2 2
print(tensor{1, 2, dtype='int4'}:cummin())  --> int4(2) 1 1 int64(2) 1 1
print(tensor(3):cummax())  --> 3 1
print(tensor.zeros(2, 0):cummin():size())  --> 2 0
