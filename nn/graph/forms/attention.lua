-- SPDX-License-Identifier: MIT
-- Quantized form of attention: codes of q, k and v in, codes out, scores and probabilities in integers in between, if
-- the spec of the result is known; a mask and lengths stay what they are. Cost: two products per pair of positions.
local function fits(node)
	return not node.attrs.softcap and (#node.inputs == 3 or node.attrs.scale ~= 0), 'calls without softcap, and of a scale that is not 0'
end

return {ops = {'attention'}, inputs = {1, 2, 3}, weights = {}, gives = 'codes', needs = true, fits = fits, macs = function(shape)
	local q, k = shape(1), shape(2)
	if #q == 3 then return 2 * q[1] * q[2] * k[2] * q[3] end -- heads side by side
	return 2 * q[1] * q[2] * q[3] * k[3] * q[4]
end}
