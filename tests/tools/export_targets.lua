-- SPDX-License-Identifier: MIT
-- Runs the graphs of export_cases.lua as exported programs, compiled for each target {name=, cc=, flags=, run= (an emulator), big= (the most
-- significant byte first), rest=}; what is not here is a skip by name. The first program has every op, and runs on all targets. The other
-- graphs, by which ops meet further types, axes and options, are in three programs, of which a target runs those that rest lists: all three
-- where the target differs in what C leaves open, one where it is one more level of a compiler. Gives the first program's folder and a
-- function that removes all.
local exported = dofile 'tests/tools/exported.lua'
local REST = 3

-- The cases that are the first with an op, and the others in turn.
local function parts_of(cases)
	local seen, parts, n = {}, {{}}, 0
	for i = 1, REST do parts[i + 1] = {} end
	for _, case in ipairs(cases) do
		local new
		for _, name in ipairs(case.graph.order) do
			local op = case.graph:node(name).op
			new, seen[op] = new or not seen[op], true
		end
		if not new then n = n + 1 end
		local part = parts[new and 1 or n % REST + 2]
		part[#part + 1] = case
	end
	return parts
end

return function(cases, targets)
	local programs = {}
	for i, part in ipairs(parts_of(cases)) do programs[i] = exported.program(part) end

	-- The compiler with these flags, and the emulator, are here and work.
	local function missing(t)
		local probe = programs[1].folder .. '/probe'
		local build = ("echo 'int main(void){return 0;}' | %s %s -x c -o %s - 2>/dev/null && %s %s 2>/dev/null"):format(t.cc, t.flags, probe,
			t.run or '', probe)
		if not os.execute(build) then return ('%s %s%s is not here'):format(t.cc, t.flags, t.run and ' with ' .. t.run or '') end
	end

	for _, t in ipairs(targets) do
		it(t.name, function()
			local why = missing(t)
			if why then skip(why) end
			for _, part in ipairs {0, table.unpack(t.rest or {})} do
				local _, wrong = exported.differing(programs[part + 1], {cc=t.cc .. ' ' .. t.flags, run=t.run, big=t.big})
				assert(wrong == '', wrong)
			end
		end)
	end
	return programs[1].folder, function()
		for _, program in ipairs(programs) do os.execute('rm -r ' .. program.folder) end
	end
end
