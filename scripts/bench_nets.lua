-- SPDX-License-Identifier: MIT
-- Whole networks for scripts/bench_worker.lua and for the programs beside it: the models of tutorials/models with their trained
-- weights, where those are found (else drawn with a fixed seed), and what quantizes them.
--   nets = dofile 'scripts/bench_nets.lua'
--   nets.call('resnet8', 'int8', 200)                the function to time, a call of the module: float32, int8 (static) or dynamic
--   nets.call('resnet8', 'int8', 200, true)          the same of its traced graph, which is what other programs run
--   quoll scripts/bench_nets.lua resnet8 200 FOLDER  writes the float graph with its weights for other programs: resnet8.json,
--                                                    resnet8.safetensors (weights, an input, its result, images for calibration)
local here = debug.getinfo(1, 'S').source:match '^@(.*)bench_nets.lua$' or ''
local models = here .. '../tutorials/models/'
local nets = {}

local PHOTOGRAPHS = 64 -- for calibration
local STEPS = {lstm = 35, transformer = 128}

local function exists(file)
	local handle = file and io.open(file, 'rb')
	if handle then handle:close() end
	return handle ~= nil
end

local function model_of(name)
	tensor.seed(1)
	local m, second = dofile(models .. name .. '.lua')
	local files = {resnet8 = data.find 'weights/resnet8-cifar10-mlperf-tiny.safetensors', resnet20 = data.find 'weights/resnet20-cifar10.safetensors'}
	local file = files[name] or models .. name .. '.safetensors'
	if exists(file) then m:load(file, type(second) == 'function' and {rename = second} or nil) end
	return m:eval()
end

-- Photographs as the models want them, or random numbers; ids of words.
local function input_of(name, batch, seed)
	tensor.seed(seed)
	if STEPS[name] then return tensor.randint {low = 1, high = 65, dtype = 'int64', batch, STEPS[name]} end
	return name == 'resnet8' and tensor.rand(batch, 3, 32, 32):mul_(255) or tensor.randn(batch, 3, 32, 32)
end

local function calibration_of(name)
	local scale = {mean = {0.485, 0.456, 0.406}, std = {0.229, 0.224, 0.225}}
	if name == 'resnet8' then scale = {mean = {0, 0, 0}, std = {1 / 255, 1 / 255, 1 / 255}} end
	local good, images = pcall(data.cifar10, {split = 'validation', limit = PHOTOGRAPHS})
	if not good then return input_of(name, PHOTOGRAPHS, 3) end
	for x in data.loader(images, {batch = PHOTOGRAPHS, normalize = scale})() do return x end
end

function nets.call(name, way, batch, as_graph)
	local m, x = model_of(name), input_of(name, batch, 2)
	if way == 'int8' then
		local images = calibration_of(name)
		m:calibrate({{images, images}}, {log = false})
		m = m:quantize {mode = 'static'}
	elseif way == 'dynamic' then
		m = m:quantize {mode = 'dynamic'}
	else
		m = m:fuse()
	end
	if as_graph then
		local g = graph.trace(m, x)
		return function() return g:run(x) end
	end
	return function() return tensor.nograd(function() return m(x) end) end
end

-- The exported C of int8 ResNet8, codes in and out, compiled by `make` (gcc -O3 -march=native) in a folder that is removed: a function
-- that gives the seconds of a pass. target: of g:export; '' is plain C.
function nets.exported(target)
	local m, images, folder = model_of 'resnet8', calibration_of 'resnet8', os.tmpname()
	os.remove(folder)
	m:calibrate({{images, images}}, {log = false})
	graph.trace(m:quantize {mode = 'static', input = 'int8'}, images[{{1, 1}}]):export {dir = folder, name = 'net', samples = images, layout = 'nhwc',
		input = 'int8', output = 'int8', target = target ~= '' and target or nil}
	local kept = setmetatable({}, {__gc = function() os.execute('rm -r ' .. folder) end})
	assert(os.execute(('make -s -C %s test >/dev/null 2>&1'):format(folder)), 'the exported program does not compile or fails its test')
	return function()
		local pipe = kept and io.popen(folder .. '/net --time 200')
		local text = pipe:read 'a'
		pipe:close()
		return tonumber(text:match '([%d.]+) us a pass') * 1e-6
	end
end

-- A node for other programs: its name, op, inputs and attributes.
local function plain(node)
	return {name = node.name, op = node.op, inputs = #node.inputs > 0 and {table.unpack(node.inputs)} or nil, attrs = node.attrs and next(node.attrs) and node.attrs or nil}
end

-- Writes the graph for a fixed batch; constants are tensors of the file under their names.
function nets.export(name, batch, folder)
	local write = debug.getregistry()['quoll.internal'].import 'interp/prelude/json_write'.write
	local m, x = model_of(name), input_of(name, batch, 2)
	local g = graph.trace(m, x, {batch = false})
	local tensors, nodes = {['.input'] = x, ['.output'] = tensor.nograd(function() return m(x) end)}, {}
	if not STEPS[name] then tensors['.calibration'] = calibration_of(name) end
	for _, key in ipairs(g.order) do
		local node = g.nodes[key]
		if node.op == 'const' then tensors[key] = node.value:to 'float32' else nodes[#nodes + 1] = plain(node) end
	end
	tensor.save(folder .. '/' .. name .. '.safetensors', tensors)
	local file <close> = assert(io.open(folder .. '/' .. name .. '.json', 'w'))
	file:write(write(nodes), '\n')
end

if arg and arg[0] == here .. 'bench_nets.lua' then
	local batch = math.tointeger(arg[2])
	if not (batch and arg[3]) then
		io.stderr:write 'usage: quoll scripts/bench_nets.lua NET BATCH FOLDER\n'
		os.exit(2)
	end
	nets.export(arg[1], batch, arg[3])
end
return nets
