-- SPDX-License-Identifier: MIT
-- graph.load: models of other programs as graphs; g:export{onnx=}. The first bytes of a file decide who reads it, else its name.
local graph, internal = ...
local base = internal.import 'interp/prelude/base'
local core = internal.import 'nn/graph/core'
local fail, describe = base.fail, base.describe

local options = base.doc {name = 'graph.load', usage = "graph.load 'm.onnx'  graph.load 'm.tflite'  graph.load{file, inputs={x={1,3,320,320}}}",
	text = [[The graph of a model in an ONNX file (opsets 7 to 28; help 'onnx' lists the ops) or a TFLite file (help 'tflite'), with its weights as
constants under their names in the file. Inputs and outputs have the names of the file. An axis that the file gives a name (or none) may
stay the batch; others need a size by inputs=. The model is not computed: what depends on sizes only is folded, `If` takes the branch
that is then known.

Files with codes become integer graphs. A bias that is no int32 in units of the product's scales, as in models of torch's PT2E, is added in
floats; bias='integer' rounds it to such an int32, so that such layers stay in integers, and moves a code in some hundred by 1.

Ops that Quoll does not have are one error that lists all of them, before weights are read. External data is read from the folder of
the model only.]],
	example = [[print(pcall(graph.load, 'no/such/model.onnx'))  --> false	...]],
	options = {{'inputs', 'list', "sizes of inputs by name: {x={1, 3, 320, 320}}, where 'B' is the batch; a tensor in their place makes the input that constant"},
		{'bias', 'text', "float (default) or integer: what biases of products of codes are, where they are no int32 in an ONNX file"},
		{'states', 'true or false', 'states of the recurrent ops of a TFLite file are inputs and, behind the others, outputs, with their names; else they are zeros in each run (default false)'},
		{'report', 'true or false', 'the second result is a report of what was recognized and made integer; none of TFLite files, whose integers stay as they are (default false)'}}}

local function is_tflite(path)
	local box = internal.onnx_open(base.path(path))
	if box and internal.tflite_is(box) then return true end
	return path:lower():find '%.tflite$' ~= nil
end

-- Values of inputs where the graph is traced.
local function on_host(inputs)
	local list = {}
	for name, value in next, inputs do list[name] = base.is_tensor(value) and value:to 'cpu' or value end
	return list
end

-- The graph with its constants on the default device.
local function placed(g)
	local device = tensor.empty(0):device()
	if device == 'cpu' then return g end
	for _, name in ipairs(g.order) do
		local node = g.nodes[name]
		if node.value then node.value = node.value:to(device) end
	end
	return g
end

-- While it lives, the collector waits until the heap is four times of what it was, and not twice: reading makes much garbage beside the
-- code that stays, and a cycle each time that it doubles takes a third of the time.
local function patient()
	local before = collectgarbage('setpause', 400)
	return setmetatable({}, {__close = function() collectgarbage('setpause', before) end})
end

function graph.load(given)
	local file, o = given, {}
	if type(given) == 'table' and not getmetatable(given) then
		file, o = given[1], base.options(options, given, true)
	end
	if type(file) ~= 'string' then fail('load: wanted a file name, got %s', describe(file)) end
	local tflite = is_tflite(file)
	if tflite and o.report then fail('load: report: wanted an ONNX file, got %s', file) end
	if tflite and o.bias then fail('load: bias: wanted an ONNX file, got %s', file) end
	if o.bias and o.bias ~= 'float' and o.bias ~= 'integer' then fail('load: bias: wanted float or integer, got %s', describe(o.bias)) end
	if o.states and not tflite then fail('load: states: wanted a TFLite file, got %s', file) end
	if o.inputs then o.inputs = on_host(o.inputs) end
	local _ <close> = patient()
	local g, rows = internal.on_cpu(internal.import(tflite and 'nn/tflite/read' or 'nn/onnx/read').load, file, o)
	if o.report then return placed(g), rows end
	return placed(g)
end

function core.writers.onnx(g, o) return internal.import 'nn/onnx/write'(g, o) end
