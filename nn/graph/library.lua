-- SPDX-License-Identifier: MIT
-- graph: a module as named nodes. Methods of graphs are in the files of nn/graph, passes in nn/graph/passes, the
-- quantized forms of ops in nn/graph/forms.
local graph, internal = ...
local base = internal.import 'interp/prelude/base'

base.doc {name = 'graph', kind = 'module', usage = 'g = graph.trace(m, x)  print(g)  y = g:run(x)  q = g:quantize{mode=\'static\'}',
	text = [[A model as a graph of named nodes, made by graph.trace: g:run computes it, g:print, g:node and g:dot show it, g:plan lays out its
memory, g:match and g:quantize decide for each node by rules how it is quantized, g:calibrate finds ranges, g:pass changes it. Each
change gives a new graph; tensors are shared. graph.op adds an op of your own.]]}

graph.trace = internal.import('nn/graph/trace').trace
internal.import 'nn/graph/run'
internal.import 'nn/graph/text'
internal.import 'nn/graph/plan'
internal.import 'nn/graph/pass'
internal.import 'nn/graph/match'
internal.import 'nn/graph/quantize'
internal.import 'nn/graph/op'
