-- SPDX-License-Identifier: MIT
-- labels: quick
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(4)
local x = tensor.randn(3, 4, 6)
local byte, wide = {dtype = 'uint8', scale = 0.02, zero_point = 99}, {dtype = 'uint8', scale = 0.05, zero_point = 120}

it('joins', function()
	back(function(_, a) return tensor.cat({a, a * 2, a:neg()}, {axis = 2}) end, x)
	back(function(_, a) return tensor.cat({a:to 'int64', a:to 'int64'}, {axis = -1}) end, x)
	back(function(_, a) return tensor.stack({a, a * 2}, {axis = 2}) end, x)
	back(function(_, a) return tensor.stack({a, a * 2}, {axis = -1}) end, x)
end)

it('joins codes', function()
	local function f(_, a) return tensor.cat({a:quantize(byte), a:neg():quantize(byte)}, {axis = 2, out = wide}) end
	back(f, x)
	print((back(f, x, {export = {form = 'qoperator'}}):gsub('.*%s', '')))  --> com.microsoft.QLinearConcat
end)
