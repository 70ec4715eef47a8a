-- SPDX-License-Identifier: MIT
-- Quantized form of conv2d: codes of up to 16 bits under one scale, weights under one or one for each output channel.
local function fits(_, weight, input)
	local good = not (weight and (weight.block or weight.bits == 1 or weight.scheme == 'log') or input and input.scheme == 'log')
	return good, 'affine codes of 2 to 16 bits without blocks'
end

return {ops = {'conv2d'}, inputs = {1}, weights = {2}, gives = 'codes', fits = fits,
	macs = function(shape)
		local w, count = shape(2), 1
		for _, d in ipairs(shape(0)) do count = count * d end
		return count * w[2] * w[3] * w[4]
	end}
