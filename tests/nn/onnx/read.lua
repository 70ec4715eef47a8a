-- SPDX-License-Identifier: MIT
-- labels: quick
-- graph.load: names, sizes, what is folded, what is refused; the graph runs, quantizes and is exported as any other.
local onnx = dofile 'tests/tools/onnx.lua'
local node = onnx.node
tensor.seed(5)

local w1, b1, w2 = tensor.randn(8, 3), tensor.randn(8), tensor.randn(8, 4)
local function mlp(first)
	return {nodes = {node('Gemm', {'x', 'fc1.weight', 'fc1.bias'}, {'h'}, {transB = 1}, {name = '/fc1/Gemm'}), node('Relu', {'h'}, {'r'}, nil, {name = '/act/Relu'}),
		node('MatMul', {'r', 'fc2'}, {'y'}, nil, {name = '/fc2/MatMul'})}, inputs = {{'x', 'float32', {first or 'batch', 3}}}, outputs = {'y'},
		initializers = {['fc1.weight'] = w1, ['fc1.bias'] = b1, fc2 = w2}}
end

it('has the names of the file and any batch', function()
	local g = onnx.load(mlp())
	assert(table.concat(g.inputs) == 'x' and g:node 'fc1.Gemm'.op == 'linear' and g:node 'fc1.weight'.op == 'const')
	assert(tostring(g:node 'fc2.MatMul'.shape) == '(B, 4)', g:node 'fc2.MatMul'.shape)
	for _, n in ipairs {1, 4} do
		local x = tensor.randn(n, 3)
		assert(onnx.equal(g:run(x), x:linear(w1, b1):relu():matmul(w2)))
	end
	assert(tostring(onnx.load(mlp(2)):node 'fc2.MatMul'.shape) == '(2, 4)')
end)

it('quantizes and exports', function()
	local g = onnx.load(mlp())
	local x = tensor.randn(16, 3)
	local q = g:calibrate {{x}}:quantize {mode = 'static'}
	assert(q:run(x):dequantize():sub(g:run(x)):abs():max():item() < 0.2)
	local dir = os.tmpname()
	os.remove(dir)
	g:export {dir = dir, name = 'net', vectors = 1}
	assert(io.open(dir .. '/net.c')):close()
	os.execute('rm -r ' .. dir)
end)

it('takes sizes and constants of inputs', function()
	local g = {nodes = {node('Reshape', {'x', 's'}, {'y'})}, inputs = {{'x', 'float32', {'n', 'm'}}, {'s', 'int64', {2}}}, outputs = {'y'}}
	local function load(inputs) return onnx.load(g, {inputs = inputs}) end
	local y = load {x = {2, 6}, s = tensor {3, 4, dtype = 'int64'}}:run(tensor.arange(1, 12):to 'float32':view(2, 6))
	assert(onnx.equal(y, tensor.arange(1, 12):to 'float32':view(3, 4)))
	y = load {x = {'B', 6}, s = tensor {-1, 3, dtype = 'int64'}}:run(tensor.ones(4, 6))
	assert(y:size(1) == 8)
	for _, case in ipairs {{{x = {2}}, "'x': wanted 2 sizes, got 1"}, {{z = {2}}, "wanted one of x s, got 'z'"}, {{x = 5}, "'x': wanted a list of sizes or a tensor, got 5"},
		{{x = {2, -1}}, "'x': axis 2: wanted a size or 'B', got %-1"}, {nil, "input 'x': axis 2 %('m'%): wanted its size"}} do
		local ok, message = pcall(load, case[1])
		assert(not ok and message:find(case[2]), message)
	end
end)

it('lists all ops that there are not before weights are read', function()
	local bad = {nodes = {node('NonMaxSuppression', {'x'}, {'a'}, nil, {name = 'nms'}), node('Fancy', {'a'}, {'b'}, nil, {domain = 'com.corp', name = 'f1'}),
		node('Fancy', {'b'}, {'y'}, nil, {domain = 'com.corp'})}, inputs = {{'x', 'float32', {2}}}, outputs = {'y'}, domains = {['com.corp'] = 1}}
	local ok, message = pcall(onnx.load, bad)
	assert(not ok and message:find "got opset 17 with NonMaxSuppression %(1 node, 'nms'%), com.corp.Fancy %(2 nodes, 'f1'%)$", message)
	ok, message = pcall(onnx.load, {nodes = {node('FusedConv', {'x'}, {'y'}, nil, {domain = 'com.microsoft'})}, inputs = {{'x', 'float32', {2}}}, outputs = {'y'},
		domains = {['com.microsoft'] = 1}})
	assert(not ok and message:find "com.microsoft.FusedConv %(1 node, ''%); those of onnxruntime's optimizer are not in a model that is saved without optimization$", message)
end)

