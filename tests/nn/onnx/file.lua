-- SPDX-License-Identifier: MIT
-- labels: quick
-- Files of ONNX that are broken, and tensors in all their forms.
local onnx = dofile 'tests/tools/onnx.lua'
local int, text, varint = onnx.int, onnx.text, onnx.varint
local input = {{'x', 'float32', {2}}}

local with = onnx.with_tensor

local function sum_with(bytes)
	local g = onnx.load(with(bytes))
	return g:run(tensor {1, 2})
end

local function refused(bytes, message)
	local ok, got = pcall(onnx.load, bytes)
	assert(not ok and not got:find '\n' and got:find(message), got)
end

it('reads elements from raw data and from fields of numbers, packed or not', function()
	local raw = int(1, 2) .. int(2, 1) .. text(9, ('<ff'):pack(10, 20))
	assert(onnx.equal(sum_with(raw), {11, 22}))
	local packed = int(1, 2) .. int(2, 1) .. text(4, ('<ff'):pack(10, 20))
	assert(onnx.equal(sum_with(packed), {11, 22}))
	local single = int(1, 2) .. int(2, 1) .. varint(4 << 3 | 5) .. ('<f'):pack(10) .. varint(4 << 3 | 5) .. ('<f'):pack(20)
	assert(onnx.equal(sum_with(single), {11, 22}))
	assert(onnx.equal(sum_with(text(1, varint(2)) .. int(2, 1) .. text(4, ('<ff'):pack(10, 20))), {11, 22}))
	local parts = int(1, 2) .. int(2, 1) .. text(4, ('<f'):pack(10)) .. text(4, ('<f'):pack(20))
	assert(onnx.equal(sum_with(parts), {11, 22}))
	local both = int(1, 2) .. int(2, 1) .. text(9, ('<ff'):pack(10, 20)) .. text(4, ('<ff'):pack(1, 2)) -- raw data counts
	assert(onnx.equal(sum_with(both), {11, 22}))
	local halves = int(1, 2) .. int(2, 10) .. int(5, 0x3c00) .. int(5, 0xc000) -- float16 1 and -2
	assert(onnx.equal(onnx.load(with(halves)):run(tensor {1, 2}), {2, 0}))
	local doubles = int(1, 2) .. int(2, 11) .. text(10, ('<dd'):pack(0.5, 0.25))
	assert(onnx.equal(sum_with(doubles), {1.5, 2.25}))
	local nibbles = int(1, 2) .. int(2, 22) .. text(9, '\xf3') -- int4: 3, -1
	assert(onnx.equal(sum_with(nibbles), {4, 1}))
	local unsigned = int(1, 2) .. int(2, 12) .. text(11, varint(7) .. varint(4000000000))
	assert(onnx.equal(sum_with(unsigned), {8, 4000000002}, 300))
end)

