-- SPDX-License-Identifier: MIT
-- m:fuse: folds batch norm into the layer before it; a ReLU or ReLU6 becomes that layer's act. Only for neighbours in
-- nn.Sequential or nn.Residual, because the data flow in a Lua function is unknown.
--   w' = w gamma / sqrt(var + eps), b' = (b - mean) gamma / sqrt(var + eps) + beta   (formulas in Jacob et al. 2018, 3.2)
local _, internal = ...
local module = internal.import 'nn/base/module'
local methods, method = module.methods, module.method

local function is_kind(m, name) return module.class_of(m).name == name end

-- The weight and bias of a layer followed by the norm {weight, bias, mean, var, eps}; bias may be nil. The weight is computed in float32
-- in the order of TensorFlow's converter, so that ties give the same codes (tests/quant/tflite_codes.lua); the bias in double, rounded
-- once.
local function folded(weight, bias, norm)
	local _ <close> = internal.nograd()
	local function wide(t) return t:to 'float64' end
	local function single(t) return t:dtype() == 'float64' and t or t:to 'float32' end
	local factor = single(norm.weight) / (single(norm.var) + norm.eps):sqrt()
	local shape = {weight:size(1)}
	for _ = 2, weight:dim() do shape[#shape + 1] = 1 end
	local offset = (wide(norm.mean) - (bias and wide(bias) or 0)) * -1 * wide(norm.weight) / (wide(norm.var) + norm.eps):sqrt() + wide(norm.bias)
	return (single(weight) * factor:view(table.unpack(shape))):to(weight:dtype()), offset:to((bias or weight):dtype())
end

local function fold(layer, norm)
	local weight, bias = folded(layer.weight, layer.bias or nil,
		{weight = norm.weight, bias = norm.bias, mean = norm.running_mean, var = norm.running_var, eps = norm.eps})
	module.set_tensor(layer, 'weight', weight)
	if layer.bias then
		module.set_tensor(layer, 'bias', bias)
	else
		module.parameter(layer, 'bias', bias)
	end
end

local function can_fold(layer, norm)
	return is_kind(norm, 'BatchNorm2d') and (is_kind(layer, 'Conv2d') or is_kind(layer, 'Linear')) and not layer.act and
		not rawget(layer, 'quantized')
end

local function can_act(layer, act)
	return (is_kind(act, 'ReLU') or is_kind(act, 'ReLU6')) and rawget(layer, 'act') == false and
		not rawget(layer, 'quantized')
end

-- Children by position, without folded ones.
local function fuse_list(m, count, shared)
	local kept = {}
	for i = 1, count do
		local child, last = m[i], kept[#kept]
		if shared[last] then last = nil end -- a shared module may be followed by another module elsewhere
		if last and can_fold(last, child) then
			fold(last, child)
			module.remove(m, child)
		elseif last and can_act(last, child) then
			last.act = is_kind(child, 'ReLU') and 'relu' or 'relu6'
			module.remove(m, child)
		else
			kept[#kept + 1] = child
		end
	end
	for i = 1, count do m[i] = kept[i] end
	return #kept
end

local function fuse(m)
	local shared = module.shared(m)
	module.walk(m, function(_, inner)
		if is_kind(inner, 'Sequential') then fuse_list(inner, #inner, shared) end
		if is_kind(inner, 'Residual') then inner.body = fuse_list(inner, inner.body, shared) end
	end)
	return m
end

method('fuse', 'm:fuse()', [[Returns a copy of m in eval mode in which each batch norm after a convolution or Linear is folded into its
weight and bias, and a ReLU or ReLU6 after such a layer becomes its activation. Only adjacent modules in nn.Sequential and nn.Residual
are fused; names do not change. The outputs are equal up to rounding.]],
	[[m = nn.Sequential{nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()}:eval()
print(#m:fuse(), m:fuse().conv1.act)  --> 1 relu]])
function methods.fuse(m)
	module.parts_of(m, 'fuse')
	return fuse(m:clone():eval())
end

return {fuse = fuse, folded = folded}
