-- SPDX-License-Identifier: MIT
-- TFLite files for tests, written by hand: tflite.bytes{tensors=, ops=, inputs=, outputs=} is a model; positions count from 1 here.
--   a tensor: {name=, shape=, type='INT8', data=tensor, scale={…}, zero={…}, axis=, signature=, variable=true}
--   an op: {'ADD', {1, 2}, {3}, {act=1}, intermediates}; an input that is not given: 0
--   tflite.run(op, {x, w}, options, {fixed={2}, out={type=, shape=, scale=, zero=}}) runs a model of that op; inputs of `fixed` are constants
local tflite = {}

local TYPES = {FLOAT32 = 0, FLOAT16 = 1, INT32 = 2, UINT8 = 3, INT64 = 4, STRING = 5, BOOL = 6, INT16 = 7, INT8 = 9, FLOAT64 = 10}
local PACK = {FLOAT32 = '<f', INT32 = '<i4', UINT8 = 'B', INT64 = '<i8', BOOL = 'B', INT16 = '<i2', INT8 = 'b', FLOAT64 = '<d'}
local OF = {float32 = 'FLOAT32', uint8 = 'UINT8', int8 = 'INT8', int16 = 'INT16', int32 = 'INT32', int64 = 'INT64', bool = 'BOOL', float64 = 'FLOAT64'}

---------------------------------------------------------------- FlatBuffers

local SIZES = {i8 = 1, u8 = 1, bool = 1, i32 = 4, u32 = 4, f32 = 4, i64 = 8}
local FORMATS = {i8 = 'b', u8 = 'B', bool = 'B', i32 = '<i4', u32 = '<I4', f32 = '<f', i64 = '<i8'}

local writer = {}
writer.__index = writer

function writer:put(s)
	for i = 1, #s do self[#self + 1] = s:byte(i) end
end

