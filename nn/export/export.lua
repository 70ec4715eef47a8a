-- SPDX-License-Identifier: MIT
-- g:export: a graph as plain C99. The forward pass is a list of calls, one per node; only the functions that are used
-- are written. Values are in one static arena, weights in constant arrays.
--
-- nn/export/ops/<family>.lua (nn/export/ops.def) emits the C of a node with a function emit(e, node), which uses
--   e:input(node, i, layout)   C expression of operand i (a pointer), in the requested layout, and its properties (value_of)
--   e:output(node, layout)     the same for the first result, which is allocated in the arena
--   e:array(name, ctype, values, text)   a constant array; returns its name
--   e:part(name, fields)       an instance of that function template (e:template); returns its name
--   e:call(format, …)          a line of the forward pass
-- Images have channels last (nhwc) between convolutions; e:input converts if the layouts differ.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local core = internal.import 'nn/graph/core'
local grid = internal.import 'nn/export/grid'
local split = internal.import 'nn/export/split'
local layouts = internal.import 'nn/export/layout'
local like = internal.import 'quant/like'
local names = internal.import 'nn/export/names'
local none = internal.import 'nn/export/none'
local ops = internal.import 'nn/graph/ops'
local packed = internal.import 'nn/export/packed'
local parts = internal.import 'nn/export/parts'
local size = internal.import 'nn/graph/size'
local vmath = internal.import 'nn/export/vmath'
local fail = base.fail

local emitters

local function emitter_of(op)
	if not emitters then
		emitters = {}
		for _, file in ipairs(internal.registry 'nn/export/ops') do
			local entry = internal.import(file)
			for _, name in ipairs(entry.ops) do
				if emitters[name] then fail("export: wanted one emitter for '%s', got two, the second in %s.lua", name, file) end
				emitters[name] = entry
			end
		end
	end
	return emitters[op]
end

