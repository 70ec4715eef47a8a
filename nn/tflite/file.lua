-- SPDX-License-Identifier: MIT
-- A TFLite file: its model as tables, its tensors. Errors name the file. Positions in the file count from 0: f:at(list, index).
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail = base.fail

local file = {}
file.__index = file

-- TensorType -> name of TFLite, data type of ONNX (TensorProto.DataType), dtype, bits
local TYPES = {[0] = {'FLOAT32', 1}, {'FLOAT16', 10}, {'INT32', 6}, {'UINT8', 2}, {'INT64', 7}, {'STRING'}, {'BOOL', 9}, {'INT16', 5},
	{'COMPLEX64'}, {'INT8', 3}, {'FLOAT64', 11}, {'COMPLEX128'}, {'UINT64', 13}, {'RESOURCE'}, {'VARIANT'}, {'UINT32', 12}, {'UINT16', 4},
	{'INT4', 22}, {'BFLOAT16', 16}, {'INT2', 26}, {'UINT4', 21}, {'FLOAT8_E4M3FN', 17}, {'FLOAT8_E5M2', 19}}

function file.open(path)
	local self = setmetatable({path = path}, file)
	local box, message = internal.onnx_open(base.path(path))
	if box then self.box, self.model, message = box, internal.tflite_model(box) end
	if not self.model then self:fail('%s', message) end
	local model = self.model
	if model.version ~= 3 then self:fail('version: wanted 3, got %s', tostring(model.version or 0)) end
	if not model.graphs then self:fail 'wanted a graph, got none' end
	self.graph = model.graphs[1]
	return self
end

function file:fail(...) fail("load: '%s': %s", self.path, string.format(...)) end

function file:at(list, index, what)
	local item = index and list and list[index + 1]
	if not item then self:fail('%s: wanted one of %d, got number %s', what, #(list or {}), tostring(index)) end
	return item
end

-- The description of a tensor of the graph.
function file:tensor(index) return self:at(self.graph.tensors, index, 'tensors') end

function file.label(_, t) return ("tensor '%.80s'"):format(t.name or '') end

-- The name of a tensor's type in TFLite, and its dtype here; nil if there is none.
function file.type_of(t)
	local type = TYPES[t.type or 0]
	return type and type[1] or tostring(t.type), type and type[2] and internal.onnx_dtype(type[2])
end

function file:dtype(t)
	local name, dtype = file.type_of(t)
	if not dtype then self:fail('%s: wanted a type of numbers that Quoll has, got %s', self:label(t), name) end
	return dtype
end

-- The dtype of a TensorType that an option names.
function file:dtype_of(number) return self:dtype {type = number} end

local function count_of(self, t)
	local count = 1
	for _, size in ipairs(t.shape or {}) do
		if size < 0 then self:fail('%s: wanted sizes of 0 and up, got %d', self:label(t), size) end
		count = size == 0 and 0 or count * size
		if count < 0 or count > 1 << 48 then self:fail('%s: wanted fewer elements, got %s', self:label(t), table.concat(t.shape, ' ')) end
	end
	return count
end

-- The place of a tensor's elements; nil: it has none in the file.
local function place_of(self, t)
	local buffer = self:at(self.model.buffers, t.buffer or 0, 'buffers')
	if (t.external or 0) > 0 then self:fail('%s: wanted elements in the file, got external ones', self:label(t)) end
	if (buffer.offset or 0) > 1 then return {offset = buffer.offset, size = buffer.size or 0} end
	return buffer.data
end

-- The elements of a constant as a plain tensor in the order of the file; nil: it is computed.
function file:elements(t)
	local place, count = place_of(self, t), count_of(self, t)
	if t.sparsity then self:fail('%s: wanted a dense tensor, got a sparse one', self:label(t)) end
	if not place or place.size == 0 then
		return count == 0 and tensor.empty {dtype = self:dtype(t), table.unpack(t.shape)} or nil
	end
	self:dtype(t)
	local value, message = internal.onnx_elements(self.box, place.offset, place.size, TYPES[t.type or 0][2], t.shape or {})
	if not value then self:fail('%s: %s', self:label(t), message) end
	return value
end

---------------------------------------------------------------- quantization

-- The scales of a tensor: {scale = list, zero = list, axis = from 0, several = whether there are several}; nil: it has none.
function file:scales(t)
	local q = t.quantization
	if not q or not q.scale then return nil end
	local zero = q.zero_point or {}
	if (q.details or 0) ~= 0 then self:fail('%s: quantization: wanted scales per tensor or axis, got another kind', self:label(t)) end
	for i, scale in ipairs(q.scale) do
		if not (scale > 0 and scale < math.huge) then self:fail('%s: scale: wanted a positive number, got %g', self:label(t), scale) end
		zero[i] = zero[i] or (#zero == 1 and zero[1] or 0)
	end
	local several = #q.scale > 1
	local axis = q.axis or 0
	if several and (axis < 0 or axis >= #(t.shape or {}) or t.shape[axis + 1] ~= #q.scale) then
		self:fail('%s: quantization: wanted %d scales along axis %d, got another size', self:label(t), #q.scale, axis)
	end
	return {scale = q.scale, zero = zero, axis = axis, several = several}
end

-- The same of a tensor whose elements are codes: integers of 32 and 64 bits are biases and positions.
function file:coded(t)
	local d = quant.dtype(self:dtype(t))
	local scales = (d.kind == 'int' or d.kind == 'uint') and d.bits <= 16 and self:scales(t)
	for _, zero in ipairs(scales and scales.zero or {}) do
		if zero < d.min or zero > d.max then self:fail('%s: zero_point: wanted %d to %d, got %d', self:label(t), d.min, d.max, zero) end
	end
	return scales or nil
end

return file
