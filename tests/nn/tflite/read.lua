-- SPDX-License-Identifier: MIT
-- labels: quick
-- graph.load of TFLite: names, batches, layouts, codes; the graph runs, quantizes and is exported as any other.
local tflite = dofile 'tests/tools/tflite.lua'
tensor.seed(5)

local w1, b1, w2, b2, w3 = tensor.randn(4, 3, 3, 2), tensor.randn(4), tensor.randn(1, 3, 3, 4), tensor.randn(4), tensor.randn(5, 36)
-- Convolution, depthwise convolution, join with the first one, pool, dense.
local function net(signature)
	local shape = {1, 6, 6, 2}
	return {tensors = {{name = 'image', shape = shape, type = 'FLOAT32', signature = signature}, tflite.of(w1, 'net/conv/w', true), tflite.of(b1, 'net/conv;net/bias', true),
		{name = 'net/conv;net/relu', shape = {1, 6, 6, 4}, type = 'FLOAT32'}, tflite.of(w2, 'depth/w', true), tflite.of(b2, 'depth/b', true),
		{name = 'depth', shape = {1, 6, 6, 4}, type = 'FLOAT32'}, {name = 'sum', shape = {1, 6, 6, 4}, type = 'FLOAT32'},
		{name = 'pool', shape = {1, 3, 3, 4}, type = 'FLOAT32'}, tflite.of(tensor {-1, 36, dtype = 'int32'}, 'flat/shape', true),
		{name = 'flat', shape = {1, 36}, type = 'FLOAT32'}, tflite.of(w3, 'dense/w', true), {name = 'dense', shape = {1, 5}, type = 'FLOAT32'}},
		ops = {{'CONV_2D', {1, 2, 3}, {4}, {stride_w = 1, stride_h = 1, act = 1}}, {'DEPTHWISE_CONV_2D', {4, 5, 6}, {7}, {stride_w = 1, stride_h = 1, multiplier = 1}},
			{'ADD', {4, 7}, {8}, {}}, {'MAX_POOL_2D', {8}, {9}, {stride_w = 2, stride_h = 2, filter_w = 2, filter_h = 2}}, {'RESHAPE', {9, 10}, {11}},
			{'FULLY_CONNECTED', {11, 12, 0}, {13}, {}}}, inputs = {1}, outputs = {13, 8}}
end

local function want(x)
	local y = x:permute(1, 4, 2, 3):conv2d(w1:permute(1, 4, 2, 3), b1, {pad = 1, act = 'relu'})
	local sum = y + y:conv2d(w2:permute(4, 1, 2, 3), b2, {pad = 1, groups = 4})
	local flat = sum:maxpool2d(2):permute(1, 3, 4, 2):contiguous():view(x:size(1), 36)
	return flat:linear(w3), sum:permute(1, 3, 4, 2)
end

it('has the names of the file and any batch', function()
	local g = tflite.load(net {-1, 6, 6, 2})
	assert(table.concat(g.inputs) == 'image' and g:node 'net_conv'.op == 'conv2d' and g:node 'net_conv.bias'.op == 'const' and g:node 'dense'.op == 'linear')
	assert(tostring(g:node 'net_conv'.shape) == '(B, 4, 6, 6)' and tostring(g:node 'dense'.shape) == '(B, 5)', g)
	for _, n in ipairs {1, 4} do
		local x = tensor.randn(n, 6, 6, 2)
		local y, sum = table.unpack {g:run(x)}
		local wanted, wanted_sum = want(x)
		assert(tflite.equal(y, wanted, 1e-4) and tflite.equal(sum, wanted_sum, 1e-4))
	end
end)

it('turns images once: at the input, at the output and where they become vectors', function()
	local g, count = tflite.load(net {-1, 6, 6, 2}), 0
	for _, name in ipairs(g.order) do count = count + (g:node(name).op == 'permute' and 1 or 0) end
	assert(count == 3, g)
end)

it('keeps sizes without a signature, and takes others', function()
	assert(tostring(tflite.load(net()):node 'dense'.shape) == '(1, 5)')
	assert(tostring(tflite.load(net(), {inputs = {image = {'B', 6, 6, 2}}}):node 'dense'.shape) == '(B, 5)')
	assert(tostring(tflite.load(net(), {inputs = {image = {3, 6, 6, 2}}}):node 'dense'.shape) == '(3, 5)')
	for _, case in ipairs {{{image = {2}}, "'image': wanted 4 sizes, got 1"}, {{z = {2}}, "wanted one of image, got 'z'"}, {{image = 5}, "'image': wanted a list of sizes or a tensor, got 5"},
		{{image = {1, 6, 6, -1}}, "'image': axis 4: wanted a size or 'B', got %-1"}} do
		local ok, message = pcall(tflite.load, net(), {inputs = case[1]})
		assert(not ok and message:find(case[2]), message)
	end
	local ok, message = pcall(tflite.load, net {-1, -1, 6, 2})
	assert(not ok and message:find "input 'image': axis 2: wanted its size, as in graph.load{file, inputs={image={…}}}, got none", message)
end)

