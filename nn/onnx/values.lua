-- SPDX-License-Identifier: MIT
-- The model that is being written: nodes, initializers, names, and what each value of the graph is there. A value has
--   name    of the floats or plain numbers; nil while there are only codes
--   codes   {name=, type=, scale=, zero=, axis=, block=, low=, high=}: integers with the names of their scale and zero point
--   dtype, shape
-- With form='float' there are no codes: constants are decoded, activations stay floats.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local core = internal.import 'nn/graph/core'
local types = internal.import 'nn/onnx/types'

local values = {}
values.__index = values

function values.new(g, form, opset)
	local w = setmetatable({g = g, form = form, opset = opset, least = opset, domains = {}, nodes = {}, initializers = {}, taken = {}, own = {}, of = {},
		shared = {}, bytes = {}}, values)
	for _, name in ipairs(g.order) do
		for i in ipairs(g.nodes[name].results) do w.own[core.ref(name, i)] = true end
	end
	return w
end

-- The least opset of what was written.
function values:needs(opset) self.least = math.max(self.least, opset) end

---------------------------------------------------------------- names

-- A name that nothing has; own: it may be one of the graph's.
function values:fresh(name, own)
	local n, free = 1, name
	while self.taken[free] or self.own[free] and not (own and n == 1) do
		n = n + 1
		free = name .. '_' .. n
	end
	self.taken[free] = true
	return free
end

---------------------------------------------------------------- nodes

-- Adds a node with `count` results, which are called after `stem`; gives their names.
function values:node(stem, op, inputs, attrs, count, domain)
	local outputs = {}
	for i = 1, count or 1 do outputs[i] = self:fresh(('%s.%s'):format(stem, op)) end
	for i = 1, #inputs do inputs[i] = inputs[i] or '' end
	self.nodes[#self.nodes + 1] = {op = op, inputs = inputs, outputs = outputs, attrs = attrs or {}, domain = domain}
	if domain then self.domains[domain] = true end
	return table.unpack(outputs)
end

-- Gives the nodes from `first` on another name for a result; false if none of them makes it.
function values:rename(first, was, name)
	local found = false
	for i = first, #self.nodes do
		local n = self.nodes[i]
		for k, output in ipairs(n.outputs) do
			if output == was then n.outputs[k], found = name, true end
		end
		for k, input in ipairs(n.inputs) do
			if input == was and found then n.inputs[k] = name end
		end
	end
	return found
end

---------------------------------------------------------------- initializers

-- A tensor of the file; type: its data type if the dtype does not say it; own: it is the graph's value of that name.
function values:initializer(name, value, type, own)
	name = self:fresh(name, own)
	type = type or value:dtype()
	self.initializers[#self.initializers + 1] = {name = name, value = value:to 'cpu':contiguous(), type = type}
	return name
end

-- The name of an initializer that is the same for the same key.
function values:share(key, name, make)
	self.shared[key] = self.shared[key] or self:initializer(name, make())
	return self.shared[key]
end

-- A list of int64.
function values:ints(list)
	return self:share('i:' .. table.concat(list, ','), 'ints', function()
		if #list == 0 then return tensor.empty {0, dtype = 'int64'} end
		return tensor(table.move(list, 1, #list, 1, {dtype = 'int64'}))
	end)
end

-- One number without axes.
function values:number(x, dtype)
	return self:share(('n:%s:%s'):format(dtype, math.type(x) == 'float' and ('%a'):format(x) or x), 'number', function()
		return tensor.full {1, value = x, dtype = dtype}:select(1, 1)
	end)
end

---------------------------------------------------------------- sizes

-- The batch as a list of one int64.
local function batch(w)
	if w.shared.batch then return w.shared.batch end
	for _, name in ipairs(w.g.inputs) do
		if w.g.axes[name] then
			local shape = w:node('batch', 'Shape', {w:value(name).input})
			w.shared.batch = w:node('batch', 'Gather', {shape, w:ints {w.g.axes[name] - 1}}, {axis = 0})
			return w.shared.batch
		end
	end
end

-- A size that depends on the batch, as a list of one int64.
function values:size(n)
	if not core.size.is_affine(n) then return self:ints {n} end
	local key = 'size:' .. tostring(n)
	if self.shared[key] then return self.shared[key] end
	local x = batch(self)
	if n.per ~= 1 then x = self:node('size', 'Mul', {x, self:ints {n.per}}) end
	if n.plus ~= 0 then x = self:node('size', 'Add', {x, self:ints {n.plus}}) end
	self.shared[key] = x
	return x
end

-- Sizes as a list of int64.
function values:sizes(shape)
	if not core.size.varies(shape) then return self:ints(shape) end
	local parts = {}
	for i, n in ipairs(shape) do parts[i] = self:size(n) end
	return #parts == 1 and parts[1] or self:node('sizes', 'Concat', parts, {axis = 0})
end

---------------------------------------------------------------- values

local function constant(w, name, node)
	local value = node.value:to 'cpu'
	local v = {dtype = value:dtype(), shape = node.results[1].shape, constant = value, stem = name, made = name}
	if value:quantized() and w.form ~= 'float' then
		v.codes = internal.import 'nn/onnx/out/codes'.constant(w, name, value)
	else
		v.constant = value:quantized() and value:dequantize() or value
		v.dtype = v.constant:dtype()
	end
	return v
end

-- What a reference of the graph is in the file.
function values:value(ref)
	local v = self.of[ref]
	if not v then
		local node = self.g.nodes[core.split(ref)]
		v = constant(self, ref, node)
		self.of[ref] = v
	end
	return v
end

-- The name of an initializer, which has the name of its node.
local function write_constant(w, v)
	return w:initializer(v.made, v.constant, nil, true)
end

-- The name of a value as floats or plain numbers.
function values:plain(v)
	if not v.name then
		local c = v.codes or v.decoded
		v.name = c and internal.import 'nn/onnx/out/codes'.dequantize(self, v.stem or c.stem, c) or write_constant(self, v)
	end
	return v.name
end

-- Raises the reason why a node has no translation.
function values.refuse(...) error(setmetatable({reason = string.format(...)}, values)) end

-- Whether an error is a refusal; its reason.
function values.reason(problem) return getmetatable(problem) == values and problem.reason or nil end

values.TYPES = types.number
values.describe = base.describe
return values
