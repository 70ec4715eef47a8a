-- SPDX-License-Identifier: MIT
-- Messages of onnx.proto as lists of parts: texts, and tensors, whose bytes are written from where they are (nn/onnx/elements.c).
-- `parts.size` is their number of bytes.
local _, internal = ...
local types = internal.import 'nn/onnx/types'
local message = {}

---------------------------------------------------------------- numbers and texts

local char = string.char

function message.varint(n)
	local bytes = ''
	while n >= 0x80 or n < 0 do
		bytes = bytes .. char(n & 0x7f | 0x80)
		n = n >> 7
	end
	return bytes .. char(n)
end
local varint = message.varint

local function int(number, n) return varint(number << 3) .. varint(n) end
local function float(number, x) return varint(number << 3 | 5) .. ('<f'):pack(x) end
local function text(number, s) return varint(number << 3 | 2) .. varint(#s) .. s end
message.int, message.text = int, text

local function list(number, items, one)
	local made = {}
	for i, item in ipairs(items) do made[i] = one(number, item) end
	return table.concat(made)
end

---------------------------------------------------------------- parts

local function add(parts, part, bytes)
	parts[#parts + 1] = part
	parts.size = parts.size + (bytes or #part)
end

-- A field whose message has these parts.
local function nested(to, number, parts)
	add(to, varint(number << 3 | 2) .. varint(parts.size))
	for _, part in ipairs(parts) do to[#to + 1] = part end
	to.size = to.size + parts.size
end

---------------------------------------------------------------- tensors

function message.bytes(t, type)
	local bits = types.bits(type)
	return bits < 8 and (t:nelem() * bits + 7) // 8 or t:nbytes()
end

-- A TensorProto; place: {location=, offset=, length=} of external data, or nil.
local function tensor_proto(name, t, type, place)
	local head = list(1, t:dim() > 0 and {t:size()} or {}, int) .. int(2, types.number[type]) .. text(8, name)
	local parts, bytes = {size = 0}, message.bytes(t, type)
	if place then
		local function pair(key, value) return text(13, text(1, key) .. text(2, tostring(value))) end
		add(parts, head .. pair('location', place.location) .. pair('offset', place.offset) .. pair('length', place.length) .. int(14, 1))
	else
		add(parts, head .. varint(9 << 3 | 2) .. varint(bytes))
		add(parts, t, bytes)
	end
	return parts
end

---------------------------------------------------------------- nodes

local function attribute(name, value)
	local head = text(1, name)
	if math.type(value) == 'integer' then return head .. int(3, value) .. int(20, 2) end
	if type(value) == 'number' then return head .. float(2, value) .. int(20, 1) end
	if type(value) == 'string' then return head .. text(4, value) .. int(20, 3) end
	if type(value[1]) == 'string' then return head .. list(9, value, text) .. int(20, 8) end
	if math.type(value[1]) == 'float' then return head .. list(7, value, float) .. int(20, 6) end
	return head .. list(8, value, int) .. int(20, 7)
end

-- {op=, name=, domain=, inputs=, outputs=, attrs=}
local function node_proto(n)
	local made, names = {list(1, n.inputs, text), list(2, n.outputs, text), text(3, n.name), text(4, n.op)}, {}
	for name in next, n.attrs do names[#names + 1] = name end
	table.sort(names)
	for _, name in ipairs(names) do made[#made + 1] = text(5, attribute(name, n.attrs[name])) end
	if n.domain then made[#made + 1] = text(7, n.domain) end
	return table.concat(made)
end

-- {name=, type=, shape= numbers and names}
local function value_info(v)
	local dims = {}
	for i, size in ipairs(v.shape) do dims[i] = text(1, type(size) == 'number' and int(1, size) or text(2, size)) end
	return text(1, v.name) .. text(2, text(1, int(1, types.number[v.type]) .. text(2, table.concat(dims))))
end

---------------------------------------------------------------- the model

local ALIGNED = 64

-- Where large tensors are in a file beside the model, and the parts of that file.
local function place_outside(m, location)
	local outside, places = {size = 0}, {}
	for i, t in ipairs(m.initializers) do
		local bytes = message.bytes(t.value, t.type)
		if bytes >= m.least then
			local gap = -outside.size % ALIGNED
			if gap > 0 then add(outside, ('\0'):rep(gap)) end
			places[i] = {location = location, offset = outside.size, length = bytes}
			add(outside, t.value, bytes)
		end
	end
	return outside, places
end

-- m: {ir=, opsets= {{domain, version}, …}, version=, name=, nodes=, inputs=, outputs=, initializers= {{name=, value=, type=}, …}};
-- location: name of the file for tensors of `least` bytes and more, or nil. Gives the parts of the ModelProto and of that file.
function message.model(m, location)
	local outside, places
	if location then outside, places = place_outside(m, location) end
	local graph = {size = 0}
	for _, n in ipairs(m.nodes) do add(graph, text(1, node_proto(n))) end
	add(graph, text(2, m.name))
	for i, t in ipairs(m.initializers) do nested(graph, 5, tensor_proto(t.name, t.value, t.type, places and places[i])) end
	for _, v in ipairs(m.inputs) do add(graph, text(11, value_info(v))) end
	for _, v in ipairs(m.outputs) do add(graph, text(12, value_info(v))) end
	local parts = {size = 0}
	add(parts, int(1, m.ir) .. text(2, 'quoll') .. text(3, m.version))
	nested(parts, 7, graph)
	for _, o in ipairs(m.opsets) do add(parts, text(8, text(1, o[1]) .. int(2, o[2]))) end
	return parts, outside
end

return message
