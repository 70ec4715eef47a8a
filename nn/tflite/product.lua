-- SPDX-License-Identifier: MIT
-- What convolutions and products share: weights in the order of Quoll, biases as floats, results as codes.
local product = {}

-- A weight with its axes in this order; codes stay codes.
function product.weight(n, i, order)
	local function made(w) return w:permute(table.unpack(order)):contiguous() end
	if n:known(i) then return n:weight(i, table.concat(order, ' '), made) end
	return made(n:plain(i))
end

-- The bias: int32 numbers are multiples of the product of both scales, in float32 as the ops count them, so they come back as they are
-- (quant/integer/rounding.h). w: the number of the weight's input.
function product.bias(n, i, x, w)
	if not n:has(i) then return nil end
	if not x:quantized() then
		local b = n:real_plain(i)
		if not n.is_float(b) then n:fail 'bias: wanted floats beside floats, got integers' end
		return b
	end
	local sx, scales = x:qparams().scale:item(), n.file:scales(n.tensors[w])
	if not scales then n:fail 'weight: wanted codes beside codes, got others' end
	return n:weight(i, ('bias %a'):format(sx), function(b)
		if b:quantized() then b = b:dequantize() / n.file:scales(n.tensors[i]).scale[1] end
		return b:to 'float32' * (tensor(scales.scale) * sx)
	end)
end

-- Options of the result, and the activation that is left for afterwards. rounding: the rule of codes.
function product.result(n, x, o, rounding)
	local act = n:act()
	if x:quantized() then
		o.out = n:spec(act, rounding) or n:fail 'output: wanted codes of codes, got floats'
		return o, nil
	end
	if act and act ~= 'relu_n1_to_1' then
		o.act = act
		act = nil
	end
	return o, act
end

-- An operand of a product: codes where the result has codes, too.
function product.operand(n, x)
	if x:quantized() and not n:spec() then return x:dequantize() end
	return x
end

return product
