-- SPDX-License-Identifier: MIT
-- labels: quick
-- graph.load chooses the reader by the first bytes, else by the name.
local onnx, tflite = dofile 'tests/tools/onnx.lua', dofile 'tests/tools/tflite.lua'

local function load(bytes, name)
	local path = os.tmpname() .. name
	local out = assert(io.open(path, 'wb'))
	out:write(bytes)
	out:close()
	local ok, g = pcall(graph.load, path)
	os.remove(path)
	return ok, g
end
local one = onnx.bytes {nodes = {onnx.node('Relu', {'x'}, {'y'})}, inputs = {{'x', 'float32', {2}}}, outputs = {'y'}}
local other = tflite.bytes((tflite.single('RELU', {tensor {1, 2}})))

it('by bytes, whatever the name', function()
	for _, name in ipairs {'', '.onnx', '.bin'} do
		for _, bytes in ipairs {one, other} do
			local ok, g = load(bytes, name)
			assert(ok and tflite.equal(g:run(tensor {-1, 2}), {0, 2}), g)
		end
	end
	local ok, g = load(other, '.tflite')
	assert(ok and tflite.equal(g:run(tensor {-1, 2}), {0, 2}), g)
end)

it('names the format that the name promises', function()
	local ok, message = load('none of them', '.tflite')
	assert(not ok and message:find 'wanted a file with the identifier TFL3', message)
	ok, message = load('none of them', '.TFLite')
	assert(not ok and message:find 'TFL3', message)
	ok, message = load('\xff', '.onnx')
	assert(not ok and message:find 'protocol buffer', message)
	ok, message = pcall(graph.load, 'no/such.tflite')
	assert(not ok and message:find "load: 'no/such.tflite': cannot open", message)
	assert(not pcall(graph.load, 5) and not pcall(graph.load, {'x', wrong = 1}))
end)

it('frees what loading has left', function()
	local path = os.tmpname()
	local out = assert(io.open(path, 'wb'))
	out:write(tflite.bytes((tflite.single('FULLY_CONNECTED', {tensor.ones(1, 4000), tensor.ones(50, 4000):to 'float32':quantize 'int8'}, {}, {fixed = {2}}))))
	out:close()
	collectgarbage()
	local before, x = tensor.memory('reset').now, tensor.ones(1, 4000)
	for _ = 1, 60 do graph.load(path):run(x) end -- 2 MB each
	os.remove(path)
	assert(tensor.memory().peak - before < 40e6, tensor.memory().peak)
end)
