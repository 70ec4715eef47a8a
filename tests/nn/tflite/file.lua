-- SPDX-License-Identifier: MIT
-- labels: quick
-- TFLite files: elements, scales, broken files of all kinds: one line that names the file, soon.
local tflite = dofile 'tests/tools/tflite.lua'

local function refused(m, pattern)
	local before = os.clock()
	local ok, message = pcall(tflite.load, m)
	assert(not ok and type(message) == 'string' and not message:find '\n' and message:find(pattern), message)
	assert(os.clock() - before < 1, 'it took too long')
end

local function add(t)
	t.name, t.shape, t.type = t.name or 'c', t.shape or {2}, t.type or 'FLOAT32'
	return {tensors = {{name = 'x', shape = {2}, type = 'FLOAT32'}, t, {name = 'y', shape = {2}, type = 'FLOAT32'}}, ops = {{'ADD', {1, 2}, {3}, {}}},
		inputs = {1}, outputs = {3}}
end

it('reads elements of every type', function()
	for _, case in ipairs {{'FLOAT32', '<ff'}, {'FLOAT64', '<dd'}, {'INT32', '<i4i4'}, {'INT64', '<i8i8'}, {'UINT8', 'BB'}, {'INT8', 'bb'}, {'INT16', '<i2i2'}} do
		local m = add {type = case[1], bytes = case[2]:pack(10, 20)}
		local y = tflite.load(m):run(tensor {1, 2})
		assert(tflite.equal(y, {11, 22}))
	end
	local half = add {type = 'FLOAT16', bytes = '\x00\x49\x00\x4d'}
	assert(tflite.equal(tflite.load(half):run(tensor {1, 2}), {11, 22}))
end)

it('reads constants of 4 bits', function()
	local w = add {type = 17, shape = {2}, bytes = '\xf3', scale = {0.5}, zero = {0}} -- 3 and -1
	assert(tflite.equal(tflite.load(w):run(tensor {1, 2}), {2.5, 1.5}))
end)

