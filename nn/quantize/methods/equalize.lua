-- SPDX-License-Identifier: MIT
-- Cross-layer equalization (arXiv 1906.04721, section 4.1): the arithmetic is that of m:equalize.
local equalizer = (select(2, ...)).import 'nn/quantize/equalize'

return {
	phase = 'model', needs = 'nothing',
	text = [[Channels between two consecutive layers are scaled so that their weights have the same range in both (m:equalize). No data, but in mode static
data= is needed to observe the ranges again. Helps weights with one scale ('int8'); of little use with a scale for each output or block.]],
	run = function(m)
		if equalizer.equalize(m) == 0 then return 'nothing to equalize: no layers that follow each other' end
	end,
}
