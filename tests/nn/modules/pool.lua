-- SPDX-License-Identifier: MIT
-- Pooling as modules.
local x = tensor.arange(1, 16):view(1, 1, 4, 4):to 'float32'
print(nn.MaxPool2d(2)(x):view(4))  --> float32(4)   6   8  14  16
print(nn.AvgPool2d(2)(x):view(4))  --> float32(4)   3.5000   5.5000  11.5000  13.5000
print(nn.AvgPool2d()(x):item())  --> 8.5
print(nn.MaxPool2d(3, {stride=1})(x):size())  --> 1 1 2 2
print(nn.MaxPool2d({1, 2})(x):size())  --> 1 1 4 2
local ok, message = pcall(nn.MaxPool2d)
assert(not ok and message:find('MaxPool2d: kernel: wanted a number or {height, width}, got nil', 1, true))