it('reads elements behind the buffer, as files above 2 GB have them', function()
	local m = tflite.model(add {bytes = ('<ff'):pack(0, 0)})
	local empty = tflite.flatbuffer(m)
	m[4][2][3] = {{'i64', #empty + 100}, {'i64', 8}} -- offset and size instead of data
	local bytes = tflite.flatbuffer(m)
	bytes = bytes .. ('\0'):rep(#empty + 100 - #bytes) .. ('<ff'):pack(10, 20)
	assert(tflite.equal(tflite.load(bytes):run(tensor {1, 2}), {11, 22}))
	refused(bytes:sub(1, -2), "tensor 'c': data")
end)

it('refuses wrong elements and types', function()
	refused(add {bytes = ('<f'):pack(1)}, "tensor 'c': data: wanted 8 bytes, got 4")
	refused(add {bytes = ('<ff'):pack(1, 2), shape = {-2}}, "tensor 'c': wanted sizes of 0 and up, got %-2")
	refused(add {bytes = ('<ff'):pack(1, 2), shape = {1 << 30, 1 << 30, 1 << 30}}, "tensor 'c': wanted fewer elements")
	refused(add {bytes = 'ab', type = 'STRING'}, "tensor 'c': wanted a type of numbers that Quoll has, got STRING")
	refused(add {bytes = 'ab', type = 99}, "tensor 'c': wanted a type of numbers that Quoll has, got 99")
	refused(add {}, "input 2: wanted a tensor that is computed before, got tensor 'c'")
	local m = add {bytes = ('<ff'):pack(1, 2)}
	m.tensors[1].type = 'STRING'
	refused(m, "tensor 'x': wanted a type of numbers that Quoll has, got STRING")
end)

it('refuses wrong scales', function()
	local function coded(more)
		local t = {type = 'INT8', bytes = 'ab', scale = {0.5}, zero = {0}}
		for key, value in pairs(more) do t[key] = value end
		return add(t)
	end
	for _, scale in ipairs {0, -1, 0 / 0, math.huge} do refused(coded {scale = {scale}}, "tensor 'c': scale: wanted a positive number, got ") end
	refused(coded {zero = {200}}, "tensor 'c': zero_point: wanted %-128 to 127, got 200")
	refused(coded {scale = {1, 2, 3}}, 'quantization: wanted 3 scales along axis 0, got another size')
	refused(coded {scale = {1, 2}, axis = 5}, 'quantization: wanted 2 scales along axis 5')
	refused(coded {scale = {1, 2}, axis = -1}, 'quantization: wanted 2 scales along axis %-1')
end)

it('refuses other files and models without parts', function()
	refused('', 'wanted a model of ONNX')
	refused('\0\0\0\0TFL3', 'FlatBuffers: an offset leads out of the file at byte 0')
	local path = os.tmpname() .. '.tflite'
	local out = assert(io.open(path, 'wb'))
	out:write 'no model at all'
	out:close()
	local ok, message = pcall(graph.load, path)
	os.remove(path)
	assert(not ok and message:find 'wanted a file with the identifier TFL3, got another', message)
	local m = tflite.model(add {bytes = ('<ff'):pack(1, 2)})
	m[0] = {'u32', 2}
	refused(tflite.flatbuffer(m), 'version: wanted 3, got 2')
	m[0], m[2] = {'u32', 3}, nil
	refused(tflite.flatbuffer(m), 'wanted a graph, got none')
end)

it('refuses numbers of tensors, buffers and codes that are not there', function()
	local function changed(change)
		local m = tflite.model(add {bytes = ('<ff'):pack(1, 2)})
		change(m, m[2][2][1])
		return tflite.flatbuffer(m)
	end
	refused(changed(function(_, g) g[1] = {'[i32]', {7}} end), 'tensors: wanted one of 3, got number 7')
	refused(changed(function(_, g) g[1] = {'[i32]', {-5}} end), 'tensors: wanted one of 3, got number %-5')
	refused(changed(function(_, g) g[2] = {'[i32]', {7}} end), 'tensors: wanted one of 3, got number 7')
	refused(changed(function(_, g) g[2] = nil end), 'outputs: wanted at least one, got none')
	refused(changed(function(_, g) g[3][2][1][1] = {'[i32]', {0, 1 << 30}} end), 'tensors: wanted one of 3, got number 1073741824')
	refused(changed(function(_, g) g[3][2][1][0] = {'u32', 9} end), 'operator codes: wanted one of 1, got number 9')
	refused(changed(function(_, g) g[0][2][2][2] = {'u32', 99} end), 'buffers: wanted one of 4, got number 99')
	refused(changed(function(_, g) g[1] = {'[i32]', {0, 0}} end), "inputs: wanted different names, got 'x' twice")
end)

it('ends at every truncation and with every byte changed', function()
	local whole = tflite.bytes((tflite.single('CONV_2D', {tensor.ones(1, 3, 3, 1), tensor.ones(1, 2, 2, 1), tensor.ones(1)}, {stride_w = 1, stride_h = 1},
		{fixed = {2, 3}})))
	local before = os.clock()
	local function try(bytes)
		local ok, message = pcall(tflite.load, bytes)
		assert(ok or type(message) == 'string' and not message:find '\n', message)
	end
	for n = 0, #whole - 1, 3 do try(whole:sub(1, n)) end
	for at = 1, #whole, 5 do
		for _, byte in ipairs {'\0', '\xff', '\x80'} do try(whole:sub(1, at - 1) .. byte .. whole:sub(at + 1)) end
	end
	assert(os.clock() - before < 20)
end)

it('refuses results that a few bytes make huge', function()
	local function ints(...) return tensor {dtype = 'int32', ...} end
	local function single(...) return (tflite.single(...)) end
	local one = tensor.ones(1, 1)
	refused(single('FILL', {ints(1 << 30, 1 << 30), tensor {1}:sum()}, nil, {fixed = {1, 2}}), 'wanted sizes of 0 to 16777216, got 1073741824')
	refused(single('FILL', {ints(1 << 20, 1 << 20), tensor {1}:sum()}, nil, {fixed = {1}}), 'wanted a result of at most 1073741824 elements, got more')
	refused(single('TILE', {one, ints(1 << 30, 1 << 30)}, nil, {fixed = {2}}), 'wanted a result of at most 1073741824 elements, got more')
	refused(single('PAD', {one, tensor {{0, (1 << 31) - 1}, {0, 1}, dtype = 'int32'}}, nil, {fixed = {2}}), 'wanted sizes of 0 to 1073741824')
	refused(single('BROADCAST_TO', {one, ints(1, 1, 1, 1, 1, 1, 1, 1, 1)}, nil, {fixed = {2}}), 'wanted at most 8 axes, got 9')
	refused(single('RESIZE_BILINEAR', {tensor.ones(1, 2, 2, 1), ints(1 << 20, 1 << 20)}, {}, {fixed = {2}}), 'wanted a result of at most')
	local m = single('RELU', {one})
	m.tensors[1].shape = {1 << 20, 1 << 20}
	refused(m, "node 'x1' %(input%): wanted a result of at most 1073741824 elements")
end)
