-- SPDX-License-Identifier: MIT
-- Ops that do not move elements: other shapes, copies, and codes as plain integers.
return {ops = {'view', 'reshape', 'contiguous', 'squeeze', 'unsqueeze', 'clone', 'codes'}, emit = function(e, node) e:alias(node, 1) end}
