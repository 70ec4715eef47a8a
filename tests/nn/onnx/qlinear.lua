-- SPDX-License-Identifier: MIT
-- labels: quick
-- Ops on codes, with form='qoperator'.
local exported = dofile 'tests/tools/exported.lua'
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(21)
local x = tensor.randn(3, 4, 6, 6)
local byte, fine = {dtype = 'uint8', scale = 0.02, zero_point = 99}, {dtype = 'uint8', scale = 0.0437, zero_point = 100}
local q = {export = {form = 'qoperator'}}

it('adds and multiplies codes', function()
	print(back(function(_, a) return a:quantize(byte):add((a * 2):quantize(fine), {out = fine}) end, x, q))  --> QuantizeLinear Mul QuantizeLinear com.microsoft.QLinearAdd
	print(back(function(_, a) return a:quantize(byte):mul((a * 2):quantize(fine), {out = fine}) end, x, q))  --> QuantizeLinear Mul QuantizeLinear com.microsoft.QLinearMul
end)

it('clips at 0 where an activation is part of the sum', function()
	print(out.ops(function(_, a) return a:quantize(byte):add(a:quantize(fine), {out = fine, act = 'relu'}) end, x, q))  --> QuantizeLinear QuantizeLinear com.microsoft.QLinearAdd Clip
	local zero = {dtype = 'uint8', scale = 0.03, zero_point = 0}
	print(out.ops(function(_, a) return a:quantize(byte):add(a:quantize(fine), {out = zero, act = 'relu'}) end, x, q))  --> QuantizeLinear QuantizeLinear com.microsoft.QLinearAdd
end)

it('decodes codes that these ops have not', function()
	local word = {dtype = 'int16', scale = 0.0003}
	print(back(function(_, a) return a:quantize(word):add(a:quantize(byte), {out = byte}) end, x, q))  --> QuantizeLinear QuantizeLinear DequantizeLinear DequantizeLinear Add QuantizeLinear
end)

it('writes a network of codes only', function()
	local m = nn.Sequential {nn.Conv2d(4, 6, 3, {pad = 1}), nn.ReLU(), nn.Residual {nn.Conv2d(6, 6, 3, {pad = 1})}, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
		nn.Linear(54, 5)}
	local g = exported.static(m, x)
	local ops = back(g, x, q)
	assert(not ops:find 'Dequantize' and select(2, ops:gsub('QuantizeLinear', '')) == 1, ops)
	back(g, x)
end)
