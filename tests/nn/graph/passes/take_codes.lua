-- SPDX-License-Identifier: MIT
-- labels: quick
-- Pass take_codes: ops whose operands are decoded codes take the codes; others stay as they are.
tensor.seed(4)
local w, x = tensor.randn(4, 3):quantize 'int8/1', tensor.randn(2, 3)
local spec = {dtype = 'uint8', scale = 0.02, zero_point = 128}

local function nodes(f)
	local g = graph.trace(nn.module(f, {}), x)
	local made, r = g:pass 'take_codes'
	local modes = {}
	for _, name in ipairs(made.order) do modes[#modes + 1] = made:node(name).mode and made:node(name).op or nil end
	assert((made:run(x):dequantize() - g:run(x):dequantize()):abs():max():item() < 0.1)
	assert(#select(2, made:pass 'take_codes') == 0)
	return table.concat(modes, ' '), #r, made
end

it('gives layers the codes of activations and weights', function()
	local modes, n, g = nodes(function(_, a) return a:quantize(spec):dequantize():linear(w:dequantize()) end)
	assert(modes == 'linear' and n == 1)
	local want = x:quantize(spec):linear(w)
	assert(not g:run(x):ne(want):any():item())
end)

it('wants codes on both sides, and a known scale', function()
	assert(nodes(function(_, a) return a:linear(w:dequantize()) end) == '')
	assert(nodes(function(_, a) return a:quantize(spec):dequantize():linear(w:dequantize() * 2) end) == '')
	assert(nodes(function(_, a) return a:quantize 'uint8':dequantize():linear(w:dequantize()) end) == '')
end)

it('takes sums only where their result is quantized', function()
	local function sum(a)
		local q = a:quantize(spec):dequantize()
		return q + q
	end
	assert(nodes(function(_, a) return sum(a) end) == '')
	assert(nodes(function(_, a) return sum(a):quantize {dtype = 'uint8', scale = 0.05, zero_point = 128} end) == 'add')
end)
