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

-- onnxruntime rounds sx * sw to float32, then its quotient by sy; g:run rounds once.
it('moves scales of weights to where its multiplier is that of g:run', function()
	local internal = debug.getregistry()['quoll.internal']
	local function single(v) return (string.unpack('<f', string.pack('<f', v))) end
	local a = tensor.randn(40, 12)
	local m = nn.Sequential {nn.Linear(12, 200), nn.ReLU(), nn.Linear(200, 3), nn.ReLU(), nn.Linear(3, 2)}
	local g = exported.static(m, a)
	local path = out.file(g, {form = 'qoperator'})
	local box = assert(internal.onnx_open(path))
	local model, values = internal.onnx_model(box), {}
	for _, t in ipairs(model.graph.initializer) do values[t.name] = internal.onnx_tensor(box, t.offset, t.size) end
	os.remove(path)
	local node = model.graph.node[2]
	assert(node.op_type == 'QGemm')
	local sx, sy, given = values[node.input[2]]:item(), values[node.input[8]]:item(), values[node.input[5]]:totable()
	local equal, before = 0, 0
	for i, sw in ipairs(g:node('linear1.weight').value:qparams().scale:reshape(-1):totable()) do
		local want = single(sx * sw / sy)
		equal = equal + (single(single(sx * given[i]) / sy) == want and 1 or 0)
		before = before + (single(single(sx * sw) / sy) == want and 1 or 0)
		assert(math.abs(given[i] - sw) < 3e-7 * sw)
	end
	assert(equal > before and equal >= 140, equal)
end)
