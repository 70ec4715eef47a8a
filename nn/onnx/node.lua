-- SPDX-License-Identifier: MIT
-- A node of an ONNX graph, for the files of nn/onnx/ops.def. Such a file returns {Relu = function(n, x, …) … end, …}: what the op computes,
-- by ops of Quoll, given its inputs (nil: not given) and the node:
--   n.op, n.name, n.opset (version of its domain), n.outputs (how many it has)
--   n:attr(name, default)   attribute: number, text, list, tensor; of the kind of its default
--   n:given(name, kind), n:required(name, kind)   one without a default: or nil, or an error
--   n:fail(format, …)       one line that names the node
-- It returns the outputs. A file may be {domain = 'com.microsoft', ops = {…}}.
--
-- Values are tensors. One that depends on the model's inputs has no values while the graph is made (tensor/meta.h); others are known and
-- are computed at once. ONNX counts axes and positions from 0: what is here `axis` counts from 1.
local _, internal = ...
local base = internal.import 'interp/prelude/base'

local node = {}
node.__index = node

function node:fail(...)
	base.fail("load: '%s': node '%s' (%s): %s", self.machine.file.path, self.name, self.op, string.format(...))
end

-- What an attribute is; a list is named after its first element.
local function kind_of(value)
	if base.is_tensor(value) then return 'tensor' end
	if type(value) ~= 'table' then return math.type(value) or type(value) == 'string' and 'text' or 'graph' end
	if value.node or value.output then return 'graph' end
	return #value == 0 and 'empty list' or 'list of ' .. kind_of(value[1]) .. 's'
end

local function checked(self, name, value, kind)
	local got = kind_of(value)
	if got == kind or got == 'empty list' and kind:find '^list' then return value end
	if kind == 'float' and got == 'integer' then return value + 0.0 end
	self:fail("attribute '%s': wanted %s %s, got %s %s", name, kind:find '^i' and 'an' or 'a', kind, got:find '^[ie]' and 'an' or 'a', got)
end

-- An attribute of the kind of its default.
function node:attr(name, default)
	local value = self.attrs[name]
	if value == nil then return default end
	if default == nil or type(default) == 'number' and type(value) == 'number' then return value end
	local kind = kind_of(default)
	if kind == 'empty list' then kind = type(value) == 'table' and kind_of(value) or 'list' end
	return checked(self, name, value, kind)
end

-- An attribute of a kind (integer, float, text, tensor, list of integers …), or nil; one that there must be.
function node:given(name, kind)
	local value = self.attrs[name]
	return value ~= nil and checked(self, name, value, kind) or nil
end
function node:required(name, kind)
	return self:given(name, kind) or self:fail("attribute '%s': wanted %s %s, got none", name, kind:find '^i' and 'an' or 'a', kind)
end

function node.known(x) return x and not internal.is_meta(x) end

-- The numbers of a known tensor (bool: 0 and 1) as a list, which is not recorded; what: its name in errors.
function node:list(x, what)
	if not node.known(x) then self:fail('%s: wanted numbers that do not depend on the values of the inputs, got others', what) end
	local before = internal.record(nil)
	if node.is_bool(x) then x = x:to 'uint8' end
	local list = x:dim() == 0 and {x:item()} or x:contiguous():view(-1):totable()
	internal.record(before)
	return list
end

function node:number(x, what)
	local list = self:list(x, what)
	if #list ~= 1 then self:fail('%s: wanted one number, got %d', what, #list) end
	return list[1]
end

-- An axis of ONNX as one of Quoll.
function node:axis(axis, rank)
	if math.type(axis) ~= 'integer' or axis < -rank or axis >= rank then
		self:fail('axis: wanted one of %d axes, got %s', rank, tostring(axis))
	end
	return axis < 0 and rank + axis + 1 or axis + 1
end

-- The axes of an attribute, or of an input from some opset on; nil if there are none.
function node:axes(x, rank)
	local list = self.attrs.axes
	if not list and x then list = self:list(x, 'axes') end
	if not list then return nil end
	local axes = {}
	for i, axis in ipairs(list) do axes[i] = self:axis(axis, rank) end
	return axes
end

function node.shape(x) return {x:size()} end

-- Positions of ONNX (from 0, negative from the end) as those of Quoll.
function node.positions(ids)
	ids = ids:to 'int64'
	return ids + ids:ge(0):to 'int64'
end

-- f(…) of known values, not recorded.
function node.quietly(_, f)
	local before <close> = setmetatable({internal.record(nil)}, {__close = function(kept) internal.record(kept[1]) end})
	return f(), before and nil
end

-- What f makes of known values, once for all batches; key: of several of a node.
function node:once(key, f)
	local kept = self.scope.kept and self.machine.file.made
	if not kept then return self:quietly(f) end
	kept[self.from] = kept[self.from] or {}
	if kept[self.from][key] == nil then kept[self.from][key] = self:quietly(f) end
	return kept[self.from][key]
end

-- The quantized tensor that x decodes, or nil.
function node:codes(x) return self.machine.codes[x] end

-- A matrix turned: of a constant that is decoded codes, by turning the codes.
function node:turned(b)
	local q = self:codes(b)
	if not q or not node.known(q) then return b:t() end
	local turned = self:quietly(function() return q:t():contiguous() end)
	local y = turned:dequantize()
	self.machine.codes[y] = turned
	return y
end

-- What a handler knows of a value: of x, or with a note of it; x nil: of the node's result.
function node:note(x, note)
	local notes = self.machine.notes
	if note and not x then
		self.of_result = note
	elseif note then
		notes[x] = note
	else
		return notes[x]
	end
end

node.AFFINE = 'asymmetric' -- the scheme whose codes use both ends of their range

-- f of codes under one scale: of their values, with codes of that scale as its result; of others: of the integers. value(v) is what
-- the integer v of the file is to f.
function node.on_codes(x, f)
	local p = x:qparams()
	if p.axis or p.block then return f(x:codes(), function(v) return v end) end
	local scale, zero = p.scale:item(), p.zero_point and p.zero_point:item() or 0
	local y = f(x:dequantize(), function(v) return v and (v - zero) * scale end)
	return y:quantize {dtype = x:dtype(), scheme = node.AFFINE, scale = scale, zero_point = zero}
end

-- x in that dtype.
function node.to(x, dtype) return x:dtype() == dtype and x or x:to(dtype) end

local infos = {}
local function info(x)
	local dtype = x:dtype()
	infos[dtype] = infos[dtype] or quant.dtype(dtype)
	return infos[dtype]
end

function node.is_bool(x) return info(x).kind == 'bool' end

function node.is_float(x) return info(x).float end

return node
