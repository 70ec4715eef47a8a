-- SPDX-License-Identifier: MIT
-- labels: quick
local exported = dofile 'tests/tools/exported.lua'
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(12)
local x, line = tensor.randn(3, 4, 32), tensor.randn(5, 32)
local byte = {dtype = 'uint8', scale = 0.02, zero_point = 99}

it('writes floats', function()
	print(back(graph.trace(nn.Linear(32, 9), line[{{1, 1}}]), line))  --> Gemm
	print(back(graph.trace(nn.Linear(32, 9), x[{{1, 1}}]), x))  --> Transpose MatMul Add
	back(graph.trace(nn.Linear(32, 9, {bias = false}), x[{{1, 1}}]), x)
	back(function(_, a) return a:matmul(a:transpose(2, 3)) end, x, {tolerance = 2e-6})
	back(function(_, a) return a:to 'int32':matmul(a:transpose(2, 3):to 'int32') end, x)
	back(function(self, a) return tensor.einsum('bij,jk->bki', a, self.w) end, x, {parts = {w = tensor.randn(32, 5)}, tolerance = 2e-6})
	back(function(self, a) return a:select(1, 1):dot(self.w) + a:sum {axis = 2} end, line[{{1, 1}}], {parts = {w = tensor.randn(32)}, tolerance = 2e-6})
end)

it('counts ids from 0', function()
	local ids = tensor.randint {3, 5, low = 1, high = 30}:to 'int32'
	back(graph.trace(nn.Sequential {nn.Embedding(30, 8)}, ids[{{1, 1}}]), ids)
	back(exported.quantized(nn.Sequential {nn.Embedding(30, 8)}, ids, {mode = 'weight_only', weight = 'int8/1'}), ids)
end)

local m = nn.Sequential {nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 5)}

it('writes codes: qdq, qoperator, dynamic', function()
	for _, a in ipairs {line, x} do
		local q = exported.static(m, a)
		back(q, a)
		assert(select(2, back(q, a, {export = {form = 'qoperator'}}):gsub('com.microsoft.QGemm', '')) == 2)
		local dynamic = back(exported.quantized(m, a, {mode = 'dynamic'}), a[{{1, 1}}])
		assert(select(2, dynamic:gsub('DynamicQuantizeLinear MatMulInteger Cast Mul Mul Add', '')) == 2, dynamic)
	end
	for _, o in ipairs {{mode = 'static', weight = 'int4/1'}, {mode = 'static', weight = 'int16/1', input = 'int16'}, {mode = 'static', input = 'int8'},
		{mode = 'weight_only', weight = 'int4/1'}, {mode = 'weight_only', weight = 'fp8_e4m3/1'}, {mode = 'weight_only', weight = 'binary/1'}} do
		back(exported.quantized(m, line, o), line)
	end
end)

it('multiplies codes by codes', function()
	local function f(_, a) return a:quantize(byte):matmul(a:transpose(2, 3):quantize(byte), {out = {dtype = 'uint8', scale = 0.1, zero_point = 128}}) end
	back(f, x)
	print((out.ops(f, x, {export = {form = 'qoperator'}}):gsub('.* ', '')))  --> QLinearMatMul
end)

it('writes 4 bits in blocks for onnxruntime, or as DequantizeLinear with block_size', function()
	for _, spec in ipairs {'int4:16', 'uint4:16'} do
		local q = exported.quantized(m, line, {mode = 'weight_only', weight = spec})
		assert(select(2, back(q, line, {export = {form = 'qoperator'}}):gsub('com.microsoft.MatMulNBits', '')) == 2)
		local model, block, found = out.model(q), nil, {}
		for _, n in ipairs(model.graph.node) do
			for _, a in ipairs(n.attribute or {}) do block = a.name == 'block_size' and a.i or block end
		end
		for _, t in ipairs(model.graph.initializer) do found[t.name] = t end
		assert(block == 16 and model.opset_import[1].version == 21 and found['linear1.weight'].data_type >= 21)
		assert(table.concat(found['linear1.weight.scale'].dims, ' ') == '16 2')
	end
end)

it('decodes where nothing else is wanted', function()
	for _, spec in ipairs {'nf4', 'int4:16', 'fp8_e4m3'} do
		assert(back(exported.quantized(m, line, {mode = 'weight_only', weight = spec}), line, {export = {form = 'float'}}) == 'Gemm Relu Gemm')
	end
	local q = exported.quantized(m, line, {mode = 'weight_only', weight = 'nf4'})
	out.refused("dequantize ('linear1.weight.dequantize'): nf4 has no form in ONNX; form='float' writes the decoded values; dequantize ('linear2", q)
end)
