-- SPDX-License-Identifier: MIT
-- labels: full serial
-- Every exportable op with 1000 random inputs, compiled by what compilers are here, for other processors, and under sanitizers:
-- integers bit for bit, floats too unless their sums run in another order.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
local internal = debug.getregistry()['quoll.internal']
local cases = dofile 'tests/tools/export_cases.lua'

it('every exportable op has a case', function()
	local seen, missing = {}, {}
	for _, case in ipairs(cases) do
		for _, name in ipairs(case.graph.order) do seen[case.graph:node(name).op] = true end
	end
	for _, op in ipairs(internal.import 'graph_export'.exportable()) do
		if not seen[op] then missing[#missing + 1] = op end
	end
	assert(#missing == 0, 'no case for ' .. table.concat(missing, ' '))
end)

local program = exported.program(cases)
local targets = {}
local function target(name, cc, flags, emulator, big)
	targets[#targets + 1] = {name = name, cc = cc, emulator = emulator, make = ("CC='%s' CFLAGS='%s'"):format(cc, flags), run = emulator, big = big,
		flags = flags}
end
for _, cc in ipairs {'gcc', 'clang'} do
	for level = 0, 3 do target(('%s -O%d'):format(cc, level), cc, '-O' .. level) end
	target(cc .. ' for 32 bits', cc, '-O2 -m32 -msse2 -mfpmath=sse')
end
target('gcc for this processor', 'gcc', '-O3 -march=native')
target('gcc with sanitizers', 'gcc', '-O1 -fsanitize=undefined,address -fno-sanitize-recover=all')
target('PowerPC (big-endian)', 'powerpc-linux-gnu-gcc', '-O2 -static', 'qemu-ppc', true)
target('ARM, 32 bits', 'arm-linux-gnueabihf-gcc', '-O2 -static', 'qemu-arm')
target('ARM, 64 bits', 'aarch64-linux-gnu-gcc', '-O3 -static', 'qemu-aarch64')

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
		local wrong = exported.differing(program, t)
		assert(#wrong == 0, table.concat(wrong, '; '))
	end)
end
it('x87 is refused when it compiles', function()
	local pipe = io.popen(("gcc -m32 -mfpmath=387 -std=c99 -fsyntax-only %s/net.c 2>&1"):format(program.folder))
	local output = pipe:read 'a'
	if output:find 'sorry' or output:find 'stubs%-32' then skip 'gcc -m32 is not here' end
	assert(output:find 'floats must be computed as floats', output)
	pipe:close()
end)
os.execute('rm -r ' .. program.folder)
