-- SPDX-License-Identifier: MIT
-- Rounding to the nearest code: what every other method is measured by.
return {
	phase = 'codes', needs = 'nothing',
	text = 'Each weight is rounded to the nearest code of its scale (round to nearest). No data, no time; enough at 8 bits, and at 4 bits in blocks for large layers.',
	run = function(t) return t.weight:quantize(t.spec) end,
}