it('quantizes and exports', function()
	local g = tflite.load(net {-1, 6, 6, 2})
	local x = tensor.randn(16, 6, 6, 2)
	local q = g:calibrate({{x}}, {log = false}):quantize {mode = 'static'}
	local y, z = g:run(x), q:run(x)
	assert((z - y):abs():max():item() < 0.1 * y:abs():max():item())
	local dir = os.tmpname()
	os.remove(dir)
	g:export {dir = dir, name = 'net', vectors = 1}
	assert(io.open(dir .. '/net.c')):close()
	os.execute('rm -r ' .. dir)
end)

it('lists all ops that there are not before weights are read', function()
	local m = {tensors = {{name = 'x', shape = {2}, type = 'FLOAT32'}, {name = 'y', shape = {2}, type = 'FLOAT32'}}, ops = {{'WHERE', {1}, {2}}, {'WHERE', {1}, {2}},
		{'CUSTOM', {1}, {2}, custom = 'Fancy'}, {'199', {1}, {2}}}, inputs = {1}, outputs = {2}}
	local ok, message = pcall(tflite.load, m)
	assert(not ok and message:find 'got WHERE %(2 nodes%), CUSTOM:Fancy %(1 node%), OP_199 %(1 node%)', message)
end)

it('reads files of before 2020, which have the number of the op in a byte', function()
	local m, given = tflite.single('RELU', {tensor {-1, 2}}, nil, {old = true})
	assert(tflite.equal(tflite.load(m):run(given[1]), {0, 2}))
end)

---------------------------------------------------------------- codes

local function spec(scale, zero) return {dtype = 'int8', scheme = 'asymmetric', scale = scale, zero_point = zero} end
local weight = tensor.randn(4, 3, 3, 2):quantize {dtype = 'int8', axis = 1}
local bias = tensor {100, -300, 5, 2000, dtype = 'int32'}
local function coded()
	local x = tensor.randn(2, 6, 6, 2):quantize(spec(0.02, 5))
	local m = tflite.single('CONV_2D', {x, weight, bias}, {stride_w = 1, stride_h = 1, act = 1}, {fixed = {2, 3}, out = {type = 'INT8', scale = 0.05, zero = -100}})
	m.tensors[1].signature = {-1, 6, 6, 2}
	return m, x
end

it('keeps codes, weights, biases and the rule of rounding', function()
	local m, x = coded()
	local g = tflite.load(m)
	local n, w = g:node 'y1', g:node 'x2'
	assert(g:node 'x1'.dtype == 'int8' and n.attrs.out.rounding == 'double' and n.attrs.out.quant_min == -100 and n.attrs.out.zero_point == -100)
	assert(tflite.equal(w.value:codes():permute(1, 3, 4, 2), weight:codes()))
	-- an independent sum in exact integers, requantized as TFLite does
	local oracle = dofile 'tests/tools/requantize.lua'
	local sums = (x:codes():to 'float64' - 5):permute(1, 4, 2, 3):conv2d(weight:codes():to 'float64':permute(1, 4, 2, 3), {pad = 1}) + bias:to 'float64':view(1, 4, 1, 1)
	local scales, codes = weight:qparams().scale:view(-1):totable(), {}
	for c = 1, 4 do
		for i, s in ipairs(sums:select(2, c):contiguous():view(-1):totable()) do
			codes[(c - 1) * 72 + i] = math.max(-100, (oracle.code('double', false, oracle.rint(s), oracle.single(0.02) * scales[c] / oracle.single(0.05), 'int8', -100)))
		end
	end
	assert(tflite.equal(g:run(x):codes():permute(4, 1, 2, 3), tensor(codes):view(4, 2, 6, 6), 0))
end)

it('takes codes, plain integers and floats', function()
	local m, x = coded()
	local g = tflite.load(m)
	local y = g:run(x)
	for _, other in ipairs {x:codes(), x:dequantize(), x:codes():narrow(1, 1, 1):contiguous()} do
		local z = g:run(other)
		assert(z:quantized() and z:codes():eq(y:codes():narrow(1, 1, z:size(1))):all():item())
	end
	local ok, message = pcall(g.run, g, x:codes():to 'int16')
	assert(not ok and message:find "x1: wanted int8", message)
end)

it('decodes weights of 8 bits beside floats', function()
	local x = tensor.randn(3, 4)
	local w = tensor.randn(5, 4):quantize {dtype = 'int8', axis = 1}
	local y = tflite.run('FULLY_CONNECTED', {x, w}, {}, {fixed = {2}})
	assert(tflite.equal(y, x:linear(w:dequantize())))
end)

it('computes nothing that depends on the inputs', function()
	local m = tflite.single('CONV_2D', {tensor.ones(1, 1, 1, 3), tensor.ones(8, 3, 3, 3)}, {stride_w = 1, stride_h = 1}, {fixed = {2}})
	m.tensors[1].shape = {1, 256, 256, 3}
	quant.log 'reset'
	local g = tflite.load(m)
	for _, row in ipairs(quant.log()) do assert(row.op ~= 'conv2d', 'a convolution ran') end
	assert(tostring(g:node 'y1'.shape) == '(1, 8, 256, 256)')
end)
