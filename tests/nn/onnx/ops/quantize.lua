-- SPDX-License-Identifier: MIT
-- labels: quick host
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal, node = onnx.run, onnx.equal, onnx.node
local function u8(...) return tensor {dtype = 'uint8', ...} end
local function i8(...) return tensor {dtype = 'int8', ...} end
local function number(v, dtype) return tensor {v, dtype = dtype or 'float32'}:sum():to(dtype or 'float32') end
tensor.seed(3)

it('quantizes and dequantizes', function()
	local x = tensor {-1, 0.24, 0.25, 0.75, 100}
	local q = run('QuantizeLinear', {x, number(0.5), number(3, 'uint8')}, nil, {fixed = {2, 3}})
	assert(q:quantized() and equal(q:codes(), {1, 3, 3, 5, 203}))
	assert(equal(run('QuantizeLinear', {tensor {-1000, 63.4}, number(0.5), number(0, 'int8')}, nil, {fixed = {2, 3}}):codes(), {-128, 127}))
	assert(equal(run('QuantizeLinear', {x, number(0.5), number(3, 'uint8')}), {1, 3, 3, 5, 203})) -- a scale that is found at the run
	assert(equal(run('DequantizeLinear', {u8(1, 3, 203), number(0.5), number(3, 'uint8')}), {-1, 0, 100}))
	local y = run('DequantizeLinear', {i8(1, -2, 3, 4):view(2, 2), tensor {0.5, 2}, i8(1, 0)}, {axis = 0}, {fixed = {1, 2, 3}})
	assert(equal(y, {{0, -1.5}, {6, 8}}))
	assert(equal(run('DequantizeLinear', {tensor {100, -3, dtype = 'int32'}, number(0.25)}, nil, {fixed = {1, 2}}), {25, -0.75}))
end)

it('finds the scale of codes', function()
	local q, scale, zero = run('DynamicQuantizeLinear', {tensor {-1, 0, 3}}, nil, {outputs = 3})
	assert(equal(q, {0, 64, 255}) and equal(scale, 4 / 255) and zero:item() == 64)
end)

it('multiplies integers', function()
	local a, b = u8(1, 2, 3, 4):view(2, 2), i8(1, -1, 2, 0):view(2, 2)
	assert(equal(run('MatMulInteger', {a, b, number(1, 'uint8'), number(1, 'int8')}, nil, {fixed = {2, 3, 4}}), {{1, -1}, {3, -7}}))
	assert(equal(run('MatMulInteger', {a, b}), {{5, -1}, {11, -3}}))
	local x = u8(1, 2, 3, 4):view(1, 1, 2, 2)
	assert(equal(run('ConvInteger', {x, i8(1, 1, 1, -1):view(1, 1, 2, 2), number(1, 'uint8')}, nil, {fixed = {2, 3}}), {{{{0}}}}))
	assert(equal(run('ConvInteger', {x, i8(1, 1, 1, -1):view(1, 1, 2, 2), number(1, 'uint8')}), {{{{0}}}}))
	-- volumes: a sum that float32 has not
	local wide = tensor.full {1, 600, 1, 2, 2, value = 255}:to 'uint8'
	local rows = tensor.full {1, 600, 1, 2, 2, value = 127}:to 'int8'
	rows[1][1][1][1][1] = 126
	for _, fixed in ipairs {{}, {2}} do
		assert(equal(run('ConvInteger', {wide, rows}, nil, {fixed = fixed}), tensor {2400 * 255 * 127 - 255, dtype = 'int32'}:view(1, 1, 1, 1, 1), 0))
	end
end)

it('has QLinear ops', function()
	local s, z = number(0.5), number(2, 'uint8')
	local y = run('QLinearMatMul', {u8(4, 2, 2, 6):view(2, 2), s, z, i8(1, 0, 0, 2):view(2, 2), number(1), number(0, 'int8'), number(0.25), number(1, 'uint8')}, nil,
		{fixed = {2, 3, 4, 5, 6, 7, 8}})
	assert(equal(y:codes(), {{5, 1}, {1, 17}}))
	y = run('QLinearConv', {u8(4, 2, 2, 6):view(1, 1, 2, 2), s, z, i8(1, 2):view(2, 1, 1, 1), tensor {1, 2}, i8(0, 0), number(0.5), number(0, 'uint8'),
		tensor {2, -1, dtype = 'int32'}}, nil, {fixed = {2, 3, 4, 5, 6, 7, 8, 9}})
	assert(equal(y:codes(), {{{{4, 2}, {2, 6}}, {{6, 0}, {0, 14}}}}), y:codes())
end)

