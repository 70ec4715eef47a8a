-- SPDX-License-Identifier: MIT
-- Each op of TFLite that Quoll reads (help 'tflite'), with random inputs of float32 (f), int8 (i8), uint8 (u8) and int16 (i16), as models of
-- one node: {name=, op=, inputs=, options=, o=} for tflite.single (tests/tools/tflite.lua). Names are an op, what is special, the type.
local cases = {}
tensor.seed(7)
local function ints(...) return tensor {dtype = 'int32', ...} end
local TYPE = {int8 = 'INT8', uint8 = 'UINT8', int16 = 'INT16', float32 = 'FLOAT32', int32 = 'INT32', int64 = 'INT64', bool = 'BOOL'}
-- random values of a type: 'f', 'i8', 'u8', 'i16'
local function q(x, type, scale, zero)
	if type == 'f' then return x end
	local dtype = ({i8 = 'int8', u8 = 'uint8', i16 = 'int16'})[type]
	scale = scale or (type == 'i16' and 0.0001 or 0.025)
	if type == 'i16' then return x:quantize {dtype = dtype, scale = scale, scheme = 'symmetric'} end
	zero = zero or (type == 'u8' and 131 or 5)
	return x:quantize {dtype = dtype, scale = scale, zero_point = zero, scheme = 'asymmetric'}
end
local function out(type, scale, zero)
	if type == 'f' then return {} end
	local t = ({i8 = 'INT8', u8 = 'UINT8', i16 = 'INT16'})[type]
	return {type = t, scale = scale or (type == 'i16' and 0.0001 or 0.03), zero = type == 'i16' and 0 or zero or (type == 'u8' and 120 or -7)}
