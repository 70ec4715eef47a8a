-- SPDX-License-Identifier: MIT
-- Quantized form of softmax, layernorm, rmsnorm and rope: integer sums of codes, where the spec of the result is known; weight and bias
-- of a norm stay floats.
return {ops = {'softmax', 'layernorm', 'rmsnorm', 'rope'}, inputs = {1}, weights = {}, gives = 'codes', needs = true}
