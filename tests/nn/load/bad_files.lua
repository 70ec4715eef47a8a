-- SPDX-License-Identifier: MIT
-- labels: quick once host
-- Bad files of every format: each ends in an error of one line, within a second, with no more memory than twice the file and 64 MiB.
local root = (debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/'
local onnx, tflite = dofile(root .. 'onnx.lua'), dofile(root .. 'tflite.lua')
local int, text, node = onnx.int, onnx.text, onnx.node
local folder = os.tmpname()
os.remove(folder)
assert(os.execute('mkdir ' .. folder))

local function write(name, bytes)
	local out <close> = assert(io.open(folder .. '/' .. name, 'wb'))
	out:write(bytes)
	return folder .. '/' .. name
end

---------------------------------------------------------------- time and memory

local function status(key)
	local handle <close> = assert(io.open '/proc/self/status')
	return tonumber(handle:read 'a':match(key .. ':%s*(%d+)')) * 1024
end

-- Memory of the process at once, and the most since the last call.
local function resident()
	local now, most = status 'VmRSS', status 'VmHWM'
	local handle = io.open('/proc/self/clear_refs', 'w')
	if handle then handle:write '5':close() end -- the most begins at what there is
	return now, most
end
local bounded = not os.getenv 'QUOLL_TEST_SANITIZERS' and io.open('/proc/self/clear_refs', 'w')
if bounded then bounded:close() end

local function refused(size, want, f, ...)
	collectgarbage()
	local now, before = resident(), os.clock()
	local ok, message = pcall(f, ...)
	local spent, _, most = os.clock() - before, resident()
	assert(not ok and type(message) == 'string' and not message:find '\n' and #message < 1000 and message:find(want, 1, true), message)
	assert(spent < (os.getenv 'QUOLL_TEST_SANITIZERS' and 20 or 1), ('%.2f s: %s'):format(spent, message))
	assert(not bounded or most - now <= 2 * size + (64 << 20), ('%d bytes for %d: %s'):format(most - now, size, message))
end

local function bad_onnx(bytes, want) refused(#bytes, want, graph.load, write('m.onnx', bytes)) end
local function bad_tflite(bytes, want) refused(#bytes, want, graph.load, write('m.tflite', bytes)) end

---------------------------------------------------------------- ONNX

local X, Y = {{'x', 'float32', {2}}}, {'y'}
local function model(nodes, more)
	local g = {nodes = nodes, inputs = X, outputs = Y}
	for key, item in next, more or {} do g[key] = item end
	return onnx.bytes(g)
end
local with, external = onnx.with_tensor, onnx.with_external

it('ONNX: cycles, missing values, names twice', function()
	bad_onnx(model {node('Relu', {'b'}, {'a'}, nil, {name = 'r'}), node('Relu', {'a'}, {'b'}), node('Add', {'x', 'b'}, Y)}, "node 'r' (Relu): input 'b': wanted a value")
	bad_onnx(model {node('Relu', {'y'}, Y, nil, {name = 'r'})}, "node 'r' (Relu): input 'y': wanted a value")
	bad_onnx(model {node('Add', {'x', 'none'}, Y, nil, {name = 'a'})}, "node 'a' (Add): input 'none': wanted a value")
	bad_onnx(model {node('Add', {'x', ''}, Y, nil, {name = 'a'})}, "node 'a' (Add)")
	bad_onnx(model({node('Relu', {'x'}, Y)}, {outputs = {'z'}}), "output 'z': wanted a value")
	bad_onnx(model {node('Relu', {'x'}, {'a'}), node('Neg', {'x'}, {'a'}), node('Relu', {'a'}, Y)}, "'a' twice")
	bad_onnx(model({node('Relu', {'x'}, Y)}, {inputs = {X[1], X[1]}}), "'x' twice")
end)

it('ONNX: sizes of 2^61, places that wrap, files outside of the folder', function()
	for _, dims in ipairs {int(1, 1 << 61), int(1, 1 << 61) .. int(1, 8), int(1, 1 << 32) .. int(1, 1 << 32), int(1, math.mininteger)} do
		bad_onnx(with(dims .. int(2, 1) .. text(9, 'abcd')), "tensor 'c': ")
		bad_onnx(with(dims .. int(2, 1)), "tensor 'c': ")
	end
	for _, dims in ipairs {{1 << 61}, {1 << 30, 1 << 30}, {-5}} do
		bad_onnx(model({node('Relu', {'x'}, Y)}, {inputs = {{'x', 'float32', dims}}}), "input 'x': axis")
	end
	bad_onnx(with(int(1, 2) .. int(2, 1) .. '\x4a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01'), 'protocol buffer')
	write('w.bin', ('<ff'):pack(1, 2))
	for _, location in ipairs {'../../etc/passwd', '../../../../../../etc/passwd', '/etc/passwd', 'a/../../w.bin', './../w.bin'} do
		bad_onnx(external(location), "wanted a file in the model's folder")
	end
	for _, offset in ipairs {tostring(math.maxinteger), '18446744073709551612', '9223372036854775804', '-8', '1e3', ''} do
		bad_onnx(external('w.bin', {offset = offset, length = '8'}), "tensor 'c': ")
	end
	bad_onnx(external('w.bin', {length = tostring(1 << 61)}), "tensor 'c': ")
end)

it('ONNX: scales of NaN, blocks cut short', function()
	local nan = tensor {0 / 0}:sum()
	bad_onnx(model({node('DequantizeLinear', {'q', 's'}, {'d'}, nil, {name = 'q'}), node('Add', {'x', 'd'}, Y)}, {initializers = {q = tensor {1, 2, dtype = 'int8'}, s = nan}}),
		"node 'q' (DequantizeLinear)")
	bad_onnx(model({node('QuantizeLinear', {'x', 's'}, {'d'}, nil, {name = 'q'}), node('DequantizeLinear', {'d', 's'}, Y)}, {initializers = {s = nan}}), "node 'q' (QuantizeLinear)")
	local codes, zero = tensor.ones(4, 6):to 'int8', {block_size = 4, axis = 1}
	for _, s in ipairs {tensor.ones(4, 1), tensor.ones(4, 3), tensor.ones(3, 2), tensor.ones(4)} do -- 6 codes in blocks of 4 have 2 scales
		bad_onnx(model({node('DequantizeLinear', {'q', 's'}, {'d'}, zero, {name = 'q'}), node('MatMul', {'x', 'd'}, Y)},
			{inputs = {{'x', 'float32', {1, 4}}}, initializers = {q = codes, s = s}, opset = 21}), "node 'q' (DequantizeLinear)")
	end
	local nbits = {K = 32, N = 2, bits = 4, block_size = 16}
	for _, c in ipairs {{tensor.ones(2, 2, 7), tensor.ones(4)}, {tensor.ones(2, 1, 8), tensor.ones(4)}, {tensor.ones(2, 2, 8), tensor.ones(3)}} do
		bad_onnx(model({node('MatMulNBits', {'x', 'w', 's'}, Y, nbits, {name = 'm', domain = 'com.microsoft'})}, {inputs = {{'x', 'float32', {1, 32}}},
			initializers = {w = c[1]:to 'uint8', s = c[2]}, domains = {['com.microsoft'] = 1}}), "node 'm' (MatMulNBits)")
	end
end)

-- Graphs in the branches of If, `depth` deep; written from the outside, as each length holds the rest.
local function nested(depth)
	local name, branch, varint = text(4, 'If'), text(1, 'then_branch'), onnx.varint
	local heads, size = {}, 0
	for i = depth, 1, -1 do
		local graph_size = varint(size)
		local attribute = #branch + 1 + #graph_size + size
		local node_size = #name + 1 + #varint(attribute) + attribute
		heads[i] = '\x0a' .. varint(node_size) .. name .. '\x2a' .. varint(attribute) .. branch .. '\x32' .. graph_size
		size = #heads[i] + size
	end
	return int(1, 8) .. text(7, table.concat(heads)) .. text(8, text(1, '') .. int(2, 17))
end

it('ONNX: 10^5 graphs in each other, functions that call each other', function()
	bad_onnx(nested(100000), 'wanted messages at most 64 deep, got deeper ones')
	local function call(from, to, i) return text(7, text(1, from) .. text(2, to) .. text(4, 'f' .. i) .. text(7, 'my')) end
	local parts = {}
	for i = 1, 3000 do parts[i] = text(25, text(1, 'f' .. i) .. text(4, 'a') .. text(5, 'b') .. call('a', 'b', i % 3000 + 1) .. text(10, 'my')) end
	local calls = onnx.bytes {nodes = {node('f1', {'x'}, Y, nil, {domain = 'my'})}, inputs = X, outputs = Y, domains = {my = 1}}
	bad_onnx(calls .. table.concat(parts), 'functions: wanted at most 32 calls within each other, got more')
	for i = 1, 30 do -- each calls the next one twice
		parts[i] = text(25, text(1, 'f' .. i) .. text(4, 'a') .. text(5, 'c') .. call('a', 'b', i + 1) .. call('b', 'c', i + 1) .. text(10, 'my'))
	end
	parts[31] = text(25, text(1, 'f31') .. text(4, 'a') .. text(5, 'b') .. text(7, text(1, 'a') .. text(2, 'b') .. text(4, 'Identity')) .. text(9, text(1, '') .. int(2, 17)) .. text(10, 'my'))
	bad_onnx(calls .. table.concat(parts, '', 1, 31), 'nodes in all, got more')
end)

---------------------------------------------------------------- TFLite

local function sum(more)
	local t = {name = 'c', shape = {2}, type = 'FLOAT32', bytes = ('<ff'):pack(1, 2)}
	for key, value in pairs(more or {}) do t[key] = value end
	return {tensors = {{name = 'x', shape = {2}, type = 'FLOAT32'}, t, {name = 'y', shape = {2}, type = 'FLOAT32'}, {name = 'z', shape = {2}, type = 'FLOAT32'}},
		ops = {{'ADD', {1, 2}, {3}, {}}}, inputs = {1}, outputs = {3}}
end
local function changed(change)
	local m = sum()
	change(m)
	return tflite.bytes(m)
end

it('TFLite: cycles, missing values, names and results twice', function()
	bad_tflite(changed(function(m) m.ops = {{'ADD', {1, 4}, {3}, {}}, {'ADD', {3, 2}, {4}, {}}} end), "node 'y' (ADD): input 2: wanted a tensor that is computed before, got tensor 'z'")
	bad_tflite(changed(function(m) m.ops[1][2][2] = 3 end), "input 2: wanted a tensor that is computed before, got tensor 'y'")
	bad_tflite(changed(function(m) m.ops[1][2] = {1, 0} end), "node 'y' (ADD): input 2: wanted a tensor, got none")
	bad_tflite(changed(function(m) m.ops[1][2] = {1} end), "node 'y' (ADD): input 2: wanted a tensor, got none")
	bad_tflite(changed(function(m) m.outputs = {4} end), "outputs: wanted a tensor that is computed before, got tensor 'z'")
	bad_tflite(changed(function(m) m.tensors[4].name, m.inputs = 'x', {1, 4} end), "inputs: wanted different names, got 'x' twice")
end)

it('TFLite: huge sizes, places that wrap', function()
	bad_tflite(tflite.bytes(sum {shape = {0x7fffffff, 0x7fffffff, 0x7fffffff}}), "tensor 'c': wanted fewer elements")
	bad_tflite(tflite.bytes(sum {shape = {1 << 20, 1 << 20}}), "tensor 'c': data: wanted 4398046511104 bytes, got 8")
	bad_tflite(tflite.bytes(sum {shape = {-1}}), "tensor 'c': wanted sizes of 0 and up")
	for _, place in ipairs {{math.maxinteger, 8}, {-8, 8}, {8, math.maxinteger}, {1 << 61, 1 << 61}, {16, -8}} do
		local m = tflite.model(sum())
		m[4][2][3] = {[1] = {'i64', place[1]}, [2] = {'i64', place[2]}}
		m[4][2][3][0] = nil
		bad_tflite(tflite.flatbuffer(m), '')
	end
	local whole = tflite.bytes(sum())
	for at = 1, #whole, 4 do -- every word of the file as an offset that wraps
		for _, word in ipairs {'\xff\xff\xff\xff', '\0\0\0\x80', '\xff\xff\xff\x7f', '\xfc\xff\xff\xff'} do
			local ok, message = pcall(graph.load, write('m.tflite', whole:sub(1, at - 1) .. word .. whole:sub(at + 4)))
			assert(ok or not message:find '\n', message)
		end
	end
end)

it('TFLite: scales of NaN, codes cut short', function()
	for _, scale in ipairs {0 / 0, math.huge, -1, 0} do
		bad_tflite(tflite.bytes(sum {type = 'INT8', bytes = 'ab', scale = {scale}, zero = {0}}), "tensor 'c': scale: wanted a positive number")
	end
	bad_tflite(tflite.bytes(sum {type = 17, shape = {5}, bytes = 'ab', scale = {0.5}, zero = {0}}), "tensor 'c': data: wanted 3 bytes, got 2") -- int4
	bad_tflite(tflite.bytes(sum {type = 'INT8', shape = {2, 3}, bytes = 'abcdef', scale = {1, 2, 3}, zero = {0, 0, 0}}), 'quantization: wanted 3 scales along axis 0')
end)

it('TFLite: many graphs, and tables that share their parts', function()
	local m = tflite.model(sum())
	local graphs, tensors = {}, {}
	for i = 1, 30000 do graphs[i] = {[4] = {'text', ''}} end
	m[2] = {'tables', graphs}
	bad_tflite(tflite.flatbuffer(m), 'outputs: wanted at least one, got none')
	-- 2^12 graphs at one place, each with 2^12 tensors at one place
	local w = tflite.flatbuffer {[0] = {'u32', 3}, [2] = {'tables', {{[0] = {'tables', {{[3] = {'text', 'x'}}}}}}}}
	for i = 1, 4096 do tensors[i] = 0 end
	local graph_at, list = #w, {}
	local function u32(n) return ('<I4'):pack(n) end
	-- vtable and table of a graph whose field 0 is a vector of tensors, all of them the table of one tensor
	local tensor_table = ('<I2I2'):pack(4, 4) .. ('<i4'):pack(4)
	local body = tensor_table .. ('<I2I2I2I2'):pack(6, 8, 4, 0) .. ('<i4'):pack(8) .. u32(4)
	for i = 1, #tensors do list[i] = ('<I4'):pack((-(24 + 4 + 4 * (i - 1)) + 4) & 0xffffffff) end
	bad_tflite(w:sub(1, 8) .. w:sub(9, graph_at) .. body .. u32(#tensors) .. table.concat(list), '')
end)

---------------------------------------------------------------- GGUF

-- Tensors are {name, {sizes}, type, bytes, offset}, keys are packed.
local function gguf(tensors, keys)
	local parts, data = {'GGUF', ('<I4I8I8'):pack(3, #tensors, #keys), table.concat(keys)}, ''
	for _, t in ipairs(tensors) do
		parts[#parts + 1] = ('<s8I4'):pack(t[1], #t[2])
		for _, size in ipairs(t[2]) do parts[#parts + 1] = ('<I8'):pack(size) end
		parts[#parts + 1] = ('<I4I8'):pack(t[3], t[5] or #data)
		data = data .. t[4] .. ('\0'):rep(-#t[4] % 32)
	end
	local head = table.concat(parts)
	return head .. ('\0'):rep(-#head % 32) .. data
end
local function bad_gguf(bytes, want) refused(#bytes, want, tensor.load, write('m.gguf', bytes)) end

it('GGUF: sizes of 2^61, places that wrap or overlap, names twice', function()
	local zeros = ('\0'):rep(32)
	for _, sizes in ipairs {{1 << 61}, {1 << 61, 8}, {1 << 32, 1 << 32}, {math.mininteger}} do bad_gguf(gguf({{'w', sizes, 0, zeros}}, {}), 'w') end
	for _, offset in ipairs {1 << 61, math.maxinteger - 31, math.mininteger, -32, 64, 1} do bad_gguf(gguf({{'w', {8}, 0, zeros, offset}}, {}), 'w') end
	bad_gguf(gguf({{'v', {8}, 0, zeros}, {'w', {8}, 0, zeros, 0}}, {}), 'w')
	bad_gguf(gguf({{'w', {8}, 0, zeros}, {'w', {8}, 0, zeros}}, {}), "'w' twice")
	local key = ('<s8I4I4I8'):pack('a', 9, 0, 1 << 61) -- an array of 2^61 bytes
	bad_gguf(gguf({}, {key}), 'm.gguf')
	bad_gguf(gguf({}, {('<s8I4'):pack('a', 4) .. '\0\0\0\0', ('<s8I4'):pack('a', 4) .. '\0\0\0\0'}), "'a' twice")
	bad_gguf('GGUF' .. ('<I4I8I8'):pack(3, 1 << 61, 0), 'm.gguf')
	bad_gguf('GGUF' .. ('<I4I8I8'):pack(3, 0, 1 << 61), 'm.gguf')
	bad_gguf('GGUF' .. ('<I4I8I8'):pack(3, 0, 1) .. ('<I8'):pack(math.mininteger) .. 'abc', 'm.gguf')
end)

it('GGUF: scales of NaN, blocks cut short, 10^5 arrays in each other', function()
	bad_gguf(gguf({{'w', {32}, 8, '\0\x7e' .. ('\0'):rep(32)}}, {}), "'w': ")
	bad_gguf(gguf({{'w', {32}, 2, '\0\x7c' .. ('\0'):rep(16)}}, {}), "'w': ") -- infinity
	bad_gguf(gguf({{'w', {33}, 8, ('\0'):rep(34)}}, {}), "'w': wanted rows of whole blocks of 32 for Q8_0, got 33 elements")
	local whole = gguf({{'w', {64}, 8, ('\0'):rep(68)}}, {})
	for cut = 1, 68 do bad_gguf(whole:sub(1, #whole - 28 - cut), '') end
	local depth = {('<s8I4'):pack('a', 9)}
	for i = 2, 100001 do depth[i] = ('<I4I8'):pack(9, 1) end
	bad_gguf(gguf({}, {table.concat(depth) .. ('<I4I8'):pack(0, 1) .. 'a'}), 'm.gguf')
end)

---------------------------------------------------------------- safetensors

local function safetensors(header, bytes) return ('<I8'):pack(#header) .. header .. (bytes or ('\0'):rep(32)) end
local function bad_safetensors(bytes, want) refused(#bytes, want, tensor.load, write('m.safetensors', bytes)) end

it('safetensors: sizes of 2^61, places that wrap or overlap, names twice, 10^5 brackets', function()
	local function one(shape, from, to, more) return safetensors(('{"w":{"dtype":"F32","shape":[%s],"data_offsets":[%s,%s]}%s}'):format(shape, from, to, more or '')) end
	for _, shape in ipairs {'2305843009213693952', '2305843009213693952,8', '4294967296,4294967296', '-8', '1e3', '18446744073709551616'} do bad_safetensors(one(shape, 0, 32), 'w') end
	for _, at in ipairs {{0, 31}, {8, 0}, {-32, 0}, {32, 64}, {'18446744073709551584', '18446744073709551616'}, {0, '9223372036854775808'}, {4, 36}} do
		bad_safetensors(one('8', at[1], at[2]), 'm.safetensors')
	end
	bad_safetensors(one('8', 0, 32, ',"v":{"dtype":"F32","shape":[8],"data_offsets":[0,32]}'), 'm.safetensors')
	bad_safetensors(one('4', 0, 16, ',"v":{"dtype":"F32","shape":[6],"data_offsets":[8,32]}'), 'm.safetensors')
	bad_safetensors(one('4', 0, 16, ',"w":{"dtype":"F32","shape":[4],"data_offsets":[16,32]}'), 'twice')
	bad_safetensors(safetensors('{"w":' .. ('['):rep(100000)), 'm.safetensors')
	for _, size in ipairs {1 << 61, -1, -8, 1 << 32} do bad_safetensors(('<I8'):pack(size) .. '{}', 'm.safetensors') end
	local whole = one('8', 0, 32)
	for n = 0, #whole - 1 do bad_safetensors(whole:sub(1, n), 'm.safetensors') end
end)

it('safetensors: scales of NaN, blocks cut short', function()
	local path = folder .. '/q.safetensors'
	tensor.save(path, {w = tensor.ones(2, 8):quantize 'int8:4'})
	local handle = assert(io.open(path, 'rb'))
	local bytes = handle:read 'a'
	handle:close()
	local from = tonumber(bytes:match '"w::scale":{[^}]*"data_offsets":%[(%d+)')
	local at = from + 9 + ('<I8'):unpack(bytes)
	bad_safetensors(bytes:sub(1, at - 1) .. ('<f'):pack(0 / 0) .. bytes:sub(at + 4), 'w')
	bad_safetensors(bytes:gsub('"shape":%[2,2%]', '"shape":[1,4]'), 'w') -- scales of other rows
end)

os.execute('rm -r ' .. folder)
