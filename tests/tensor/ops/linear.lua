-- SPDX-License-Identifier: MIT
-- linear: x times the transpose of w, bias, activation.
local x, w, bias = tensor{{1, 2}, {3, -4}}, tensor{{1, 0}, {0, 1}, {1, 1}}, tensor{0, 10, -3}
print(x:linear(w))  --> float32(2, 3)
                    -->  1  2  3
                    -->  3 -4 -1
print(x:linear(w, bias)[1], x:linear(w, bias, {act = 'relu'})[2])  --> float32(3) 1 12 0 float32(3) 3 6 0
print(x:unsqueeze(1):linear(w, bias):size())  --> 1 2 3
print(x[1]:linear(w, bias))  --> float32(3) 1 12 0
print(x:to('float16'):linear(w:to 'float16'):dtype())  --> float16
print(pcall(x.linear, x, w:t():clone()))  --> false ...wanted x (…, k) and w (n, k), got (2, 2) and (2, 3)
print(pcall(x.linear, x, w, tensor{1, 2}))  --> false ...bias: wanted shape (3), got (2)
print(pcall(x.linear, x, w, bias, {act = 'rleu'}))  --> false ...act: wanted one of...got 'rleu'; did you mean 'relu'?
print(pcall(x.linear, x:to('int32'), w))  --> false ...operand 1: wanted a float...got int32(2, 2)
