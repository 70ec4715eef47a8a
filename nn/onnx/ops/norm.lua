-- SPDX-License-Identifier: MIT
-- Normalization.
local ops = {}

function ops.BatchNormalization(n, x, scale, shift, mean, variance)
	if n:attr('training_mode', 0) ~= 0 then n:fail 'training_mode: wanted 0, got another' end
	if x:dim() >= 2 and n:attr('epsilon', 1e-5) > 0 and n.is_float(x) and x:dtype() == scale:dtype() and scale:dtype() == mean:dtype() then
		return nn.batchnorm(x, scale, shift, mean, variance, {eps = n:attr('epsilon', 1e-5)})
	end
	local sizes = {1, x:size(2)}
	for i = 3, x:dim() do sizes[i] = 1 end
	local factor = scale * (variance + n:attr('epsilon', 1e-5)):rsqrt()
	local rest = shift - mean * factor
	return x * factor:view(table.unpack(sizes)) + rest:view(table.unpack(sizes))
end

-- Whether t has the sizes of x from `axis` on.
local function is_row(t, x, axis)
	if t:dim() ~= x:dim() - axis + 1 then return false end
	for i = axis, x:dim() do
		if t:size(i - axis + 1) ~= x:size(i) then return false end
	end
	return true
end

function ops.LayerNormalization(n, x, scale, shift)
	local axis, eps = n:axis(n:attr('axis', -1), x:dim()), n:attr('epsilon', 1e-5)
	if is_row(scale, x, axis) and (not shift or is_row(shift, x, axis)) and n.outputs == 1 then
		local o = {eps = eps, axes = axis < x:dim() and x:dim() - axis + 1 or nil}
		if shift then return x:layernorm(scale, shift, o) end
		return x:layernorm(scale, o)
	end
	local axes = {}
	for i = axis, x:dim() do axes[#axes + 1] = i end
	local d = x - x:mean {axis = axes, keep = true}
	local mean, factor = x:mean {axis = axes, keep = true}, (d:square():mean {axis = axes, keep = true} + eps):rsqrt()
	local y = d * factor * scale
	return shift and y + shift or y, mean, factor
end

function ops.InstanceNormalization(n, x, scale, shift)
	return nn.instancenorm(x, scale, shift, {eps = n:attr('epsilon', 1e-5)})
end

-- Up to opset 20 scale and shift are of groups.
function ops.GroupNormalization(n, x, scale, shift)
	local groups = n:required('num_groups', 'integer')
	if n.opset < 21 then
		local each = x:size(2) // groups
		scale, shift = scale:view(groups, 1):tile(1, each):reshape(groups * each), shift:view(groups, 1):tile(1, each):reshape(groups * each)
	end
	return nn.groupnorm(x, groups, scale, shift, {eps = n:attr('epsilon', 1e-5)})
end

function ops.MeanVarianceNormalization(n, x)
	local axes = n:axes(nil, x:dim()) or {1, 3, 4}
	local d = x - x:mean {axis = axes, keep = true}
	return d / (d:square():mean {axis = axes, keep = true}:sqrt() + 1e-9)
end

function ops.LpNormalization(n, x)
	local axis, p = n:axis(n:attr('axis', -1), x:dim()), n:attr('p', 2)
	local sum = p == 1 and x:abs():sum {axis = axis, keep = true} or x:square():sum {axis = axis, keep = true}:sqrt()
	return tensor.where(sum:eq(0), x * 0, x / sum)
end

-- Over `size` neighbouring channels, of an even number one more after than before, where nn.localresponsenorm has it before.
function ops.LRN(n, x)
	local size = n:required('size', 'integer')
	local o, even = {alpha = n:attr('alpha', 1e-4), beta = n:attr('beta', 0.75), k = n:attr('bias', 1.0)}, size % 2 == 0
	local y = nn.localresponsenorm(even and x:flip(2) or x, size, o)
	return even and y:flip(2) or y
end

function ops.RMSNormalization(n, x, scale)
	local axis, eps = n:axis(n:attr('axis', -1), x:dim()), n:attr('epsilon', 1e-5)
	if is_row(scale, x, axis) then return x:rmsnorm(scale, {eps = eps, axes = axis < x:dim() and x:dim() - axis + 1 or nil}) end
	local axes = {}
	for i = axis, x:dim() do axes[#axes + 1] = i end
	return x * (x:square():mean {axis = axes, keep = true} + eps):rsqrt() * scale
end

return ops
