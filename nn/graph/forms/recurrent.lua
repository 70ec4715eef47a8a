-- SPDX-License-Identifier: MIT
-- Quantized forms of the recurrent layers: x and h in integers if the weights are int8 with scales per tensor or per
-- row; the cell and the results are float.
local list = {}

-- h is quantized at each step where the weight's spec allows (help 'nn.lstm').
local function attrs(_, weight)
	local d = quant.dtype(weight.dtype)
	local plain = d.bits == 8 and d.kind == 'int' and weight.affine and not weight.offset and (not weight.axis or weight.axis == 1) and not weight.block
	return {states = plain and 'int8' or nil}
end

local function fits(_, weight)
	return not weight or not weight.block and weight.affine and (not weight.axis or weight.axis == 1),
		'affine codes with one scale for each row of the weights'
end

for name, states in pairs {lstm = 2, gru = 1, rnn = 1} do
	local first = 2 + states
	local function in_parts(at) return at == first or at == first + 1 end
	list[#list + 1] = {ops = {name}, inputs = {1}, weights = {first, first + 1}, in_parts = in_parts, gives = 'float', attrs = attrs, fits = fits,
		macs = function(shape)
			local x, ih, hh = shape(1), shape(first), shape(first + 1)
			return x[1] * x[2] * (ih[1] * ih[2] + hh[1] * hh[2])
		end}
end
return list
