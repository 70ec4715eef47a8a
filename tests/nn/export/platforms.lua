-- SPDX-License-Identifier: MIT
-- labels: full
-- Every exportable op with 1000 random inputs, by each compiler that is here at each level: bit for bit, but for the few cases with a
-- tolerance. What else there is of graphs with these ops: by each compiler without the optimizer and at one level with it, and as
-- -O3 -march=native in ops/*.lua. Other processors: processors.lua.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
local internal = debug.getregistry()['quoll.internal']
local cases = dofile 'tests/tools/export_cases.lua'

it('every exportable op has a case', function()
	local seen, missing = {}, {}
	for _, case in ipairs(cases) do
		for _, name in ipairs(case.graph.order) do seen[case.graph:node(name).op] = true end
	end
	for _, op in ipairs(internal.import 'nn/export/export'.exportable()) do
		if not seen[op] then missing[#missing + 1] = op end
	end
	assert(#missing == 0, 'no case for ' .. table.concat(missing, ' '))
end)

local ALL, targets = {1, 2, 3}, {}
for cc, rest in pairs {gcc = {[0] = ALL, {1}, {2}, {3}}, clang = {[0] = ALL, {2}, {3}, {1}}} do
	for level = 0, 3 do targets[#targets + 1] = {name=('%s -O%d'):format(cc, level), cc=cc, flags='-O' .. level, rest=rest[level]} end
end
targets[#targets + 1] = {name='gcc for this processor', cc='gcc', flags='-O3 -march=native'}
select(2, (dofile 'tests/tools/export_targets.lua')(cases, targets))()
