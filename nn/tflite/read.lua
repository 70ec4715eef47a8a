-- SPDX-License-Identifier: MIT
-- graph.load of TFLite, as of ONNX (nn/onnx/read.lua): the model becomes a module whose forward applies its ops, and which graph.trace
-- runs with inputs that have no values, for batches of 1, 2 and 3. Nothing is recorded of ops on known values, except where the sizes of
-- what they make come from the inputs' (`dynamic`). Codes stay codes: the recorded ops are those of a quantized graph.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local file = internal.import 'nn/tflite/file'
local layout = internal.import 'nn/tflite/layout'
local module = internal.import 'nn/base/module'
local node = internal.import 'nn/tflite/node'
local pass = internal.import 'nn/graph/pass'
local trace = internal.import 'nn/graph/trace'
local fail = base.fail

---------------------------------------------------------------- ops

local registry

local function handlers()
	if registry then return registry end
	registry = {}
	for _, path in ipairs(internal.registry 'nn/tflite/ops') do
		local entry = internal.import(path)
		for name, f in next, entry.ops or entry do registry[name] = f end
	end
	return registry
end

-- BuiltinOperator, from 0.
local NAMES = {}
do
	local names = [[ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED
		HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6
		RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD
		UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE
		BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2
		GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW
		ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE
		FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE
		RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND
		SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS
		HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS
		RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX
		UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT]]
	local i = 0
	for name in names:gmatch '%S+' do NAMES[i], i = name, i + 1 end
end

-- The name of an op. Files of before 2020 have the number in the byte `deprecated`.
local function name_of(f, op)
	local code = f:at(f.model.codes, op.code or 0, 'operator codes')
	local number = math.max(code.builtin or 0, code.deprecated or 0)
	if number == 32 then return 'CUSTOM:' .. (code.custom or '') end
	return NAMES[number] or ('OP_%d'):format(number)
end

-- Names of the file as names of nodes: of a list of joined layers the first.
local function clean(name)
	name = (name or ''):gsub(';.*$', ''):gsub('[^%w_.]', '_'):gsub('^%.', '_')
	return name == '' and '_' or name:sub(1, 200)
end

