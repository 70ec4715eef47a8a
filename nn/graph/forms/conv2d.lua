-- SPDX-License-Identifier: MIT
-- Quantized form of conv2d: codes of up to 16 bits with one scale, weights with one scale or one per output channel;
-- binary ones with inputs of at most 8 bits. Inputs whose codes have no integer product are decoded, together with weights of any format without blocks.
local function fits(_, weight, input)
	if input and not input.affine and not (weight and weight.block) then return true end
	local good = not (weight and (weight.block or not weight.affine or weight.axis and weight.axis ~= 1) or input and not input.affine)
	local function wide(a, b) return a and b and a.scheme == 'binary' and quant.dtype(b.dtype).bits > 8 end
	return good and not wide(weight, input) and not wide(input, weight), 'affine codes of up to 16 bits (binary: 8) with one scale for each output'
end

return {ops = {'conv2d'}, inputs = {1}, weights = {2}, gives = 'codes', fits = fits,
	in_parts = function(at, axes) return at == 2 and axes == 4 end, takes_flat = true,
	macs = function(shape)
		local w, count = shape(2), 1
		for _, d in ipairs(shape(0)) do count = count * d end
		return count * w[2] * w[3] * w[4]
	end}
