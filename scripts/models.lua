-- SPDX-License-Identifier: MIT
-- Models from outside, beside the programs that they come from:
--   quoll scripts/models.lua [SECTION ...]    files others nodes tflite ops quantized out stories c load run generate (default: all)
--     files    the models of the data folder (QUOLL_DATA): outputs beside onnxruntime without optimization
--     others   20 exports of torchvision and transformers with random weights, by both of torch's exporters
--     nodes    the node tests of the onnx package
--     tflite   MLPerf Tiny's models beside LiteRT's reference kernels, 200 random inputs: outputs, of integers their codes
--     ops      each op of TFLite, by types, beside LiteRT's reference kernels: what differs
--     quantized  models that PyTorch quantized and exported: codes of the outputs beside onnxruntime and PyTorch, and beside the exported C
--     out      graphs that are written as ONNX: codes within the network and labels beside onnxruntime without optimization
--     stories  the perplexity of stories260K from Hugging Face's and llama.cpp's files, without a judge
--     c        the exported C of models: its self-test and memory, without a judge
--     load     time of graph.load beside an onnxruntime session with basic optimization
--     run      time of g:run, float32 and static int8, one row, 1 and 2 threads, beside onnxruntime (default optimization; quantize_static with
--              the same input) and LiteRT (XNNPACK); the least of three turns
--     generate tokens a second of Llama shapes with random weights beside llama.cpp, from its source package (an environment of its own, or
--              that of LLAMA_PYTHON; building takes minutes); GENERATE_MOST=110 leaves out models of more million parameters
-- The judges are packages of PyPI, in an environment that is made for the run and removed after it, or those of MODELS_PYTHON. Sections
-- whose judge or data is missing are named.
local here = (arg and arg[0] or ''):match '^(.*/)[^/]*$' or './'
local judge = here .. 'models/judge.py'
local internal = debug.getregistry()['quoll.internal']
local json = internal.import 'interp/prelude/json'

-- {name, exporter, opset}: named here before they were tried
local OTHERS = {{'resnet18', 'torchscript', 17}, {'mobilenet_v2', 'dynamo', 18}, {'mobilenet_v3_small', 'torchscript', 17},
	{'efficientnet_b0', 'torchscript', 17}, {'squeezenet1_1', 'dynamo', 20}, {'shufflenet_v2', 'torchscript', 17}, {'densenet121', 'torchscript', 13},
	{'regnet_y_400mf', 'dynamo', 18}, {'convnext_tiny', 'torchscript', 17}, {'googlenet', 'torchscript', 17}, {'vit_b_16', 'dynamo', 18},
	{'swin_t', 'torchscript', 17}, {'mnasnet0_5', 'dynamo', 18}, {'bert', 'dynamo', 18}, {'distilbert', 'torchscript', 17}, {'gpt2', 'dynamo', 20},
	{'llama', 'dynamo', 20}, {'qwen2', 'dynamo', 18}, {'roberta', 'dynamo', 18}, {'albert', 'torchscript', 17}}

-- {path in the data folder, inputs= of graph.load, sizes for the judge}
local FILES = {{'weights/mnist-8.onnx'}, {'models/silero/silero_vad_16k_op15.onnx', {input = {'B', 576}, sr = tensor {16000, dtype = 'int64'}:sum()},
	'input=1,576 state=2,1,128 sr='}, {'models/yunet/yunet_n_320_320.onnx'}, {'models/rfb320/version-RFB-320.onnx'}, {'models/dtln/model_1.onnx'},
	{'models/dtln/model_2.onnx'}, {'models/magika/standard_v3_3.onnx', nil, 'bytes=1,2048'}, {'models/stories260K/stories260K.onnx'}}

---------------------------------------------------------------- the judges

local folder = os.tmpname()
os.remove(folder)
os.execute(('mkdir "%s"'):format(folder))
local python = os.getenv 'MODELS_PYTHON'

local function run(command)
	local pipe = io.popen(command .. ' 2>"' .. folder .. '/errors"')
	local out = pipe:read 'a'
	return pipe:close(), out
end

