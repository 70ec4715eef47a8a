-- SPDX-License-Identifier: MIT
-- Ranges that leave the largest weights out: the observer percentile for the weights.
return {
	phase = 'ranges', needs = 'nothing',
	text = [[Ranges that leave out a share of the largest weights, as the observer percentile. For one scale a tensor or a row; blocks are too small for it.]],
	options = {{'p', 'number', 'percent of the weights within the range (default 99.99)'}},
	run = function(t, o) t:observe('percentile', o.p) end,
}
