-- SPDX-License-Identifier: MIT
-- A node of a TFLite graph, for the files of nn/tflite/ops.def. Such a file returns {RELU = function(n) … end, …}: what the op computes,
-- by ops of Quoll, given the node; it returns the outputs, each a plain tensor or a value of n.value(x, is_image).
--   n.op, n.name, n.outputs (descriptions of tensors), n.count (how many inputs are listed)
--   n:option(name, default)   of the op's table of options
--   n:has(i)                  whether input i is given; inputs and outputs count from 1
--   n:plain(i), n:image(i)    an input in one of its forms (nn/tflite/layout.lua); n:any(i): x, is_image
--   n:real(i)                 as n:any, codes decoded;  n:give(y, is_image): a result, encoded where the output has codes
--   n:list(i, what)           numbers that do not depend on the values of the inputs
--   n:spec(act)               the spec of the output's codes, nil: it has floats
--   n:weight(i, key, made)    a constant as made(x) gives it, once for all batches
-- TFLite counts axes and positions from 0: what is here `axis` counts from 1.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local layout = internal.import 'nn/tflite/layout'
local module = internal.import 'nn/base/module'

local node = {value = layout.value, whole = layout.whole}
node.__index = node

function node:fail(...)
	base.fail("load: '%s': node '%.80s' (%s): %s", self.file.path, self.name, self.op, string.format(...))
end

function node:option(name, default)
	local value = self.options[name]
	if value == nil then return default end
	return value
end

---------------------------------------------------------------- inputs

function node.is_known(v) return not internal.is_meta(layout.any(v)) end

local function input(self, i)
	return self.inputs[i] or self:fail('input %d: wanted a tensor, got none', i)
end

function node:has(i) return self.inputs[i] ~= nil end
function node:known(i) return node.is_known(input(self, i)) end

-- Runs f without recording what it does to a constant, whose name in the graph is that of the file.
local function quietly(self, i, f)
	local v = input(self, i)
	local before = internal.record(nil)
	local x = f(v)
	internal.record(before)
	if v.name then module.tracer.known[internal.identity(x)] = v.name end
	return x
end

function node:plain(i)
	local v = input(self, i)
	if node.is_known(v) then return quietly(self, i, layout.plain) end
	return layout.plain(v)
end

-- Of fewer axes: those of the last ones.
function node:image(i)
	local v = input(self, i)
	local rank = layout.any(v):dim()
	if rank > 4 then self:fail('input %d: wanted at most 4 axes, got %d', i, rank) end
	local function image(of)
		if rank < 4 then
			local sizes = {of.plain:size()}
			for _ = rank + 1, 4 do table.insert(sizes, 1, 1) end
			of.wide = of.wide or {plain = layout.whole(of.plain):view(table.unpack(sizes))}
			of = of.wide
		end
		return layout.image(of)
	end
	if node.is_known(v) then return quietly(self, i, image) end
	return image(v)
end

-- In the form that it has; is_image.
function node:any(i)
	local v = input(self, i)
	if v.image then return self:image(i), true end
	return self:plain(i), false
end

function node:is_image(i) return input(self, i).image ~= nil end

local function decoded(x) return x:quantized() and x:dequantize() or x end

function node:real(i)
	local x, is_image = self:any(i)
	return decoded(x), is_image
end

function node:real_plain(i) return decoded(self:plain(i)) end
function node:real_image(i) return decoded(self:image(i)) end

function node:list(i, what)
	local v = input(self, i)
	if not node.is_known(v) then self:fail('%s: wanted numbers that do not depend on the values of the inputs, got others', what) end
	local before = internal.record(nil)
	local x = layout.plain(v)
	local list = x:dim() == 0 and {x:item()} or x:nelem() == 0 and {} or x:contiguous():view(-1):totable()
	internal.record(before)
	return list
end

function node:number(i, what)
	local list = self:list(i, what)
	if #list ~= 1 then self:fail('%s: wanted one number, got %d', what, #list) end
	return list[1]
end

-- made(x) of a constant in the order of the file; key: among other results of that constant.
function node:weight(i, key, made)
	local v = input(self, i)
	if not node.is_known(v) then self:fail('input %d: wanted a constant, got a tensor that is computed', i) end
	return quietly(self, i, function()
		v.made = v.made or {}
		v.made[key] = v.made[key] or made(layout.plain(v))
		return v.made[key]
	end)
end

-- The state of a variable that is input i, as the caller gave it; nil: zeros.
function node:state(i)
	local v = self.inputs[i]
	return v and not v.variable and layout.plain(v) or nil
end

-- Whether states are outputs, and the next state of input i.
function node:wants_states() return self.file.states ~= nil end
function node:keep(i, x)
	local index = self.from.inputs and self.from.inputs[i]
	if self.file.states and index and index ~= -1 then self.machine.values[index] = {plain = x} end
