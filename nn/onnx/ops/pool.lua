-- SPDX-License-Identifier: MIT
-- Pooling.
local internal = select(2, ...)
local conv = internal.import 'nn/onnx/ops/conv'
local ops = {}

local function window(n, x)
	local axes, kernel = x:dim() - 2, n:attr 'kernel_shape'
	if type(kernel) ~= 'table' or #kernel ~= axes then n:fail('kernel_shape: wanted %d sizes, got another', axes) end
	if axes > 2 then n:fail('wanted 1 or 2 axes beside batch and channels, got %d', axes) end
	local stride, dilation = conv.each(n, 'strides', axes), conv.each(n, 'dilations', axes)
	local begins, ends = conv.pads_of(n, x, kernel, stride, dilation)
	local o = axes == 2 and {k = kernel, stride = stride, pad = {begins[1], ends[1], begins[2], ends[2]}, dilation = dilation} or
		{k = {1, kernel[1]}, stride = {1, stride[1]}, pad = {0, 0, begins[1], ends[1]}, dilation = {1, dilation[1]}}
	for _, d in ipairs(dilation) do
		if d ~= 1 then return o, axes end
	end
	o.dilation = nil
	return o, axes
end

local function pooled(x, axes, f)
	if axes == 2 then return f(x) end
	return f(x:unsqueeze(3)):squeeze(3)
end

function ops.MaxPool(n, x)
	if n.outputs > 1 then n:fail 'wanted one output, got positions, too' end
	local o, axes = window(n, x)
	if n:attr('ceil_mode', 0) ~= 0 then o.ceilmode = true end
	return pooled(x, axes, function(y) return y:maxpool2d(o) end)
end

function ops.AveragePool(n, x)
	local o, axes = window(n, x)
	if n:attr('ceil_mode', 0) ~= 0 then o.ceilmode = true end
	local padded = false
	for _, p in ipairs(o.pad) do padded = padded or p ~= 0 end
	if n:attr('count_include_pad', 0) == 0 and (padded or o.ceilmode) then o.countincludepad = false end
	return pooled(x, axes, function(y) return y:avgpool2d(o) end)
end

local function all_axes(x)
	local axes = {}
	for i = 3, x:dim() do axes[#axes + 1] = i end
	return axes
end

function ops.GlobalAveragePool(_, x)
	if x:dim() == 4 then return x:avgpool2d() end
	return x:mean {axis = all_axes(x), keep = true}
end

function ops.GlobalMaxPool(_, x) return x:max {axis = all_axes(x), keep = true} end

return ops
