-- SPDX-License-Identifier: MIT
-- Data-free equalization of the ranges of two consecutive layers (Nagel et al. 2019, arXiv 1906.04721, section 4.1).
--   s_i = sqrt(r1_i r2_i) / r2_i    W1_i / s_i, b1_i / s_i, W2_:i * s_i    then r1_i = r2_i; r: largest absolute weight of channel i
local _, internal = ...
local module = internal.import 'nn/base/module'
local fuse = internal.import('nn/quantize/fuse').fuse
local methods, method = module.methods, module.method

local SWEEPS, CLOSE = 50, 1e-3
local THROUGH = {Flatten = true, MaxPool2d = true, AvgPool2d = true, Dropout = true, ReLU = true} -- f(s x) = s f(x) by channel, s > 0

---------------------------------------------------------------- equalization

local function is_layer(m)
	local name = module.class_of(m).name
	return (name == 'Linear' or name == 'Conv2d') and not rawget(m, 'quantized')
end

local function groups_of(m) return module.class_of(m).name == 'Conv2d' and m.geometry.groups or 1 end

-- The weight of the second layer by input channel: a view (channels, …), if one exists for `n` channels.
local function by_input(w, groups, n)
	if groups == n and n > 1 then return w:view(n, w:nelem() // n) end -- one group for each channel
	if groups ~= 1 or w:size(2) % n ~= 0 then return nil end
	local each = w:nelem() // w:size(1) // n
	return w:view(w:size(1), n, each):permute(2, 1, 3)
end

local function largest(rows) -- (n, …) -> (n)
	return rows:contiguous():view(rows:size(1), rows:nelem() // rows:size(1)):abs():max {axis = 2}
end

-- nn.Flatten leaves the channels of a Linear's rows interleaved, not contiguous like those of an image.
local function is_mixed(first, second)
	return module.class_of(first).name == 'Linear' and second.weight:size(2) ~= first.weight:size(1)
end

-- Adds {one=, bias=, two=} for each pair in a sequence of modules: the weights of both layers, `two` by input channels.
local function add_pairs(sequence, list, shared)
	local first
	local function is_shared(layer) return shared[layer] or shared[layer.weight] or layer.bias and shared[layer.bias] end
	for _, child in ipairs(sequence) do
		if is_layer(child) and is_shared(child) then
			first = nil
		elseif is_layer(child) then
			local one = first and not is_mixed(first, child) and first.weight:detach()
			local two = one and by_input(child.weight:detach(), groups_of(child), one:size(1))
			if two then list[#list + 1] = {one = one, bias = first.bias and first.bias:detach(), two = two} end
			first = (not child.act or child.act == 'relu') and child or nil
		elseif not THROUGH[module.class_of(child).name] or rawget(child, 'axis') == 1 then
			first = nil
		end
	end
	return list
end

local function scaled(rows, factor)
	local shape = {factor:nelem()}
	for i = 2, rows:dim() do shape[i] = 1 end
	rows:mul_(factor:view(table.unpack(shape)))
end

-- Equalizes one pair; returns the logarithm of the ratio of its ranges.
local function equalize_pair(one, bias, two)
	local n = one:size(1)
	local r1, r2 = largest(one), largest(two)
	local dead = r1:eq(0):to 'float32' + r2:eq(0):to 'float32'
	local s = tensor.where(dead:gt(0), tensor.ones {n, device = one:device()}, (r1 / r2):sqrt())
	scaled(one, s ^ -1)
	if bias then bias:div_(s) end
	scaled(two, s)
	return s:log():abs():max():item()
end

-- Equalizes all pairs repeatedly until convergence.
local function sweep(list)
	local _ <close> = internal.nograd()
	for _ = 1, SWEEPS do
		local far = 0
		for _, pair in ipairs(list) do far = math.max(far, equalize_pair(pair.one, pair.bias, pair.two)) end
		if far < CLOSE then break end
	end
end

-- Equalizes the layers of m that follow each other; returns the number of pairs.
local function equalize(m)
	local list, shared = {}, module.shared(m)
	module.walk(m, function(_, inner)
		local class = module.class_of(inner)
		for _, sequence in ipairs(class.sequences and class.sequences(inner) or {}) do add_pairs(sequence, list, shared) end
	end)
	sweep(list)
	return #list
end

method('equalize', 'm:equalize()', [[Returns a fused copy of m (see m:fuse) with cross-layer equalization: the channels between two consecutive
layers, with at most ReLU, pooling and Flatten between them, are scaled so that their weights have the same range in both layers. The
outputs are equal up to rounding; the error of weights with a single scale ('int8') is much smaller. No data is needed; calibrate
afterwards.]],
	[[m = nn.Sequential{nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)}
e = m:equalize()
print(e(tensor.ones(1, 4)):error(m(tensor.ones(1, 4))).max < 1e-5)  --> true]])
function methods.equalize(m)
	module.parts_of(m, 'equalize')
	local new = fuse(m:clone():eval())
	equalize(new)
	return new
end

return {equalize = equalize}
