-- SPDX-License-Identifier: MIT
-- Windows over pictures: pooling.
local _, internal = ...
local codes = internal.import 'nn/onnx/out/codes'
local qlinear = internal.import 'nn/onnx/qlinear'
local ops = {}

local function pair(given, default)
	if given == nil then return default end
	if type(given) == 'number' then return {given, given} end
	return {given[1], given[2] or given[1]}
end

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
	return {kernel_shape = k, strides = pair(n:attr 'stride', k or {1, 1}), pads = pads, dilations = pair(n:attr 'dilation')}
end

-- Bytes are compared as they are.
local function maxpool2d(n)
	local a = window(n, pair(n:attr 'k'))
	if n:attr('ceil', false) then a.ceil_mode = 1 end
	local x = qlinear.bytes_of(n, 1)
	if x and not x.axis then return {codes = codes.moved(x, n:emit('MaxPool', {x.name}, a))} end
	local dtype = n:typed()
	return n:emit('MaxPool', {n:input(1, dtype)}, a)
end

function ops.avgpool2d(n)
	local k = n:attr 'k'
	if k == nil or k == 'all' then
		if n:attr 'pad' or n:attr 'stride' then n:refuse 'pad= or stride= of whole planes' end
		return qlinear.unary(n, 'QLinearGlobalAveragePool', {channels_last = 0}) or n:emit('GlobalAveragePool', {n:input(1, n:typed())})
	end
	local a = window(n, pair(k))
	if a.dilations then n:refuse 'dilation=' end
	a.count_include_pad = n:attr('countpad', true) and 1 or 0
	if n:attr('ceil', false) then a.ceil_mode = 1 end
	local made = qlinear.unary(n, 'QLinearAveragePool', a)
	return made or n:emit('AveragePool', {n:input(1, n:typed())}, a)
end

ops.maxpool2d = maxpool2d
return {ops = ops, window = window}
