-- SPDX-License-Identifier: MIT
-- Outlier channel splitting (arXiv 1901.09504): an input channel with large weights becomes two, which the layer before gives:
--   w to (w - s/2) / 2 and (w + s/2) / 2, whose codes under the scale s have the sum of that of w
local internal = select(2, ...)
local module = internal.import 'nn/base/module'
local targets = internal.import 'nn/quantize/targets'

local RATIO = 0.02
-- f gives for each channel what depends on it alone
local THROUGH = {Flatten = true, MaxPool2d = true, AvgPool2d = true, Dropout = true, ReLU = true, ReLU6 = true, GELU = true, SiLU = true, Sigmoid = true, Tanh = true}

local function say(item, why) item.row.why = (item.row.why and item.row.why .. '; ' or '') .. why end

local function groups_of(layer) return module.class_of(layer).column_groups and module.class_of(layer).column_groups(layer) or 1 end

-- layer -> the layer that alone gives its input, channel by channel.
local function layers_before(m)
	local before = {}
	module.walk(m, function(_, inner)
		local class = module.class_of(inner)
		for _, sequence in ipairs(class.resizes and class.sequences(inner) or {}) do
			local last
			for _, child in ipairs(sequence) do
				if module.class_of(child).scaled and module.class_of(child).columns then
					before[child], last = last, child
				elseif not THROUGH[module.class_of(child).name] or rawget(child, 'axis') == 1 then
					last = nil
				end
			end
		end
	end)
	return before
end

-- Why the inputs of a layer cannot be split; nil: they can.
local function hindered(layer, first, shared)
	if not first then return 'no layer before it that can give its channels twice' end
	for _, one in ipairs {layer, first} do
		if shared[one] or shared[one.weight] or one.bias and shared[one.bias] then return 'it or the layer before it is used in several places' end
		if groups_of(one) ~= 1 then return 'it or the layer before it has groups' end
		if one.weight:quantized() or rawget(one, 'order') then return 'it or the layer before it has codes' end
	end
	local n = first.weight:size(1)
	if layer.weight:size(2) % n ~= 0 or layer.weight:size(2) ~= n and first.weight:dim() == 2 then
		return ('the layer before it gives %d channels, %d are read'):format(n, layer.weight:size(2))
	end
end

-- The scale of each weight of a matrix, or 0 where steps are not equal.
local function scales(w, spec)
	local q = w:quantize(spec)
	local p = spec.affine and q:qparams()
	if not p then return 0 end
	local s = (p.scale:quantized() and p.scale:dequantize() or p.scale):to 'float32'
	if spec.block then return s:view(w:size(1), s:nelem() // w:size(1)):repeatinterleave(spec.block, {axis = 2}):narrow(2, 1, w:size(2)) end
	return s:nelem() == 1 and s:item() or s:nelem() == w:size(1) and s:view(w:size(1), 1) or 0
end

-- The channels with the largest weights, in ascending order.
local function largest(w, n)
	local _, order = w:abs():max {axis = 3}:max {axis = 1}:sort {descending = true}
	local list = order:narrow(1, 1, n):totable()
	table.sort(list)
	return tensor {list, dtype = 'int32'}:view(n):to(w:device())
end

local function grow(layer, field, rows)
	local value = rawget(layer, field)
	if value then module.set_tensor(layer, field, tensor.cat({value:detach(), value:detach():indexselect(1, rows)}, {axis = 1})) end
end

local function resized(...)
	for _, layer in ipairs {...} do
		if module.class_of(layer).resized then layer:resized() end
	end
end

-- Splits n channels between the layers.
local function split(item, first, n)
	local layer, sizes = item.layer, {item.layer.weight:size()}
	local count, outputs = first.weight:size(1), sizes[1]
	local flat = targets.new(item.name, item, {layer}, item.field)
	local per = flat.weight:size(2) // count
	local w = flat.weight:view(outputs, count, per)
	local at = largest(w, n)
	local half = tensor.ones {count, device = w:device()}
	for _, i in ipairs(at:totable()) do half[i] = 0.5 end
	half = half:view(1, count, 1)
	local s = scales((w * half):reshape(outputs, count * per), flat.spec)
	local moved = ((flat.weight * 0 + s) * 0.25):view(outputs, count, per) * half:lt(1):to 'float32' -- s / 4 for the channels that are split
	local all = tensor.cat({w * half - moved, (w * half + moved):indexselect(2, at)}, {axis = 2})
	sizes[2] = sizes[2] // count * (count + n)
	module.set_tensor(layer, item.field, all:reshape(table.unpack(sizes)))
	for _, field in ipairs(module.class_of(first).scaled) do grow(first, field, at) end
	resized(layer, first)
end

return {
	phase = 'model', needs = 'nothing',
	text = [[Outlier channel splitting: input channels with the largest weights become two with half of these each, and the layer before gives them twice, so that
scales are smaller and the function stays. Needs a linear layer or convolution without groups before, in nn.Sequential, with at most activations, pooling and
Flatten between. For one scale a layer or row ('int8', 'int4/1') and weights with outliers; the model grows by the ratio. In mode static data= is needed to
observe the ranges again.]],
	options = {{'ratio', 'number', 'share of the channels that are split, at least one (default 0.02)'}},
	refuses = function(item, o)
		local ratio = o.ratio or RATIO
		if not (ratio > 0 and ratio <= 1) then return ('wanted ratio= above 0 and at most 1, got %g'):format(ratio) end
		if item.spec.scale then return 'wanted a spec without scale=, because the ranges change, got one with it' end
	end,
	run = function(m, o, plan)
		local before, shared, names = layers_before(m), module.shared(m), {}
		for name in next, plan do names[#names + 1] = name end
		table.sort(names)
		for _, name in ipairs(names) do
			for _, item in ipairs(plan[name]) do
				local first = before[item.layer]
				local why = hindered(item.layer, first, shared)
				if why then
					say(item, 'not split: ' .. why)
				else
					local n = math.ceil((o.ratio or RATIO) * first.weight:size(1))
					split(item, first, n)
					say(item, ('%d channels split'):format(n))
				end
			end
		end
	end,
}
