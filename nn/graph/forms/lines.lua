-- SPDX-License-Identifier: MIT
-- Quantized form of softmax, layernorm, rmsnorm and rope: integer sums of codes, if the spec of the result is known;
-- weight and bias of a norm remain floats.
return {ops = {'softmax', 'layernorm', 'rmsnorm', 'rope'}, inputs = {1}, weights = {}, gives = 'codes', needs = true}
