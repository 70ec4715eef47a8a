-- SPDX-License-Identifier: MIT
-- First values of parameters, which a caller may leave out who puts others in their place (module.change_tensors).
local initial = {}
local unset = false

-- The value of a parameter of these sizes: make(…), or a view of one zero while initial.unset runs.
function initial.of(make, ...) return unset and tensor.zeros(1):expand(...) or make(...) end

-- make(…), whose parameters take no memory.
function initial.unset(make, ...)
	local before = unset
	unset = true
	local result = table.pack(pcall(make, ...))
	unset = before
	if not result[1] then error(result[2], 0) end
	return table.unpack(result, 2, result.n)
end

return initial
