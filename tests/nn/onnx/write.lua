-- SPDX-License-Identifier: MIT
-- labels: quick
-- Names, inputs, outputs, options and errors of g:export{onnx=}.
local exported = dofile 'tests/tools/exported.lua'
local out = dofile 'tests/tools/onnx_out.lua'
tensor.seed(31)
local x = tensor.randn(3, 6)

local function names(list)
	local made = {}
	for i, v in ipairs(list or {}) do made[i] = v.name end
	return table.concat(made, ' ')
end

it('keeps the names of the graph', function()
	local m = nn.Sequential {nn.Linear(6, 4, {name = 'fc1'}), nn.ReLU(), nn.Linear(4, 2, {name = 'fc2'})}
	local model = out.model(graph.trace(m, x[{{1, 1}}]))
	print(names(model.graph.input), names(model.graph.output), names(model.graph.node))  --> input fc2 fc1 relu1 fc2
	print(names(model.graph.initializer))  --> fc1.weight fc1.bias fc2.weight fc2.bias
	print(model.ir_version, model.opset_import[1].version, model.producer_name)  --> 8 17 quoll
end)

it('writes outputs that are inputs, constants, the same, or views without a node', function()
	local function f(self, a)
		local y = a * 2
		return y, a, self.c, y, y:contiguous()
	end
	local g = out.graph(f, x, {parts = {c = tensor {1, 2}}})
	out.back(g, x)
	local model = out.model(g)
	print(names(model.graph.output))  --> mul1 input_2 c_2 mul1_2 contiguous1
end)

it('writes several inputs, and integers', function()
	local m = nn.module(function(_, a, b) return {a + b:to 'float32', b} end, {})
	local g = graph.trace(m, {x[{{1, 1}}], tensor {{1, 2, 3, 4, 5, 6}, dtype = 'int32'}})
	local path = out.file(g)
	local y, z = graph.load(path):run {x, x:to 'int32'}
	os.remove(path)
	local want = g:run {x, x:to 'int32'}
	assert((y - want[1]):abs():max():item() == 0 and z:eq(want[2]):all():item())
end)

it('writes inputs that are codes', function()
	local spec = {dtype = 'uint8', scale = 0.02, zero_point = 99}
	local q = x:quantize(spec)
	local g = graph.trace(nn.module(function(_, a) return a:dequantize() * 2 end, {}), q[{{1, 1}}])
	local model = out.model(g)
	print(model.graph.input[1].type.tensor_type.elem_type, model.graph.node[1].op_type)  --> 2 DequantizeLinear
end)

it('chooses the form and the opset', function()
	local m = nn.Sequential {nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2)}
	local g = exported.static(m, x)
	print(out.ops(g, x):find 'DequantizeLinear' ~= nil, out.ops(g, x, {export = {form = 'float'}}):find 'DequantizeLinear')  --> true nil
	for opset, ir in pairs {[13] = 7, [15] = 8, [19] = 9, [21] = 10, [23] = 11, [24] = 12, [25] = 13} do
		local model = out.model(g, {opset = opset})
		assert(model.ir_version == ir and model.opset_import[1].version == opset)
	end
	local four = exported.quantized(m, x, {mode = 'static', weight = 'int4/1'})
	print(out.model(four).opset_import[1].version, out.model(four, {opset = 19}).opset_import[1].version)  --> 21 19
	out.back(four, x)
	out.back(four, x, {export = {opset = 19}})
end)

it('lists everything that has no form before it writes', function()
	local path = os.tmpname()
	os.remove(path)
	local g = out.graph(function(_, a) return a + tensor.rand(1, 6) + a:to 'int32':shl(a:to 'int32') + nn.dropout(a, {p = 0.5, training = true}) end, x)
	local good, message = pcall(g.export, g, {onnx = path})
	assert(not good and message:find("got 3 without: rand ('rand1'): no translation; shl ('shl1'): numbers of bits", 1, true) and
		message:find("dropout ('dropout1'): no translation", 1, true), message)
	assert(not io.open(path))
end)

it('replaces a file in one step, and leaves it on errors', function()
	local g = out.graph(function(_, a) return a * 2 end, x)
	local folder = exported.new_folder()
	os.execute('mkdir ' .. folder)
	local path = folder .. '/m.onnx'
	exported.put(path, 'old')
	exported.refused('a form in ONNX', g.export, out.graph(function(_, a) return a + tensor.rand(1, 6) end, x), {onnx = path})
	assert(exported.text_of(path) == 'old')
	g:export {onnx = path}
	assert(graph.load(path):run(x):eq(x * 2):all():item())
	local pipe <close> = io.popen('ls -a ' .. folder)
	print((pipe:read 'a':gsub('%s+', ' ')))  --> . .. m.onnx
	exported.refused("export: onnx: '" .. folder .. "/none/m.onnx'", g.export, g, {onnx = folder .. '/none/m.onnx'})
	os.execute('rm -r ' .. folder)
end)

it('refuses options that are of no use', function()
	local g = out.graph(function(_, a) return a * 2 end, x)
	exported.refused('export: dir: wanted form=, opset= or external= beside onnx=', g.export, g, {onnx = 'm.onnx', dir = 'x'})
	exported.refused('export: form: wanted onnx= beside it', g.export, g, {dir = 'x', form = 'qdq'})
	exported.refused("export: form: wanted float, qdq, qoperator or integer, got 'qdk'", g.export, g, {onnx = 'm.onnx', form = 'qdk'})
	exported.refused('export: opset: wanted 13 to 25, got 12', g.export, g, {onnx = 'm.onnx', opset = 12})
	exported.refused('export: opset: wanted at least 18', g.export, out.graph(function(_, a) return a:to 'int32':bnot() end, x), {onnx = 'm.onnx', opset = 17})
end)

it('reports the nodes', function()
	local g = out.graph(function(_, a) return (a * 2):relu() end, x)
	local path, r = out.file(g)
	os.remove(path)
	print(#r, r[1].op, r[2].node, r[2].op)  --> 2 Mul relu1 Relu
end)
