-- SPDX-License-Identifier: MIT
-- graph: a module as named nodes. Methods of graphs are in the files of nn/graph, passes in nn/graph/passes, the
-- quantized forms of ops in nn/graph/forms.
local graph, internal = ...
local base = internal.import 'interp/prelude/base'

base.doc {name = 'graph', kind = 'module', usage = 'g = graph.trace(m, x)  print(g)  y = g:run(x)  q = g:quantize{mode=\'static\'}',
	text = [[A model as a graph of named nodes, built by graph.trace. g:run computes it, g:print, g:node and g:dot show it, g:plan lays out its
memory, g:match and g:quantize decide by rules how each node is quantized, g:calibrate observes ranges, g:pass transforms it. Every
change returns a new graph that shares its tensors with the old one. graph.op adds a user-defined op.]]}

graph.trace = internal.import('nn/graph/trace').trace
internal.import 'nn/graph/run'
internal.import 'nn/graph/text'
internal.import 'nn/graph/plan'
internal.import 'nn/graph/pass'
internal.import 'nn/graph/match'
internal.import 'nn/graph/quantize'
internal.import 'nn/graph/requantize'
internal.import 'nn/graph/op'