end
local function case(name, op, inputs, options, o)
	cases[#cases + 1] = {name = name, op = op, inputs = inputs, options = options, o = o or {}}
end
local function same(x, type) -- out as the input
	if type == 'f' then return {type = TYPE[x:dtype()]} end
	local p = x:qparams()
	return {type = TYPE[x:dtype()], scale = p.scale:item(), zero = p.zero_point and math.tointeger(p.zero_point:item()) or 0}
end

local ALL = {'f', 'i8', 'u8', 'i16'}
local function randn(...) return tensor.randn(...) end
for _, t in ipairs(ALL) do
	local function n(op) return op .. ' ' .. t end
	local x2, x3, x4 = q(randn(4, 30), t), q(randn(2, 5, 6), t), q(randn(2, 6, 7, 4), t)
	local function w(x)
		if t == 'f' then return x end
		if t == 'u8' then return x:quantize {dtype = 'uint8', scale = 0.02, zero_point = 120, scheme = 'asymmetric'} end
		return x:quantize {dtype = 'int8', axis = 1}
	end
	local function w1(x)
		if t == 'f' then return x end
		if t == 'u8' then return w(x) end
		return x:quantize {dtype = 'int8', scale = 0.02}
	end
	local function b(count)
		if t == 'f' then return randn(count) end
		local v = (randn(count) * 500):round()
		return v:to(t == 'i16' and 'int64' or 'int32')
	end
	for _, act in ipairs {0, 1, 3} do
		case(n('FULLY_CONNECTED act' .. act), 'FULLY_CONNECTED', {x2, w1(randn(5, 30)), b(5)}, {act = act}, {fixed = {2, 3}, out = out(t, t == 'i16' and 0.0004 or 0.1)})
		case(n('CONV_2D act' .. act), 'CONV_2D', {x4, t == 'u8' and w(randn(5, 3, 3, 4)) or w(randn(5, 3, 3, 4)), b(5)}, {stride_w = 2, stride_h = 1, act = act}, {fixed = {2, 3}, out = out(t, t == 'i16' and 0.0004 or 0.1)})
		local dw = randn(1, 3, 3, 8)
		if t ~= 'f' and t ~= 'u8' then dw = dw:quantize {dtype = 'int8', axis = 4} elseif t == 'u8' then dw = w(dw) end
		case(n('DEPTHWISE_CONV_2D act' .. act), 'DEPTHWISE_CONV_2D', {x4, dw, b(8)}, {stride_w = 1, stride_h = 1, multiplier = 2, act = act, padding = 1}, {fixed = {2, 3}, out = out(t, t == 'i16' and 0.0004 or 0.1)})
	end
	case(n 'FULLY_CONNECTED nobias', 'FULLY_CONNECTED', {x2, w1(randn(5, 30))}, {}, {fixed = {2}, out = out(t, t == 'i16' and 0.0004 or 0.1)})
	if t ~= 'u8' then case(n 'FULLY_CONNECTED axes', 'FULLY_CONNECTED', {x2, w(randn(5, 30)), b(5)}, {}, {fixed = {2, 3}, out = out(t, t == 'i16' and 0.0004 or 0.1)}) end
	case(n 'TRANSPOSE_CONV', 'TRANSPOSE_CONV', {ints(2, 13, 15, 5), w(randn(5, 3, 3, 4)), x4}, {stride_w = 2, stride_h = 2, padding = 1}, {fixed = {1, 2}, out = out(t, t == 'i16' and 0.0004 or 0.1)})
	case(n 'TRANSPOSE_CONV bias', 'TRANSPOSE_CONV', {ints(2, 13, 15, 5), w(randn(5, 3, 3, 4)), x4, b(5)}, {stride_w = 2, stride_h = 2, padding = 1}, {fixed = {1, 2, 4}, out = out(t, t == 'i16' and 0.0004 or 0.1)})
	for _, op in ipairs {'AVERAGE_POOL_2D', 'MAX_POOL_2D'} do
		for _, pad in ipairs {0, 1} do
			case(n(op .. ' pad' .. pad), op, {x4}, {stride_w = 2, stride_h = 1, filter_w = 3, filter_h = 2, padding = pad}, {out = same(x4, t)})
		end
		case(n(op .. ' relu'), op, {x4}, {stride_w = 2, stride_h = 1, filter_w = 3, filter_h = 2, padding = 0, act = 3}, {out = same(x4, t)})
	end
	local y4 = q(randn(2, 6, 7, 4), t, t == 'i16' and 0.00012 or 0.02, t == 'i8' and -3 or nil)
	local row = q(randn(4), t, t == 'i16' and 0.00012 or 0.02, t == 'i8' and -3 or nil)
	for _, op in ipairs {'ADD', 'SUB', 'MUL', 'DIV', 'MAXIMUM', 'MINIMUM', 'SQUARED_DIFFERENCE', 'POW', 'FLOOR_DIV', 'FLOOR_MOD'} do
		local o = out(t, t == 'i16' and 0.0002 or 0.05)
		local a, c = x4, y4
		if op == 'POW' then a = t == 'f' and x4:abs() or x4 end
		if op == 'MAXIMUM' or op == 'MINIMUM' then c = q(randn(2, 6, 7, 4), t) o = same(x4, t) end
		case(n(op), op, {a, c}, (op == 'ADD' or op == 'SUB' or op == 'MUL' or op == 'DIV') and {} or nil, {out = o})
		if op == 'ADD' or op == 'SUB' or op == 'MUL' or op == 'SQUARED_DIFFERENCE' then
			case(n(op .. ' row'), op, {x4, row}, op ~= 'SQUARED_DIFFERENCE' and {act = 1} or nil, {out = o, fixed = {2}})
		end
	end
	for _, op in ipairs {'LESS', 'GREATER', 'EQUAL', 'NOT_EQUAL', 'LESS_EQUAL', 'GREATER_EQUAL'} do
		case(n(op), op, {x4, y4}, nil, {out = {type = 'BOOL'}})
	end
	local soft = t == 'f' and {} or t == 'i8' and {type = 'INT8', scale = 1 / 256, zero = -128} or t == 'u8' and {type = 'UINT8', scale = 1 / 256, zero = 0} or {type = 'INT16', scale = 1 / 32768, zero = 0}
	case(n 'LOGISTIC', 'LOGISTIC', {q(randn(3, 200) * 2, t, t == 'i16' and 1 / 4096 or nil)}, nil, {out = soft})
	case(n 'LOGISTIC odd', 'LOGISTIC', {q(randn(3, 200) * 2, t, t == 'i16' and 0.000311 or nil)}, nil, {out = soft})
	local th = t == 'f' and {} or t == 'i8' and {type = 'INT8', scale = 1 / 128, zero = 0} or t == 'u8' and {type = 'UINT8', scale = 1 / 128, zero = 128} or {type = 'INT16', scale = 1 / 32768, zero = 0}
	case(n 'TANH', 'TANH', {q(randn(3, 200) * 2, t, t == 'i16' and 1 / 4096 or nil)}, nil, {out = th})
	case(n 'TANH odd', 'TANH', {q(randn(3, 200) * 2, t, t == 'i16' and 0.000311 or nil)}, nil, {out = th})
	case(n 'SOFTMAX', 'SOFTMAX', {q(randn(3, 20) * 2, t, t == 'i16' and 0.0003 or nil)}, {beta = 1}, {out = soft})
	case(n 'SOFTMAX beta', 'SOFTMAX', {q(randn(3, 20) * 2, t, t == 'i16' and 0.0003 or nil)}, {beta = 0.7}, {out = soft})
	case(n 'LOG_SOFTMAX', 'LOG_SOFTMAX', {q(randn(3, 20) * 2, t)}, nil, {out = t == 'i8' and {type = 'INT8', scale = 16 / 256, zero = 127} or t == 'u8' and {type = 'UINT8', scale = 16 / 256, zero = 255} or out(t)})
	case(n 'RELU', 'RELU', {x4}, nil, {out = out(t)})
	case(n 'RELU6', 'RELU6', {x4}, nil, {out = out(t)})
	case(n 'RELU_N1_TO_1', 'RELU_N1_TO_1', {x4}, nil, {out = out(t)})
	case(n 'LEAKY_RELU', 'LEAKY_RELU', {x4}, {alpha = 0.13}, {out = out(t)})
	local slope = q(tensor.rand(4), t, t == 'i16' and 0.0001 or 0.01)
	case(n 'PRELU', 'PRELU', {x4, slope}, nil, {out = out(t), fixed = {2}})
	case(n 'HARD_SWISH', 'HARD_SWISH', {x4}, nil, {out = out(t)})
	case(n 'ELU', 'ELU', {x4}, nil, {out = out(t)})
	case(n 'GELU', 'GELU', {x4}, {}, {out = out(t)})
	case(n 'GELU tanh', 'GELU', {x4}, {approximate = true}, {out = out(t)})
	local pos = q(tensor.rand(3, 40) + 0.1, t)
	for _, op in ipairs {'RSQRT', 'SQRT', 'LOG'} do case(n(op), op, {pos}, nil, {out = out(t)}) end
	for _, op in ipairs {'EXP', 'NEG', 'ABS', 'SQUARE', 'SIN', 'COS', 'FLOOR', 'CEIL', 'ROUND', 'SIGN'} do case(n(op), op, {x2}, nil, {out = (op == 'NEG') and same(x2, t) or out(t)}) end
	case(n 'L2_NORMALIZATION', 'L2_NORMALIZATION', {x2}, {}, {out = t == 'i8' and {type = 'INT8', scale = 1 / 128, zero = 0} or t == 'u8' and {type = 'UINT8', scale = 1 / 128, zero = 128} or out(t)})
	for _, op in ipairs {'MEAN', 'SUM', 'REDUCE_MAX', 'REDUCE_MIN', 'REDUCE_PROD'} do
		for _, axes in ipairs {{1, 2}, {3}, {-1, 1}} do
			local o = out(t)
			if op == 'REDUCE_MAX' or op == 'REDUCE_MIN' then o = same(x4, t) end
			if op == 'SUM' and t ~= 'f' then o = out(t, t == 'i16' and 0.001 or 0.2) end
			case(n(op .. ' ' .. table.concat(axes, ',')), op, {x4, ints(table.unpack(axes))}, {keep = axes[1] == 3}, {out = o, fixed = {2}})
		end
	end
	case(n 'ARG_MAX', 'ARG_MAX', {x2, ints(1)}, {type = 2}, {out = {type = 'INT32'}, fixed = {2}})
	case(n 'ARG_MIN', 'ARG_MIN', {x2, ints(1)}, {type = 2}, {out = {type = 'INT32'}, fixed = {2}})
	local s = same(x4, t)
	case(n 'RESHAPE', 'RESHAPE', {x4, ints(2, -1)}, nil, {out = s, fixed = {2}})
	case(n 'SQUEEZE', 'SQUEEZE', {q(randn(1, 5, 1, 3), t)}, {axes = {2}}, {out = s})
	case(n 'EXPAND_DIMS', 'EXPAND_DIMS', {x2, ints(1)}, nil, {out = s, fixed = {2}})
	case(n 'PACK', 'PACK', {q(randn(3, 4), t), q(randn(3, 4), t)}, {count = 2, axis = 1}, {out = s})
	case(n 'UNPACK', 'UNPACK', {x3}, {count = 2, axis = 0}, {out = {s, s}})
	case(n 'STRIDED_SLICE', 'STRIDED_SLICE', {x4, ints(0, 1, 6, 0), ints(2, 5, 0, 4), ints(1, 2, -2, 1)}, {begin_mask = 1, shrink_axis_mask = 8}, {out = s, fixed = {2, 3, 4}})
	case(n 'SLICE', 'SLICE', {x4, ints(0, 1, 2, 0), ints(2, 3, -1, 2)}, nil, {out = s, fixed = {2, 3}})
	case(n 'CONCATENATION', 'CONCATENATION', {q(randn(2, 3, 4), t), q(randn(2, 5, 4), t)}, {axis = 1}, {out = s})
	if t == 'u8' or t == 'f' then case(n 'CONCATENATION scales', 'CONCATENATION', {q(randn(2, 3, 4), t), q(randn(2, 5, 4), t, 0.02)}, {axis = 1}, {out = s}) end
	case(n 'PAD', 'PAD', {x4, ints({0, 0}, {1, 2}, {0, 3}, {0, 0})}, nil, {out = s, fixed = {2}})
	case(n 'PADV2', 'PADV2', {x4, ints({0, 0}, {1, 2}, {0, 3}, {0, 0}), q(tensor {0.4}:sum(), t)}, nil, {out = s, fixed = {2, 3}})
	case(n 'MIRROR_PAD', 'MIRROR_PAD', {x4, ints({0, 0}, {1, 2}, {0, 3}, {0, 0})}, {mode = 0}, {out = s, fixed = {2}})
	case(n 'MIRROR_PAD sym', 'MIRROR_PAD', {x4, ints({0, 0}, {1, 2}, {0, 3}, {0, 0})}, {mode = 1}, {out = s, fixed = {2}})
	case(n 'TILE', 'TILE', {x2, ints(2, 3)}, nil, {out = s, fixed = {2}})
	case(n 'FILL', 'FILL', {ints(2, 3), q(tensor {0.4}:sum(), t)}, nil, {out = s, fixed = {1}})
	case(n 'SPLIT', 'SPLIT', {ints(1), q(randn(2, 6), t)}, {count = 2}, {out = {s, s}, fixed = {1}})
	case(n 'SPLIT_V', 'SPLIT_V', {q(randn(2, 6), t), ints(4, -1), ints(1)}, {count = 2}, {out = {s, s}, fixed = {2, 3}})
	case(n 'TRANSPOSE', 'TRANSPOSE', {x4, ints(2, 0, 3, 1)}, nil, {out = s, fixed = {2}})
	for _, mode in ipairs {{}, {corners = true}, {half = true}} do
		local name = mode.corners and ' corners' or mode.half and ' half' or ''
		case(n('RESIZE_BILINEAR' .. name), 'RESIZE_BILINEAR', {x4, ints(9, 4)}, mode, {out = s, fixed = {2}})
		case(n('RESIZE_NEAREST_NEIGHBOR' .. name), 'RESIZE_NEAREST_NEIGHBOR', {x4, ints(9, 4)}, mode, {out = s, fixed = {2}})
	end
	local block = q(randn(2, 4, 6, 4), t)
	case(n 'DEPTH_TO_SPACE', 'DEPTH_TO_SPACE', {block}, {block = 2}, {out = s})
	case(n 'SPACE_TO_DEPTH', 'SPACE_TO_DEPTH', {block}, {block = 2}, {out = s})
	case(n 'SPACE_TO_BATCH_ND', 'SPACE_TO_BATCH_ND', {block, ints(2, 3), ints({1, 1}, {0, 0})}, nil, {out = s, fixed = {2, 3}})
	case(n 'BATCH_TO_SPACE_ND', 'BATCH_TO_SPACE_ND', {q(randn(6, 4, 3, 2), t), ints(2, 3), ints({1, 1}, {0, 2})}, nil, {out = s, fixed = {2, 3}})
	case(n 'GATHER', 'GATHER', {x3, ints(2, 0, 3)}, {axis = 1}, {out = s, fixed = {2}})
	case(n 'GATHER batch', 'GATHER', {x3, ints({2, 0, 3}, {1, 1, 4})}, {axis = 1, batch = 1}, {out = s, fixed = {2}})
	case(n 'GATHER batch axis', 'GATHER', {x3, ints({2, 0, 3}, {1, 1, 5})}, {axis = 2, batch = 1}, {out = s})
	case(n 'GATHER batch 2', 'GATHER', {q(randn(2, 3, 4, 5), t), ints({{0, 1}, {2, 3}, {1, 1}}, {{0, 0}, {2, 1}, {3, 3}})}, {axis = 2, batch = 2}, {out = s})
	case(n 'GATHER_ND', 'GATHER_ND', {x3, ints({0, 2}, {1, 4})}, nil, {out = s, fixed = {2}})
	case(n 'BATCH_MATMUL', 'BATCH_MATMUL', {q(randn(2, 3, 4), t), q(randn(2, 4, 5), t, nil, t == 'i8' and 0 or nil)}, {}, {out = out(t, t == 'i16' and 0.0003 or 0.08)})
	case(n 'BATCH_MATMUL adj', 'BATCH_MATMUL', {q(randn(2, 3, 4), t), q(randn(2, 5, 4), t)}, {adjoint_y = true}, {out = out(t, t == 'i16' and 0.0003 or 0.08)})
	local cond = randn(2, 6, 7, 4):gt(0)
	case(n 'SELECT_V2', 'SELECT_V2', {cond, x4, q(randn(2, 6, 7, 4), t)}, nil, {out = s})
	case(n 'SELECT', 'SELECT', {cond, x4, q(randn(2, 6, 7, 4), t)}, nil, {out = s})
	case(n 'QUANTIZE', 'QUANTIZE', {x4}, nil, {out = out(t == 'f' and 'i8' or t)})
	case(n 'DEQUANTIZE', 'DEQUANTIZE', {x4}, nil, {out = {}})
	case(n 'SHAPE', 'SHAPE', {x4}, {type = 2}, {out = {type = 'INT32'}})
	case(n 'BROADCAST_TO', 'BROADCAST_TO', {q(randn(1, 4), t), ints(3, 4)}, nil, {out = s, fixed = {2}})
	case(n 'REVERSE_V2', 'REVERSE_V2', {x3, ints(1)}, nil, {out = s, fixed = {2}})
	case(n 'ADD_N', 'ADD_N', {x2, q(randn(4, 30), t)}, nil, {out = s})
end
for _, to in ipairs {8, 16, 15} do
	case('QUANTIZE f to ' .. to, 'QUANTIZE', {randn(100)}, nil, {out = to == 8 and {type = 'INT8', scale = 0.02, zero = 3} or to == 15 and {type = 'INT16', scale = 0.0001, zero = 0} or {type = 'UINT8', scale = 0.02, zero = 3}})
end
case('QUANTIZE i16 to i8', 'QUANTIZE', {q(randn(500), 'i16')}, nil, {out = {type = 'INT8', scale = 0.02, zero = 3}})
case('QUANTIZE i8 to i16', 'QUANTIZE', {q(randn(500), 'i8')}, nil, {out = {type = 'INT16', scale = 0.0002, zero = 0}})
case('QUANTIZE u8 to i8', 'QUANTIZE', {q(randn(500), 'u8')}, nil, {out = {type = 'INT8', scale = 0.025, zero = 3}})
case('CAST f i32', 'CAST', {randn(100) * 10}, {from = 0, to = 2}, {out = {type = 'INT32'}})
case('CAST i32 f', 'CAST', {(randn(100) * 10):to 'int32'}, {from = 2, to = 0}, {out = {}})
case('FLOOR_DIV i32', 'FLOOR_DIV', {(randn(100) * 10):to 'int32', (tensor.rand(100) * 10 + 1):to 'int32'}, nil, {out = {type = 'INT32'}})
case('FLOOR_MOD i32', 'FLOOR_MOD', {(randn(100) * 10):to 'int32', (tensor.rand(100) * 10 + 1):to 'int32'}, nil, {out = {type = 'INT32'}})
case('DIV i32', 'DIV', {(randn(100) * 10):to 'int32', (tensor.rand(100) * 10 + 1):to 'int32'}, {}, {out = {type = 'INT32'}})
case('RANK', 'RANK', {randn(2, 3)}, nil, {out = {type = 'INT32'}})
case('LOGICAL_AND', 'LOGICAL_AND', {randn(20):gt(0), randn(20):gt(0)}, nil, {out = {type = 'BOOL'}})
case('LOGICAL_OR', 'LOGICAL_OR', {randn(20):gt(0), randn(20):gt(0)}, nil, {out = {type = 'BOOL'}})
case('LOGICAL_NOT', 'LOGICAL_NOT', {randn(20):gt(0)}, nil, {out = {type = 'BOOL'}})
case('REDUCE_ANY', 'REDUCE_ANY', {randn(4, 3):gt(0.5), ints(1)}, {}, {out = {type = 'BOOL'}, fixed = {2}})
case('REDUCE_ALL', 'REDUCE_ALL', {randn(4, 3):gt(-0.5), ints(1)}, {}, {out = {type = 'BOOL'}, fixed = {2}})
case('ZEROS_LIKE', 'ZEROS_LIKE', {randn(4, 3)}, nil, {out = {}})
case('EMBEDDING_LOOKUP', 'EMBEDDING_LOOKUP', {ints(2, 0), randn(4, 3)}, nil, {out = {}, fixed = {2}})

return cases
