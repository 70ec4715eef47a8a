-- SPDX-License-Identifier: MIT
-- graph.load of ONNX. The model becomes a module whose forward applies the ops of its nodes, and which graph.trace runs with inputs that
-- have no values, for batches of 1, 2 and 3. So sizes are numbers, what depends on them only is computed, and what remains in the
-- record are the ops of the graph. Nothing is recorded of ops on known values, except where the sizes of what they make come from the
-- inputs' (`dynamic`): such sizes may grow with the batch.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local file = internal.import 'nn/onnx/file'
local handlers = internal.import 'nn/onnx/handlers'
local node = internal.import 'nn/onnx/node'
local trace = internal.import 'nn/graph/trace'
local module = internal.import 'nn/base/module'
local pass = internal.import 'nn/graph/pass'
local quantize = internal.import 'nn/graph/quantize'
local report = internal.import 'interp/prelude/report'
local fail = base.fail

local OLDEST, NEWEST = 7, 28
local DEEPEST = 32 -- graphs in graphs, and functions that call functions
local MOST_CALLED = 1 << 16 -- nodes in calls of functions, which may call others several times
local LARGEST = 1 << 40 -- elements of an input

---------------------------------------------------------------- ops

local function domain_of(name) return name == nil and '' or name == 'ai.onnx' and '' or name end
local function key_of(n) return domain_of(n.domain) .. ':' .. (n.op_type or '') end

---------------------------------------------------------------- what is missing

-- Calls each(node) for all nodes, also of inner graphs and functions.
local function each_node(f, each)
	local function walk(nodes, depth)
		if depth > DEEPEST then f:fail('graphs: wanted at most %d within each other, got more', DEEPEST) end
		for _, n in ipairs(nodes or {}) do
			each(n)
			for _, a in ipairs(n.attribute or {}) do
				if a.g then walk(a.g.node, depth + 1) end
			end
		end
	end
	walk(f.model.graph.node, 1)
	for _, called in ipairs(f.model.functions or {}) do walk(called.node, 1) end
end

local function functions_of(f)
	local functions = {}
	for _, called in ipairs(f.model.functions or {}) do
		functions[domain_of(called.domain) .. ':' .. (called.name or '')] = called
	end
	return functions
end

local function versions_of(f, imports)
	local versions = {}
	for _, import in ipairs(imports or {}) do versions[domain_of(import.domain)] = import.version or 1 end
	local own = versions['']
	if own and (own < OLDEST or own > NEWEST) then f:fail('opset: wanted %d to %d, got %d', OLDEST, NEWEST, own) end
	return versions
end

local OPTIMIZED = {['com.microsoft'] = true, ['com.microsoft.nchwc'] = true, ['com.ms.internal.nhwc'] = true}

