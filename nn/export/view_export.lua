-- SPDX-License-Identifier: MIT
-- Other shapes of the same elements in the same order: nothing moves.
return {ops = {'view', 'reshape', 'contiguous', 'squeeze', 'unsqueeze'}, emit = function(e, node) e:alias(node, 1) end}
