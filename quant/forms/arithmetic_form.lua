-- SPDX-License-Identifier: MIT
-- Sums, products and joins of codes: integer ops when the spec of the result is known, else floats.
return {ops = {'add', 'mul', 'cat'}, inputs = {1, 2}, all = true, weights = {}, gives = 'codes', needs = true}
