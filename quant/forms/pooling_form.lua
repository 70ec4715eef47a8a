-- SPDX-License-Identifier: MIT
-- Quantized form of avgpool2d and mean: sums of codes, one rounding to the codes that the next layer wants. Without out= it would round to the
-- codes that came in; there it stays a float op.
return {ops = {'avgpool2d', 'mean'}, inputs = {1}, all = true, weights = {}, gives = 'codes', needs = true}
