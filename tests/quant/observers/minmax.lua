-- SPDX-License-Identifier: MIT
-- The observer minmax, which is also the default.
local x = tensor{-3, 1, 2}
print(quant.spec 'int8@minmax' == quant.spec 'int8')  --> true
print(x:quantize('int8@minmax'):qparams().scale:item() == x:quantize('int8'):qparams().scale:item())  --> true
print(pcall(quant.spec, 'int8@minmx'))  --> false ...observer: wanted one of minmax...got 'minmx'...
