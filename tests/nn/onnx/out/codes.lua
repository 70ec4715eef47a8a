-- SPDX-License-Identifier: MIT
-- labels: quick
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(13)
local x = tensor.randn(5, 8) * 3
local byte, word = {dtype = 'uint8', scale = 0.02, zero_point = 99}, {dtype = 'int16', scale = 0.0003}

it('writes conversions', function()
	print(back(function(_, a) return a:quantize(byte) end, x))  --> QuantizeLinear
	print(back(function(_, a) return a:quantize(word) end, x))  --> QuantizeLinear
	print(back(function(_, a) return a:quantize {dtype = 'int5', scale = 0.3} end, x))  --> Clip QuantizeLinear
	back(function(_, a) return a:quantize(byte):dequantize() end, x)
	back(function(_, a) return a:quantize(byte):requantize(word) end, x)
	back(function(_, a) return a:quantize(byte):codes() end, x)
	back(function(_, a) return a:quantize(byte):to 'float32' end, x)
	back(function(_, a) return a:quantize {dtype = 'int4', scale = 0.3} end, x)
	back(function(_, a) return a:quantize {dtype = 'int5', scale = 0.3} end, x)
	back(function(_, a) return a:quantize(byte):relu() end, x)
	back(function(_, a) return a:quantize(byte):tanh {out = word} end, x)
end)

it('finds ranges at each run', function()
	print(out.ops(function(_, a) return a:quantize 'uint8':dequantize() * 2 end, x))  --> DynamicQuantizeLinear DequantizeLinear Mul
	back(function(_, a) return a:quantize 'uint8':dequantize() end, x)
	for _, spec in ipairs {'int8', 'int8/2', 'int16', 'int4'} do
		for _, opset in ipairs {17, 21} do
			if opset == 21 or spec:find '8' then
				back(function(_, a) return a:quantize(spec):dequantize() end, x, {export = {opset = opset}})
			end
		end
	end
	out.refused("wanted affine codes without blocks by minmax", function(_, a) return a:quantize 'uint8@entropy':dequantize() end, x)
	out.refused("wanted uint8 or codes without zero points", function(_, a) return a:quantize 'uint4':dequantize() end, x)
end)

it('writes fake quantization and learned scales', function()
	for _, spec in ipairs {'int8', 'uint8', byte, {dtype = 'int8', scale = 0.05}} do back(function(_, a) return a:fake(spec) end, x[{{1, 1}}]) end
	local parts = {s = tensor {0.21}, z = tensor {100.4}}
	back(function(self, a) return a:lsq(self.s, {bits = 4}) end, x, {parts = parts})
	back(function(self, a) return a:lsq(self.s, self.z, {bits = 8, signed = false}) end, x, {parts = parts})
end)

it("rounds nothing with form='float', and keeps the range of codes", function()
	local g = out.graph(function(_, a) return a:quantize(byte):dequantize() end, x)
	local path = out.file(g, {form = 'float'})
	local y = graph.load(path):run(x)
	os.remove(path)
	local want = x:clamp(-99 * 0.02, (255 - 99) * 0.02)
	assert((y - want):abs():max():item() < 1e-6)
	out.refused("form='float' has no codes", function(_, a) return a:quantize(byte):codes() end, x, {form = 'float'})
end)

it('has small floats as they are', function()
	local m = nn.Sequential {nn.Linear(8, 4)}
	for spec, want in pairs {fp8_e4m3 = '17 19', fp8_e5m2 = '19 19', fp4_e2m1 = '23 23', ['mxfp4:32'] = '23 24'} do
		local wide = spec:find 'mx' and nn.Sequential {nn.Linear(32, 4)} or m
		local q = graph.trace(wide, tensor.zeros(1, spec:find 'mx' and 32 or 8)):quantize {mode = 'weight_only', weight = spec:match '^[^:]+'}
		local model = out.model(q)
		for _, t in ipairs(model.graph.initializer) do
			if t.name == 'linear1.weight' then assert(t.data_type .. ' ' .. model.opset_import[1].version == want, spec) end
		end
		back(q, tensor.randn(3, spec:find 'mx' and 32 or 8))
	end
end)

it('packs codes of 4 bits, low bits first and across rows', function()
	local w = tensor {{1, -2, 3}, {-4, 5, -6}}:quantize {dtype = 'int4', scale = 1}
	local bytes = out.bytes(out.graph(function(self, a) return a:linear(self.w) end, tensor.zeros(1, 3), {parts = {w = w}}))
	assert(bytes:find('\x4a\x03\xe1\xc3\xa5', 1, true)) -- raw_data of 3 bytes
end)
