-- SPDX-License-Identifier: MIT
-- The session at the top of README.md is what the prompt shows today, apart from the names of this machine's kernels.
-- `quoll scripts/record_session.lua` writes it anew.
local record = loadfile 'scripts/record_session.lua'()

local function plain(text) return (text:gsub('simd_%w+', 'simd_*'):gsub('(gemm_%w+)_%w+', '%1_*')) end

it('README.md shows the present prompt', function()
	local file = io.open 'README.md'
	local _, block = record.split(file:read 'a')
	file:close()
	local inputs = record.inputs(block)
	assert(#inputs >= 8, 'only ' .. #inputs .. ' inputs')
	local wanted, got = plain(block), plain(record.run(inputs))
	if wanted ~= got then error('run `quoll scripts/record_session.lua`; the prompt shows now:\n' .. got) end
end)

it('a session that shows something else is found', function()
	assert(plain(record.run {{'1 + 1'}}) == 'In [1]: 1 + 1\nOut[1]: 2\n')
	assert(record.run {{'for i = 1, 2 do', '  print(i)', 'end'}} ==
		'In [1]: for i = 1, 2 do\n   ...:   print(i)\n   ...: end\n1\n2\n')
end)
