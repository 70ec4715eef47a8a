-- SPDX-License-Identifier: MIT
-- Conversions of elements.
local ops = {}

-- Floats become integers towards 0.
function ops.CAST(n)
	local x, is_image = n:real(1)
	local whole = quant.dtype(n.file:dtype(n.outputs[1])).kind
	if n.is_float(x) and (whole == 'int' or whole == 'uint') then x = x:trunc() end
	return n.value(x:to(n.file:dtype(n.outputs[1])), is_image)
end

function ops.DEQUANTIZE(n)
	local x, is_image = n:any(1)
	if x:quantized() then return n.value(x:dequantize(), is_image) end
	return n.value(x:to 'float32', is_image)
end

function ops.QUANTIZE(n)
	local x, is_image = n:any(1)
	if x:quantized() then return n.value(x:requantize(n:spec(nil, 'double')), is_image) end
	return n:give(x, is_image)
end

return ops