it('calls functions of the model', function()
	local body = onnx.text(1, 'Twice') .. onnx.text(4, 'a') .. onnx.text(5, 'b') .. onnx.text(6, 'alpha') .. onnx.text(10, 'local') ..
		onnx.text(9, onnx.text(1, '') .. onnx.int(2, 17))
	local leaky = onnx.text(1, 'a') .. onnx.text(2, 'l') .. onnx.text(4, 'LeakyRelu') .. onnx.text(5, onnx.text(1, 'alpha') .. onnx.text(21, 'alpha') .. onnx.int(20, 1))
	body = body .. onnx.text(7, leaky) .. onnx.text(7, node('Add', {'l', 'l'}, {'b'}))
	local g = onnx.load {nodes = {node('Twice', {'x'}, {'m'}, {alpha = 0.5}, {domain = 'local', name = 't1'}), node('Twice', {'m'}, {'y'}, {alpha = 0.25}, {domain = 'local', name = 't2'})},
		inputs = {{'x', 'float32', {2}}}, outputs = {'y'}, functions = {body}, domains = {['local'] = 1}}
	assert(onnx.equal(g:run(tensor {-4, 1}), {-2, 4}))
	local loop = onnx.text(1, 'Again') .. onnx.text(4, 'a') .. onnx.text(5, 'b') .. onnx.text(10, 'local') .. onnx.text(7, node('Again', {'a'}, {'b'}, nil, {domain = 'local'}))
	local ok, message = pcall(onnx.load, {nodes = {node('Again', {'x'}, {'y'}, nil, {domain = 'local'})}, inputs = {{'x', 'float32', {2}}}, outputs = {'y'}, functions = {loop},
		domains = {['local'] = 1}})
	assert(not ok and message:find 'functions: wanted at most 32 calls', message)
end)

it('refuses graphs whose values are not there', function()
	local function load(nodes, outputs) return pcall(onnx.load, {nodes = nodes, inputs = {{'x', 'float32', {2}}}, outputs = outputs or {'y'}}) end
	local ok, message = load {node('Relu', {'a'}, {'y'}, nil, {name = 'r'})}
	assert(not ok and message:find "node 'r' %(Relu%): input 'a': wanted a value that is computed before, got none", message)
	ok, message = load {node('Relu', {'y'}, {'y'}, nil, {name = 'r'})}
	assert(not ok and message:find "input 'y'", message)
	ok, message = load({node('Relu', {'x'}, {'y'})}, {'z'})
	assert(not ok and message:find "output 'z': wanted a value that a node computes, got none", message)
	ok, message = load {node('Add', {'x'}, {'y'}, nil, {name = 'a'})}
	assert(not ok and not message:find '\n', message)
end)

it('names attributes that are missing or of another kind, and missing inputs', function()
	local function refused(want, ...)
		local ok, message = pcall(onnx.load, {nodes = {node(...)}, inputs = {{'x', 'float32', {1, 3, 4, 4}}}, outputs = {'y'}, initializers = {s = tensor {0.5}:sum()}})
		assert(not ok and message:find(want, 1, true) and not message:find '\n' and not message:find 'attempt', message)
	end
	refused("node 'n' (LRN): attribute 'size': wanted an integer, got none", 'LRN', {'x'}, {'y'}, nil, {name = 'n'})
	refused("attribute 'kernel_shape': wanted a list of integers, got none", 'MaxPool', {'x'}, {'y'})
	refused("attribute 'kernel_shape': wanted a list of integers, got an integer", 'MaxPool', {'x'}, {'y'}, {kernel_shape = 3})
	refused("attribute 'axis': wanted an integer, got a text", 'Softmax', {'x'}, {'y'}, {axis = 'one'})
	refused("attribute 'perm': wanted a list of integers, got a list of floats", 'Transpose', {'x'}, {'y'}, {perm = {0.5, 1.5}})
	refused("node 'n' (Conv): input 2: wanted a value, got none", 'Conv', {'x'}, {'y'}, nil, {name = 'n'})
	refused('input 1: wanted a value, got none', 'QuantizeLinear', {'', 's'}, {'y'})
	refused('input 1: wanted a value, got none', 'DequantizeLinear', {}, {'y'})
end)

it('names the node whose op refuses its operands', function()
	local g = {nodes = {node('MatMul', {'x', 'w'}, {'y'}, nil, {name = '/fc'})}, inputs = {{'x', 'float32', {'n', 3}}}, outputs = {'y'}, initializers = {w = tensor.ones(4, 2)}}
	local ok, message = pcall(onnx.load, g)
	assert(not ok and message:find "load: '[^']*': node '/fc' %(MatMul%): matmul: wanted" and not message:find '\n', message)
	g = {nodes = {node('QuantizeLinear', {'x', 's'}, {'y'}, nil, {name = 'q'})}, inputs = {{'x', 'float32', {2}}}, outputs = {'y'}, initializers = {s = tensor {0 / 0}}}
	ok, message = pcall(onnx.load, g)
	assert(not ok and message:find "node 'q' %(QuantizeLinear%): .*scale: wanted a finite number > 0", message)
end)

it('computes nothing that depends on the inputs', function()
	local before = tensor.memory().peak
	local x = {'x', 'float32', {1, 64, 4096, 4096}}
	local g = onnx.load {nodes = {node('Relu', {'x'}, {'a'}), node('Sigmoid', {'a'}, {'b'}), node('GlobalAveragePool', {'b'}, {'y'})}, inputs = {x}, outputs = {'y'}}
	assert(tostring(g:node(g.order[#g.order]).shape) == '(1, 64, 1, 1)', before)
end)
