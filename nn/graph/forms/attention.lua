-- SPDX-License-Identifier: MIT
-- Quantized form of attention: codes of q, k and v in, codes out, scores and probabilities in integers in between, if
-- the spec of the result is known. Cost: two products per pair of positions.
local function fits(node)
	return #node.inputs == 3 and not node.attrs.window and not node.attrs.softcap, 'calls without mask, lengths, window and softcap'
end

return {ops = {'attention'}, inputs = {1, 2, 3}, weights = {}, gives = 'codes', needs = true, fits = fits, macs = function(shape)
	local q, k = shape(1), shape(2)
	if #q == 3 then return 2 * q[1] * q[2] * k[2] * q[3] end -- heads side by side
	return 2 * q[1] * q[2] * q[3] * k[3] * q[4]
end}
