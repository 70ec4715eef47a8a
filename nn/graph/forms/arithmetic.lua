-- SPDX-License-Identifier: MIT
-- Sums, differences, products and joins of codes: integer ops if the spec of the result is known, else float ops. With a number as
-- operand they are tables.
return {
	{ops = {'add', 'sub', 'mul'}, inputs = {1, 2}, all = true, numbers = true, weights = {}, gives = 'codes', needs = true},
	{ops = {'cat', 'stack'}, inputs = {1}, all = true, weights = {}, gives = 'codes', needs = true},
}
