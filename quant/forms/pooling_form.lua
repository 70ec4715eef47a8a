-- SPDX-License-Identifier: MIT
-- Quantized form of avgpool2d: sums of codes, one rounding to the codes that the next layer wants. Without out= it would round to the
-- codes that came in; there it stays a float op.
return {ops = {'avgpool2d'}, inputs = {1}, all = true, weights = {}, gives = 'codes', needs = true}
