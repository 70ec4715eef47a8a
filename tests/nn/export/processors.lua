-- SPDX-License-Identifier: MIT
-- labels: full
-- Every exportable op with 1000 random inputs, for 32 bits, under sanitizers, and for other processors (emulated by qemu), of which one
-- has the most significant byte first: the same as in platforms.lua. What else there is of graphs with these ops: under sanitizers and with
-- the other order of bytes, and on one of the others.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
local ALL = {1, 2, 3}
local folder, remove = (dofile 'tests/tools/export_targets.lua')(dofile 'tests/tools/export_cases.lua', {
	{name='gcc for 32 bits', cc='gcc', flags='-O2 -m32 -msse2 -mfpmath=sse', rest={1}},
	{name='clang for 32 bits', cc='clang', flags='-O2 -m32 -msse2 -mfpmath=sse', rest={2}},
	{name='gcc with sanitizers', cc='gcc', flags='-O1 -fsanitize=undefined,address -fno-sanitize-recover=all', rest=ALL},
	{name='PowerPC (big-endian)', cc='powerpc-linux-gnu-gcc', flags='-O2 -static', run='qemu-ppc', big=true, rest=ALL},
	{name='ARM, 32 bits', cc='arm-linux-gnueabihf-gcc', flags='-O2 -static', run='qemu-arm', rest={3}},
	{name='ARM, 64 bits', cc='aarch64-linux-gnu-gcc', flags='-O3 -static', run='qemu-aarch64', rest={1}},
})
it('x87 is refused when it compiles', function()
	local pipe = io.popen(("gcc -m32 -mfpmath=387 -std=c99 -fsyntax-only %s/net.c 2>&1"):format(folder))
	local output = pipe:read 'a'
	if output:find 'sorry' or output:find 'stubs%-32' or output:find 'fatal error: [%w/_.-]+: No such file' then skip 'gcc -m32 is not here' end
	assert(output:find 'floats must be computed as floats', output)
	pipe:close()
end)
remove()
