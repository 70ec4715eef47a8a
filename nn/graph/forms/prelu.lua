-- SPDX-License-Identifier: MIT
-- Quantized form of prelu: codes times slopes that remain floats, if the spec of the result is known. With a number it is a table.
return {ops = {'prelu'}, inputs = {1}, weights = {}, numbers = true, gives = 'codes', needs = true}
