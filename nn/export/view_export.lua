-- SPDX-License-Identifier: MIT
-- Other shapes of the same elements in the same order, copies of them, and codes as plain integers: nothing moves.
return {ops = {'view', 'reshape', 'contiguous', 'squeeze', 'unsqueeze', 'clone', 'codes'}, emit = function(e, node) e:alias(node, 1) end}
