-- SPDX-License-Identifier: MIT
-- labels: full
-- What moves elements about in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
exported.functions({
	permute = function(_, x) return x:permute(1, 3, 2) end, transpose = function(_, x) return x:transpose(2, 3):narrow(2, 2, 3) end,
	select = function(_, x) return x:select(2, -1) end, expand = function(_, x) return x:narrow(2, 1, 1):expand(x:size(1), 4, 8) * 2 end,
}, tensor.randn(12, 6, 8))
