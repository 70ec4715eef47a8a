-- SPDX-License-Identifier: MIT
-- The doctor: a finding for every part, exit code 1 exactly when one of them is a problem.
local function run(setting)
	local pipe = io.popen(('exec env %s "/proc/$PPID/exe" doctor 2>&1'):format(setting))
	local text = pipe:read 'a'
	local _, _, code = pipe:close()
	return text, code
end

it('finds every part', function()
	local r = hw.doctor()
	for part in ('program processor kernels memory products pictures gpu data terminal'):gmatch '%S+' do
		assert(#r:where{part = part} > 0, part)
	end
	for _, row in ipairs(r) do
		assert(row.state == 'ok' or row.state == 'none' or row.state == 'problem', row.state)
		assert(row.detail:find '%S' and row.item:find '%S')
	end
	assert(r:where{item = 'Lua'}.detail:find '^Lua 5%.4')
	assert(r:where{item = 'cores'}.detail:find('^' .. hw.features().cores .. ','))
end)

it('ends with 1 exactly when there is a problem', function()
	local text, code = run ''
	local problems = select(2, text:gsub('\n  [^\n]-  problem  ', ''))
	assert(code == (problems > 0 and 1 or 0), text)
	assert(text:find(problems == 0 and 'No problem found' or problems .. ' problem'), text)
end)

it('is plain text of at most 80 columns', function()
	local text = run ''
	assert(not text:find '\27')
	for line in text:gmatch '[^\n]+' do
		assert(utf8.len(line) <= 80 or line:find '^%s*%S+$', line) -- a long path stays whole
	end
end)

it('sees what is set wrongly', function()
	for setting, item in pairs {['QUOLL_BLAS=/no/such/blas.so'] = 'BLAS',
		['QUOLL_DATA=/no/such/folder'] = 'folder 1',
		['QUOLL_GPU_PLUGIN=/no/such/plugin.so'] = 'plug%-in'} do
		local text, code = run(setting)
		assert(code == 1 and text:find(item .. ' +problem'), setting .. '\n' .. text)
	end
end)

it('takes no argument', function()
	local pipe = io.popen '"/proc/$PPID/exe" doctor now 2>&1'
	local text = pipe:read 'a'
	local _, _, code = pipe:close()
	assert(code == 1 and text:find "wanted no argument, got 'now'", text)
end)