it('reads texts of all lengths', function()
	local nodes, last = {}, 'x'
	for i = 1, 60 do -- many begin in one part of the file that is read at once and end in the next
		local name = ('n%d_'):format(i) .. ('abcdefg'):rep(i * i // 4)
		nodes[i], last = onnx.node('Neg', {last}, {name}, nil, {name = name}), name
	end
	local g = onnx.load {nodes = nodes, inputs = input, outputs = {last}}
	for i = 1, 60 do assert(g.order[i + 1] == ('n%d_'):format(i) .. ('abcdefg'):rep(i * i // 4), g.order[i + 1]) end
end)

it('refuses tensors whose size is another', function()
	refused(with(int(1, 3) .. int(2, 1) .. text(9, ('<ff'):pack(10, 20))), "tensor 'c': data: wanted 12 bytes, got 8")
	refused(with(int(1, 1 << 61) .. int(2, 1) .. text(9, 'abcd')), "tensor 'c': ")
	refused(with(int(1, 1 << 61) .. int(2, 1)), "tensor 'c': ")
	refused(with(int(1, 1 << 40) .. int(1, 1 << 40) .. int(2, 1) .. text(4, 'abcd')), "tensor 'c': ")
	refused(with(int(1, -5) .. int(2, 1) .. text(9, 'abcd')), "tensor 'c': dims: wanted at most 8 sizes of 0 and up, got a negative one")
	refused(with(int(1, 2) .. int(2, 8) .. text(6, 'ab') .. text(6, 'c')), 'got strings %(8%)')
	refused(with(int(1, 2) .. int(2, 1) .. text(4, ('<fff'):pack(1, 2, 3))), 'data: wanted 2 numbers, got more')
	refused(with(int(1, 2) .. int(2, 1) .. text(4, ('<f'):pack(1))), "tensor 'c': data: wanted 8 bytes, got 4")
	refused(with(int(1, 2) .. int(2, 1) .. text(4, 'abc')), 'packed numbers end too late')
	local floats, ints, doubles = text(4, ('<ff'):pack(1, 2)), text(7, '\1\2'), text(10, ('<dd'):pack(1, 2)) -- of another type
	for _, case in ipairs {{7, floats, 'float_data'}, {6, floats, 'float_data'}, {12, floats, 'float_data'}, {11, floats, 'float_data'}, {1, ints, 'int64_data'},
		{11, ints, 'int64_data'}, {1, doubles, 'double_data'}, {7, doubles, 'double_data'}, {7, doubles .. ints, 'double_data'}} do
		refused(with(int(1, 2) .. int(2, case[1]) .. case[2]), "tensor 'c': data: wanted numbers of data type " .. case[1] .. ', got ' .. case[3])
	end
	refused(with(int(1, 1):rep(9) .. int(2, 1) .. text(9, 'abcd')), 'dims: wanted at most 8 sizes of 0 and up, got more')
end)

it('refuses what is no model, and every part of one', function()
	local bytes = with(int(1, 2) .. int(2, 1) .. text(9, ('<ff'):pack(10, 20)))
	for n = 0, #bytes - 1 do
		local ok, message = pcall(onnx.load, bytes:sub(1, n))
		assert(not ok and type(message) == 'string' and not message:find '\n', message)
	end
	refused('', 'wanted a model of ONNX, got another file')
	refused(('\xff'):rep(100), 'protocol buffer: ')
	refused(int(1, 8) .. text(7, '') .. text(8, text(1, '') .. int(2, 3)), 'opset: wanted %d+ to %d+, got 3')
	assert(not pcall(graph.load, 'no/such/file.onnx') and not pcall(graph.load, '.') and not pcall(graph.load, 5))
end)

it('bounds depth and numbers', function()
	local inner = ''
	for _ = 1, 100 do inner = text(1, text(4, 'If') .. text(5, text(1, 'then_branch') .. text(6, inner))) end
	refused(int(1, 8) .. text(7, inner) .. text(8, text(1, '') .. int(2, 17)), 'wanted messages at most 64 deep, got deeper ones')
	local long = text(5, text(1, 'axes') .. text(8, ('\1'):rep(5 << 20)))
	refused(int(1, 8) .. text(7, text(1, text(4, 'Add') .. long)) .. text(8, text(1, '') .. int(2, 17)), 'values outside of tensors, got more')
end)

---------------------------------------------------------------- external data

local function folder()
	local path = os.tmpname()
	os.remove(path)
	os.execute('mkdir ' .. path)
	return path
end

local function write(path, bytes)
	local out <close> = assert(io.open(path, 'wb'))
	out:write(bytes)
end

it('reads external data from the folder of the model only', function()
	local dir = folder()
	write(dir .. '/weights.bin', 'abcd' .. ('<ff'):pack(10, 20))
	local function load(...)
		write(dir .. '/m.onnx', onnx.with_external(...))
		return graph.load(dir .. '/m.onnx')
	end
	assert(onnx.equal(load('weights.bin', {offset = '4', length = '8'}):run(tensor {1, 2}), {11, 22}))
	assert(onnx.equal(load('weights.bin', {offset = '4'}):run(tensor {1, 2}), {11, 22}))
	for _, case in ipairs {{'../weights.bin', "model's folder, got '%.%./weights.bin'"}, {'/etc/passwd', "model's folder"}, {'a/../../x', "model's folder"},
		{'none.bin', "external data 'none.bin': cannot open"}, {'weights.bin', 'data: ', {offset = '8'}}, {'weights.bin', 'data: ', {offset = '4', length = '9'}},
		{'weights.bin', 'data: ', {offset = tostring(math.maxinteger), length = '8'}}, {'weights.bin', 'offset and length', {offset = '-4'}},
		{'weights.bin', 'offset and length', {offset = 'x'}}} do
		local ok, message = pcall(load, case[1], case[3])
		assert(not ok and not message:find '\n' and message:find(case[2]), message)
	end
	os.execute('ln -s /etc/hostname ' .. dir .. '/link.bin')
	local ok, message = pcall(load, 'link.bin')
	assert(not ok and message:find "model's folder", message)
	os.execute('rm -r ' .. dir)
end)
