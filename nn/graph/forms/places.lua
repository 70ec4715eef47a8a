-- SPDX-License-Identifier: MIT
-- Quantized form of argmax and argmin: codes under one scale are ordered like their values, so the first of the
-- largest codes is the first of the largest values. Results are plain integers.
return {ops = {'argmax', 'argmin'}, inputs = {1}, weights = {}, gives = 'places', needs = true}
