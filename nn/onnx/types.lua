-- SPDX-License-Identifier: MIT
-- Data types of ONNX: those of dtypes, and small floats that are codes of a table here.
local types = {}

-- A dtype (or the name of a small float), and the number of TensorProto.DataType.
local NUMBERS = {{'float32', 1}, {'uint8', 2}, {'int8', 3}, {'uint16', 4}, {'int16', 5}, {'int32', 6}, {'int64', 7}, {'bool', 9}, {'float16', 10},
	{'float64', 11}, {'bfloat16', 16}, {'float8_e4m3', 17}, {'float8_e5m2', 19}, {'uint4', 21}, {'int4', 22}, {'fp4', 23}, {'float8_e8m0', 24},
	{'uint2', 25}, {'int2', 26}}

types.number = {}
for _, t in ipairs(NUMBERS) do types.number[t[1]] = t[2] end

-- The small floats: bits of exponent and significand, bias, largest number, the opset of their QuantizeLinear.
types.floats = {{'float8_e4m3', 4, 3, 7, 448, 19}, {'float8_e5m2', 5, 2, 15, 57344, 19}, {'fp4', 2, 1, 1, 6, 23}}

local function is_integer(type)
	local d = type ~= 'fp4' and quant.dtype(type)
	return d and not d.float and d or nil
end
types.integer = is_integer

function types.bits(type) return type == 'fp4' and 4 or quant.dtype(type).bits end
function types.is_float(dtype) return quant.dtype(dtype).float end
function types.is_bool(dtype) return quant.dtype(dtype).kind == 'bool' end

-- Whether codes of that type are bytes; of fewer bits: the bytes that hold them.
function types.is_byte(type)
	local d = is_integer(type)
	return d ~= nil and d.bits == 8 and d.kind ~= 'bool'
end
function types.byte_of(type)
	local d = is_integer(type)
	return d and d.bits <= 8 and (d.min < 0 and 'int8' or 'uint8') or nil
end

-- The type in which integers of fewer than 32 bits are computed where an op has none of them.
function types.wide(dtype)
	local d = is_integer(dtype)
	return d and d.bits < 32 and 'int32' or dtype
end

local SINCE = {{2, 25}, {4, 21}, {8, 13}, {16, 21}} -- bits of codes, opset of their QuantizeLinear

-- The data type that holds codes of a dtype up to that opset, with the opset that it needs; nil: none.
function types.container(dtype, opset)
	local d = quant.dtype(dtype)
	for _, s in ipairs(SINCE) do
		if s[1] >= d.bits and s[2] <= opset and not d.float then return (d.min < 0 and 'int' or 'uint') .. s[1], s[2] end
	end
end

return types
