-- SPDX-License-Identifier: MIT
-- labels: quick once host
-- Files with a few bytes changed: graph.load gives a graph, which runs, or an error of one line, within ten seconds.
-- QUOLL_FUZZ_SECONDS: how long (1); QUOLL_FUZZ_SEED: the first seed. A failure names the file and the seed.
local root = (debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/'
local onnx, tflite, mutations = dofile(root .. 'onnx.lua'), dofile(root .. 'tflite.lua'), dofile(root .. 'mutations.lua')
local seconds, first = tonumber(os.getenv 'QUOLL_FUZZ_SECONDS') or 1, tonumber(os.getenv 'QUOLL_FUZZ_SEED') or 1
tensor.seed(1)

local files = {}
local function add(name, bytes) files[#files + 1] = {name = name, bytes = bytes} end

local function single(op, ...) add(op, tflite.bytes((tflite.single(op, ...)))) end
local function coded(...) return tensor.randn(...):quantize {dtype = 'int8', scale = 0.03, zero_point = 4, scheme = 'asymmetric'} end
local function ints(...) return tensor {dtype = 'int32', ...} end
local out = {type = 'INT8', scale = 0.1, zero = -3}
single('CONV_2D', {coded(1, 5, 5, 2), tensor.randn(3, 3, 3, 2):quantize {dtype = 'int8', axis = 1}, ints(1, 2, 3)}, {stride_w = 1, stride_h = 2, act = 1}, {fixed = {2, 3}, out = out})
single('FULLY_CONNECTED', {tensor.randn(2, 6), tensor.randn(3, 6), tensor.randn(3)}, {}, {fixed = {2, 3}})
single('STRIDED_SLICE', {tensor.randn(2, 5, 6), ints(0, 1, 0), ints(2, 4, 6), ints(1, 2, 1)}, {begin_mask = 1}, {fixed = {2, 3, 4}})
single('RESIZE_BILINEAR', {tensor.randn(1, 3, 4, 2), ints(5, 6)}, {half = true}, {fixed = {2}})
single('MEAN', {coded(1, 4, 4, 3), ints(1, 2)}, {keep = true}, {fixed = {2}, out = out})
single('GATHER', {tensor.randn(2, 3, 4), ints({0, 2}, {1, 1})}, {axis = 1, batch = 1}, {fixed = {2}})

local function node(...) add(..., onnx.bytes {nodes = {onnx.node(...)}, inputs = {{'x', 'float32', {'b', 3, 6, 6}}}, outputs = {'y'},
	initializers = {w = tensor.randn(4, 3, 3, 3), s = tensor {0.5}:sum(), k = tensor {1, 3, 2, 18, dtype = 'int64'}}}) end
node('Conv', {'x', 'w'}, {'y'}, {pads = {1, 1, 1, 1}, strides = {2, 1}})
node('Reshape', {'x', 'k'}, {'y'})
node('QuantizeLinear', {'x', 's'}, {'y'})
node('MaxPool', {'x'}, {'y'}, {kernel_shape = {2, 2}, ceil_mode = 1})
node('Softmax', {'x'}, {'y'}, {axis = 2})
node('Transpose', {'x'}, {'y'}, {perm = {0, 2, 3, 1}})

for _, file in ipairs(files) do
	it('ends well: ' .. file.name, function()
		local path, stop, seed = os.tmpname(), os.clock() + seconds / #files, first
		repeat
			local handle = assert(io.open(path, 'wb'))
			handle:write(mutations.of(file, seed))
			handle:close()
			local before = os.clock()
			local ok, message = pcall(mutations.try, path)
			assert(ok, ('seed %d: %s'):format(seed, message))
			assert(os.clock() - before < 10, ('seed %d: %.1f s'):format(seed, os.clock() - before))
			seed = seed + 1
		until os.clock() > stop
		os.remove(path)
	end)
end
