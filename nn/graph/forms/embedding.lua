-- SPDX-License-Identifier: MIT
-- Quantized form of embedding: decodes only the selected rows of the weight, or returns them as codes for the next
-- op. Its inputs are indices, not activations.
return {ops = {'embedding'}, inputs = {}, weights = {1}, gives = 'codes', only = 'weight_only', decodes = true}
