-- SPDX-License-Identifier: MIT
-- Section out: graphs that are written as ONNX: codes within the network and labels beside onnxruntime without optimization.
local here, judges = ...
local ask, folder, internal = judges.ask, judges.folder, judges.internal

local function photographs(net, normalize, names, weights)
	return function()
		local path = data.find(weights)
		if not path or not data.find 'cifar10/test_batch_first1000.bin.xz' then return nil end
		local m, second = dofile(('%s../tutorials/models/%s.lua'):format(here, net))
		m:load(path, names and {rename = second} or nil):eval()
		local x
		for batch in data.loader(data.cifar10 {split = 'test'}, {batch = 100, normalize = normalize or second})() do x = x or batch end
		m:calibrate({{x, x}}, {log = false})
		return graph.trace(m, x:narrow(1, 1, 1)):quantize {mode = 'static'}, x
	end
end

local function tflite_codes(name, inputs)
	return function()
		local path = data.find(name)
		if not path then return nil end
		tensor.seed(1)
		local g = graph.load(path)
		local x = inputs and tensor.load(data.find(inputs)) or tensor.randint {200, 32, 32, 3, low = -128, high = 127}:to 'int8'
		local shape = g.nodes[g.inputs[1]].results[1].shape
		return g, x:reshape(-1, table.unpack(shape, 2))
	end
end

-- Without TFLite's roundings, which QDQ has not.
local function kws_of_floats()
	local g, x = tflite_codes('models/kws/kws_int8.tflite', 'models/kws/inputs_int8.npy')()
	if not g then return nil end
	local scale, zero = internal.spec_params(g.nodes[g.inputs[1]].results[1].spec)
	return g:requantize {mode = 'static'}, (x:to 'float32' - zero) * scale
end

local function magika()
	local path, list = data.find 'models/magika/standard_v3_3.onnx', data.find 'models/magika/magika_eval.npz'
	if not path or not list then return nil end
	local g, x = graph.load(path), tensor.load(list).bytes:to 'int32'
	g:calibrate({{x:narrow(1, 1, 64), x}}, {log = false})
	return g:quantize {mode = 'static'}, x, g
end

local function silero()
	local path = data.find(judges.files[2][1])
	if not path then return nil end
	tensor.seed(1)
	return graph.load {path, inputs = judges.files[2][2]}, {tensor.randn(20, 576) * 0.1, tensor.randn(2, 20, 128) * 0.1}
end

local WRITTEN = {{'ResNet8', photographs('resnet8', {mean = {0, 0, 0}, std = {1 / 255, 1 / 255, 1 / 255}}, true, 'weights/resnet8-cifar10-mlperf-tiny.safetensors')},
	{'ResNet20', photographs('resnet20', nil, false, 'weights/resnet20-cifar10.safetensors')},
	{'KWS (TFLite)', tflite_codes('models/kws/kws_int8.tflite', 'models/kws/inputs_int8.npy')},
	{'KWS, requantized', kws_of_floats}, {'ResNet8 (TFLite)', tflite_codes 'weights/mlperf-tiny-resnet8-int8.tflite'}, {'magika', magika}, {'silero', silero}}

-- What onnxruntime gives of the file of a graph in a form: a row.
local function beside(name, form, g, x)
	local given, at, list = {}, {}, type(x) == 'table' and x or {x}
	for i, input in ipairs(g.inputs) do given[input] = list[i] end
	for _, ref in ipairs(g.order) do
		local node = g.nodes[ref]
		if node.op ~= 'const' and node.op ~= 'input' and node.results[1].spec then at[#at + 1] = ref end
	end
	local y, kept = g:run(x, {keep = at})
	y = type(y) == 'table' and y[1] or y
	local wanted = {none = tensor {0}}
	for _, ref in ipairs(at) do
		if kept[ref] then wanted[ref] = kept[ref]:codes():contiguous() end
	end
	tensor.save(folder .. '/in.npz', given)
	tensor.save(folder .. '/at.npz', wanted)
	g:export {onnx = folder .. '/m.onnx', form = form}
	local ok, out = ask('codes', folder .. '/m.onnx', folder)
	local equal, all, off, alone = out:match '(%d+) (%d+) (%d+) (%d+)'
	if not ok or not equal then return {name, form, 'failed'} end
	local other = tensor.load(folder .. '/out.npz')['0']
	y = y:quantized() and y:codes() or y
	local labels = y:reshape(y:size(1), -1):argmax(2):ne(other:reshape(y:size(1), -1):argmax(2)):to 'int64':sum():item()
	local error = (y:to 'float64' - other:to 'float64'):abs():max():item() / math.max(1e-30, y:to 'float64':abs():max():item())
	return {name, form, all ~= '0' and ('%.4f %%'):format(100 * equal / all) or '-', off, ('%s of %s'):format(alone, all), ('%d of %d'):format(labels, y:size(1)), ('%.1e'):format(error)}
end

local function section()
	local rows = {columns = {'model', 'form', 'codes equal', 'off by', 'differ alone', 'labels differ', 'error / largest output'}}
	for _, model in ipairs(WRITTEN) do
		local g, x = model[2]()
		if not g then
			rows[#rows + 1] = {model[1], '-', 'skipped: not in the data folder (QUOLL_DATA)'}
		else
			for _, form in ipairs(model[1] == 'silero' and {'float'} or {'qdq', 'qoperator', 'integer'}) do rows[#rows + 1] = beside(model[1], form, g, x) end
		end
	end
	rows.note = 'codes within the network; alone: each layer is given the codes of g:run'
	return rows
end

return {needs = 'onnx, onnxruntime', run = section}
