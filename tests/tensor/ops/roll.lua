-- SPDX-License-Identifier: MIT
-- roll and repeatinterleave; literals from PyTorch 2.
local x = tensor.arange(1, 12):view(3, 4):to 'float32'
print(x:roll(1, 1):roll(-1, 2))  --> float32(3, 4)
                                 --> 10 11 12 9
                                 --> 2 3 4 1
                                 --> 6 7 8 5
print(x:roll(3))  --> float32(3, 4)
                  --> 10 11 12 1
                  --> 2 3 4 5
                  --> 6 7 8 9
print(tensor{1, 2, 3}:roll(-7, -1), tensor{1, 2, 3}:roll(math.mininteger), tensor(5):roll(2))  --> float32(3) 2 3 1 float32(3) 3 1 2 5
print(tensor.zeros(0, 2):roll(1):size())  --> 0 2
print(x:repeatinterleave(2, 1)['::1, 1'], tensor{1, 2}:repeatinterleave(0):size())  --> float32(6) 1 1 5 5 9 9 0
print(x:repeatinterleave(tensor{2, 0, 1, dtype='int32'}, 1))  --> float32(3, 4)
                                                              --> 1 2 3 4
                                                              --> 1 2 3 4
                                                              --> 9 10 11 12
print(x:t():repeatinterleave(2)['1:6'], tensor(7):repeatinterleave(3))  --> float32(6) 1 1 5 5 9 9 float32(3) 7 7 7
for _, dtype in ipairs{'float64', 'float16', 'int8', 'uint16', 'int64', 'bool', 'int4', 'uint4'} do
	local y = tensor{{1, 0, 1}, {0, 1, 1}}:to(dtype)
	for _, f in ipairs{function(v) return v:roll(2, 2) end, function(v) return v:roll(1) end, function(v) return v:repeatinterleave(3, 1) end,
		function(v) return v:t():repeatinterleave(2) end} do
		local got = f(y)
		assert(got:dtype() == dtype and got:to('int64'):eq(f(y:to 'int64')):all():item(), dtype)
	end
end
print(pcall(x.roll, x, 1, 3))  --> false ...roll: axis: wanted an axis from 1 to 2...
print(pcall(x.repeatinterleave, x, -1))  --> false ...repeatinterleave: times: wanted a number of 0 or more, or a tensor of 12 of them, got...
print(pcall(x.repeatinterleave, x, tensor{1, 2, dtype='int64'}, 1))  --> false ...or a tensor of 3 of them, got int64(2)
print(pcall(x.repeatinterleave, x, 1.5))  --> false ...times: wanted a number of 0 or more...
print(pcall(x.repeatinterleave, x, 1 << 60, 1))  --> false ...
