-- SPDX-License-Identifier: MIT
-- Sums, differences, products and joins of codes: integer ops when the spec of the result is known, else floats. With
-- a number as operand: a table.
return {
	{ops = {'add', 'sub', 'mul'}, inputs = {1, 2}, all = true, numbers = true, weights = {}, gives = 'codes', needs = true},
	{ops = {'cat', 'stack'}, inputs = {1}, all = true, weights = {}, gives = 'codes', needs = true},
}
