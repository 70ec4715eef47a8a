-- SPDX-License-Identifier: MIT
-- Quantized form of argmax and argmin: codes under one scale are ordered as their values, and equal ones are equal, so the first of the
-- largest codes is the first of the largest values. What comes out are plain integers.
return {ops = {'argmax', 'argmin'}, inputs = {1}, weights = {}, gives = 'places', needs = true}
