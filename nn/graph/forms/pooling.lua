-- SPDX-License-Identifier: MIT
-- Quantized form of avgpool2d and mean: sums of codes, one rounding to the codes of the next layer. Without out= it
-- would round to the input's codes, so it remains a float op.
return {ops = {'avgpool2d', 'mean'}, inputs = {1}, all = true, weights = {}, gives = 'codes', needs = true}