-- x -> QuantizeLinear -> DequantizeLinear -> Conv (weights in codes) -> Relu -> QuantizeLinear -> DequantizeLinear -> Gemm -> ...
local function qdq()
	local w, b = tensor.randn(4, 2, 3, 3):quantize('int8/1'), tensor.randint {4, low = -50, high = 50}
	local fc = tensor.randn(3, 4):quantize 'int8/1'
	local sx, sy, sz = 0.05, 0.1, 0.02
	local p, o = w:qparams(), fc:qparams()
	local function pair(from, to, s)
		return node('QuantizeLinear', {from, s .. '.s', s .. '.z'}, {to .. '.q'}, nil, {name = to .. '.quantize'}),
			node('DequantizeLinear', {to .. '.q', s .. '.s', s .. '.z'}, {to}, nil, {name = to .. '.dequantize'})
	end
	local q1, d1 = pair('x', 'xd', 'x')
	local q2, d2 = pair('r', 'rd', 'r')
	local q3, d3 = pair('g', 'gd', 'r')
	local q4, d4 = pair('f', 'y', 'y')
	local one = {axis = 0}
	return {nodes = {q1, d1, node('DequantizeLinear', {'w', 'w.s', 'w.z'}, {'wd'}, one, {name = 'wd'}), node('DequantizeLinear', {'b', 'b.s'}, {'bd'}, one, {name = 'bd'}),
		node('Conv', {'xd', 'wd', 'bd'}, {'c'}, {pads = {1, 1, 1, 1}}, {name = 'conv'}), node('Relu', {'c'}, {'r'}, nil, {name = 'relu'}), q2, d2,
		node('GlobalAveragePool', {'rd'}, {'a'}, nil, {name = 'pool'}), node('Flatten', {'a'}, {'g'}, nil, {name = 'flat'}), q3, d3,
		node('DequantizeLinear', {'fc', 'fc.s'}, {'fcd'}, one, {name = 'fcd'}), node('Gemm', {'gd', 'fcd'}, {'f'}, {transB = 1}, {name = 'fc'}), q4, d4},
		inputs = {{'x', 'float32', {'n', 2, 6, 6}}}, outputs = {'y'}, initializers = {['x.s'] = number(sx), ['x.z'] = number(128, 'uint8'), ['r.s'] = number(sy),
			['r.z'] = number(0, 'uint8'), ['y.s'] = number(sz), ['y.z'] = number(100, 'uint8'), w = w:codes(), ['w.s'] = p.scale, ['w.z'] = tensor.zeros {4, dtype = 'int8'},
			b = b:to 'int32', ['b.s'] = p.scale * sx, fc = fc:codes(), ['fc.s'] = o.scale}}, w, b, fc, sx, sy, sz
end

-- What ops give of the codes of x, whose scale is 0.5 and zero point 3: codes 1, 3, 5, 9.
local function of_codes(more, last, initializers, inputs, sizes)
	initializers.s, initializers.z = number(0.5), number(3, 'uint8')
	local nodes = {node('QuantizeLinear', {'x', 's', 'z'}, {'q'}, nil, {name = 'q'})}
	for i, n in ipairs(more) do nodes[i + 1] = n end
	local list = {{'x', 'float32', sizes or {2, 2}}}
	for i, input in ipairs(inputs or {}) do list[i + 1] = input end
	return onnx.load {nodes = nodes, inputs = list, outputs = {last}, initializers = initializers, opset = 21}
end
local values = tensor {{-1, 0}, {1, 3}}

