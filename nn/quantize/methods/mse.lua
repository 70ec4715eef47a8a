-- SPDX-License-Identifier: MIT
-- Ranges of least squared error: the observer mse for the weights.
local like = (select(2, ...)).import 'quant/like'

return {
	phase = 'ranges', needs = 'nothing',
	text = [[Ranges of the least squared error of the weights, as the observer mse finds them: 'int4:32' has the codes of 'int4:32@mse'. Needs no data; helps most where
a scale covers many weights.]],
	run = function(t)
		t.spec = like.spec(t.spec, {axis = t.spec.axis, block = t.spec.block, outer = t.spec.outer, observer = 'mse'})
	end,
}
