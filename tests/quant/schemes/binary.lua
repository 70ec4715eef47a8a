-- SPDX-License-Identifier: MIT
-- Binary: sign times mean|x| per tensor, axis or block; one bit each.
local x = tensor{{1, -2, 3}, {-0.5, 0, 0.5}}
print(x:quantize('binary'):codes())  --> binary(2, 3)
                                     -->  1 -1  1
                                     --> -1  1  1
print(('%.6f'):format(x:quantize('binary'):qparams().scale:item()))  --> 1.166667
print(x:quantize('binary/1'):dequantize())  --> float32(2, 3)
                                            -->  2.0000 -2.0000  2.0000
                                            --> -0.3333  0.3333  0.3333
print(x:quantize('binary/1'):nbytes())  --> 10
print(tensor{0, 0}:quantize('binary'):dequantize())  --> float32(2) 0 0
print(pcall(x.quantize, x, {dtype = 'binary', scheme = 'symmetric'}))  --> false ...takes binary, got 'symmetric'