-- Lists the ops that there are not, with a node of each and how many there are.
local function check_ops(f)
	local all, order, count, example = handlers.all(), {}, {}, {}
	each_node(f, function(n)
		local key = key_of(n)
		if domain_of(n.domain) == '' and not f.versions[''] then f:fail 'opset_import: wanted the version of the ops, got none' end
		if all[key] or f.functions[key] then return end
		if not count[key] then order[#order + 1], example[key] = key, n end
		count[key] = (count[key] or 0) + 1
	end)
	if #order == 0 then return end
	local lines, fused = {}, ''
	for i, key in ipairs(order) do
		local domain, op = key:match '^(.-):(.*)$'
		if OPTIMIZED[domain] then fused = "; those of onnxruntime's optimizer are not in a model that is saved without optimization" end
		lines[i] = ("%s%s (%d node%s, '%.60s')"):format(domain == '' and '' or domain .. '.', op, count[key], count[key] == 1 and '' or 's',
			example[key].name or '')
	end
	f:fail("wanted ops that Quoll has (help 'onnx' lists them), got opset %s with %s", tostring(f.versions[''] or '?'),
		table.concat(lines, ', ') .. fused)
end

-- A name is given once in a graph or function.
local function check_names(f)
	local one
	local function take(taken, name)
		if name and name ~= '' and taken[name] then f:fail("names: wanted each value once, got '%.80s' twice", name) end
		taken[name or ''] = true
	end
	function one(nodes, taken)
		for _, n in ipairs(nodes or {}) do
			for _, name in ipairs(n.output or {}) do take(taken, name) end
			for _, a in ipairs(n.attribute or {}) do
				if a.g then one(a.g.node, {}) end
			end
		end
	end
	local taken = {}
	for _, value in ipairs(f.model.graph.input or {}) do take(taken, value.name) end
	for name in next, f.initializers do taken[name] = true end -- which may be inputs, too
	one(f.model.graph.node, taken)
	for _, called in ipairs(f.model.functions or {}) do
		taken = {}
		for _, name in ipairs(called.input or {}) do take(taken, name) end
		one(called.node, taken)
	end
end

---------------------------------------------------------------- names

-- Names of the file as names of nodes: /model/fc1/Gemm is model.fc1.Gemm.
local function clean(name)
	if not name:find '^%.' and not name:find '[^%w_.]' then return name == '' and '_' or name end
	name = name:gsub('^/', ''):gsub('/', '.'):gsub('[^%w_.]', '_'):gsub('^%.', '_')
	return name == '' and '_' or name
end

-- The same, once for each name of a file.
local function named(f, name)
	local made = f.names[name]
	if not made then
		made = clean(name)
		f.names[name] = made
	end
	return made
end

---------------------------------------------------------------- running nodes

local machine = {}
machine.__index = machine

local DEFAULTS = {[1] = 0.0, [2] = 0, [3] = '', [6] = {}, [7] = {}, [8] = {}} -- of types whose default is not written

local function read_attributes(self, n, given)
	local attrs = {}
	for _, a in ipairs(n.attribute or {}) do
		if a.ref_attr_name then
			attrs[a.name or ''] = given and given[a.ref_attr_name]
		elseif a.sparse_tensor or a.tensors or a.graphs or a.tp then
			self.file:fail("node '%s' (%s): attribute '%s': wanted numbers, texts, a tensor or a graph, got another kind", n.name or '', n.op_type,
				a.name or '')
		else
			local value = a.ints or a.floats or a.strings or a.g
			if a.t then value = self:constant(a.t) end
			if value == nil then value = a.i or a.f or a.s end
			if value == nil then value = DEFAULTS[a.type] end
			attrs[a.name or ''] = value
		end
	end
	return attrs
end

-- Of a node outside of functions, whose attributes are those of every batch: read once.
local function attributes(self, n, given)
	if given then return read_attributes(self, n, given) end
	local attrs = self.file.attrs[n]
	if not attrs then
		attrs = read_attributes(self, n)
		self.file.attrs[n] = attrs
	end
	return attrs
end

local FLOAT4 = 23 -- read as float8, which has its numbers

-- A tensor in an attribute: read once.
function machine:constant(t)
	local value = self.file.read[t]
	if not value then
		value = self.file:tensor(t)
		self.file.read[t] = value
		if t.data_type == FLOAT4 then self.file.float4[value] = true end
	end
	return value
end

-- The value of a name in a scope or those around it.
local function find(self, scope, name)
	while scope do
		local value = scope.values[name]
		if value then return value end
		local t = scope.initializers and scope.initializers[name]
		if t then
			value = self:weight(t, name)
			scope.values[name] = value
			return value
		end
		scope = scope.outer
	end
end

-- An initializer, whose node has its name.
function machine:weight(t, name)
	local value = self:constant(t)
	module.tracer.known[internal.identity(value)] = named(self.file, name)
	return value
end

local function all_known(inputs, n)
	for i = 1, n do
		if inputs[i] and not node.known(inputs[i]) then return false end
	end
	return true
end

local SIZED = {ConstantOfShape = true, Expand = true, Tile = true, Range = true, EyeLike = true}
local RECORDED = {DequantizeLinear = true} -- so that weights stay codes

-- Whether a call on known values is to be recorded all the same.
local function must_record(self, n, inputs, count)
	if RECORDED[n.op] and inputs[1] and quant.dtype(inputs[1]:dtype()).bits <= 16 then return true end
	for i = 1, count do
		local x = inputs[i]
		if x and (self.recorded[x] or SIZED[n.op] and self.dynamic[x]) then return true end
	end
	return false
end

local function mark(self, n, inputs, count, outputs, recorded)
	local dynamic = n.op == 'Shape' or n.op == 'Size'
	for i = 1, count do dynamic = dynamic or inputs[i] and self.dynamic[inputs[i]] end
	for i = 1, outputs.n do
		local y = outputs[i]
		if y then
			self.dynamic[y] = dynamic and node.known(y) or nil
			self.recorded[y] = recorded and node.known(y) or nil
		end
	end
end

local DIRECT = {If = true} -- whose nodes are applied one by one

-- What is computed from weights is the same for every batch.
local function keep(self, n, outputs)
	for i = 1, outputs.n do
		local y, name = outputs[i], n.from.output and n.from.output[i]
		if y and self.dynamic[y] then return end
		if y and name then module.tracer.known[internal.identity(y)] = named(self.file, name) end
	end
	local kept = n.scope.kept
	if kept then kept[n.from] = outputs end
end

-- The results of a handler; an error of an op that it called names the node.
local function checked(n, results, inputs)
	if results[1] then return table.pack(table.unpack(results, 2, results.n)) end
	local message = tostring(results[2]):gsub('^[^%s:]*:%d+: ', '')
	if message:find "^load: '" then fail('%s', message) end
	if message:find '^attempt to ' then -- Lua's, where a handler uses an input that is not there
		for i = 1, math.max(1, handlers.inputs[key_of(n.from)]) do
			if not inputs[i] then n:fail('input %d: wanted a value, got none', i) end
		end
	end
	n:fail('%s', message)
end

local CLASSES, NO_MODULE = {}, {} -- of scopes: by op, the same for all

local function apply(self, n, handler, inputs, count)
	local known = all_known(inputs, count)
	local quiet = n.op == 'Shape' or n.op == 'Size' or known and not must_record(self, n, inputs, count)
	local tracer, scope, before = module.tracer, nil, nil
	local kept = quiet and n.scope.kept
	if kept and kept[n.from] then return kept[n.from] end
	if quiet then
		before = internal.record(nil)
	else
		scope = tracer.scope
		CLASSES[n.op] = CLASSES[n.op] or {name = n.op}
		tracer.scope = {path = named(self.file, n.name), class = CLASSES[n.op], module = NO_MODULE, call = 1, nodes = {}, leaf = true}
	end
	local outputs = table.pack(pcall(handler, n, table.unpack(inputs, 1, count)))
	if quiet then internal.record(before) else tracer.scope = scope end
	outputs = checked(n, outputs, inputs)
	if n.of_result and outputs[1] then self.notes[outputs[1]] = n.of_result end
	mark(self, n, inputs, count, outputs, not quiet)
	if quiet then keep(self, n, outputs) end
	return outputs
end

function machine:call(scope, n, given)
	local key = key_of(n)
	local called, handler = self.file.functions[key], handlers.all()[key]
	local inputs, count = {}, #(n.input or {})
	for i, name in ipairs(n.input or {}) do
		if name ~= '' then
			inputs[i] = find(self, scope, name)
			if not inputs[i] then
				self.file:fail("node '%s' (%s): input '%s': wanted a value that is computed before, got none", n.name or '', n.op_type, name)
			end
		end
	end
	local attrs = attributes(self, n, given)
	local outputs
	if called then
		outputs = self:body(called, inputs, attrs)
	else
		local version = scope.versions[domain_of(n.domain)] or self.file.versions[domain_of(n.domain)] or NEWEST
		local name = n.name
		if not name or name == '' then name = n.output and n.output[1] or n.op_type end
		local item = setmetatable({op = n.op_type, name = name, opset = version, attrs = attrs, outputs = #(n.output or {}),
			machine = self, scope = scope, from = n}, node)
		outputs = DIRECT[n.op_type] and table.pack(handler(item, table.unpack(inputs, 1, count))) or apply(self, item, handler, inputs, count)
	end
	for i, name in ipairs(n.output or {}) do
		if name ~= '' and outputs[i] then scope.values[name] = outputs[i] end
	end
end

function machine:run(scope, nodes, given)
	if self.depth > 0 then
		self.called = self.called + #(nodes or {})
		if self.called > MOST_CALLED then self.file:fail('functions and inner graphs: wanted at most %d nodes in all, got more', MOST_CALLED) end
	end
	for _, n in ipairs(nodes or {}) do self:call(scope, n, given) end
end

-- A graph inside of a graph, which sees the values around it; gives its outputs.
function machine:inner(g, outer)
	self.depth = self.depth + 1
	if self.depth > DEEPEST then self.file:fail('graphs: wanted at most %d within each other, got more', DEEPEST) end
	local scope = {values = {}, initializers = {}, outer = outer, versions = outer.versions}
	for _, t in ipairs(g.initializer or {}) do scope.initializers[t.name or ''] = t end
	self:run(scope, g.node)
	self.depth = self.depth - 1
	local outputs = {n = #(g.output or {})}
	for i, output in ipairs(g.output or {}) do outputs[i] = find(self, scope, output.name or '') end
	return outputs
end

-- The body of a function of the model.
function machine:body(called, inputs, attrs)
	self.depth = self.depth + 1
	if self.depth > DEEPEST then self.file:fail('functions: wanted at most %d calls within each other, got more', DEEPEST) end
	local scope = {values = {}, versions = versions_of(self.file, called.opset_import)}
	for i, name in ipairs(called.input or {}) do scope.values[name] = inputs[i] end
	local given = {}
	for _, a in ipairs(called.attribute_proto or {}) do given[a.name or ''] = read_attributes(self, {attribute = {a}})[a.name or ''] end
	for name, value in next, attrs do given[name] = value end
	self:run(scope, called.node, given)
	self.depth = self.depth - 1
	local outputs = {n = #(called.output or {})}
	for i, name in ipairs(called.output or {}) do outputs[i] = scope.values[name] end
	return outputs
end

---------------------------------------------------------------- inputs

-- Sizes of an input: numbers, or names of axes ('' for one without).
local function dims_of(f, value)
	local type = value.type and value.type.tensor_type
	if not type then f:fail("input '%s': wanted a tensor, got another type", value.name or '') end
	local dtype = internal.onnx_dtype(type.elem_type or 0)
	if not dtype then f:fail("input '%s': wanted a type of numbers that Quoll has, got number %d", value.name or '', type.elem_type or 0) end
	if not type.shape then return nil, dtype end
	local dims = {}
	for i, dim in ipairs(type.shape.dim or {}) do dims[i] = dim.value or dim.param or '' end
	return dims, dtype
end

local function apply_sizes(f, input, sizes)
	if type(sizes) ~= 'table' then
		fail("load: inputs: '%s': wanted a list of sizes or a tensor, got %s", input.name, base.describe(sizes))
	end
	if input.dims and #sizes ~= #input.dims then
		fail("load: inputs: '%s': wanted %d sizes, got %d", input.name, #input.dims, #sizes)
	end
	local was = input.dims or {}
	input.dims = {}
	for i, given in ipairs(sizes) do
		local n = math.tointeger(given)
		if given == 'B' or n == 0 then
			input.dims[i] = 'B'
			if type(was[i]) == 'string' and was[i] ~= '' then f.batch = was[i] end -- other axes of that name, too
		elseif n and n > 0 and (type(was[i]) ~= 'number' or was[i] == n) then
			input.dims[i] = n
		else
			fail("load: inputs: '%s': axis %d: wanted %s, got %s", input.name, i, type(was[i]) == 'number' and was[i] or "a size or 'B'", tostring(given))
		end
	end
	return f
end

local function read_inputs(f, o)
	local list, taken = {}, {}
	for _, value in ipairs(f.model.graph.input or {}) do
		if not f.initializers[value.name or ''] then
			local dims, dtype = dims_of(f, value)
			local input = {name = value.name or '', dims = dims, dtype = dtype}
			local given = o.inputs and o.inputs[input.name]
			taken[input.name] = true
			if base.is_tensor(given) then
				f.fixed[input.name] = given
			else
				if given then apply_sizes(f, input, given) end
				if not input.dims then fail("load: inputs: '%s': wanted its sizes, which the file does not say, got none", input.name) end
				list[#list + 1] = input
			end
		end
	end
	for name in next, o.inputs or {} do
		if not taken[name] then
			local names = {}
			for i, input in ipairs(list) do names[i] = input.name end
			fail("load: inputs: wanted one of %s, got '%s'", table.concat(names, ' '), tostring(name))
		end
	end
	return list
end

-- The name of the axes that stay the batch: the only one, or that of the first axis of the first input that has one.
local function batch_name(list)
	local first, only, several
	for _, input in ipairs(list) do
		for i, dim in ipairs(input.dims) do
			if type(dim) == 'string' then
				if dim == 'B' then return 'B' end
				several = several or only and only ~= dim
				only = only or dim
				first = first or i == 1 and dim
			end
		end
	end
	return several and first or only
end

local function place_batch(f, list)
	local batch = batch_name(list)
	for _, input in ipairs(list) do
		input.axis, input.shape = false, {}
		local count = 1
		for i, dim in ipairs(input.dims) do
			if type(dim) == 'number' then
				input.shape[i] = dim
				if dim < 0 or dim > LARGEST or count * dim > LARGEST then
					f:fail("input '%s': axis %d: wanted a size of 0 and up, and at most 2^40 elements, got %d", input.name, i, dim)
				end
				count = math.max(1, count * dim)
			elseif (dim == batch or dim == f.batch) and not input.axis then
				input.axis, input.shape[i] = i, 1
			else
				fail("load: input '%s': axis %d%s: wanted its size, as in graph.load{file, inputs={%s={…}}}, got none", input.name, i,
					dim == '' and '' or (" ('%s')"):format(dim), input.name)
			end
		end
	end
end

---------------------------------------------------------------- the whole

local function forward_of(f, inputs)
	return function(_, ...)
		local m = setmetatable({file = f, depth = 0, called = 0, dynamic = {}, recorded = {}, codes = {}, notes = {}}, machine)
		local scope = {values = {}, initializers = f.initializers, versions = f.versions, kept = f.kept}
		for i, input in ipairs(inputs) do scope.values[input.name] = select(i, ...) end
		local results = {}
		for name, value in next, f.fixed do
			scope.values[name] = value
			module.tracer.known[internal.identity(value)] = named(f, name)
		end
		m:run(scope, f.model.graph.node)
		for i, output in ipairs(f.model.graph.output or {}) do
			results[i] = find(m, scope, output.name or '')
			if not results[i] then f:fail("output '%s': wanted a value that a node computes, got none", output.name or '') end
		end
		return table.unpack(results, 1, #(f.model.graph.output or {}))
	end
end

local function load(path, o)
	local f = file.open(path)
	f.read, f.initializers, f.kept, f.made, f.fixed, f.names, f.attrs, f.float4 = {}, {}, {}, {}, {}, {}, {}, {}
	f.functions, f.versions = functions_of(f), versions_of(f, f.model.opset_import)
	check_ops(f)
	if f.model.graph.sparse_initializer then f:fail 'initializers: wanted dense ones, got sparse ones' end
	for _, t in ipairs(f.model.graph.initializer or {}) do
		if f.initializers[t.name or ''] then f:fail("initializers: wanted each once, got '%.80s' twice", t.name or '') end
		f.initializers[t.name or ''] = t
	end
	check_names(f)
	local inputs = read_inputs(f, o)
	place_batch(f, inputs)
	local m = nn.module(forward_of(f, inputs), {})
	local list = {}
	for i, input in ipairs(inputs) do list[i] = {name = clean(input.name), dtype = input.dtype, shape = input.shape, axis = input.axis} end
	local g = trace.abstract(m, list, true)
	local rows = {columns = {'pass', 'node', 'what'}}
	g = pass.run(g, {'fold', 'layers', 'fuse'}, rows, 'fold', true)
	g = quantize.integers(g, rows, o.bias ~= 'integer')
	if o.report then return g, report(rows) end
	return g
end

return {load = load, clean = clean}
