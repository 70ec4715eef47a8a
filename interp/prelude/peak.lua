-- SPDX-License-Identifier: MIT
-- The highest sum of the bytes of tensors while something runs, above what was in use before.
local _, internal = ...
local meta = {}

-- Puts the higher of both peaks back; by its __gc when a coroutine was dropped.
local function back(self)
	if self.before then internal.peak(math.max(self.before, tensor.memory().peak)) end
	self.before = nil
end
meta.__close, meta.__gc = back, back
meta.__index = {bytes = function(self) return math.max(0, tensor.memory().peak - self.start) end}

-- A value for `local peak <close>`: peak.start, peak:bytes(). `start` is what counts as in use (default: what is).
return function(start)
	local before = internal.peak(0)
	return setmetatable({before = before, start = start or tensor.memory().now}, meta)
end
