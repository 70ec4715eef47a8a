-- SPDX-License-Identifier: MIT
-- Quantized form of convtranspose2d: codes of up to 16 bits with one scale, weights with one scale or one per output (their second axis).
local function fits(_, weight, input)
	local function good(spec) return not spec or spec.affine and not spec.block and quant.dtype(spec.dtype).kind ~= 'binary' end
	return good(input) and good(weight) and not (weight and weight.axis and weight.axis ~= 2),
		'affine codes of up to 16 bits with one scale for each output (axis 2)'
end

return {ops = {'convtranspose2d'}, inputs = {1}, weights = {2}, gives = 'codes', fits = fits, per = 2,
	macs = function(shape)
		local x, w = shape(1), shape(2)
		return x[1] * x[3] * x[4] * w[1] * w[2] * w[3] * w[4]
	end}
