-- SPDX-License-Identifier: MIT
-- labels: quick
-- form='integer': products of codes as ConvInteger and MatMulInteger.
local exported = dofile 'tests/tools/exported.lua'
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(22)
local x, line = tensor.randn(3, 4, 6, 6), tensor.randn(5, 32)
local function count(text, name) return select(2, text:gsub(name .. '%f[^%w]', '')) end
local whole = {export = {form = 'integer'}, tolerance = 0}

it('writes a network: every code and the last floats are the same', function()
	local m = nn.Sequential {nn.Conv2d(4, 6, 3, {pad = 1}), nn.ReLU(), nn.Residual {nn.Conv2d(6, 6, 3, {pad = 1, groups = 3})}, nn.ReLU(), nn.MaxPool2d(2),
		nn.Flatten(), nn.Linear(54, 7), nn.ReLU(), nn.Linear(7, 5)}
	for _, o in ipairs {{}, {input = 'int8'}, {weight = 'int4/1'}, {weight = 'uint8'}, {weight = 'int8'}} do
		o.mode = 'static'
		local ops = back(exported.quantized(m, x, o), x, whole)
		assert(count(ops, 'ConvInteger') == 2 and count(ops, 'MatMulInteger') == 2 and not ops:find 'microsoft', ops)
	end
end)

it('multiplies activations, whole batches and axes before the last', function()
	local byte, signed = {dtype = 'uint8', scale = 0.02, zero_point = 99}, {dtype = 'int8', scale = 0.031, zero_point = -7}
	for _, spec in ipairs {byte, signed} do
		local function f(_, a) return a:quantize(spec):matmul(a:transpose(2, 3):quantize(byte), {out = {dtype = 'uint8', scale = 0.1, zero_point = 128}}) end
		assert(count(back(f, tensor.randn(3, 4, 9), whole), 'MatMulInteger') == 1)
	end
	local m = nn.Sequential {nn.Linear(32, 16, {bias = false}), nn.ReLU(), nn.Linear(16, 5)}
	print(count(back(exported.static(m, line), line, whole), 'MatMulInteger'))  --> 2
	local deep = line:view(5, 1, 32)
	print(count(back(exported.static(m, deep), deep, whole), 'MatMulInteger'))  --> 2
end)

-- The sums come first, then the multiplier: float32 of sa * sw / sy.
it('writes the multiplier and the bias of g:run', function()
	local w = tensor {{1, -2}, {3, 4}}:quantize {dtype = 'int8', scale = 0.1}
	local g = out.graph(function(self, a)
		return a:quantize {dtype = 'uint8', scale = 0.3, zero_point = 5}:linear(self.w, self.b, {out = {dtype = 'uint8', scale = 0.7, zero_point = 9}})
	end, line[{{}, {1, 2}}], {parts = {w = w, b = tensor {0.04, -1}}})
	local found = {}
	for _, t in ipairs(out.model(g, {form = 'integer'}).graph.initializer) do found[t.name] = t end
	assert(found['linear1.multiplier'] and found['b.codes'] or found['b_2.codes'])
	back(g, line[{{}, {1, 2}}], whole)
end)

it('decodes what has more bits, blocks or several zero points', function()
	local m = nn.Sequential {nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 5)}
	for _, o in ipairs {{weight = 'int16/1', input = 'int16'}, {weight = 'int4:16'}, {weight = 'uint8/1'}} do
		o.mode = 'static'
		assert(count(back(exported.quantized(m, line, o), line, {export = {form = 'integer'}}), 'MatMulInteger') == 0)
	end
end)
