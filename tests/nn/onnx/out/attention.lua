-- SPDX-License-Identifier: MIT
-- labels: quick
local out = dofile 'tests/tools/onnx_out.lua'
tensor.seed(15)
local x = tensor.randn(3, 6, 8)

local function heads(a, n) return a:view(a:size(1), 6, n, 8 // n):transpose(2, 3) end

it('writes attention', function()
	for _, o in ipairs {{}, {causal = true}, {scale = 0.3}, {window = 2}, {window = 3, causal = true}, {softcap = 0.5}} do
		out.back(function(_, a) return nn.attention(heads(a, 2), heads(a * 2, 2), heads(a - 1, 2), o) end, x, {tolerance = 2e-6})
	end
	out.back(function(_, a) return nn.attention(heads(a, 4), heads(a * 2, 4):narrow(2, 1, 2), heads(a - 1, 4):narrow(2, 1, 2)) end, x, {tolerance = 2e-6})
	out.back(function(_, a) return nn.attention(a, a * 2, a - 1, {heads = 2, causal = true}) end, x, {tolerance = 2e-6})
	out.back(function(_, a) return nn.attention(a, a:narrow(3, 1, 4), a:narrow(3, 5, 4), {heads = 2}) end, x, {tolerance = 2e-6})
	out.back(function(_, a) return nn.attention(a:narrow(2, 5, 2), a, a, {heads = 1, causal = true}) end, x, {tolerance = 2e-6})
end)

it('writes rotary positions', function()
	out.back(function(_, a) return nn.rope(a) end, x, {tolerance = 2e-6})
	out.back(function(_, a) return nn.rope(heads(a, 2), {start = 3, base = 500}) end, x, {tolerance = 2e-6})
	out.back(function(_, a) return nn.rope(a:view(-1, 6, 2, 4), {axis = 2}) end, x, {tolerance = 2e-6})
	for _, style in ipairs {'pairs', 'half'} do
		out.back(function(_, a) return nn.rope(a, {style = style, dims = 6}) end, x, {tolerance = 2e-6})
		local cos, sin = tensor.randn(6, 4), tensor.randn(6, 4)
		out.back(function(_, a) return nn.rope(a, cos, sin, {style = style}) end, x, {tolerance = 2e-6})
		cos, sin = cos:narrow(2, 1, 2), sin:narrow(2, 1, 2)
		out.back(function(_, a) return nn.rope(a:view(-1, 6, 2, 4), cos, sin, {axis = 2, style = style}) end, x, {tolerance = 2e-6})
	end
end)
