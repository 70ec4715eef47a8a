-- SPDX-License-Identifier: MIT
-- graph: a module as named nodes. What a graph can do is in the files graph_*.lua, passes in quant/passes, the quantized forms of ops
-- in quant/forms.
local graph, internal = ...
local base = internal.import 'base'

base.doc {name = 'graph', kind = 'module', usage = 'g = graph.trace(m, x)  print(g)  y = g:run(x)  q = g:quantize{mode=\'static\'}',
	text = [[A model as a graph of named nodes, made by graph.trace: g:run computes it, g:print, g:node and g:dot show it, g:plan lays out its
memory, g:match and g:quantize decide for each node by rules how it is quantized, g:calibrate finds ranges, g:pass changes it. Each
change gives a new graph; tensors are shared. graph.op adds an op of your own.]]}

graph.trace = internal.import('graph_trace').trace
for _, part in ipairs {'graph_run', 'graph_text', 'graph_plan', 'graph_pass', 'graph_match', 'graph_quantize', 'graph_export_write',
	'graph_op'} do internal.import(part) end
