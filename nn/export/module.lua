-- SPDX-License-Identifier: MIT
-- m:export: a module is traced with an example of its input, and the graph exported.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'
local size = internal.import 'nn/graph/size'

local entry = module.method('export', "m:export(x, {dir='net_c'})  m:export(x, {onnx='net.onnx', form='qdq'})",
	[[Writes the module as C or as an ONNX file: graph.trace(m, x):export of the same options (see g:export). x is an example of the input, or
a list of them. It may be left out where the module knows one: after m:calibrate, and of nn.Graph.]],
	[[m = nn.Sequential{nn.Linear(3, 2), nn.ReLU()}
name = os.tmpname()
r = m:export(tensor.ones(1, 3), {onnx=name})
print(r[1].op, graph.load(name):run(tensor.zeros(2, 3)):size(1))  --> Gemm 2
os.remove(name)]], internal.import 'nn/export/options')

-- The inputs of the graph of an nn.Graph, one row each; ids count from 1.
local function inputs_of(g)
	local list = {}
	for i, name in ipairs(g.inputs) do
		local result = g.nodes[name].results[1]
		local x = tensor.ones {dtype = result.spec and 'float32' or result.dtype, table.unpack(size.at(result.shape, 1))}
		list[i] = result.spec and x:quantize(result.spec) or x
	end
	return #list == 1 and list[1] or list
end

local function example(m)
	if module.class_of(m).name == 'Graph' then return inputs_of(m.graph) end
	return rawget(m, 'example') or base.fail 'export: x: wanted an example of the input, got none; m:calibrate keeps one'
end

local function is_options(x)
	return type(x) == 'table' and not base.is_tensor(x) and #x == 0 and next(x) ~= nil
end

function module.methods.export(m, x, options)
	if not module.is_module(m) then base.fail('export: wanted a module, as in m:export(…), got %s', base.describe(m)) end
	if options == nil and is_options(x) then x, options = nil, x end
	base.options(entry, options)
	return graph.trace(m, x == nil and example(m) or x):export(options)
end

return true
