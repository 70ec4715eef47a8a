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

it('writes masks, lengths, windows and softcap', function()
	local parts = {seen = tensor.rand(6, 6):gt(0.4), added = tensor.randn(2, 1, 6), none = tensor.zeros {6, 6, dtype = 'bool'}}
	local function attend(o, key) return function(self, a)
		local given = {heads = 2, mask = key and self[key]}
		for name, value in next, o do given[name] = value end
		return nn.attention(a, a * 2, a - 1, given)
	end end
	for _, key in ipairs {'seen', 'added', 'none'} do out.back(attend({causal = key == 'seen'}, key), x, {parts = parts, tolerance = 3e-6}) end
	for _, o in ipairs {{window = 2}, {window = 3, causal = true}, {softcap = 0.4}, {window = 1, softcap = 2, scale = 0.7}} do
		out.back(attend(o), x, {tolerance = 3e-6})
	end
	out.back(function(_, a) return nn.attention(a, a, a, {heads = 2, lengths = (a:select(3, 1):sum {axis = 2}:abs() * 0 + 4):to 'int64'}) end, x, {tolerance = 3e-6})
end)

it('writes rotary positions of halves, of parts of rows, and by tables', function()
	for _, style in ipairs {'half', false} do
		local kind = style or nil
		out.back(function(_, a) return nn.rope(a, {style = kind, dims = 4, start = 2}) end, x, {tolerance = 2e-6})
		for _, width in ipairs {4, 8} do
			local parts = {c = tensor.randn(6, width), s = tensor.randn(6, width)}
			out.back(function(self, a) return nn.rope(heads(a, 1), {style = kind, cos = self.c, sin = self.s}) end, x, {parts = parts, tolerance = 2e-6})
		end
	end
end)
