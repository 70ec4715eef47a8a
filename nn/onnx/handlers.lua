-- SPDX-License-Identifier: MIT
-- The ops of ONNX that there are: 'domain:op' -> function, from the files of nn/onnx/ops.def. Codes that have a scale are quantized tensors
-- while a graph is read. Ops that a file lists under `codes` take them so; to others they are the integers that they are in the file.
local _, internal = ...
local handlers = {inputs = {}} -- inputs: key -> how many inputs the function names; 0: any number
local all

local function integers(x, ...)
	if select('#', ...) == 0 then return x and x:quantized() and x:codes() or x end
	return x and x:quantized() and x:codes() or x, integers(...)
end

local function of_integers(f)
	return function(n, ...)
		if select('#', ...) == 0 then return f(n) end
		return f(n, integers(...))
	end
end

function handlers.all()
	if all then return all end
	all = {}
	for _, path in ipairs(internal.registry 'nn/onnx/ops') do
		local entry = internal.import(path)
		local takes = {}
		for _, name in ipairs(entry.codes or {}) do takes[name] = true end
		for name, f in next, entry.ops or entry do
			local key = (entry.domain or '') .. ':' .. name
			all[key], handlers.inputs[key] = takes[name] and f or of_integers(f), debug.getinfo(f, 'u').nparams - 1
		end
	end
	return all
end

-- Names of a domain's ops in order.
function handlers.names(domain)
	local names = {}
	for key in next, handlers.all() do
		local of, name = key:match '^(.-):(.*)$'
		if of == domain then names[#names + 1] = name end
	end
	table.sort(names)
	return names
end

return handlers
