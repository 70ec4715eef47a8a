-- SPDX-License-Identifier: MIT
-- The ops of ONNX that there are: 'domain:op' -> function, from the files of nn/onnx/ops.def.
local _, internal = ...
local handlers = {}
local all

function handlers.all()
	if all then return all end
	all = {}
	for _, path in ipairs(internal.registry 'nn/onnx/ops') do
		local entry = internal.import(path)
		for name, f in next, entry.ops or entry do all[(entry.domain or '') .. ':' .. name] = f end
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
