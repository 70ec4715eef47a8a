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

-- What a weight is multiplied with: x, or h before each step. A gate that is multiplied with h before its product has no such rows.
local function columns(first, at, operands, results, given)
	if at == first then return operands[1]:reshape(operands[1]:nelem() // operands[1]:size(-1), operands[1]:size(-1)) end
	if given.resetafter == false then return end
	local y, h = results[1], operands[2]
	local axis = given.batchfirst == false and 1 or 2
	local steps = y:size(axis)
	local parts = {h:unsqueeze(axis), y:narrow(axis, given.reverse and 2 or 1, steps - 1)}
	if given.reverse then parts[1], parts[2] = parts[2], parts[1] end
	return tensor.cat(parts, axis):reshape(y:nelem() // y:size(-1), y:size(-1))
end

for name, states in pairs {lstm = 2, gru = 1, rnn = 1} do
	local first = 2 + states
	local function in_parts(at) return at == first or at == first + 1 end
	list[#list + 1] = {ops = {name}, inputs = {1}, weights = {first, first + 1}, in_parts = in_parts, gives = 'float', attrs = attrs, fits = fits,
		columns = function(at, ...) return columns(first, at, ...) end,
		macs = function(shape)
			local x, ih, hh = shape(1), shape(first), shape(first + 1)
			return x[1] * x[2] * (ih[1] * ih[2] + hh[1] * hh[2])
		end}
end
return list
