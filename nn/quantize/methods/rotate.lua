-- SPDX-License-Identifier: MIT
-- Rotation of the vectors between the blocks of a language model (QuaRot, arXiv 2404.00456, SpinQuant's R1 without learning): outliers of a few
-- channels are spread over all.
local streams = (select(2, ...)).import 'nn/quantize/streams'

return {
	phase = 'model', needs = 'nothing', rounds_inputs = true,
	text = [[Rotation: the vectors to which the blocks of a language model add are multiplied by a Hadamard matrix with random signs, and all weights that read or
write them turn back, so that the function stays and no channel is much larger than the others. For modes static and dynamic, where few channels
are very large, and for few bits; of little use otherwise. Gains of norms go into the layers after them, so that a head that shared the embedding's weight gets
one of its own. Where the norms subtract a mean, the rotation keeps it. Sizes that are no power of two are rotated in blocks of the largest power that divides them.
In mode static data= is needed to observe the ranges again.]],
	options = {{'seed', 'integer', 'of the signs (default 1)'}},
	refuses = function(item)
		if item.tied then return "wanted shared='apart', because the head gets the gains of the norm before it and is no longer the embedding, got 'once'" end
	end,
	refuses_model = streams.refuses,
	run = function(m, o) return streams.rotate(m, o.seed or 1) end,
}
