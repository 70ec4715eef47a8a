-- SPDX-License-Identifier: MIT
-- Pooling. Means do not count the padding.
local internal = select(2, ...)
local window = internal.import 'nn/tflite/window'
local ops = {}

local function window_of(n, x)
	local kernel, stride = {n:option('filter_h', 0), n:option('filter_w', 0)}, window.stride(n)
	for _, k in ipairs(kernel) do
		if k < 1 then n:fail('filter: wanted 1 and up, got %d', k) end
	end
	local pads = window.pads(n, x, kernel, stride)
	local padded = pads[1] + pads[2] + pads[3] + pads[4] > 0
	return {k = kernel, stride = stride, pad = padded and pads or nil}, padded
end

-- A bound of codes where the activation is one; else the codes themselves.
local function bounded(n, y, act)
	if not act then return n.value(y, true) end
	if not y:quantized() then return n.value(n.under(y, act), true) end
	return n.value(y:requantize(n:spec(act, 'double')), true)
end

function ops.MAX_POOL_2D(n)
	local x = n:image(1)
	local o = window_of(n, x)
	return bounded(n, x:maxpool2d(o), n:act())
end

function ops.AVERAGE_POOL_2D(n)
	local x, act = n:image(1), n:act()
	local o, padded = window_of(n, x)
	if padded then o.countincludepad = false end
	if not x:quantized() then return n.value(n.under(x:avgpool2d(o), act), true) end
	o.out = n:spec(act, 'double') or n:fail 'output: wanted codes of codes, got floats'
	return n.value(x:avgpool2d(o), true)
end

return ops
