-- SPDX-License-Identifier: MIT
-- What sections have in common: judge.py and the packages that it needs, files of the data folder, comparing.
local here = ...
local internal = debug.getregistry()['quoll.internal']
local judges = {internal = internal, judge = here .. 'models/judge.py', folder = os.tmpname(), python = os.getenv 'MODELS_PYTHON'}
os.remove(judges.folder)
os.execute(('mkdir "%s"'):format(judges.folder))

-- {path in the data folder, inputs= of graph.load, sizes for the judge}
judges.files = {{'weights/mnist-8.onnx'}, {'models/silero/silero_vad_16k_op15.onnx', {input = {'B', 576}, sr = tensor {16000, dtype = 'int64'}:sum()},
	'input=1,576 state=2,1,128 sr='}, {'models/yunet/yunet_n_320_320.onnx'}, {'models/rfb320/version-RFB-320.onnx'}, {'models/dtln/model_1.onnx'},
	{'models/dtln/model_2.onnx'}, {'models/magika/standard_v3_3.onnx', nil, 'bytes=1,2048'}, {'models/stories260K/stories260K.onnx'}}

-- Whether the command succeeded, and what it printed.
function judges.run(command)
	local pipe = io.popen(command .. ' 2>"' .. judges.folder .. '/errors"')
	local out = pipe:read 'a'
	return pipe:close(), out
end

-- Whether Python has them: that of MODELS_PYTHON, or of an environment that is made for the run.
function judges.has(packages)
	local folder = judges.folder
	if not judges.python then
		io.stderr:write('models: making an environment with packages of PyPI …\n')
		if not judges.run(('python3 -m venv "%s/venv" && "%s/venv/bin/pip" install -q onnx onnxscript onnxruntime torch torchvision torchao transformers ai-edge-litert'):format(folder, folder)) then
			return false
		end
		judges.python = folder .. '/venv/bin/python'
	end
	return (judges.run(('"%s" -c "import %s"'):format(judges.python, packages)))
end

function judges.ask(...) return judges.run(('"%s" "%s" %s'):format(judges.python, judges.judge, table.concat({...}, ' '))) end

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

-- A row of name, nodes, time to load and the largest error beside the values of an .npz.
function judges.row_of(name, path, inputs, npz)
	local before = os.clock()
	local ok, g = pcall(graph.load, {path, inputs = inputs})
	if not ok then return {name, '-', '-', tostring(g):gsub('^.-: ', '', 1):sub(1, 90)} end
	local ms = (os.clock() - before) * 1e3
	local good, error = pcall(worst, g, path, npz)
	return {name, #g.order, ('%.1f'):format(ms), good and ('%.1e'):format(error) or tostring(error):sub(1, 90)}
end

return judges
