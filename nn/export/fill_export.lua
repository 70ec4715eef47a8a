-- SPDX-License-Identifier: MIT
-- Tensors that are made of nothing but their sizes: constants.
local _, internal = ...
local ops = internal.import 'graph_ops'
local size = internal.import 'graph_size'

return {ops = {'zeros', 'ones', 'full', 'arange', 'linspace', 'eye'}, emit = function(e, node)
	e:gives(node.name, ops.apply(node.op, {}, size.at(node.attrs, e.batch))[1])
end}
