-- SPDX-License-Identifier: MIT
-- Tensors that depend on their sizes only: constants.
local _, internal = ...
local ops = internal.import 'nn/graph/ops'
local size = internal.import 'nn/graph/size'

return {ops = {'zeros', 'ones', 'full', 'arange', 'linspace', 'eye'}, emit = function(e, node)
	e:gives(node.name, ops.apply(node.op, {}, size.at(node.attrs, e.batch))[1])
end}
