-- SPDX-License-Identifier: MIT
-- labels: quick
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(3)
local x = tensor.randn(3, 4, 6)
local byte = {dtype = 'uint8', scale = 0.02, zero_point = 99}

local cases = {
	function(_, a) return a:view(a:size(1), 24) end,
	function(_, a) return a:view(-1, 6) end,
	function(_, a) return a:transpose(2, 3):reshape(-1, 2, 12) end,
	function(_, a) return a:permute(1, 3, 2) end,
	function(_, a) return a:transpose(-1, -2) end,
	function(_, a) return a:view(-1, 24):t() end,
	function(_, a) return a:narrow(2, 2, 3) end,
	function(_, a) return a:narrow(-1, -3, 2) end,
	function(_, a) return a:narrow(-1, -2, 2) end,
	function(_, a) return a:select(2, -1) end,
	function(_, a) return a:select(3, 2) end,
	function(_, a) return a:unsqueeze(2):squeeze(2):unsqueeze(-1):squeeze(-1) end,
	function(_, a) return a:narrow(2, 1, 1):expand(a:size(1), 4, 6) end,
	function(_, a) return a:expand(2, a:size(1), 4, 6) end,
	function(_, a) return a:tile(1, 2, 3) end,
	function(_, a) return a:tile(2, 1, 1, 1) end,
	function(_, a) return a:flip(2) end,
	function(_, a) return a:flip {2, 3} end,
}

it('writes views of floats, integers and codes', function()
	for _, f in ipairs(cases) do
		back(f, x)
		back(function(self, a) return f(self, (a * 9):to 'int32') end, x)
		back(function(self, a) return f(self, a:quantize(byte)) end, x)
		back(function(self, a) return f(self, a:quantize(byte)) end, x, {export = {form = 'qoperator'}})
	end
	back(function(_, a) local p = a:split(4, {axis = 3}) return p[2], p[1] end, x)
end)

it('keeps the batch open', function()
	local m = out.model(out.graph(function(_, a) return a:view(a:size(1), 24) end, x))
	print(m.graph.input[1].type.tensor_type.shape.dim[1].param, m.graph.output[1].type.tensor_type.shape.dim[1].param)  --> batch batch
	m = out.model(out.graph(function(_, a) return a:view(a:size(1) * 4, 6) end, x))
	print(m.graph.output[1].type.tensor_type.shape.dim[1].param)  --> 4batch
end)

it('moves codes as they are with qoperator only', function()
	local function f(_, a) return a:quantize(byte):permute(1, 3, 2) end
	print(out.ops(f, x))  --> QuantizeLinear DequantizeLinear Transpose QuantizeLinear
	print(out.ops(f, x, {export = {form = 'qoperator'}}))  --> QuantizeLinear Transpose
end)
