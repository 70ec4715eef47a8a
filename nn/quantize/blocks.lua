-- SPDX-License-Identifier: MIT
-- The blocks of a model, for methods that learn from data: parts that follow each other, between which a single tensor passes, each a
-- module of its own. nn/graph/blocks.lua sets `cut`.
--
-- blocks.cut(m, x) -> list of {name=, layers= names of the layers of m with weights, make()= a new module {forward(x, first)} whose layers
-- are copies, nodes= names of these copies by layer, weights= by layer {node=, ref=, field=, columns=} of those that ops of the block read, from, takes= whether it reads a tensor of the block before, and the input of the model
-- beside it, rows= the axis of the batch's rows in what it gives (nil: several tensors, or none), graph=, sources(layers)= {name=, path=} of the parts behind the value that these layers read, the nearest first, or nil and the
-- name of what else reads it, follows(layer)= the elementwise function behind it, or nil}, or nil and why m has none
return {}