local function has(packages)
	if not python then
		io.stderr:write('models: making an environment with packages of PyPI …\n')
		if not run(('python3 -m venv "%s/venv" && "%s/venv/bin/pip" install -q onnx onnxscript onnxruntime torch torchvision torchao transformers ai-edge-litert'):format(folder, folder)) then
			return false
		end
		python = folder .. '/venv/bin/python'
	end
	return (run(('"%s" -c "import %s"'):format(python, packages)))
end

local function ask(...) return run(('"%s" "%s" %s'):format(python, judge, table.concat({...}, ' '))) end

---------------------------------------------------------------- comparing

-- The largest error of any output, by the output's largest value.
local function worst(g, path, npz)
	local t, given = tensor.load(npz), {}
	local model = internal.import 'nn/onnx/file'.open(path).model.graph
	local clean = internal.import 'nn/onnx/read'.clean
	local by_name = {}
	for name in next, t do by_name[clean(name:gsub('^in%.', ''))] = t[name] end
	for i, name in ipairs(g.inputs) do given[i] = by_name[name] end
	local got, most = {g:run(#given == 1 and given[1] or given)}, 0
	for i, output in ipairs(model.output) do
		local want = t['out.' .. output.name]:to 'float64'
		local y = got[i]:quantized() and got[i]:codes() or got[i]
		most = math.max(most, (y:to 'float64' - want):abs():max():item() / math.max(want:abs():max():item(), 1e-30))
	end
	return most
end

local function row_of(name, path, inputs, npz)
	local before = os.clock()
	local ok, g = pcall(graph.load, {path, inputs = inputs})
	if not ok then return {name, '-', '-', tostring(g):gsub('^.-: ', '', 1):sub(1, 90)} end
	local ms = (os.clock() - before) * 1e3
	local good, error = pcall(worst, g, path, npz)
	return {name, #g.order, ('%.1f'):format(ms), good and ('%.1e'):format(error) or tostring(error):sub(1, 90)}
end

local sections = {}

function sections.files()
	local rows = {columns = {'model', 'nodes', 'load ms', 'error / largest output'}}
	for _, file in ipairs(FILES) do
		local path = data.find(file[1])
		if not path then
			rows[#rows + 1] = {file[1], '-', '-', 'skipped: not in the data folder (QUOLL_DATA)'}
		elseif ask('run', path, folder, file[3] or '') then
			rows[#rows + 1] = row_of(file[1]:match '[^/]+$', path, file[2], folder .. '/m.npz')
		end
	end
	return rows
end

function sections.others()
	local rows, right = {columns = {'model', 'nodes', 'load ms', 'error / largest output'}}, 0
	for _, m in ipairs(OTHERS) do
		local name = ('%s %s %d'):format(table.unpack(m))
		if ask('export', m[1], m[2], m[3], folder) then
			rows[#rows + 1] = row_of(name, folder .. '/m.onnx', nil, folder .. '/m.npz')
			right = right + ((tonumber(rows[#rows][4]) or 1) <= 1e-4 and 1 or 0)
		else
			rows[#rows + 1] = {name, '-', '-', 'skipped: the export failed'}
		end
	end
	rows.note = ('%d of %d within 1e-4'):format(right, #OTHERS)
	return rows
end

---------------------------------------------------------------- node tests

local function read(path)
	local box = internal.onnx_open(path)
	if not box then return nil end
	local file <close> = assert(io.open(path, 'rb'))
	return (internal.onnx_tensor(box, 0, file:seek 'end'))
end

local function close(a, b)
	a = a:quantized() and a:codes() or a
	if a:dtype() ~= b:dtype() or a:dim() ~= b:dim() then return false end
	for i = 1, a:dim() do
		if a:size(i) ~= b:size(i) then return false end
	end
	local info = quant.dtype(b:dtype())
	local x, y, relative = a:to 'float64', b:to 'float64', info.float and math.max(1e-3, 2.0 ^ (2 - info.digits)) or 1e-3
	return x:nelem() == 0 or (x:eq(y) | (x:isnan() & y:isnan()) | (x - y):abs():le(y:abs() * relative + 1e-5)):all():item()
end

-- The graph and its inputs: those that say sizes become constants.
local function load_case(case, values)
	local path = folder .. '/' .. case.name .. '.onnx'
	local ok, g = pcall(graph.load, path)
	if ok then return g, values end
	for first = 2, 1, -1 do
		local fixed, rest = {}, {}
		for k, name in ipairs(case.inputs) do
			if k >= first then fixed[name] = values[k] else rest[#rest + 1] = values[k] end
		end
		ok, g = pcall(graph.load, {path, inputs = fixed})
		if ok then return g, rest end
	end
	return nil, g
end

local function judge_case(case)
	local values = {}
	for k in ipairs(case.inputs or {}) do values[k] = read(('%s/%s.in%d.pb'):format(folder, case.name, k - 1)) or false end
	for _, v in ipairs(values) do
		if not v then return 'refused' end
	end
	local g, given = load_case(case, values)
	if not g then return 'refused', given end
	local ok, results = pcall(function() return {g:run(#given == 1 and given[1] or given)} end)
	if not ok then return 'wrong', results end
	for k = 1, case.outputs do
		local want = read(('%s/%s.out%d.pb'):format(folder, case.name, k - 1))
		if want and not close(results[k], want) then return 'wrong', 'values' end
	end
	return 'right'
end

function sections.nodes()
	if not ask('nodes', folder) then return nil, 'the node tests could not be made' end
	local file <close> = assert(io.open(folder .. '/index.json'))
	local count, rows = {right = 0, refused = 0, wrong = 0}, {columns = {'case', 'why'}}
	for _, case in ipairs(json(file:read 'a')) do
		local verdict, why = 'refused', nil
		if not case.skip then verdict, why = judge_case(case) end
		count[verdict] = count[verdict] + 1
		if verdict == 'wrong' then rows[#rows + 1] = {case.name, tostring(why):sub(1, 100)} end
	end
	rows.note = ('%d right, %d refused, %d wrong'):format(count.right, count.refused, count.wrong)
	return rows
end

---------------------------------------------------------------- TFLite

-- kws_float has weights of 8 bits, with which LiteRT rounds activations, too.
local TFLITE = {'models/kws/kws_int8.tflite', 'models/kws/kws_float.tflite', 'models/ad01/ad01_int8.tflite', 'models/ad01/ad01_fp32.tflite',
	'weights/mlperf-tiny-resnet8-int8.tflite', 'models/resnet8/resnet8_float.tflite'}

-- How many of the codes are equal and how far others are off; of floats the error.
local function compared(got, want)
	if quant.dtype(want:dtype()).float then
		local error = (got:to 'float64' - want:to 'float64'):abs():max():item() / want:to 'float64':abs():max():item()
		return ('%.1e of the largest output'):format(error)
	end
	local off = (got:codes():to 'int32' - want:to 'int32'):abs()
	return ('%d of %d codes equal, most off by %d'):format(off:eq(0):to 'int64':sum():item(), off:nelem(), off:max():item())
end

function sections.tflite()
	local rows = {columns = {'model', 'result'}}
	for _, name in ipairs(TFLITE) do
		local path, result = data.find(name), 'skipped: not in the data folder (QUOLL_DATA)'
		if path and ask('tflite', path, folder, 200) then
			local t = tensor.load(folder .. '/m.npz')
			result = compared(graph.load(path):run(t['in']), t.out)
		end
		rows[#rows + 1] = {name:match '[^/]+$', result}
	end
	return rows
end

---------------------------------------------------------------- ops of TFLite

local function exists(path)
	local handle = io.open(path)
	return handle and handle:close()
end

-- Of the results of a model beside LiteRT's: nil, or how many differ.
local function differing(ys, path)
	local off, all, most = 0, 0, 0
	for k, y in ipairs(ys) do
		local want = tensor.load(('%s_out_%d.npy'):format(path, k))
		y = y:quantized() and y:codes() or y
		if table.concat({y:size()}, 'x') ~= table.concat({want:size()}, 'x') then return 'another shape' end
		local error = (y:to 'float64' - want:to 'float64'):abs()
		if quant.dtype(want:dtype()).float then error = error * error:gt(1e-5 * want:to 'float64':abs():max():item()):to 'float64' end
		if error:nelem() > 0 then
			off, all, most = off + error:gt(0):to 'int64':sum():item(), all + error:nelem(), math.max(most, error:max():item())
		end
	end
	return off > 0 and ('%d of %d, by %g'):format(off, all, most) or nil
end

-- One row for each op: what differs by type; of others every code is equal, and floats within 1e-5 of the largest.
function sections.ops()
	local tflite = dofile(here .. '../tests/tools/tflite.lua')
	local cases, dir = dofile(here .. 'models/tflite_ops.lua'), folder .. '/ops'
	os.execute(('mkdir "%s"'):format(dir))
	for i, c in ipairs(cases) do
		local m, given = tflite.single(c.op, c.inputs, c.options, c.o)
		local out <close> = assert(io.open(('%s/%d.tflite'):format(dir, i), 'wb'))
		out:write(tflite.bytes(m))
		c.given = given
		for k, x in ipairs(given) do tensor.save(('%s/%d_%d.npy'):format(dir, i, k), x:quantized() and x:codes() or x) end
	end
	ask('ops', dir, #cases)
	local rows, list, equal = {columns = {'case', 'result'}}, {}, {}
	for i, c in ipairs(cases) do
		local path, result = ('%s/%d'):format(dir, i), 'not in LiteRT'
		if exists(path .. '_out_1.npy') then
			local ok, g = pcall(graph.load, path .. '.tflite')
			local ys = ok and table.pack(pcall(g.run, g, #c.given == 1 and c.given[1] or c.given))
			if ys and ys[1] then
				result = differing(#ys == 2 and type(ys[2]) == 'table' and ys[2] or {table.unpack(ys, 2, ys.n)}, path)
			else
				result = tostring(ys and ys[2] or g)
			end
		end
		if result then rows[#rows + 1] = {c.name, result} else
			equal[c.op] = (equal[c.op] or 0) + 1
			if equal[c.op] == 1 then list[#list + 1] = c.op end
		end
	end
	for k, op in ipairs(list) do list[k] = ('%s %d'):format(op, equal[op]) end
	rows[#rows + 1] = {'equal', table.concat(list, ', ')}
	return rows
end

---------------------------------------------------------------- models quantized by PyTorch

local NETS = {resnet = {'eager-x86', 'eager-qnnpack', 'fx-x86', 'fx-qnnpack', 'pt2e-xnnpack', 'pt2e-x86'}, mobile = {'eager-x86', 'eager-qnnpack',
	'fx-x86', 'fx-qnnpack', 'pt2e-xnnpack', 'pt2e-x86'}, resnet20 = {'fx-x86', 'pt2e-xnnpack'}} -- the exporter has no eager form of pads

-- The scale of the last codes.
local function last_scale(g)
	for i = #g.order, 1, -1 do
		local spec = g.nodes[g.order[i]].results[1].spec
		if spec and spec.scale then return type(spec.scale) == 'number' and spec.scale or spec.scale:item() end
	end
end

-- Differences in codes: the share that is equal, the largest one.
local function in_codes(a, b, scale)
	local off = ((a - b) / scale):abs()
	return ('%.2f %%, %.0f'):format(off:lt(0.5):to 'float64':mean():item() * 100, off:max():item())
end

-- Whether the program of an exported graph gives the bits of g:run for these inputs.
local function equal_c(g, x)
	local at = folder .. '/quantized_c'
	g:export {dir = at, name = 'net', samples = x, vectors = x:size(1)}
	local made, out = run(('make -s -C "%s" && "%s/net" --selftest'):format(at, at))
	os.execute(('rm -rf "%s"'):format(at))
	return made and out:match '[^\n]*passed[^\n]*' or 'failed: ' .. out:sub(-80)
end

function sections.quantized()
	local rows = {columns = {'model', 'ours, onnxruntime', 'ours, PyTorch', 'onnxruntime, PyTorch', 'C beside ours'}}
	for _, net in ipairs {'resnet', 'mobile', 'resnet20'} do
		for _, kind in ipairs(NETS[net]) do
			local row = {net .. ' ' .. kind}
			rows[#rows + 1] = row
			if net == 'resnet20' and not data.find 'weights/resnet20-cifar10.safetensors' then
				row[2] = 'skipped: not in the data folder (QUOLL_DATA)'
			elseif not run(('"%s" "%smodels/quantized.py" %s %s "%s"'):format(python, here, kind, net, folder)) then
				row[2] = 'skipped: PyTorch could not export it'
			else
				local g, t = graph.load(folder .. '/m.onnx'), tensor.load(folder .. '/m.npz')
				local y, scale = g:run(t.x), last_scale(g)
				row[2], row[3], row[4] = in_codes(y, t.ort, scale), in_codes(y, t.torch, scale), in_codes(t.ort, t.torch, scale)
				row[5] = equal_c(g, t.x:narrow(1, 1, 8))
			end
		end
	end
	rows.note = 'share of equal codes of 100 outputs, and by how many codes the others are off, at most'
	return rows
end

---------------------------------------------------------------- ONNX out

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
	local path = data.find(FILES[2][1])
	if not path then return nil end
	tensor.seed(1)
	return graph.load {path, inputs = FILES[2][2]}, {tensor.randn(20, 576) * 0.1, tensor.randn(2, 20, 128) * 0.1}
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

function sections.out()
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

---------------------------------------------------------------- without a judge

local STORIES = {'hf', 'hf_sharded', 'hf_bf16', 'stories260K-F32.gguf', 'stories260K-Q8_0.gguf', 'stories260K-Q4_0.gguf', 'stories260K-Q4_1.gguf'}

function sections.stories()
	local rows, list, first = {columns = {'file', 'perplexity', 'change'}}, {}, nil
	for i, ids in ipairs(dofile(here .. '../tests/golden/stories_ids.lua')) do
		local n = ids:size(1) - 1
		list[i] = {ids:narrow(1, 1, n):unsqueeze(1), ids:narrow(1, 2, n):unsqueeze(1)}
	end
	for _, name in ipairs(STORIES) do
		local path = data.find('models/stories260K/' .. name .. (name:find 'gguf' and '' or '/config.json'))
		local found = path and nn.load((path:gsub('/config%.json$', ''))):evaluate(list, {metric = 'perplexity', log = false}).perplexity
		first = first or found
		rows[#rows + 1] = found and {name, ('%.4f'):format(found), ('%+.2f %%'):format((found / first - 1) * 100)} or
			{name, '-', 'skipped: not in the data folder (QUOLL_DATA)'}
	end
	return rows
end

local function c_of(name, path, inputs)
	local at = ('%s/%s_c'):format(folder, name)
	graph.load {path, inputs = inputs}:export {dir = at, name = name}
	local made, out = run(('make -s -C "%s" && "%s/%s" --selftest'):format(at, at, name))
	local header <close> = assert(io.open(('%s/%s.h'):format(at, name)))
	return {name, header:read 'a':match '_ARENA_BYTES (%d+)', made and out:match '[^\n]*passed[^\n]*' or 'failed: ' .. out:sub(-80)}
end

function sections.c()
	local rows = {columns = {'model', 'arena bytes', 'self-test'}}
	local list = {{'models/kws/kws_int8.tflite'}, {'models/yunet/yunet_n_320_320.onnx'}, FILES[2], {'models/dtln/model_1.onnx'}, {'models/dtln/model_2.onnx'}}
	for i, file in ipairs(list) do
		local path = data.find(file[1])
		rows[i] = path and c_of(file[1]:match '/([%w_]+)%.%w+$', path, file[2]) or {file[1], '-', 'skipped: not in the data folder (QUOLL_DATA)'}
	end
	return rows
end

---------------------------------------------------------------- time to load

function sections.load()
	local rows, paths, files = {columns = {'model', 'ours ms', 'onnxruntime ms', 'ratio'}}, {}, {}
	for _, file in ipairs(FILES) do
		local path = data.find(file[1])
		if path then paths[#paths + 1], files[#files + 1] = '"' .. path .. '"', file end
	end
	if #paths == 0 then return nil, 'the data folder (QUOLL_DATA) has no models' end
	local ok, out = ask('load', table.unpack(paths))
	if not ok then return nil, 'onnxruntime could not load the files' end
	local theirs = out:gmatch '[%d.]+'
	for i, file in ipairs(files) do
		local best = bench.time(function() graph.load {data.find(file[1]), inputs = file[2]} end, {runs = 5, calls = 1}).min
		local other = tonumber(theirs())
		rows[i] = {file[1]:match '[^/]+$', ('%.1f'):format(best), ('%.1f'):format(other), ('%.2f'):format(best / other)}
	end
	return rows
end

---------------------------------------------------------------- time to run

local function times(runs, turns)
	local least = {}
	for _ = 1, turns do
		for i, f in ipairs(runs) do
			local ms = f()
			least[i] = ms and math.min(ms, least[i] or ms)
		end
	end
	return least
end

local function our_run(g, x) return function() return bench.time(function() g:run(x) end, {runs = 20, timeout = 1}).min end end

local function their_run(path, threads)
	return function()
		local ok, out = ask('time', path, folder, threads)
		return ok and tonumber(out) or nil
	end
end

local function ms(value) return value and ('%.3f'):format(value) or '-' end

local function over(a, b) return a and b and ('%.2f'):format(a / b) or '-' end

-- The graphs, ours and the files of the others: {float, int8}.
local function contenders(path, file)
	local g = graph.load {path, inputs = file[2]}
	local t, given, by_name = tensor.load(folder .. '/m.npz'), {}, {}
	if path:find '%.tflite$' then return {g}, {path}, t['in'] end
	for name in next, t do by_name[internal.import 'nn/onnx/read'.clean(name:gsub('^in%.', ''))] = t[name] end
	for i, name in ipairs(g.inputs) do given[i] = by_name[name] end
	local x = #given == 1 and given[1] or given
	return {g, (g:calibrate({{x, x}}, {log = false}):quantize {mode = 'static'})}, {path, ask('static', path, folder) and folder .. '/static.onnx'}, x
end

function sections.run()
	local rows = {columns = {'model', 'threads', 'numbers', 'ours ms', 'theirs ms', 'ratio'}}
	local before = tensor.threads()
	for _, file in ipairs {FILES[3], FILES[4], FILES[5], FILES[6], FILES[7], {'models/kws/kws_int8.tflite'}} do
		local path = data.find(file[1])
		if path and (path:find '%.tflite$' and ask('tflite', path, folder, 1) or ask('run', path, folder, file[3] or '')) then
			local graphs, files, x = contenders(path, file)
			for threads = 1, 2 do
				tensor.threads(threads)
				for i, g in ipairs(graphs) do
					local t = times({our_run(g, x), files[i] and their_run(files[i], threads) or function() end}, 3)
					rows[#rows + 1] = {file[1]:match '[^/]+$', threads, (i == 2 or #graphs == 1) and 'int8' or 'float32', ms(t[1]), ms(t[2]), over(t[1], t[2])}
				end
			end
		else
			rows[#rows + 1] = {file[1], '-', '-', '-', '-', 'skipped: not in the data folder (QUOLL_DATA)'}
		end
	end
	tensor.threads(before)
	return rows
end

---------------------------------------------------------------- generation

-- {name, million parameters, shapes}
local LLAMAS = {{'15 M', 15, {vocab = 32000, d = 288, heads = 6, layers = 6, ff = 768}}, {'110 M', 110, {vocab = 32000, d = 768, heads = 12, layers = 12, ff = 2048}},
	{'1.1 B', 1100, {vocab = 32000, d = 2048, heads = 32, kvheads = 4, layers = 22, ff = 5632}}}
local PROMPT, CONTEXT, STEPS = 512, 128, 64

-- The program that runs llama.cpp, or nil.
local function llama_python()
	local given = os.getenv 'LLAMA_PYTHON' or python
	if given and run(('"%s" -c "import llama_cpp"'):format(given)) then return given end
	io.stderr:write('models: building llama-cpp-python of PyPI …\n')
	local at = folder .. '/llama'
	local made = run(('python3 -m venv "%s" && CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAMA_BUILD_TOOLS=OFF -DLLAVA_BUILD=OFF" "%s/bin/pip" install -q llama-cpp-python --no-binary llama-cpp-python'):format(at, at))
	return made and at .. '/bin/python' or nil
end

-- Tokens a second of llama.cpp for the model in this format: of the prompt and of generation.
local function rates_of_llama(program, shape, format, threads)
	local file = folder .. '/m.gguf'
	local m = internal.import 'interp/bench/random_model'(shape, {weight = format, mode = 'weight_only'}, PROMPT + CONTEXT + STEPS)
	quant.gguf(m, {file = file, metadata = {['tokenizer.ggml.model'] = 'none'}})
	m = nil -- luacheck: ignore 311
	collectgarbage()
	local ok, out = run(('"%s" "%s" generate "%s" %d %d %d %d'):format(program, judge, file, threads, PROMPT, CONTEXT, STEPS))
	os.remove(file)
	if ok then return out:match '([%d.]+) ([%d.]+)' end
end

-- A row: the better of two runs of each program, one after the other, as other work on the machine only makes them slower.
local function compare_llama(program, model, format, other, threads)
	local prompt, rate, prompt_of, rate_of, limit = 0, 0, 0, 0, nil
	for _ = 1, 2 do
		local r = bench.generate(model[3], {weight = format, prompt = PROMPT, context = CONTEXT, steps = STEPS, threads = threads})
		prompt, rate, limit = math.max(prompt, r[1].prompt_rate), math.max(rate, r[1].rate), math.max(limit or 0, r[1].most or 0)
		collectgarbage()
		local ok, a, b = pcall(function() return rates_of_llama(program, model[3], other, threads) end)
		if ok and a then prompt_of, rate_of = math.max(prompt_of, tonumber(a)), math.max(rate_of, tonumber(b)) end
	end
	local function ratio(x, y) return y > 0 and ('%.2f'):format(x / y) or '-' end
	return {model[1], format, threads, ('%.0f'):format(prompt), ('%.0f'):format(prompt_of), ratio(prompt, prompt_of), ('%.1f'):format(rate), ('%.1f'):format(rate_of),
		ratio(rate, rate_of), ratio(rate, limit or 0)}
end

function sections.generate()
	local program = llama_python()
	if not program then return nil, 'llama-cpp-python could not be built' end
	local rows, most = {columns = {'model', 'format', 'threads', 'prompt/s', 'llama.cpp', 'ratio', 'tokens/s', 'llama.cpp ', 'ratio ', 'of reading'}}, tonumber(os.getenv 'GENERATE_MOST')
	for _, model in ipairs(LLAMAS) do
		for _, f in ipairs {{'int4:32', 'q4_0'}, {'q4_0', 'q4_0'}, {'q4_k', 'q4_k'}} do
			local fits = f[1] ~= 'q4_k' or model[3].d % 256 == 0
			if fits and model[2] <= (most or math.huge) then
				for _, threads in ipairs {1, 2} do rows[#rows + 1] = compare_llama(program, model, f[1], f[2], threads) end
			end
		end
	end
	rows.note = ('prompt of %d tokens, generation after %d; mode dynamic, beside llama.cpp in q4_0 (int4:32, q4_0) or q4_k'):format(PROMPT, CONTEXT)
	return rows
end

---------------------------------------------------------------- all

local NEEDS = {files = 'onnxruntime', others = 'onnxruntime, torch, torchvision, transformers', nodes = 'onnx', load = 'onnxruntime', tflite = 'ai_edge_litert', ops = 'ai_edge_litert',
	run = 'onnx, onnxruntime, ai_edge_litert', quantized = 'onnxruntime, torch, torchao', out = 'onnx, onnxruntime'}
local ORDER = {'files', 'others', 'nodes', 'tflite', 'ops', 'quantized', 'out', 'stories', 'c', 'load', 'run', 'generate'}
for _, name in ipairs(#arg > 0 and arg or ORDER) do
	if not sections[name] then
		io.stderr:write(('models: wanted of %s, got %s\n'):format(table.concat(ORDER, ' '), name))
		os.exit(1)
	end
	print('== ' .. name)
	if NEEDS[name] and not has(NEEDS[name]) then
		print('skipped: no ' .. NEEDS[name])
	else
		local rows, why = sections[name]()
		print(rows and report(rows) or 'skipped: ' .. why)
	end
end
os.execute(('rm -rf "%s"'):format(folder))
