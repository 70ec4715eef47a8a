-- SPDX-License-Identifier: MIT
-- Quantized form of embedding: only the rows of the weight that are wanted are decoded, or given as the codes that the next op wants. Its
-- input are numbers, no activations.
return {ops = {'embedding'}, inputs = {}, weights = {1}, gives = 'codes', only = 'weight_only', decodes = true}