local function exportable()
	local list = {}
	emitter_of ''
	for name in next, emitters do list[#list + 1] = name end
	table.sort(list)
	return list
end

---------------------------------------------------------------- values

local BYTES = {float = 4, int8_t = 1, uint8_t = 1, int16_t = 2, uint16_t = 2, int32_t = 4, int64_t = 8, uint32_t = 4}

local function number(value)
	if type(value) == 'number' or value == nil then return value end
	return value:nelem() == 1 and value:item() or nil
end

-- Properties of a result: shape (numbers), count, ctype, dtype; for codes scale (a float32 value), zero, lo, hi.
-- params: the memory of parameters that are found at run time. Codes of a table are stored as floats (nn/export/grid.lua): grid,
-- grid_scale.
local facts_of
function facts_of(result, batch, where, params)
	if result.spec and not result.spec.affine and grid.fits(result.spec) then
		local f = facts_of({shape = result.shape, dtype = 'float32'}, batch, where)
		f.grid, f.grid_scale = result.spec, string.unpack('<f', string.pack('<f', number(result.spec.scale)))
		return f
	end
	local f = {dtype = result.dtype, ctype = packed.ctype(result.dtype), shape = size.at(result.shape, batch), count = size.count(result.shape, batch)}
	if not f.ctype then fail("export: node '%s': wanted %s, got %s", where, 'float32, integers of whole bytes, bool or codes', result.dtype) end
	if result.spec then
		f.scale, f.zero = number(result.spec.scale), number(result.spec.zero_point) or 0
		f.scale = f.scale and string.unpack('<f', string.pack('<f', f.scale)) -- rounded to float32, as in the library
		f.lo, f.hi = result.spec.min, result.spec.max
		f.params = not f.scale and params or nil
		if not f.scale and not params or not result.spec.affine then
			fail("export: node '%s': wanted affine codes with one scale that is known, got '%s'", where, tostring(result.spec))
		end
	end
	f.bytes = f.count * BYTES[f.ctype]
	f.wide_zero = f.scale and f.bytes > f.count and result.spec.zero_point ~= nil -- codes less zero points need 17 bits
	return f
end

local function is_image(f) return #f.shape == 4 and f.shape[2] > 1 and f.shape[3] * f.shape[4] > 1 end

---------------------------------------------------------------- the generated program

local program = {}
program.__index = program

-- A buffer in the arena; its offset is assigned when all lines are known.
local function new_buffer(e, bytes)
	local b = {bytes = math.max(1, bytes), first = #e.lines + 1, last = #e.lines + 1, id = #e.buffers + 1}
	e.buffers[b.id] = b
	return b
end

local function pointer(e, v, const)
	v.buffer.last = #e.lines + 1
	if v.buffer.name then return v.buffer.name end
	return ('(%s%s *)(arena + @%d@)'):format(const and 'const ' or '', v.facts.ctype, v.buffer.id)
end

-- Buffers that a line mentions are live until that line.
function program:line(text)
	if self.inner then
		self.inner[#self.inner + 1] = text
		return
	end
	local at = #self.lines + 1
	self.lines[at] = '\t' .. text
	for id in text:gmatch '@(%d+)@' do
		local buffer = self.buffers[tonumber(id)]
		buffer.last = math.max(buffer.last, at)
	end
end

-- Treats the lines that emit() writes as one (a loop): buffers that any of them mentions are live during all of them.
function program:block(emit)
	self.inner = {}
	emit()
	local text = layouts.indented(self.inner)
	self.inner = nil
	self:line(text)
end

function program:call(format, ...) self:line(format:format(...)) end

-- Sets the value of an edge to a constant tensor.
function program:known(ref, tensor)
	local name = core.split(ref)
	local result, d = self.graph:result_of(ref), quant.dtype(tensor:dtype())
	if d.float and d.bits < 32 then result = {shape = result.shape, dtype = 'float32'} end -- the same numbers
	local f = facts_of(result, self.batch, name)
	local flat = tensor:contiguous():to(f.ctype == 'float' and 'float64' or 'int64'):view(f.count):totable()
	self.values[ref] = {facts = f, layout = 'plain', buffer = {name = self:array(name .. '_value', f.ctype, flat, 'a constant'), first = 0, last = 0}}
	return self.values[ref]
end

-- The same, evaluated when it is first used.
function program:gives(ref, tensor) self.folded[ref] = tensor end

-- The value {facts, buffer, layout} of an edge.
function program:value(ref)
	local v = self.values[ref]
	if v then return v end
	local node, decoded = self.graph.nodes[core.split(ref)], self.decoded[ref]
	if decoded then return self:known(ref, decoded:dequantize()) end
	if self.folded[ref] then return self:known(ref, self.folded[ref]) end
	if node.op ~= 'const' then fail("export: node '%s': its result is not known where it is used", node.name) end
	if node.value:quantized() then return self:codes_value(ref, node) end
	return self:known(ref, node.value)
end

-- The value of a constant whose codes have one scale.
function program:codes_value(ref, node)
	local p, spec = node.value:qparams(), node.value:spec()
	if p.scale:nelem() ~= 1 or p.block or not spec.affine then
		fail("export: node '%s': wanted affine codes with one scale as an operand, got %s", node.name, internal.describe(node.value))
	end
	local all = like.spec(spec, {scale = 1})
	local f = facts_of({shape = node.results[1].shape, dtype = node.value:dtype(), spec = {affine = true, min = all.min, max = all.max,
		scale = p.scale, zero_point = p.zero_point}}, self.batch, node.name)
	local flat = node.value:codes():to('int64'):contiguous():view(f.count):totable()
	local v = {facts = f, layout = 'plain', buffer = {name = self:array(node.name .. '_value', f.ctype, flat, 'codes'), first = 0, last = 0}}
	self.values[ref] = v
	return v
end

local function transposed(e, v, layout)
	v.other = v.other or {}
	if v.other[layout] then return v.other[layout] end
	local f = v.facts
	local made = {facts = f, layout = layout, buffer = new_buffer(e, f.bytes)}
	local n, c, pixels = f.shape[1], f.shape[2], f.shape[3] * f.shape[4]
	local rows, columns = c, pixels -- of each image: (C, HW) to (HW, C)
	if layout == 'plain' then rows, columns = pixels, c end
	e:call('%s(%s, %d, %d, %d, %s);', e:part('transpose', {type = f.ctype}), pointer(e, v, true), n, rows, columns, pointer(e, made))
	v.other[layout] = made
	return made
end

-- Ops that accept codes whose range is found at run time.
local DYNAMIC = {linear = true, conv2d = true, convtranspose2d = true, matmul = true, dequantize = true, lstm = true, gru = true, rnn = true}

-- Operand i of a node as a C expression, and its properties. layout: 'nhwc', 'plain' or nil (any; the third result is
-- the layout).
function program:input(node, i, layout)
	local v = self:value(node.inputs[i])
	if v.facts.params and not DYNAMIC[node.op] then
		fail("export: node '%s': wanted floats or codes with a known scale, got codes whose range is found at run time", node.name)
	end
	if layout and v.layout ~= layout and is_image(v.facts) then v = transposed(self, v, layout) end
	return pointer(self, v, true), v.facts, v.layout
end

function program:facts(ref) return self:value(ref).facts end

-- Allocates the node's result. `source`: properties of codes whose parameters the result has; params: those that a quantize finds at
-- run time.
function program:output(node, layout, at, source, params)
	local ref = core.ref(node.name, at)
	local result = self.graph:result_of(ref)
	if source then result = {shape = result.shape, dtype = source.dtype} end
	local f = facts_of(result, self.batch, node.name, params)
	if source then f.scale, f.zero, f.lo, f.hi, f.params = source.scale, source.zero, source.lo, source.hi, source.params end
	local v = {facts = f, layout = layout or 'plain', buffer = new_buffer(self, f.bytes)}
	self.values[ref] = v
	return pointer(self, v), f
end

-- The node's result is a view of operand i with another shape.
function program:alias(node, i, layout)
	local decoded = self.decoded[node.inputs[i]]
	if decoded then return self:decodes(node.name, decoded) end
	local v = self:value(node.inputs[i])
	if v.layout ~= 'plain' and is_image(v.facts) and layout ~= 'any' then v = transposed(self, v, 'plain') end
	local f = facts_of(self.graph:result_of(node.name), self.batch, node.name, v.facts.params)
	self.values[node.name] = {facts = f, layout = layout == 'any' and v.layout or 'plain', buffer = v.buffer}
end

-- Scratch memory that is live until the last line that mentions it.
function program:scratch(bytes, ctype)
	local b = new_buffer(self, bytes)
	return ('(%s *)(arena + @%d@)'):format(ctype or 'void', b.id)
end

-- Operand i like input(), with codes decoded: an op without an integer version computes with floats.
function program:plain(node, i)
	local x, f = self:input(node, i, 'plain')
	if not f.scale then return x, f end
	local real = {dtype = 'float32', ctype = 'float', shape = f.shape, count = f.count, bytes = BYTES.float * f.count}
	local decoded = self:scratch(real.bytes, 'float')
	self:call('%s(%s, %d, %s, %s, %s);', self:part('dequantize', {type = f.ctype}), x, f.count, self.float(f.scale), f.zero, decoded)
	return decoded, real
end

-- Sizes of the node's first result.
function program:shape_of(node) return size.at(self.graph:result_of(node.name).shape, self.batch) end

function program:constant(node, i)
	local ref = node.inputs[i]
	if self.folded[ref] then return self.folded[ref] end
	local producer = type(ref) == 'string' and self.graph.nodes[core.split(ref)]
	return producer and producer.op == 'const' and producer.value or nil
end

-- The quantized tensor from which an operand is decoded, or nil.
function program:decoded_from(ref) return self.decoded[ref] end

-- Decoded weights are not stored: layers read the codes (nn/export/decode.lua).
function program:decodes(ref, tensor) self.decoded[ref] = tensor end

-- Scale and zero point of codes as C expressions: numbers, or members of the struct q_params with which the value was quantized.
function program:params(f)
	f.params.last = #self.lines + 1
	return ('((struct q_params *)(arena + @%d@))'):format(f.params.id)
end

-- Allocates a struct q_params.
function program:new_params() return new_buffer(self, 8) end

function program:scale_of(f)
	return f.params and ('%s(%s)'):format(self:part 'found_scale', self:params(f)) or self.float(f.scale)
end
function program:zero_of(f) return f.params and ('%s(%s)'):format(self:part 'found_zero', self:params(f)) or tostring(f.zero) end

-- A constant array of numbers; equal arrays are written once. aligned: the macro of a target's vectors is before it.
function program:array(name, ctype, values, text, aligned)
	local body = parts.values(ctype, values)
	local key = ctype .. body
	if self.arrays[key] then return self.arrays[key] end
	local unique = self.names:fresh(name)
	self.arrays[key] = unique
	self.array_list[#self.array_list + 1] = {name = unique, ctype = ctype, count = #values, body = body, values = values, text = text,
		aligned = aligned and 'Q_ALIGNED ' or '', bytes = #values * BYTES[ctype]}
	return unique
end

-- An instance of a function template of nn/export/parts.lua with these fields; the functions that it needs are written before it.
function program:part(name, fields)
	local function add(what, given)
		local made = parts.instance(what, given or {})
		if self.parts[made.name] then return made.name end
		self.parts[made.name] = true
		for _, need in ipairs(made.needs) do add(need[1], need[2]) end
		self.part_list[#self.part_list + 1] = made.text
		return made.name
	end
	return add(name, fields)
end

-- A function of a user op, from a text with ${name} and ${field}; needs lists parts and functions of tensor/vmath/vmath.h without the
-- prefix ql_. Returns its name.
function program:func(name, text, fields, needs)
	local list, order = {}, {}
	for i, need in ipairs(needs or {}) do list[i] = {parts.has(need) and need or vmath.part('ql_' .. need)} end
	for field, value in next, fields or {} do
		if not tostring(value):find '^[%w_]+$' then fail("export: func: %s: wanted a word for '%s', got '%.40s'", name, field, tostring(value)) end
		order[#order + 1] = field
	end
	table.sort(order)
	local key = 'user_' .. names.identifier(name)
	if self.texts[key] and self.texts[key] ~= text then fail("export: func: wanted one text for '%s', got two", name) end
	self.texts[key] = text
	parts.add(key, {fields = order, needs = list, text = text}, true)
	return self:part(key, fields)
end

-- A constant of a struct type that a part defines; equal constants are written once. Returns its name.
function program:struct(type, name, text, there)
	if not there then self:part(type:match '^q_(.+)$') end
	local key = type .. text
	if self.arrays[key] then return self.arrays[key] end
	local unique = self.names:fresh(name)
	self.arrays[key] = unique
	self.struct_list[#self.struct_list + 1] = ('static const struct %s %s = %s;'):format(type, unique, text)
	return unique
end

-- A constant array of structs: a list of initializers.
function program:structs(type, name, list)
	self:part(type:match '^q_(.+)$')
	local key = type .. '[]' .. table.concat(list)
	if self.arrays[key] then return self.arrays[key] end
	local unique = self.names:fresh(name)
	self.arrays[key] = unique
	self.struct_list[#self.struct_list + 1] = ('static const struct %s %s[%d] = {\n\t%s\n};'):format(type, unique, #list, table.concat(list, ',\n\t'))
	return unique
end

-- An exact hexadecimal float literal; rounding to float32; rounding to an integer, half to even.
program.float = parts.float
function program.single(x) return (string.unpack('<f', string.pack('<f', x))) end
function program.rint(x) return math.abs(x) < 2.0 ^ 51 and (x + 0x1.8p52) - 0x1.8p52 or x end

---------------------------------------------------------------- the arena

-- Assigns offsets by first fit in descending order of size: buffers overlap only if they are never live at the same time.
local function place(buffers)
	local order = {}
	for _, b in ipairs(buffers) do
		if not b.name then order[#order + 1] = b end
	end
	table.sort(order, function(a, b)
		if a.bytes ~= b.bytes then return a.bytes > b.bytes end
		return a.id < b.id
	end)
	local placed, total = {}, 0
	for _, b in ipairs(order) do
		local busy = {}
		for _, other in ipairs(placed) do
			if other.first <= b.last and b.first <= other.last then busy[#busy + 1] = other end
		end
		table.sort(busy, function(x, y) return x.at < y.at end)
		local at = 0
		for _, other in ipairs(busy) do
			if at + b.bytes <= other.at then break end
			at = math.max(at, (other.at + other.bytes + 63) // 64 * 64)
		end
		b.at = at
		placed[#placed + 1] = b
		total = math.max(total, at + b.bytes)
	end
	return total
end

---------------------------------------------------------------- from graph to program

local SHARED = {'arrays', 'array_list', 'parts', 'part_list', 'texts', 'struct_list', 'parameters'}

-- The functions, constants and names that all variants of an export share, and the list of the variants' programs.
local function new_bundle()
	local bundle = {names = names.new(), variants = {}}
	for _, field in ipairs(SHARED) do bundle[field] = {} end
	return bundle
end

local function new_program(g, bundle, batch)
	local e = setmetatable({graph = g, batch = batch, names = bundle.names, lines = {}, buffers = {}, values = {}, inputs = {}, results = {},
		costs = {}, decoded = {}, folded = {}, loose = {}}, program)
	for _, field in ipairs(SHARED) do e[field] = bundle[field] end
	return e
end

-- Parameters of the forward functions have the same names in all variants.
local function parameter(e, name)
	e.parameters[name] = e.parameters[name] or e.names:fresh(name)
	return e.parameters[name]
end

local function with_elements(f, name)
	if f.count == 0 then fail("export: '%s': wanted elements, got none: %s%s", name, f.dtype, size.text(f.shape)) end
end

local function add_input(e, node)
	local f = facts_of(node.results[1], e.batch, node.name)
	with_elements(f, node.name)
	local name = parameter(e, node.name)
	e.inputs[#e.inputs + 1] = {name = name, facts = f, layout = e.layout, spec = node.results[1].spec}
	e.values[node.name] = {facts = f, layout = e.layout == 'nhwc' and is_image(f) and 'nhwc' or 'plain', buffer = {name = name, last = 0, first = 0}}
end

-- Calls the user's emitter: that of a rule, of graph.op, or of a user op.
local function emit_own(e, node, emit)
	if not emit then
		fail("export: node '%s': the op '%s' has no C version: give graph.op an emit=function(e, node)", node.name, node.op)
	end
	emit(e, node)
	for i in ipairs(node.results) do
		local ref = core.ref(node.name, i)
		if not e.values[ref] then fail("export: node '%s': emit of '%s' did not call e:output for result %d", node.name, node.op, i) end
	end
end

-- The node with options and scalar operands evaluated for this batch size.
local function for_batch(e, node)
	local seen, inputs = {}, {}
	for key, value in next, node do seen[key] = value end
	for i, ref in ipairs(node.inputs) do inputs[i] = size.at(ref, e.batch) end
	seen.attrs, seen.inputs = size.at(node.attrs, e.batch), inputs
	return seen
end

-- The result of a node with only constant operands is a constant as well.
local function fold(e, node)
	local operands = {}
	for i, ref in ipairs(node.inputs) do
		operands[i] = type(ref) == 'number' and ref or e:constant(node, i)
		if not operands[i] then return false end
	end
	for i, value in ipairs(#operands > 0 and ops.apply(node.op, operands, node.attrs) or {}) do
		if value:quantized() then return false end
		e:gives(core.ref(node.name, i), value)
	end
	return #operands > 0
end

local function without(node)
	local why = none[node.op]
	if why then fail("export: node '%s': %s has no C version: %s", node.name, node.op, why) end
	fail("export: node '%s': no C version of %s; known: %s", node.name, node.op, table.concat(exportable(), ' '))
end

-- Writes the built-in C of the node; user emitters may call it.
function program:default(node)
	local entry = emitter_of(node.op)
	if entry then entry.emit(self, node) elseif not fold(self, node) then without(node) end
end

local function add_node(e, given)
	local before, arrays, node, inexact = #e.lines, #e.array_list, for_batch(e, given), e.inexact
	e.inexact = false
	local own = node.emit or ops.emitter(node.op)
	if own or ops.user(node.op) then
		emit_own(e, node, own)
	else
		e:default(node)
	end
	e.loose[node.name], e.inexact = e.inexact, e.inexact or inexact
	local bytes = 0
	for i = arrays + 1, #e.array_list do bytes = bytes + e.array_list[i].bytes end
	e.costs[#e.costs + 1] = {node = node.name, op = node.op, macs = ops.macs(e.graph, node, e.batch), bytes = bytes, first = before + 1,
		last = #e.lines}
end

-- Bytes of the arena that are live while the lines of a node run.
local function memory_of(e, cost)
	local most = 0
	for line = cost.first, cost.last do
		local sum = 0
		for _, b in ipairs(e.buffers) do
			if b.first <= line and line <= b.last then sum = sum + b.bytes end
		end
		most = math.max(most, sum)
	end
	return most
end

local function add_outputs(e)
	core.each_output(e.graph, function(leaf, _, path)
		local v = e:value(leaf.ref)
		with_elements(v.facts, leaf.ref)
		if v.facts.grid then fail("export: '%s': wanted a result of floats or affine codes, got '%s'", leaf.ref, v.facts.grid.name) end
		local wanted = e.layout == 'nhwc' and 'nhwc' or 'plain'
		if is_image(v.facts) and v.layout ~= wanted then v = transposed(e, v, wanted) end
		local name = parameter(e, 'output' .. (#e.results > 0 and #e.results + 1 or ''))
		e.results[#e.results + 1] = {name = name, facts = v.facts, path = path, layout = e.layout}
		e:call('memcpy(%s, %s, sizeof(%s) * %d);', name, pointer(e, v, true), v.facts.ctype, v.facts.count)
	end)
end

-- C cannot call the Lua functions of a format.
local function refuse_functions(node)
	local specs = {}
	for _, result in ipairs(node.results) do specs[#specs + 1] = result.spec or nil end
	for _, attr in pairs(node.attrs) do specs[#specs + 1] = type(attr) == 'userdata' and internal.is_spec(attr) and attr or nil end
	for _, spec in ipairs(specs) do
		if spec.functions then
			fail("export: node '%s': wanted codes of integers or of a table, got '%s', whose codes are made by Lua functions", node.name, tostring(spec))
		end
	end
end

-- Adds the graph to the bundle as a variant. image: 'nhwc' or 'nchw', the layout of images at inputs and outputs. target: of
-- nn/export/targets.lua.
local function compile(g, bundle, batch, image, target)
	g = split(g)
	local e = new_program(g, bundle, batch)
	e.layout, e.target = image, target
	for _, name in ipairs(g.inputs) do add_input(e, g.nodes[name]) end
	for _, name in ipairs(g.order) do
		local node = g.nodes[name]
		refuse_functions(node)
		if node.op ~= 'input' and node.op ~= 'const' then add_node(e, node) end
	end
	add_outputs(e)
	e.arena = place(e.buffers)
	for i, text in ipairs(e.lines) do
		e.lines[i] = text:gsub('@(%d+)@', function(id) return tostring(e.buffers[tonumber(id)].at) end)
	end
	for _, cost in ipairs(e.costs) do cost.memory = memory_of(e, cost) end
	bundle.variants[#bundle.variants + 1] = e
	return e
end

return {new = new_bundle, compile = compile, exportable = exportable, none = none}
