-- SPDX-License-Identifier: MIT
-- nn.AdaptiveAvgPool2d and nn.AdaptiveMaxPool2d; tests/tensor/adaptive.lua has their values.
print(nn.AdaptiveAvgPool2d {2, 3}, nn.AdaptiveMaxPool2d(4))  --> AdaptiveAvgPool2d({2,3})  0 parameters AdaptiveMaxPool2d(4)  0 parameters
local x = tensor.randn(2, 3, 7, 8)
print(nn.AdaptiveAvgPool2d(1)(x):size())  --> 2 3 1 1
assert(nn.AdaptiveAvgPool2d {2, 3}(x):eq(x:adaptiveavgpool2d {2, 3}):all():item() and nn.AdaptiveMaxPool2d(7)(x):eq(x:adaptivemaxpool2d(7)):all():item())
local g = graph.trace(nn.Sequential {nn.AdaptiveAvgPool2d(2), nn.AdaptiveMaxPool2d(1)}, x)
assert(g:run(x):eq(x:adaptiveavgpool2d(2):maxpool2d 'all'):all():item())
