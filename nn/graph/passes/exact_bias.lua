-- SPDX-License-Identifier: MIT
-- Pass exact_bias: a product of codes whose bias is far from a multiple of sx * sw, the unit of its int32 sums, gives floats, to which the
-- bias is added, in place of codes. Files of torch's PT2E have such biases: rounded to that unit they would move one code in 200 or so of
-- each layer by 1. Biases that were int32 in a file, as those of other quantizers, are such multiples.
local _, internal = ...
local codes = internal.import 'nn/graph/codes'

local MOST = 2 ^ -12 -- of a code of the result; in a network of 20 layers that is a code in 10^4

-- The scale of the quantize that rounds the result.
local function scale_after(e, node)
	local user = e:only_user(node.name)
	if user and user.op == 'relu' then user = e:only_user(user.name) end
	return user and user.op == 'quantize' and codes.fixed(user.attrs.spec) and codes.params(user.attrs.spec) or nil
end

local function constant(e, ref)
	local node = type(ref) == 'string' and e.nodes[ref]
	return node and node.op == 'const' and node.value or nil
end

-- By how many codes of the result a bias rounded to units of the sums is off, at most; nil: not such a product.
local function off(e, node)
	local input, out = node.spec and node.spec.input, scale_after(e, node)
	local weight, bias = constant(e, node.inputs[2]), constant(e, node.inputs[3])
	local scale = input and codes.params(input)
	if node.mode ~= 'static' or not out or not scale or not weight or not weight:quantized() or not bias or bias:quantized() then return nil end
	local p = weight:qparams()
	if p.block or p.scale:quantized() or p.scale:nelem() ~= 1 and p.scale:nelem() ~= bias:nelem() then return nil end
	local unit = (p.scale:reshape(-1):to 'float32' * scale):to 'float64'
	local units = bias:reshape(-1):to 'float64' / unit
	return ((units - units:round()):abs() * unit / out):max():item()
end

return {text = 'biases that int32 would round stay floats', run = function(e, say)
	for _, name in ipairs(table.move(e.order, 1, #e.order, 1, {})) do
		local node = e.nodes[name]
		local codes_off = not node.floats and #node.inputs == 3 and off(e, node)
		if codes_off and codes_off > MOST then
			e:change(node, {floats = true})
			say(name, ('gives floats: its bias as int32 would be off by %.2g codes'):format(codes_off))
		end
	end
end}
