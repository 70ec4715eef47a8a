-- SPDX-License-Identifier: MIT
-- labels: full
-- What moves elements about in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
exported.functions({
	permute = function(_, x) return x:permute(1, 3, 2) end, transpose = function(_, x) return x:transpose(2, 3):narrow(2, 2, 3) end,
	slice = function(_, x) return x['::1, -1:2:-2, ::3'] end, ['an empty slice'] = function(_, x) return tensor.cat({x['::1, 3:2'], x}, {axis=2}) end,
	repeatinterleave = function(_, x) return x:repeatinterleave(3, 2) end, diagonal = function(_, x) return x:diag(2) end,
	['diagonal below'] = function(_, x) return x:diag(-4) * 2 end, depthtospace = function(_, x) return x:view(-1, 12, 2, 2):depthtospace(2, 'crd') end,
	spacetodepth = function(_, x) return x:view(-1, 1, 6, 8):quantize {dtype='int8', scale=0.02}:spacetodepth(2) end,
	select = function(_, x) return x:select(2, -1) end, expand = function(_, x) return x:narrow(2, 1, 1):expand(x:size(1), 4, 8) * 2 end,
}, tensor.randn(12, 6, 8))
