-- SPDX-License-Identifier: MIT
-- Windows over pictures: pooling.
local _, internal = ...
local codes = internal.import 'nn/onnx/out/codes'
local qlinear = internal.import 'nn/onnx/qlinear'
local requantize = internal.import 'nn/onnx/requantize'
local ops = {}

local function pair(given, default)
	if given == nil then return default end
	if type(given) == 'number' then return {given, given} end
	return {given[1], given[2] or given[1]}
end

local AUTO = {same = 'SAME_UPPER', same_lower = 'SAME_LOWER', valid = 'VALID'}

-- Attributes of a window of two axes; that of a pool steps by its own size.
local function window(n, k)
	local pad = n:attr 'pad'
	local pads = nil
	if type(pad) == 'table' and #pad == 4 then
		pads = {pad[1], pad[3], pad[2], pad[4]}
	elseif pad then
		local p = pair(pad)
		pads = {p[1], p[2], p[1], p[2]}
	end
	local rule = n:attr 'autopad'
	if rule then
		return {kernel_shape = k, strides = pair(n:attr 'stride', k or {1, 1}), dilations = pair(n:attr 'dilation'), auto_pad = AUTO[rule]}
	end
	return {kernel_shape = k, strides = pair(n:attr 'stride', k or {1, 1}), pads = pads, dilations = pair(n:attr 'dilation')}
end

-- The places within planes, counted from 1, of those within the whole.
local function places(n, at)
	local h, w = n.shapes[1][3], n.shapes[1][4]
	if math.type(h) ~= 'integer' or math.type(w) ~= 'integer' then n:refuse 'indices= of planes of the batch' end
	return n:emit('Add', {n:emit('Mod', {at, n:number(h * w, 'int64')}), n:number(1, 'int64')})
end

-- Bytes are compared as they are.
local function maxpool2d(n)
	local k, indices, given = n:attr 'k', n:attr('indices', false), quant.dtype(n:typed())
	if not given.float and given.bits > 8 then n:refuse('integers of %d bits', given.bits) end
	if k == 'all' then
		if indices then n:refuse 'indices= of whole planes' end
		return n:emit('GlobalMaxPool', {n:input(1, n:typed())})
	end
	local a = window(n, pair(k))
	if n:attr('ceilmode', false) then a.ceil_mode = 1 end
	local x = not indices and qlinear.bytes_of(n, 1)
	if x and not x.axis then return {codes = codes.moved(x, n:emit('MaxPool', {x.name}, a))} end
	local dtype = n:typed()
	if not indices then return n:emit('MaxPool', {n:input(1, dtype)}, a) end
	local y, at = n:emit('MaxPool', {n:input(1, dtype)}, a, 2)
	return y, places(n, at)
end

function ops.avgpool2d(n)
	local k = pair(n:attr 'k' ~= 'all' and n:attr 'k' or nil)
	if not k then
		if n:attr 'pad' or n:attr 'stride' then n:refuse 'pad= or stride= of whole planes' end
		return requantize.mean(n) or qlinear.unary(n, 'QLinearGlobalAveragePool', {channels_last = 0}) or n:emit('GlobalAveragePool', {n:input(1, n:typed())})
	end
	local a = window(n, k)
	if a.dilations then n:refuse 'dilation=' end
	a.count_include_pad = n:attr('countincludepad', true) and 1 or 0
	if n:attr('ceilmode', false) then a.ceil_mode = 1 end
	local whole = not a.pads and k[1] == n.shapes[1][3] and k[2] == n.shapes[1][4]
	local made = whole and requantize.mean(n) or qlinear.unary(n, 'QLinearAveragePool', a)
	return made or n:emit('AveragePool', {n:input(1, n:typed())}, a)
end

ops.maxpool2d = maxpool2d
return {ops = ops, window = window}
