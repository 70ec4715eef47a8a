-- SPDX-License-Identifier: MIT
-- Quantized form of embedding: only the rows of the weight that are wanted are decoded. Its input are numbers, no activations.
return {ops = {'embedding'}, inputs = {}, weights = {1}, gives = 'float', only = 'weight_only', decodes = true}
