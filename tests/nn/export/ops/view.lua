-- SPDX-License-Identifier: MIT
-- labels: full
-- Views in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
exported.functions({
	view = function(_, x) return x:view(-1, 48) * 2 end, images = function(_, x) return x:reshape(-1, 2, 4, 6):relu() end,
	squeeze = function(_, x) return x:unsqueeze(2):neg():squeeze(2) end,
}, tensor.randn(12, 6, 8))