function writer:align(n, ahead)
	while (#self + (ahead or 0)) % n ~= 0 do self[#self + 1] = 0 end
end

-- Stores at byte `from` the distance to `to`.
function writer:link(from, to)
	local bytes = ('<I4'):pack(to - from)
	for i = 1, 4 do self[from + i] = bytes:byte(i) end
end

local function is_inline(kind) return SIZES[kind] ~= nil end

-- A table {[slot] = {kind, value}}; returns its place. Kinds: those of SIZES, text, bytes, table, tables, and vectors of numbers ('[i32]').
function writer:table(fields)
	local most, place, size = -1, {}, 4
	for slot in pairs(fields) do most = math.max(most, slot) end
	for slot = 0, most do
		local f = fields[slot]
		if f then
			local bytes = is_inline(f[1]) and SIZES[f[1]] or 4
			size = (size + bytes - 1) // bytes * bytes
			place[slot], size = size, size + bytes
		end
	end
	self:align(2)
	self:align(8, 4 + 2 * (most + 1))
	local vtable = #self
	self:put(('<I2I2'):pack(4 + 2 * (most + 1), size))
	for slot = 0, most do self:put(('<I2'):pack(place[slot] or 0)) end
	local at = #self
	self:put(('<i4'):pack(at - vtable))
	for _ = 5, size do self[#self + 1] = 0 end
	for slot = 0, most do
		local f = fields[slot]
		if f and is_inline(f[1]) then
			local bytes = FORMATS[f[1]]:pack(f[2])
			for i = 1, #bytes do self[at + place[slot] + i] = bytes:byte(i) end
		elseif f then
			local from = at + place[slot]
			self:link(from, self:child(f[1], f[2]))
		end
	end
	return at
end

function writer:child(kind, value)
	if kind == 'table' then return self:table(value) end
	if kind == 'text' or kind == 'bytes' then
		self:align(16, 4)
		local at = #self
		self:put(('<I4'):pack(#value) .. value .. '\0')
		return at
	end
	local inner = kind:match '^%[(.*)%]$'
	self:align(8, 4)
	local at = #self
	self:put(('<I4'):pack(#value))
	if inner then
		for _, x in ipairs(value) do self:put(FORMATS[inner]:pack(x)) end
		return at
	end
	self:put(('\0'):rep(4 * #value)) -- tables
	for i, fields in ipairs(value) do
		local from = at + 4 * i
		self:link(from, self:table(fields))
	end
	return at
end

-- The file of a root table.
function tflite.flatbuffer(fields, identifier)
	local w = setmetatable({}, writer)
	w:put('\0\0\0\0' .. (identifier or 'TFL3'))
	w:link(0, w:table(fields))
	local parts = {}
	for i = 1, #w, 4096 do parts[#parts + 1] = string.char(table.unpack(w, i, math.min(#w, i + 4095))) end
	return table.concat(parts)
end

---------------------------------------------------------------- models

local OPS = {}
do
	local text = [[ADD 0 AVERAGE_POOL_2D 1 CONCATENATION 2 CONV_2D 3 DEPTHWISE_CONV_2D 4 DEPTH_TO_SPACE 5 DEQUANTIZE 6 EMBEDDING_LOOKUP 7 FLOOR 8
		FULLY_CONNECTED 9 L2_NORMALIZATION 11 LOCAL_RESPONSE_NORMALIZATION 13 LOGISTIC 14 MAX_POOL_2D 17 MUL 18 RELU 19 RELU_N1_TO_1 20 RELU6 21 RESHAPE 22 RESIZE_BILINEAR 23 SOFTMAX 25
		SPACE_TO_DEPTH 26 SVDF 27 TANH 28 CUSTOM 32 PAD 34 GATHER 36 BATCH_TO_SPACE_ND 37 SPACE_TO_BATCH_ND 38 TRANSPOSE 39 MEAN 40 SUB 41 DIV 42 SQUEEZE 43
		UNIDIRECTIONAL_SEQUENCE_LSTM 44 STRIDED_SLICE 45 EXP 47 SPLIT 49 LOG_SOFTMAX 50 CAST 53 PRELU 54 MAXIMUM 55 ARG_MAX 56 MINIMUM 57 LESS 58 NEG 59
		PADV2 60 GREATER 61 GREATER_EQUAL 62 LESS_EQUAL 63 SELECT 64 SLICE 65 SIN 66 TRANSPOSE_CONV 67 TILE 69 EXPAND_DIMS 70 EQUAL 71 NOT_EQUAL 72 LOG 73
		SUM 74 SQRT 75 RSQRT 76 SHAPE 77 POW 78 ARG_MIN 79 REDUCE_PROD 81 REDUCE_MAX 82 PACK 83 LOGICAL_OR 84 LOGICAL_AND 86 LOGICAL_NOT 87 UNPACK 88
		REDUCE_MIN 89 FLOOR_DIV 90 REDUCE_ANY 91 SQUARE 92 ZEROS_LIKE 93 FILL 94 FLOOR_MOD 95 RANGE 96 RESIZE_NEAREST_NEIGHBOR 97 LEAKY_RELU 98
		SQUARED_DIFFERENCE 99 MIRROR_PAD 100 ABS 101 SPLIT_V 102 CEIL 104 REVERSE_V2 105 ADD_N 106 GATHER_ND 107 COS 108 WHERE 109 RANK 110 ELU 111
		QUANTIZE 114 ROUND 116 HARD_SWISH 117 SELECT_V2 123 BATCH_MATMUL 126 BROADCAST_TO 130 REDUCE_ALL 140 GELU 150 SIGN 158]]
	for name, number in text:gmatch '(%S+)%s+(%d+)' do OPS[name] = tonumber(number) end
end

-- Options of ops: number of the table, then its fields by slot.
local conv = {1, padding = {0, 'i8'}, stride_w = {1, 'i32'}, stride_h = {2, 'i32'}, act = {3, 'i8'}, dilation_w = {4, 'i32'}, dilation_h = {5, 'i32'}}
local pool = {5, padding = {0, 'i8'}, stride_w = {1, 'i32'}, stride_h = {2, 'i32'}, filter_w = {3, 'i32'}, filter_h = {4, 'i32'}, act = {5, 'i8'}}
local keep = {27, keep = {0, 'bool'}}
local OPTIONS = {CONV_2D = conv, AVERAGE_POOL_2D = pool, MAX_POOL_2D = pool,
	DEPTHWISE_CONV_2D = {2, padding = {0, 'i8'}, stride_w = {1, 'i32'}, stride_h = {2, 'i32'}, multiplier = {3, 'i32'}, act = {4, 'i8'},
		dilation_w = {5, 'i32'}, dilation_h = {6, 'i32'}},
	TRANSPOSE_CONV = {49, padding = {0, 'i8'}, stride_w = {1, 'i32'}, stride_h = {2, 'i32'}, act = {3, 'i8'}},
	SVDF = {6, rank = {0, 'i32'}, act = {1, 'i8'}}, FULLY_CONNECTED = {8, act = {0, 'i8'}, format = {1, 'i8'}, keep = {2, 'bool'}},
	SOFTMAX = {9, beta = {0, 'f32'}}, CONCATENATION = {10, axis = {0, 'i32'}, act = {1, 'i8'}}, ADD = {11, act = {0, 'i8'}},
	LOCAL_RESPONSE_NORMALIZATION = {13, radius = {0, 'i32'}, bias = {1, 'f32'}, alpha = {2, 'f32'}, beta = {3, 'f32'}},
	L2_NORMALIZATION = {12, act = {0, 'i8'}}, RESIZE_BILINEAR = {15, corners = {2, 'bool'}, half = {3, 'bool'}},
	RESIZE_NEAREST_NEIGHBOR = {74, corners = {0, 'bool'}, half = {1, 'bool'}}, RESHAPE = {17, shape = {0, '[i32]'}},
	DEPTH_TO_SPACE = {94, block = {0, 'i32'}}, SPACE_TO_DEPTH = {19, block = {0, 'i32'}}, MUL = {21, act = {0, 'i8'}},
	GATHER = {23, axis = {0, 'i32'}, batch = {1, 'i32'}}, MEAN = keep, SUM = keep, REDUCE_MAX = keep, REDUCE_MIN = keep, REDUCE_PROD = keep, REDUCE_ANY = keep,
	SUB = {28, act = {0, 'i8'}}, DIV = {29, act = {0, 'i8'}}, SQUEEZE = {30, axes = {0, '[i32]'}},
	STRIDED_SLICE = {32, begin_mask = {0, 'i32'}, end_mask = {1, 'i32'}, ellipsis_mask = {2, 'i32'}, new_axis_mask = {3, 'i32'}, shrink_axis_mask = {4, 'i32'},
		offset = {5, 'bool'}},
	SPLIT = {35, count = {0, 'i32'}}, CAST = {37, from = {0, 'i8'}, to = {1, 'i8'}}, SHAPE = {55, type = {0, 'i8'}}, ARG_MAX = {40, type = {0, 'i8'}},
	ARG_MIN = {57, type = {0, 'i8'}}, PACK = {59, count = {0, 'i32'}, axis = {1, 'i32'}}, UNPACK = {64, count = {0, 'i32'}, axis = {1, 'i32'}},
	UNIDIRECTIONAL_SEQUENCE_LSTM = {71, act = {0, 'i8'}, cell_clip = {1, 'f32'}, projection_clip = {2, 'f32'}, time_major = {3, 'bool'}},
	LEAKY_RELU = {75, alpha = {0, 'f32'}}, MIRROR_PAD = {77, mode = {0, 'i8'}}, SPLIT_V = {79, count = {0, 'i32'}},
	BATCH_MATMUL = {101, adjoint_x = {0, 'bool'}, adjoint_y = {1, 'bool'}}, GELU = {116, approximate = {0, 'bool'}}}

local function numbers(t, type)
	local flat, parts = t:dim() == 0 and {t:item()} or t:nelem() == 0 and {} or t:contiguous():view(-1):totable(), {}
	for i, x in ipairs(flat) do
		if x == true or x == false then x = x and 1 or 0 end
		parts[i] = PACK[type]:pack(type:find 'INT' and math.tointeger(x) or x)
	end
	return table.concat(parts)
end

local function zeros(n)
	local list = {}
	for i = 1, n do list[i] = 0 end
	return list
end

local function tensor_of(t, buffer)
	local fields = {[0] = {'[i32]', t.shape}, {'i8', type(t.type) == 'number' and t.type or TYPES[t.type]}, {'u32', buffer}, {'text', t.name}}
	if t.scale then
		fields[4] = {'table', {[2] = {'[f32]', t.scale}, [3] = {'[i64]', t.zero or zeros(#t.scale)}, [6] = {'i32', t.axis or 0}}}
	end
	if t.variable then fields[5] = {'bool', 1} end
	if t.signature then fields[7] = {'[i32]', t.signature} end
	return fields
end

local function options_of(name, options)
	local known, fields = OPTIONS[name], {}
	if not known then return nil end
	for key, value in pairs(options or {}) do
		local slot = assert(known[key], key)
		fields[slot[1]] = {slot[2], value == true and 1 or value == false and 0 or value}
	end
	return known[1], fields
end

local function each(list, shift)
	local made = {}
	for i, index in ipairs(list) do made[i] = index + shift end
	return made
end

-- The root table of a model, to be changed before it is written.
function tflite.model(m)
	local codes, known, buffers, tensors, ops = {}, {}, {{}}, {}, {}
	for i, t in ipairs(m.tensors) do
		local bytes = t.bytes or t.data and numbers(t.data, t.type)
		buffers[#buffers + 1] = bytes and {[0] = {'bytes', bytes}} or {}
		tensors[i] = tensor_of(t, #buffers - 1)
	end
	for i, op in ipairs(m.ops) do
		local name = op[1]
		if not known[name] then
			local number = assert(OPS[name] or tonumber(name), name)
			codes[#codes + 1] = {[0] = {'i8', math.min(number, 127)}, [1] = op.custom and {'text', op.custom} or nil, [2] = {'i32', 1},
				[3] = not m.old and {'i32', number} or nil}
			known[name] = #codes - 1
		end
		ops[i] = {[0] = {'u32', known[name]}, {'[i32]', each(op[2], -1)}, {'[i32]', each(op[3], -1)}}
		local number, fields = options_of(name, op[4])
		if number then ops[i][3], ops[i][4] = {'u8', number}, {'table', fields} end
		if op[5] then ops[i][8] = {'[i32]', each(op[5], -1)} end
	end
	local graph = {[0] = {'tables', tensors}, {'[i32]', each(m.inputs, -1)}, {'[i32]', each(m.outputs, -1)}, {'tables', ops}, {'text', 'main'}}
	return {[0] = {'u32', 3}, {'tables', codes}, {'tables', {graph}}, {'text', 'test'}, {'tables', buffers}}
end

function tflite.bytes(m) return tflite.flatbuffer(tflite.model(m)) end

---------------------------------------------------------------- running

function tflite.file(m)
	local path = os.tmpname()
	local out <close> = assert(io.open(path, 'wb'))
	out:write(type(m) == 'string' and m or tflite.bytes(m))
	return path
end

-- The graph of a model; the file is gone.
function tflite.load(m, o)
	local path = tflite.file(m)
	local given = {path}
	for key, item in next, o or {} do given[key] = item end
	local results = table.pack(pcall(graph.load, given))
	os.remove(path)
	if not results[1] then error(results[2], 0) end
	return table.unpack(results, 2, results.n)
end

-- The description of a tensor with these values: codes have one scale.
function tflite.of(x, name, is_constant)
	local t = {name = name, shape = {x:size()}, type = OF[x:dtype()]}
	local p = x:quantized() and x:qparams()
	if p then
		t.scale, t.zero, t.axis = p.scale:view(-1):totable(), p.zero_point and p.zero_point:view(-1):totable() or nil, p.axis and p.axis - 1
		for i, z in ipairs(t.zero or {}) do t.zero[i] = math.tointeger(z) end
	end
	if is_constant then t.data = p and x:codes() or x end
	return t
end

-- The model of one op; out: a description, or a list of them.
function tflite.single(op, inputs, options, o)
	o = o or {}
	local m = {tensors = {}, ops = {}, inputs = {}, outputs = {}, old = o.old}
	local places, fixed, given = {}, {}, {}
	for _, i in ipairs(o.fixed or {}) do fixed[i] = true end
	for i = 1, #inputs do
		local x = inputs[i]
		places[i] = 0
		if x then
			m.tensors[#m.tensors + 1] = tflite.of(x, 'x' .. i, fixed[i])
			places[i] = #m.tensors
			if not fixed[i] then m.inputs[#m.inputs + 1], given[#given + 1] = #m.tensors, x end
		end
	end
	local outs = o.out and (o.out[1] and o.out or {o.out}) or {{}}
	for i, out in ipairs(outs) do
		m.tensors[#m.tensors + 1] = {name = 'y' .. i, shape = out.shape or {}, type = out.type or 'FLOAT32', scale = out.scale and {out.scale}, zero = out.zero and {out.zero}}
		m.outputs[i] = #m.tensors
	end
	m.ops[1] = {op, places, m.outputs, options}
	return m, given
end

function tflite.run(op, inputs, options, o)
	local m, given = tflite.single(op, inputs, options, o)
	local g = tflite.load(m)
	return g:run(#given == 1 and given[1] or given)
end

-- Whether a result has these values (nested lists or numbers) within the tolerance.
function tflite.equal(y, want, tolerance)
	want = type(want) == 'userdata' and want or tensor(want)
	if y:quantized() and not want:quantized() then y = y:codes() end
	assert(y:dim() == want:dim(), ('%d axes for %d'):format(y:dim(), want:dim()))
	for i = 1, y:dim() do assert(y:size(i) == want:size(i), ('axis %d: %d for %d'):format(i, y:size(i), want:size(i))) end
	local error = (y:to 'float64' - want:to 'float64'):abs()
	assert(y:nelem() == 0 or error:max():item() <= (tolerance or 1e-5), y)
	return true
end

return tflite
