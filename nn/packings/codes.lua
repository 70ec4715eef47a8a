-- SPDX-License-Identifier: MIT
-- Layers of a checkpoint with packed codes: their tensors by name, and quantized tensors made of them.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local codes = {}
codes.__index = codes

-- A name as messages show it.
local function word(name) return internal.escape(name, 120) end

-- given: name -> tensor; from: what messages call the file; verb: load or save; kept: what reading a layer has kept for writing it, by layer.
function codes.new(given, from, verb, kept)
	local left = {}
	for name, value in pairs(given) do left[name] = value end
	return setmetatable({left = setmetatable(left, getmetatable(given)), from = from, verb = verb or 'load', kept = kept or {}}, codes)
end

function codes:fail(...) base.fail('%s: %s: ' .. select(1, ...), self.verb, self.from, select(2, ...)) end

-- The names of layers that have a tensor of this kind, in order.
function codes:layers(kind)
	local list, tail = {}, '.' .. kind
	for name in pairs(self.left) do
		if name:sub(-#tail) == tail then list[#list + 1] = name:sub(1, -#tail - 1) end
	end
	table.sort(list)
	return list
end

-- Takes a tensor of a layer: it is none of the model's. axes: how many it has; nil: it may be missing.
function codes:take(layer, kind, axes)
	local name = layer .. '.' .. kind
	local value = self.left[name]
	self.left[name] = nil
	if not value and axes then self:fail("wanted a tensor '%s', there is none", word(name)) end
	if value and axes and value:dim() ~= axes then self:fail('%s: wanted a tensor of %d axes, got %s', word(name), axes, internal.describe(value)) end
	if value then self.device = value:device() end
	return value and value:to 'cpu'
end

-- Fields of words as codes; how: see internal.unpack.
function codes:unpack(layer, kind, words, how)
	local result, message = internal.unpack(words, how)
	if not result then self:fail('%s.%s: %s', word(layer), kind, message) end
	return result
end

-- Sizes of a matrix of scales, or an error.
function codes:sized(layer, kind, value, rows, columns)
	if value:size(1) ~= rows or value:size(2) ~= columns then
		self:fail('%s.%s: wanted shape (%d, %d), got %s', word(layer), kind, rows, columns, internal.describe(value))
	end
	return value
end

-- The inputs in the order of their groups, counted from 1, by the group of each; nil if that is their own. Groups have `group` inputs each, the
-- last one perhaps fewer.
function codes:order(layer, kind, g, inputs, group)
	local name = word(layer) .. '.' .. kind
	if g:dim() ~= 1 or g:size(1) ~= inputs or quant.dtype(g:dtype()).float then
		self:fail('%s: wanted %d integers, got %s', name, inputs, internal.describe(g))
	end
	local list, groups, counts, plain = g:totable(), (inputs + group - 1) // group, {}, true
	for i, at in ipairs(list) do
		if at < 0 or at >= groups then self:fail('%s: wanted groups from 0 to %d, got %d', name, groups - 1, at) end
		plain = plain and at == (i - 1) // group
		counts[at] = (counts[at] or 0) + 1
	end
	if plain then return nil end
	local first, order = {}, {dtype = 'int32', device = 'cpu'}
	for at = 0, groups - 1 do
		local wanted = math.min(group, inputs - at * group)
		if counts[at] ~= wanted then self:fail('%s: wanted %d inputs in group %d, got %d', name, wanted, at, counts[at] or 0) end
		first[at] = at * group + 1
	end
	for i, at in ipairs(list) do
		order[first[at]] = i
		first[at] = first[at] + 1
	end
	return tensor(order)
end

local DTYPES = {}
for bits = 2, 8 do DTYPES[bits] = bits == 7 and 'int8' or 'int' .. bits end
DTYPES[9] = 'int16'

-- The dtype of codes: one with more bits where a zero point needs them.
local function dtype_of(bits, zero)
	if not zero then return DTYPES[bits] end
	return 'u' .. DTYPES[zero:max():item() >= 1 << bits and bits + 1 or bits]
end

-- Groups under the scale 0 are zeros: their codes become the zero point, their scale 1.
local function without_zeros(o, group)
	local empty = o.scale:eq(0)
	if not empty:any():item() then return o.codes, o.scale end
	local at = {dtype = 'int64', device = 'cpu'}
	for column = 1, o.codes:size(2) do at[column] = (column - 1) // group + 1 end
	local groups = tensor(at)
	local codes_of, zero = o.codes:to 'int32', (o.zero or o.scale:mul(0)):to 'int32':indexselect(2, groups)
	return tensor.where(empty:indexselect(2, groups), zero, codes_of):to(o.codes:dtype()), tensor.where(empty, tensor.ones {1, dtype = o.scale:dtype(), device = 'cpu'}, o.scale)
end

-- Puts the weight of a layer there. o: codes (outputs, inputs); bits; scale (outputs, groups); zero: of the same shape, integers, or nil;
-- group: inputs of a group; order: of the inputs.
function codes:put(layer, o)
	local columns, real = o.codes:size(2), o.scale:to 'float32'
	if not (real:ge(0):all():item() and real:lt(math.huge):all():item()) then self:fail('%s: scales: wanted finite numbers that are not below 0, got others', word(layer)) end
	if o.order then o.codes = o.codes:indexselect(2, o.order) end
	local given, scale = without_zeros(o, o.group)
	local spec = {dtype = dtype_of(o.bits, o.zero), scheme = o.zero and 'asymmetric' or 'symmetric'}
	local one = o.group >= columns
	spec.scale, spec.zero_point = scale:contiguous(), o.zero and o.zero:to('int32'):contiguous()
	if quant.dtype(spec.scale:dtype()).digits ~= 11 or one then spec.scale = spec.scale:to 'float32' end
	if one then
		spec.axis, spec.scale, spec.zero_point = 1, spec.scale:reshape(-1), spec.zero_point and spec.zero_point:reshape(-1)
	else
		spec.block = o.group
	end
	self.kept[layer] = {bits = o.bits, group = o.group, signed = not o.zero, scale = o.scale:dtype(), kinds = o.kinds}
	local weight, message = internal.coded(given, spec)
	if not weight then self:fail('%s: %s', word(layer), message) end
	local name = layer .. '.weight'
	if self.left[name] then self:fail("wanted '%s' once, as codes or floats, got both", word(name)) end
	self.left[name], self.left[layer .. '.order'] = weight:to(self.device), o.order and o.order:to(self.device)
end

---------------------------------------------------------------- back

function codes:packed(layer, kind, value, how)
	local result, message = internal.pack(value, how)
	if not result then self:fail('%s.%s: %s', word(layer), kind, message) end
	self.left[layer .. '.' .. kind] = result
end

-- The group of each input, from 0, by the order of the inputs.
local function groups_of(order, inputs, group)
	local list, g = order and order:totable(), {dtype = 'int32', device = 'cpu'}
	for column = 1, inputs do g[list and list[column] or column] = (column - 1) // group end
	return tensor(g)
end

-- Takes the weight of a layer that was read: its codes (outputs, inputs) from 0 in the order of the inputs, scales and zero points (outputs,
-- groups), the group of each input, and what was kept; nil if it is none of the method any more.
function codes:opened(layer)
	local weight, order, kept = self.left[layer .. '.weight']:to 'cpu', self.left[layer .. '.order'], self.kept[layer]
	local p, one = weight:qparams(), kept.group >= weight:size(2)
	local info = quant.dtype(weight:dtype())
	local same = (one and p.axis == 1 and not p.block or p.block == kept.group and p.axis == 2) and info.signed == kept.signed and info.bits <= kept.bits + 1
	if not same then self:fail('%s: wanted a weight with %d bits as it was read, got %s', word(layer), kept.bits, internal.describe(weight)) end
	local outputs, inputs = weight:size()
	local half, all = 1 << (kept.bits - 1), weight:codes():to 'int32'
	if kept.signed then all = all + half end
	if order then
		local at = {dtype = 'int32', device = 'cpu'}
		for column, input in ipairs(order:to 'cpu':totable()) do at[input] = column end
		all = all:indexselect(2, tensor(at))
	end
	local scale = p.scale:reshape(outputs, -1)
	local zero = kept.signed and tensor.full {value = half, dtype = 'int32', device = 'cpu', scale:size()} or p.zero_point:to 'int32':reshape(outputs, -1)
	self.left[layer .. '.weight'], self.left[layer .. '.order'] = nil, nil
	return {codes = all:to 'uint8', bits = kept.bits, scale = scale:to(kept.scale), zero = zero, groups = groups_of(order and order:to 'cpu', inputs, kept.group),
		kinds = kept.kinds or {}}
end

return codes