-- Lists the ops that there are not, with how many there are.
local function check_ops(f)
	local all, order, count = handlers(), {}, {}
	for _, op in ipairs(f.graph.ops or {}) do
		local name = name_of(f, op)
		op.name = name
		if not all[name] then
			if not count[name] then order[#order + 1] = name end
			count[name] = (count[name] or 0) + 1
		end
	end
	if #order == 0 then return end
	for i, name in ipairs(order) do order[i] = ('%.60s (%d node%s)'):format(name, count[name], count[name] == 1 and '' or 's') end
	f:fail("wanted ops that Quoll has (help 'tflite' lists them), got %s", table.concat(order, ', '))
end

---------------------------------------------------------------- values

-- Codes of elements as a quantized tensor.
local function codes_of(f, t, elements, scales)
	local rank, sizes = elements:dim(), {}
	local dtype = f:dtype(t)
	local scale, zero = tensor(scales.scale), tensor(scales.zero)
	for i = 1, rank do sizes[i] = scales.several and i == scales.axis + 1 and #scales.scale or 1 end
	local function along(x) return rank == 0 and x:sum() or x:to 'float64':view(table.unpack(sizes)) end
	local values = (elements:to 'float64' - along(zero)) * along(scale)
	local shifted = dtype:find '^u' ~= nil
	for _, z in ipairs(scales.zero) do shifted = shifted or z ~= 0 end
	return values:to 'float32':quantize {dtype = dtype, axis = scales.several and scales.axis + 1 or nil,
		scale = scales.several and scale or scales.scale[1], scheme = shifted and 'asymmetric' or 'symmetric',
		zero_point = shifted and (scales.several and zero:to(dtype) or scales.zero[1]) or nil}
end

-- The name of a constant. Converters give a bias the name of the layer, which is for its op.
local function name_of_constant(f, t)
	if not f.taken then
		f.taken = {}
		for _, op in ipairs(f.graph.ops or {}) do
			for _, index in ipairs(op.outputs or {}) do f.taken[clean(f:tensor(index).name)] = true end
		end
	end
	local name = clean(t.name)
	return f.taken[name] and name .. (#(t.shape or {}) < 2 and '.bias' or '.weight') or name
end

-- The value of a constant: read once, for all batches.
local function constant(f, index)
	local made = f.constants[index]
	if made == nil then
		local t, before = f:tensor(index), internal.record(nil)
		local elements = f:elements(t)
		made = elements and {plain = elements, elements = elements, name = name_of_constant(f, t)} or false
		local scales = elements and f:coded(t)
		if scales then made.plain = codes_of(f, t, elements, scales) end
		internal.record(before)
		f.constants[index] = made
	end
	return made or nil
end

local machine = {}
machine.__index = machine

function machine:find(index, what)
	local v = self.values[index] or constant(self.file, index)
	if v then return v end
	local t = self.file:tensor(index)
	if t.variable then -- states that are no inputs begin with zeros
		local sizes = table.move(t.shape or {}, 1, #(t.shape or {}), 1, {dtype = 'float32'})
		v = {plain = tensor.zeros(sizes), variable = true}
		return v
	end
	self.file:fail("%s: wanted a tensor that is computed before, got %s", what, self.file:label(t))
end

---------------------------------------------------------------- running nodes

local SIZED = {FILL = true, BROADCAST_TO = true, TILE = true, ZEROS_LIKE = true, RANGE = true}
local QUIET = {SHAPE = true, RANK = true}

-- Of the inputs: whether all are known; whether a call is to be recorded all the same.
local function look(n)
	local known, recorded, dynamic = true, false, QUIET[n.op] or false
	for i = 1, n.count do
		local v = n.inputs[i]
		if v then
			known = known and node.is_known(v)
			recorded = recorded or v.recorded or SIZED[n.op] and v.dynamic
			dynamic = dynamic or v.dynamic
		end
	end
	return QUIET[n.op] or known and not recorded, dynamic
end

-- The results of a handler; an error of an op that it called names the node.
local function checked(n, results)
	if results[1] then return table.pack(table.unpack(results, 2, results.n)) end
	local message = tostring(results[2]):gsub('^[^%s:]*:%d+: ', '')
	if message:find "^load: '" then base.fail('%s', message) end
	n:fail('%s', message)
end

local function apply(n, handler)
	if n.file.kept[n.from] then return n.file.kept[n.from] end
	local quiet, dynamic = look(n)
	local tracer, scope, before = module.tracer, module.tracer.scope, nil
	if quiet then
		before = internal.record(nil)
	else
		tracer.scope = {path = n.name, class = {name = n.op}, module = {}, call = 1, nodes = {}, leaf = true}
	end
	local results = table.pack(pcall(handler, n))
	if quiet then internal.record(before) else tracer.scope = scope end
	results = checked(n, results)
	if quiet and not dynamic then n.file.kept[n.from] = results end -- the same for every batch
	for i = 1, results.n do
		local y = results[i]
		local v = base.is_tensor(y) and {plain = y} or y
		if v then
			local known = node.is_known(v)
			v.dynamic, v.recorded = known and dynamic, known and not quiet
			results[i] = v
		end
	end
	return results
end

function machine:call(op)
	local f = self.file
	local n = setmetatable({op = op.name, file = f, options = op.options or {}, inputs = {}, tensors = {}, outputs = {}, count = #(op.inputs or {}),
		from = op, machine = self}, node)
	for i, index in ipairs(op.outputs or {}) do n.outputs[i] = f:tensor(index) end
	n.name = clean(n.outputs[1] and n.outputs[1].name)
	if #n.outputs == 0 then n:fail 'wanted at least one output, got none' end
	for i, index in ipairs(op.inputs or {}) do
		if index ~= -1 then n.inputs[i], n.tensors[i] = self:find(index, ("node '%s' (%s): input %d"):format(n.name, n.op, i)), f:tensor(index) end
	end
	local results = apply(n, handlers()[op.name])
	for i, index in ipairs(op.outputs or {}) do
		if results[i] then self.values[index] = results[i] end
	end
end

---------------------------------------------------------------- inputs

local function apply_sizes(input, sizes)
	if type(sizes) ~= 'table' then fail("load: inputs: '%s': wanted a list of sizes or a tensor, got %s", input.name, base.describe(sizes)) end
	if #sizes ~= #input.dims then fail("load: inputs: '%s': wanted %d sizes, got %d", input.name, #input.dims, #sizes) end
	for i, given in ipairs(sizes) do
		local n = math.tointeger(given)
		if given == 'B' or n == 0 then
			input.dims[i] = 'B'
		elseif n and n > 0 then
			input.dims[i] = n
		else
			fail("load: inputs: '%s': axis %d: wanted a size or 'B', got %s", input.name, i, tostring(given))
		end
	end
end

-- Sizes of an input; -1: any.
local function dims_of(f, t)
	local dims = {}
	for i, size in ipairs(t.shape or {}) do
		local signature = t.signature and t.signature[i] or size
		dims[i] = signature < 0 and -1 or size
	end
	if #dims > 0 and dims[1] == -1 then dims[1] = 'B' end
	if t.signature and #t.signature ~= #dims then f:fail('%s: wanted a signature of %d sizes, got %d', f:label(t), #dims, #t.signature) end
	return dims
end

local function place_batch(f, input)
	input.axis, input.shape = false, {}
	for i, dim in ipairs(input.dims) do
		if dim == 'B' and not input.axis then
			input.axis, input.shape[i] = i, 1
		elseif dim == 'B' or dim < 0 then
			f:fail("input '%s': axis %d: wanted its size, as in graph.load{file, inputs={%s={…}}}, got none", input.name, i, input.name)
		else
			input.shape[i] = dim
		end
	end
end

local function spec_of(f, t)
	local outer = setmetatable({file = f, outputs = {t}, op = 'input', name = t.name or ''}, node)
	return outer:spec()
end

-- The variables that ops have as inputs, as inputs and outputs of the graph; the first axis is the batch where that of an input is.
local function read_states(f, list, taken)
	local batch, seen = false, {}
	f.states = {}
	for _, input in ipairs(list) do batch = batch or input.axis == 1 end
	for _, op in ipairs(f.graph.ops or {}) do
		for _, index in ipairs(op.inputs or {}) do
			local t = index ~= -1 and f:tensor(index)
			if t and t.variable and not seen[index] then
				local input = {name = clean(t.name), dims = table.move(t.shape or {}, 1, #(t.shape or {}), 1, {}), dtype = f:dtype(t), spec = spec_of(f, t), index = index}
				if taken[input.name] then f:fail("inputs: wanted different names, got '%s' twice", input.name) end
				seen[index], taken[input.name] = true, true
				if batch and input.dims[1] == 1 then input.dims[1] = 'B' end
				place_batch(f, input)
				setmetatable({file = f, op = 'input', name = input.name}, node):bounded(input.shape)
				list[#list + 1], f.states[#f.states + 1] = input, index
			end
		end
	end
end

local function read_inputs(f, o)
	local list, taken = {}, {}
	for _, index in ipairs(f.graph.inputs or {}) do
		local t = f:tensor(index)
		local input = {name = clean(t.name), dims = dims_of(f, t), dtype = f:dtype(t), spec = spec_of(f, t), index = index}
		local given = o.inputs and (o.inputs[t.name or ''] or o.inputs[input.name])
		if taken[input.name] then f:fail("inputs: wanted different names, got '%s' twice", input.name) end
		taken[input.name], taken[t.name or ''] = true, true
		if base.is_tensor(given) then
			f.fixed[index] = {plain = given, elements = given, name = input.name}
		else
			if given then apply_sizes(input, given) end
			place_batch(f, input)
			setmetatable({file = f, op = 'input', name = input.name}, node):bounded(input.shape)
			list[#list + 1] = input
		end
	end
	if o.states then read_states(f, list, taken) end
	for name in next, o.inputs or {} do
		if not taken[name] then
			local names = {}
			for i, input in ipairs(list) do names[i] = input.name end
			fail("load: inputs: wanted one of %s, got '%s'", table.concat(names, ' '), tostring(name))
		end
	end
	return list
end

---------------------------------------------------------------- the whole

local function forward_of(f, inputs)
	return function(_, ...)
		local m = setmetatable({file = f, values = {}}, machine)
		for index, v in next, f.fixed do m.values[index] = v end
		for i, input in ipairs(inputs) do m.values[input.index] = {plain = (select(i, ...))} end
		for _, op in ipairs(f.graph.ops or {}) do m:call(op) end
		local results = {}
		for i, index in ipairs(f.graph.outputs or {}) do results[i] = layout.plain(m:find(index, 'outputs')) end
		local count = #(f.graph.outputs or {})
		for i, index in ipairs(f.states or {}) do results[count + i] = layout.plain(m:find(index, 'states')) end
		return table.unpack(results, 1, count + #(f.states or {}))
	end
end

local function load(path, o)
	local f = file.open(path)
	f.constants, f.fixed, f.kept = {}, {}, {}
	check_ops(f)
	if #(f.graph.outputs or {}) == 0 then f:fail 'outputs: wanted at least one, got none' end
	local inputs = read_inputs(f, o)
	local m = nn.module(forward_of(f, inputs), {})
	return pass.run(trace.abstract(m, inputs, true), {'fold'}, {}, nil, true)
end

-- Names of the ops that there are.
local function names()
	local list = {}
	for name in next, handlers() do list[#list + 1] = name end
	table.sort(list)
	return list
end

return {load = load, names = names}