it('gives integers to ops that do not move codes', function()
	local function one(op, inputs, attrs, initializers)
		local y = of_codes({node(op, inputs, {'y'}, attrs, {name = 'y'})}, 'y', initializers or {}):run(values)
		return y:quantized() and y:codes() or y
	end
	assert(equal(one('Cast', {'q'}, {to = 6}), {{1, 3}, {5, 9}}) and equal(one('Relu', {'q'}), {{1, 3}, {5, 9}}))
	assert(equal(one('Clip', {'q', 'low', 'high'}, nil, {low = number(2, 'uint8'), high = number(5, 'uint8')}), {{2, 3}, {5, 5}}))
	assert(equal(one('Pad', {'q', 'pads', 'value'}, nil, {pads = tensor {0, 1, 0, 0, dtype = 'int64'}, value = number(7, 'uint8')}), {{7, 1, 3}, {7, 5, 9}}))
	assert(equal(one('Concat', {'q', 'other'}, {axis = 1}, {other = u8(6, 7):view(2, 1)}), {{1, 3, 6}, {5, 9, 7}}))
	assert(equal(one('MatMulInteger', {'q', 'w', 'wz'}, nil, {w = i8(1, 0, 0, 2):view(2, 2), wz = number(1, 'uint8')}), {{0, 4}, {4, 16}}))
	assert(equal(one('DequantizeLinear', {'q', 'two'}, nil, {two = number(2)}), {{2, 6}, {10, 18}}))
	assert(equal(one('DequantizeLinear', {'q', 's', 'z'}), values))
end)

it('keeps what is clipped and padded as codes, and takes scales that are found at the run for each row', function()
	local g = of_codes({node('Clip', {'q', 'low'}, {'c'}, nil, {name = 'c'}), node('DequantizeLinear', {'c', 's', 'z'}, {'y'}, nil, {name = 'y'})}, 'y', {low = number(4, 'uint8')})
	assert(equal(g:run(values), {{0.5, 0.5}, {1, 3}}))
	g = onnx.load {nodes = {node('ReduceMax', {'x'}, {'s'}, {axes = {1}, keepdims = 0}, {name = 's'}), node('QuantizeLinear', {'x', 's'}, {'q'}, {axis = 0}, {name = 'q'})},
		inputs = {{'x', 'float32', {'n', 2}}}, outputs = {'q'}, opset = 13}
	assert(equal(g:run(tensor {{1, 2}, {6, 3}}), {{0, 1}, {1, 0}}) and equal(g:run(tensor {{4, 2}}), {{1, 0}}))
	assert(run('DequantizeLinear', {i8(1, 2), number(0.5)}, {output_dtype = 11}, {fixed = {2}, opset = 23}):dtype() == 'float64')
end)

