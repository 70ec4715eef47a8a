-- SPDX-License-Identifier: MIT
-- A node of a graph that is being written, for the files of nn/onnx/out.def. Such a file returns {relu = function(n) … end, …}: the
-- nodes of ONNX that compute the op. Operands and results are names of values in the file:
--   n:input(i [, dtype])     operand i, codes decoded, cast to the dtype; a number becomes a constant
--   n:attr(name, default)    attribute; one that is never read is refused
--   n:emit(op, {inputs}, attrs [, count, domain])   adds a node of ONNX; gives its results
--   n:refuse(format, …)      the reason why this node has no translation
-- It returns the names of the results, or for codes a table of nn/onnx/values.lua. ONNX counts axes and positions from 0.
local _, internal = ...
local core = internal.import 'nn/graph/core'
local types = internal.import 'nn/onnx/types'
local values = internal.import 'nn/onnx/values'

local written = {}
written.__index = written

function written.new(w, node)
	local shapes = {}
	for i, ref in ipairs(node.inputs) do shapes[i] = type(ref) == 'string' and w.g:result_of(ref).shape or {} end
	return setmetatable({w = w, node = node, op = node.op, name = node.name, form = w.form, opset = w.opset, shapes = shapes, read = {out = true},
		count = #node.inputs, result = node.results[1]}, written)
end

function written.refuse(_, ...) values.refuse(...) end

-- Attributes that no translation asked for.
function written:check_attributes()
	for name in next, self.node.attrs do
		if not self.read[name] then self:refuse('%s=', name) end
	end
end

function written:attr(name, default)
	self.read[name] = true
	local value = self.node.attrs[name]
	if value == nil then return default end
	return value
end

-- The opset that a form needs.
function written:needs(opset) self.w:needs(opset) end

function written:emit(op, inputs, attrs, count, domain) return self.w:node(self.name, op, inputs, attrs, count, domain) end

---------------------------------------------------------------- operands

function written:value(i)
	local ref = self.node.inputs[i]
	return type(ref) == 'string' and self.w:value(ref) or nil
end

-- The tensor of an operand that is a constant without codes.
function written:constant(i)
	local v = self:value(i)
	return v and not v.codes and v.constant or nil
end

-- The codes of an operand, or nil.
function written:codes(i)
	local v = self:value(i)
	return v and v.codes or nil
end

function written:rank(i) return #self.shapes[i] end

function written:dtype(i)
	local v = self:value(i)
	if not v then return nil end
	return (v.codes or quant.dtype(v.dtype).bits == 0) and 'float32' or v.dtype
end

function written:input(i, dtype)
	local v, ref = self:value(i), self.node.inputs[i]
	if not v then
		if core.size.is_affine(ref) then
			local x = self:emit('Squeeze', {self.w:size(ref), self.w:ints {0}})
			return self:cast(x, 'int64', dtype or 'int64')
		end
		return self.w:number(ref, dtype or math.type(ref) == 'integer' and 'int64' or 'float32')
	end
	local name = self.w:plain(v)
	return dtype and self:cast(name, self:dtype(i), dtype) or name
end

-- The dtype of the result.
function written:typed() return self.result.spec and 'float32' or self.result.dtype end

---------------------------------------------------------------- numbers

function written:number(x, dtype) return self.w:number(x, dtype or 'float32') end
function written:ints(list) return self.w:ints(list) end

local LARGEST = 9223372036854774784.0 -- the last below 2^63

-- Floats as integers: rounded half to even, saturated; NaN gives 0.
local function to_integer(n, x, from, to)
	local d = quant.dtype(to)
	local float = (d.bits >= 32 or from == 'float64') and 'float64' or 'float32'
	if float ~= from then x = n:emit('Cast', {x}, {to = values.TYPES[float]}) end
	x = n:emit('Where', {n:emit('IsNaN', {x}), n:number(0.0, float), n:emit('Round', {x})})
	local high = d.bits == 64 and LARGEST or d.max + 0.0
	x = n:emit('Clip', {x, n:number(d.min + 0.0, float), n:number(high, float)})
	return n:emit('Cast', {x}, {to = values.TYPES[to]})
end

-- Integers saturate.
local function narrow(n, x, from, to)
	local a, b = quant.dtype(from), quant.dtype(to)
	if a.min < b.min or a.max > b.max then
		if a.bits == 16 then x, from = n:emit('Cast', {x}, {to = values.TYPES.int32}), 'int32' end
		x = n:emit('Clip', {x, n:number(math.max(a.min, b.min), from), n:number(math.min(a.max, b.max), from)})
	end
	return n:emit('Cast', {x}, {to = values.TYPES[to]})
end

function written:cast(x, from, to)
	if from == to then return x end
	if not values.TYPES[from] or not values.TYPES[to] then self:refuse('%s', values.TYPES[from] and to or from) end
	local a, b = quant.dtype(from), quant.dtype(to)
	if b.float or types.is_bool(to) or types.is_bool(from) then return self:emit('Cast', {x}, {to = values.TYPES[to]}) end
	if a.float then return to_integer(self, x, from, to) end
	return narrow(self, x, from, to)
end

---------------------------------------------------------------- axes and sizes

-- An axis of Quoll as one of ONNX.
function written.axis(_, axis, rank) return axis < 0 and rank + axis or axis - 1 end

-- A list of axes, or one; nil: all.
function written:axes(given, rank)
	if given == nil then
		local all = {}
		for i = 1, rank do all[i] = i - 1 end
		return all
	end
	local list = {}
	for i, axis in ipairs(type(given) == 'table' and given or {given}) do list[i] = self:axis(axis, rank) end
	return list
end

-- The target of Reshape: 0 keeps the batch in its place, -1 is the rest.
function written:target(shape, from)
	local list, open, empty = {}, 0, false
	for i, n in ipairs(shape) do
		if not core.size.is_affine(n) then
			list[i], empty = n, empty or n == 0
		elseif from[i] == n then
			list[i] = 0
		else
			list[i], open = -1, open + 1
		end
	end
	if open > 1 or empty then return self.w:sizes(shape), empty end
	return self:ints(list)
end

function written:reshape(x, shape, from)
	local target, empty = self:target(shape, from)
	return self:emit('Reshape', {x, target}, empty and self.opset >= 14 and {allowzero = 1} or nil)
end

function written:permute(x, order)
	local perm = {}
	for i, axis in ipairs(order) do perm[i] = axis - 1 end
	return self:emit('Transpose', {x}, {perm = perm})
end

-- Axes 1 to rank with the last two in each other's place.
function written.turned(_, rank)
	local order = {}
	for i = 1, rank do order[i] = i end
	order[rank - 1], order[rank] = rank, rank - 1
	return order
end

-- A reduction, whose axes became an input at `since`.
function written:reduce(op, x, axes, keep, since)
	local attrs = {keepdims = keep and 1 or 0}
	if #axes == 0 then return x end
	if self.opset >= since then return self:emit(op, {x, self:ints(axes)}, attrs) end
	attrs.axes = axes
	return self:emit(op, {x}, attrs)
end

function written:unsqueeze(x, axes) return self:emit('Unsqueeze', {x, self:ints(axes)}) end
function written:squeeze(x, axes) return self:emit('Squeeze', {x, self:ints(axes)}) end

function written:slice(x, axis, first, last, step)
	local function list(n) return type(n) == 'string' and n or self:ints {n} end
	return self:emit('Slice', {x, list(first), list(last), self:ints {axis}, step and self:ints {step} or nil})
end

return written
