-- SPDX-License-Identifier: MIT
-- labels: quick
-- Pass exact_bias: biases that int32 would round stay floats.
tensor.seed(5)
local x = tensor.randn(40, 6)
local input, output = {dtype = 'uint8', scale = 0.04, zero_point = 128}, {dtype = 'int8', scale = 0.03, zero_point = -4}
local w = tensor.randn(5, 6):quantize 'int8/1'
local unit = w:qparams().scale:reshape(-1) * 0.04

local function made(f, bias)
	local g = graph.trace(nn.module(f, {w = w, b = bias}), x)
	g = g:pass 'take_codes'
	return g:pass 'exact_bias'
end
local function layer(self, a) return a:quantize(input):dequantize():linear(self.w:dequantize(), self.b):relu():quantize(output) end

it('leaves multiples of the unit, and products without a bias or a quantize', function()
	for _, f in ipairs {layer, function(self, a) return a:quantize(input):dequantize():linear(self.w:dequantize(), self.b) end} do
		local g, r = made(f, tensor {-100, 3, 0, 7, 40000} * unit)
		assert(#r == 0 and not g:node('linear1').floats)
	end
	local _, r = made(function(self, a) return a:quantize(input):dequantize():linear(self.w:dequantize()):quantize(output) end)
	assert(#r == 0)
	_, r = made(function(self, a) return a:quantize(input):dequantize():linear(self.w:dequantize(), self.b) end, tensor.randn(5))
	assert(#r == 0)
end)

it('finds others, once', function()
	local g, r = made(layer, tensor {-100, 3, 0.5, 7, 40000} * unit)
	assert(#r == 1 and r[1].node == 'linear1' and r[1].what:find 'gives floats: its bias as int32 would be off by')
	assert(#select(2, g:pass 'exact_bias') == 0)
end)