it('makes integer ops of a graph with quantized and dequantized values', function()
	local model, w, b, fc, sx, sy, sz = qdq()
	local g, r = onnx.load(model, {report = true})
	assert(g:node 'conv'.mode == 'static' and g:node 'fc'.mode == 'static' and g:node 'pool'.mode == 'static' and tostring(g:node 'conv'.spec.output):find 'uint8', g)
	local count = 0
	for _, name in ipairs(g.order) do count = count + (g:node(name).op == 'dequantize' and 1 or 0) end
	assert(count == 1 and #r > 3)
	local x = tensor.randn(5, 2, 6, 6)
	local function round(t, s, z) return ((t / s):round() + z):clamp(0, 255) end
	local xq = (round(x, sx, 128) - 128) * sx
	local c = xq:conv2d(w:dequantize(), (b:to 'float32' * w:qparams().scale) * sx, {pad = 1}):relu()
	local a = (round((round(c, sy, 0) * sy):mean {axis = {3, 4}}, sy, 0)) * sy
	local want = (round(a:linear(fc:dequantize()), sz, 100) - 100) * sz
	local off = (g:run(x) - want):abs():max():item()
	assert(off <= sz * 1.01, off)
	quant.log 'reset'
	g:run(x)
	local integer = 0
	for _, row in ipairs(quant.log()) do integer = integer + (row.path == 'int8' and 1 or 0) end
	assert(integer >= 2, quant.log())
end)

-- As torch's exporters write them: a Cast before each DequantizeLinear, biases that are floats.
it('adds biases that are no int32 as floats, unless bias is integer', function()
	local w, bias, x = tensor.randn(4, 3):quantize 'int8/1', tensor.randn(4), tensor.randn(400, 3)
	local model = {nodes = {node('QuantizeLinear', {'x', 's', 'z'}, {'q'}, nil, {name = 'q'}), node('Cast', {'q'}, {'qc'}, {to = 2}, {name = 'cast'}),
		node('DequantizeLinear', {'qc', 's', 'z'}, {'d'}, nil, {name = 'd'}), node('DequantizeLinear', {'w', 'ws'}, {'wd'}, {axis = 0}, {name = 'wd'}),
		node('Gemm', {'d', 'wd', 'b'}, {'f'}, {transB = 1}, {name = 'fc'}), node('Relu', {'f'}, {'r'}, nil, {name = 'relu'}),
		node('QuantizeLinear', {'r', 't', 'z'}, {'y'}, nil, {name = 'y'})}, inputs = {{'x', 'float32', {'n', 3}}}, outputs = {'y'},
		initializers = {s = number(0.05), z = number(7, 'uint8'), t = number(0.02), w = w:codes(), ws = w:qparams().scale, b = bias}}
	local exact, rounded = onnx.load(model), onnx.load(model, {bias = 'integer'})
	assert(exact:node 'fc'.mode == 'static' and not exact:node 'fc'.attrs.out and rounded:node 'fc'.attrs.out)
	local codes = (((x / 0.05):round() + 7):clamp(0, 255) - 7):to 'float64'
	local real = codes:linear(w:codes():to 'float64' * w:qparams().scale:to 'float64':reshape(4, 1) * 0.05, bias:to 'float64'):relu()
	local want = ((real / 0.02):round() + 7):clamp(0, 255)
	local function off(g) return (g:run(x):codes():to 'float64' - want):abs():sum():item() end
	assert(off(exact) == 0 and off(rounded) > 0 and off(rounded) < 100, off(rounded))
	for _, given in ipairs {'int8', 3} do
		local ok, message = pcall(onnx.load, model, {bias = given})
		assert(not ok and message:find 'bias: wanted', message)
	end
end)

it('multiplies codes whose scale is found at the run', function()
	local w = tensor.randn(8, 3):quantize {dtype = 'int8', axis = 2}
	local nodes = {node('DynamicQuantizeLinear', {'x'}, {'q', 's', 'z'}, nil, {name = 'dq'}), node('Mul', {'s', 'ws'}, {'f'}, nil, {name = 'f'}),
		node('MatMulInteger', {'q', 'w', 'z'}, {'i'}, nil, {name = 'mm'}), node('Cast', {'i'}, {'c'}, {to = 1}, {name = 'cast'}), node('Mul', {'c', 'f'}, {'y'}, nil, {name = 'scale'})}
	local g = onnx.load {nodes = nodes, inputs = {{'x', 'float32', {'n', 8}}}, outputs = {'y'}, initializers = {w = w:codes(), ws = w:qparams().scale}}
	local ops = {}
	for _, name in ipairs(g.order) do ops[#ops + 1] = g:node(name).op end
	assert(table.concat(ops, ' ') == 'input quantize const matmul', table.concat(ops, ' '))
	local x = tensor.randn(4, 8)
	assert(equal(g:run(x), x:quantize 'uint8':dequantize():matmul(w:dequantize()), 1e-4))
end)

-- Scalars 'z' of uint8 whose type becomes float4 (23): codes 0 to 15 of e2m1.
it('reads float4 as numbers, and has no codes of it', function()
	local function four(op, inputs, z)
		local bytes = onnx.bytes {nodes = {node(op, inputs, {'y'}, nil, {name = 'y'})}, inputs = {{'x', 'float32', {2}}}, outputs = {'y'},
			initializers = {s = number(0.5), z = number(z, 'uint8')}, opset = 23}
		local path = os.tmpname()
		local made, count = bytes:gsub('\x10\x02\x42\x01z', '\x10\x17\x42\x01z')
		assert(count == 1)
		local out <close> = assert(io.open(path, 'wb'))
		out:write(made)
		out:flush()
		local ok, g = pcall(graph.load, path)
		os.remove(path)
		return ok, g
	end
	for code, want in ipairs {[0] = 0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6} do
		local ok, g = four('DequantizeLinear', {'z', 's'}, code)
		assert(ok and g:run(tensor {0, 0}):item() == want / 2, g)
	end
	for op, inputs in pairs {QuantizeLinear = {'x', 's', 'z'}, CastLike = {'x', 'z'}} do
		local ok, message = four(op, inputs, 0)
		assert(not ok and message:find 'got float4', message)
	end
end)
