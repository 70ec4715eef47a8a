-- SPDX-License-Identifier: MIT
-- Runs the graphs of export_cases.lua as one exported program, compiled for each target {name=, cc=, flags=, run= (an emulator), big= (the
-- most significant byte first)}; what is not here is a skip by name. Gives the program's folder, to be removed.
local exported = dofile 'tests/tools/exported.lua'

return function(cases, targets)
	local program = exported.program(cases)

	-- The compiler with these flags, and the emulator, are here and work.
	local function missing(t)
		local probe = program.folder .. '/probe'
		local build = ("echo 'int main(void){return 0;}' | %s %s -x c -o %s - 2>/dev/null && %s %s 2>/dev/null"):format(t.cc, t.flags, probe,
			t.run or '', probe)
		if not os.execute(build) then return ('%s %s%s is not here'):format(t.cc, t.flags, t.run and ' with ' .. t.run or '') end
	end

	for _, t in ipairs(targets) do
		it(t.name, function()
			local why = missing(t)
			if why then skip(why) end
			local _, wrong = exported.differing(program, {cc=t.cc .. ' ' .. t.flags, run=t.run, big=t.big})
			assert(wrong == '', wrong)
		end)
	end
	return program.folder
end
