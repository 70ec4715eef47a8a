-- SPDX-License-Identifier: MIT
-- prod; literals from PyTorch 2.
local y = tensor{{0.5, -1.25, 3}, {2, 0.75, -4}}
print(y:prod():item(), y:prod(1), y:prod{axis={1, 2}, keep=true}:size())  --> 11.25 float32(3) 1.0000 -0.9375 -12.0000 1 1
print(y:t():prod(-1):dtype(), tensor{3, 5, dtype='int8'}:prod(), tensor{true, false}:prod(), tensor{2, 3, dtype='float16'}:prod())  --> float32 15 0 6
print(tensor.zeros(0):prod(), tensor.zeros(0, 2):prod(1), tensor.zeros(2, 0):prod(1):size(), tensor(7):prod())  --> 1 float32(2) 1 1 0 7
print(tensor{1 << 40, 1 << 40, dtype='int64'}:prod():item(), tensor{-1, math.mininteger, dtype='int64'}:prod():item() == math.mininteger)  --> 0 true
print(tensor{0/0, 1}:prod(), tensor{1/0, 0}:prod(), tensor{1e30, 1e30, 1e-30}:prod():item() < 1.0001e30)  --> nan nan true
it('is a loop, for every axis', function()
	local x = (tensor.rand(70, 3, 40) + 0.5):to 'float64'
	for _, axis in ipairs{1, 2, 3} do
		local want = 1
		for i = 1, x:size(axis) do want = x:select(axis, i) * want end
		for _, v in ipairs{x, x:to 'float32'} do
			assert((v:prod(axis):to('float64') / want - 1):abs():max():item() < (v == x and 1e-13 or 1e-5))
		end
	end
	local long = tensor.rand(150001) * 0.0002 + 0.9999
	assert(long:prod():eq(long:view(1, -1):expand(3, 150001):prod(2)):all():item())
end)
