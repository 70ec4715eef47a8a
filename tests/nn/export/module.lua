-- SPDX-License-Identifier: MIT
-- labels: quick
-- m:export: what graph.trace(m, x):export writes.
local exported = dofile 'tests/tools/exported.lua'
tensor.seed(7)
local x = tensor.randn(6, 5)
local m = nn.Sequential {nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)}

local function loaded(model, ...)
	local path, given = os.tmpname(), {...}
	given[#given].onnx = path
	local r = model:export(table.unpack(given))
	local g = graph.load(path)
	os.remove(path)
	return g, r
end

it('writes ONNX with an example of the input', function()
	local g, r = loaded(m, x[{{1, 1}}], {})
	assert(#r == 3 and (g:run(x) - m(x)):abs():max():item() < 1e-6)
	local two = nn.module(function(_, a, b) return a + b end, {})
	g = loaded(two, {x[{{1, 1}}], x[{{1, 1}}]}, {opset = 13})
	assert(g:run({x, x}):eq(x * 2):all():item())
end)

it('takes the example that calibration kept, in each form', function()
	exported.refused('export: x: wanted an example of the input, got none; m:calibrate keeps one', m.export, m, {onnx = 'm.onnx'})
	m:calibrate({{x, x}}, {log = false})
	assert((loaded(m, {}):run(x) - m(x)):abs():max():item() < 1e-6)
	local q = m:quantize {mode = 'static'}
	for _, form in ipairs {'qdq', 'qoperator', 'integer'} do
		assert((loaded(q, x[{{1, 1}}], {form = form}):run(x) - q(x)):abs():max():item() < 1e-6)
	end
end)

it('needs none for a graph, floats or codes', function()
	local g = graph.trace(m, x[{{1, 1}}])
	assert((loaded(nn.Graph(g), {}):run(x) - g:run(x)):abs():max():item() < 1e-6)
	local ids = graph.trace(nn.Sequential {nn.Embedding(9, 4), nn.Flatten(), nn.Linear(8, 2)}, tensor {{1, 2}, dtype = 'int64'})
	local given = tensor {{3, 9}, {4, 1}, dtype = 'int64'}
	assert((loaded(nn.Graph(ids), {}):run(given) - ids:run(given)):abs():max():item() < 1e-6)
end)

it('writes C', function()
	local folder = exported.new_folder()
	m:export(x[{{1, 1}}], {dir = folder, name = 'tiny'})
	assert(exported.text_of(folder .. '/tiny.c'):find 'tiny_forward')
	os.execute('rm -r ' .. folder)
end)

it('refuses options that are not there', function()
	exported.refused("export: unknown option 'forme'", m.export, m, x, {onnx = 'm.onnx', forme = 'qdq'})
	exported.refused('export: form: wanted onnx= beside it', m.export, m, x, {form = 'qdq', dir = 'x'})
end)
