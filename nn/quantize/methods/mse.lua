-- SPDX-License-Identifier: MIT
-- Ranges of least squared error: the observer mse for the weights.
return {
	phase = 'ranges', needs = 'nothing',
	text = [[Ranges of the least squared error of the weights, as the observer mse finds them: 'int4:32' has the codes of 'int4:32@mse'. Needs no data; helps most where
a scale covers many weights.]],
	run = function(t) t:observe 'mse' end,
}
