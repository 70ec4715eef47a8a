-- SPDX-License-Identifier: MIT
-- ONNX files for tests, written by hand: onnx.bytes{nodes=, inputs=, outputs=, initializers=, opset=} is a ModelProto.
--   onnx.node(op, {'x', 'w'}, {'y'}, {alpha=0.5, axes={0, 1}, g=onnx.graph{…}})
--   onnx.run(op, {x, w}, attrs, {fixed={2}, outputs=1, opset=, domain=}) runs a model of that node; inputs of `fixed` are initializers
local onnx = {}

local TYPES = {float32 = 1, uint8 = 2, int8 = 3, uint16 = 4, int16 = 5, int32 = 6, int64 = 7, bool = 9, float16 = 10, float64 = 11, bfloat16 = 16}
local PACK = {float32 = '<f', uint8 = 'B', int8 = 'b', uint16 = '<I2', int16 = '<i2', int32 = '<i4', int64 = '<i8', bool = 'B', float64 = '<d'}
onnx.TYPES = TYPES

---------------------------------------------------------------- the encoding

local function varint(n)
	local bytes = {}
	while n >= 0x80 or n < 0 do
		bytes[#bytes + 1] = string.char(n & 0x7f | 0x80)
		n = n >> 7
	end
	bytes[#bytes + 1] = string.char(n)
	return table.concat(bytes)
end
onnx.varint = varint

function onnx.int(number, n) return varint(number << 3) .. varint(n) end
function onnx.float(number, x) return varint(number << 3 | 5) .. ('<f'):pack(x) end
function onnx.text(number, s) return varint(number << 3 | 2) .. varint(#s) .. s end
local int, float, text = onnx.int, onnx.float, onnx.text

local function list(number, items, one)
	local parts = {}
	for i, item in ipairs(items or {}) do parts[i] = one(number, item) end
	return table.concat(parts)
end

---------------------------------------------------------------- parts

function onnx.tensor(name, t)
	local flat, parts = t:dim() == 0 and {t:item()} or t:nelem() == 0 and {} or t:contiguous():view(-1):totable(), {}
	for i, x in ipairs(flat) do
		if x == true or x == false then x = x and 1 or 0 end
		parts[i] = PACK[t:dtype()]:pack(t:dtype():find 'int' and math.tointeger(x) or x)
	end
	return list(1, t:dim() > 0 and {t:size()} or {}, int) .. int(2, TYPES[t:dtype()]) .. text(8, name) .. text(9, table.concat(parts))
end

-- A string that is a graph and no text.
local GRAPH = {}
function onnx.graph(g) return setmetatable({bytes = onnx.graph_bytes(g)}, GRAPH) end

local function attribute(name, value)
	local head = text(1, name)
	if getmetatable(value) == GRAPH then return head .. text(6, value.bytes) .. int(20, 5) end
	if type(value) == 'userdata' then return head .. text(5, onnx.tensor('', value)) .. int(20, 4) end
	if math.type(value) == 'integer' then return head .. int(3, value) .. int(20, 2) end
	if type(value) == 'number' then return head .. float(2, value) .. int(20, 1) end
	if type(value) == 'string' then return head .. text(4, value) .. int(20, 3) end
	if type(value[1]) == 'string' then return head .. list(9, value, text) .. int(20, 8) end
	if math.type(value[1]) == 'float' then return head .. list(7, value, float) .. int(20, 6) end
	return head .. list(8, value, int) .. int(20, 7)
end

function onnx.node(op, inputs, outputs, attrs, o)
	local parts, names = {list(1, inputs, text), list(2, outputs, text), text(3, o and o.name or ''), text(4, op)}, {}
	for name in next, attrs or {} do names[#names + 1] = name end
	table.sort(names)
	for _, name in ipairs(names) do parts[#parts + 1] = text(5, attribute(name, attrs[name])) end
	if o and o.domain then parts[#parts + 1] = text(7, o.domain) end
	return table.concat(parts)
end

-- {name, dtype, {sizes: numbers or names}}
local function value(number, v)
	local dims = {}
	for i, size in ipairs(v[3] or {}) do dims[i] = text(1, type(size) == 'number' and int(1, size) or text(2, size)) end
	local shape = v[3] and text(2, table.concat(dims)) or ''
	return text(number, text(1, v[1]) .. text(2, text(1, int(1, TYPES[v[2]]) .. shape)))
end

function onnx.graph_bytes(g)
	local parts, names = {list(1, g.nodes, text), text(2, 'graph')}, {}
	for name in next, g.initializers or {} do names[#names + 1] = name end
	table.sort(names)
	for _, name in ipairs(names) do parts[#parts + 1] = text(5, onnx.tensor(name, g.initializers[name])) end
	parts[#parts + 1] = list(11, g.inputs, value)
	for _, name in ipairs(g.outputs) do parts[#parts + 1] = text(12, text(1, name)) end
	return table.concat(parts)
end

function onnx.bytes(g)
	local imports = text(8, text(1, '') .. int(2, g.opset or 17))
	for domain, version in next, g.domains or {} do imports = imports .. text(8, text(1, domain) .. int(2, version)) end
	return int(1, g.ir or 8) .. text(2, 'test') .. text(7, onnx.graph_bytes(g)) .. imports .. list(25, g.functions, text)
end

---------------------------------------------------------------- running

function onnx.file(g)
	local path = os.tmpname()
	local out <close> = assert(io.open(path, 'wb'))
	out:write(type(g) == 'string' and g or onnx.bytes(g))
	return path
end

-- The graph of a model; the file is gone.
function onnx.load(g, o)
	local path = onnx.file(g)
	local given = {path}
	for key, item in next, o or {} do given[key] = item end
	local results = table.pack(pcall(graph.load, given))
	os.remove(path)
	if not results[1] then error(results[2], 0) end
	return table.unpack(results, 2, results.n)
end

function onnx.run(op, inputs, attrs, o)
	o = o or {}
	local names, values, given, initializers, fixed, outputs = {}, {}, {}, {}, {}, {}
	for _, i in ipairs(o.fixed or {}) do fixed[i] = true end
	for i = 1, #inputs do
		local t = inputs[i]
		names[i] = t and 'x' .. i or ''
		if t and fixed[i] then
			initializers[names[i]] = t
		elseif t then
			values[#values + 1] = {names[i], t:dtype(), {t:size()}}
			given[#given + 1] = t
		end
	end
	for i = 1, o.outputs or 1 do outputs[i] = 'y' .. i end
	local g = onnx.load {nodes = {onnx.node(op, names, outputs, attrs, {name = 'node', domain = o.domain})}, inputs = values, outputs = outputs,
		initializers = initializers, opset = o.opset, domains = o.domain and {[o.domain] = 1}}
	return g:run(#given == 1 and given[1] or given)
end

-- The model y = x + c of two numbers, with a TensorProto c of these bytes, and with one whose data are in another file; more: offset, length.
function onnx.with_tensor(bytes, opset)
	local g = onnx.graph_bytes {nodes = {onnx.node('Add', {'x', 'c'}, {'y'})}, inputs = {{'x', 'float32', {2}}}, outputs = {'y'}} .. text(5, bytes .. text(8, 'c'))
	return int(1, 8) .. text(7, g) .. text(8, text(1, '') .. int(2, opset or 17))
end
function onnx.with_external(location, more)
	local entries = text(13, text(1, 'location') .. text(2, location))
	for key, value in next, more or {} do entries = entries .. text(13, text(1, key) .. text(2, value)) end
	return onnx.with_tensor(int(1, 2) .. int(2, 1) .. entries .. int(14, 1))
end

-- Whether a result has these values (nested lists or numbers) within the tolerance.
function onnx.equal(y, want, tolerance)
	want = type(want) == 'userdata' and want or tensor(want)
	assert(y:dim() == want:dim(), ('%d axes for %d'):format(y:dim(), want:dim()))
	for i = 1, y:dim() do assert(y:size(i) == want:size(i), ('axis %d: %d for %d'):format(i, y:size(i), want:size(i))) end
	local error = (y:to 'float64' - want:to 'float64'):abs()
	assert(y:nelem() == 0 or error:max():item() <= (tolerance or 1e-5), y)
	return true
end

return onnx