end

-- The scale of an input that has one for all of it, or nil.
function node:scale(i)
	local scales = self.file:scales(self.tensors[i])
	return scales and not scales.several and scales.scale[1] or nil
end

-- Refuses sizes of a result that a few bytes of the file could make huge: of a constant, which is computed at load, above 2^24 elements.
function node:bounded(sizes, is_known)
	local most, count = is_known and 1 << 24 or 1 << 30, 1
	if #sizes > 8 then self:fail('wanted at most 8 axes, got %d', #sizes) end
	for _, size in ipairs(sizes) do
		if size < 0 or size > most then self:fail('wanted sizes of 0 to %d, got %d', most, size) end
		count = math.min(count * size, most + 1)
	end
	if count > most then self:fail('wanted a result of at most %d elements, got more', most) end
end

---------------------------------------------------------------- axes

function node:axis(axis, rank)
	if math.type(axis) ~= 'integer' or axis < -rank or axis >= rank then
		self:fail('axis: wanted one of %d axes, got %s', rank, tostring(axis))
	end
	return axis < 0 and rank + axis + 1 or axis + 1
end

-- An axis of the plain form in the form at hand.
function node.axis_in(axis, is_image) return is_image and layout.AXIS[axis] or axis end

function node.shape(x) return {x:size()} end
function node.is_float(x) return quant.dtype(x:dtype()).float end

-- Positions of TFLite (from 0, negative from the end) as those of Quoll.
function node.positions(ids)
	ids = ids:to 'int64'
	return ids + ids:ge(0):to 'int64'
end

---------------------------------------------------------------- results

local ACTS = {[0] = false, 'relu', 'relu_n1_to_1', 'relu6', 'tanh', 'sign_bit'}
local BOUNDS = {relu = {0, nil}, relu_n1_to_1 = {-1, 1}, relu6 = {0, 6}}

-- The name of the fused activation, or nil.
function node:act()
	local act = ACTS[self:option('act', 0)]
	if act == nil or act == 'sign_bit' then self:fail('activation: wanted relu, relu6, relu_n1_to_1 or tanh, got number %d', self:option 'act') end
	return act or nil
end

-- The lowest and highest code under an activation, as CalculateActivationRangeQuantized; nil: those of the dtype.
local function bounds_of(self, act, t, scale, zero)
	local bits = quant.dtype(self.file:dtype(t)).bits
	local unsigned = self.file:dtype(t):find '^u'
	local least, most = unsigned and 0 or -(1 << bits - 1), unsigned and (1 << bits) - 1 or (1 << bits - 1) - 1
	local low, high = BOUNDS[act][1], BOUNDS[act][2]
	local function code(x)
		local q = x / scale
		return zero + math.tointeger(q < 0 and math.ceil(q - 0.5) or math.floor(q + 0.5))
	end
	local from, to = low and math.max(least, code(low)) or least, high and math.min(most, code(high)) or most
	return from > least and from or nil, to < most and to or nil
end

-- The spec of output i; rounding: 'double' for results of sums; nil: results of floats.
function node:spec(act, rounding, i)
	return self:spec_of(self.outputs[i or 1] or self:fail('output %d: wanted a tensor, got none', i), act, rounding)
end
function node:spec_of(t, act, rounding)
	local scales = self.file:coded(t)
	if not scales then return nil end
	if scales.several then self:fail('output: wanted one scale for the whole tensor, got %d', #scales.scale) end
	local fields = {dtype = self.file:dtype(t), scale = scales.scale[1], rounding = rounding}
	if act == 'tanh' then self:fail 'activation: wanted relu, relu6 or relu_n1_to_1 of codes, got tanh' end
	if act then fields.quant_min, fields.quant_max = bounds_of(self, act, t, scales.scale[1], scales.zero[1]) end
	if scales.zero[1] ~= 0 or fields.dtype:find '^u' or fields.quant_min or fields.quant_max then
		fields.scheme, fields.zero_point = 'asymmetric', scales.zero[1]
	end
	return quant.spec(fields)
end

-- The value under an activation of floats.
function node.under(y, act)
	if not act then return y end
	if act == 'relu_n1_to_1' then return y:clamp(-1, 1) end
	return y[act](y)
end

-- A result: codes under the spec of the output where it has one.
function node:give(y, is_image, i)
	local spec, dtype = self:spec(nil, nil, i), self.file:dtype(self.outputs[i or 1])
	if spec and not y:quantized() then
		y = y:quantize(spec)
	elseif y:dtype() ~= dtype and not y:quantized() and not node.is_float(y) and quant.dtype(dtype).kind == quant.dtype(y:dtype()).kind then
		y = y:to(dtype) -- positions and sums have 64 bits here
	end
	return layout.value(y, is_image)
end

return node
