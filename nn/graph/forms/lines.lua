-- SPDX-License-Identifier: MIT
-- Quantized form of softmax, norms and rope: integer sums of codes, if the spec of the result is known;
-- weight and bias of a norm, cosines and sines remain floats.
return {
	{ops = {'softmax'}, inputs = {1}, weights = {}, gives = 'codes', needs = true},
	{ops = {'layernorm', 'rmsnorm', 'groupnorm', 'instancenorm'}, inputs = {1}, weights = {}, gives = 'codes', needs = true},
	{ops = {'rope'}, inputs = {1}, weights = {}, gives = 'codes', needs = true},
}
