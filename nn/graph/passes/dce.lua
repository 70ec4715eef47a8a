-- SPDX-License-Identifier: MIT
-- Pass dce: removes nodes that no output needs. finish() of an edit does so; this pass requests it for a graph traced
-- with {dead=true}.
local _, internal = ...
local core = internal.import 'nn/graph/core'

return {group = 'dce', text = 'nodes that no output needs', run = function(e, say)
	local needed = {}
	for _, name in ipairs(e.inputs) do needed[name] = true end
	core.each_output(e, function(leaf) needed[core.split(leaf.ref)] = true end)
	for i = #e.order, 1, -1 do
		for _, ref in ipairs(needed[e.order[i]] and e.nodes[e.order[i]].inputs or {}) do
			if type(ref) == 'string' then needed[core.split(ref)] = true end
		end
	end
	for _, name in ipairs(e.order) do
		if not needed[name] then
			say(name, 'removed')
			e.changes = e.changes + 1
		end
	end
end}
