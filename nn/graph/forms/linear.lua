-- SPDX-License-Identifier: MIT
-- Quantized form of linear and matmul: exact integer sums of products of codes; the result is floats or codes.
local _, internal = ...
local rules = internal.import 'nn/quantize/rules'

local function product(n) return function(shape)
	local a, b = shape(1), shape(2)
	local count = 1
	for _, d in ipairs(a) do count = count * d end
	return count * b[#b - n]
end end

local function in_parts(at, axes) return at == 2 and axes == 2 end

-- One scale per output; axis is the axis of the outputs in the weight. Inputs whose codes have no integer product are decoded,
-- together with weights of any format.
local function one_scale(axis) return function(_, weight, input)
	return input and not input.affine or not weight or not weight.block and weight.affine and (not weight.axis or weight.axis == axis),
		('affine codes with one scale for each output (axis %d)'):format(axis)
end end

-- The same, or sums of blocks.
local function linear(node, weight, input, value)
	local good, able = one_scale(1)(node, weight, input)
	return good or value and rules.sums_blocks(weight, value:size(2), input),
		able .. ', or by inputs of 8 bits with scales in blocks of 8, 16, … of them, minimums or tables of small integers (mxfp4),'
end

return {
	{ops = {'linear'}, inputs = {1}, weights = {2}, in_parts = in_parts, gives = 'codes', fits = linear, macs = product(1)},
	-- A constant matrix is a weight, any other an activation. matmul counts the batch of the first operand.
	{ops = {'matmul'}, inputs = {1}, weights = {2}, in_parts = in_parts, either = true, gives = 'codes', fits = one_scale(2), per = 2,
		macs = product(0)},
}
