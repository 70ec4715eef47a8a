-- SPDX-License-Identifier: MIT
-- Section bits: the codes of stories260K by a chain on every kernel level and number of threads, and of a run that was killed and went on.
local here, tools = ...

-- A program that prints the hash of the codes.
local PROGRAM = [[
local m = nn.llama(data.find 'weights/stories260K.bin')
local ids = dofile '%sstories_ids.lua'
local given = {}
for i = 1, 4 do given[i] = {ids[i]:narrow(1, 1, 200):unsqueeze(1)} end
local file = arg[1]
local q = m:quantize {mode = 'weight_only', weight = 'int4:32', method = {'awq', {'gptq', act = true}, 'biascorrect'}, data = given, log = false, file = file}
local out = os.tmpname()
os.remove(out)
q:save(out .. '.safetensors')
local pipe = io.popen('sha256sum < ' .. out .. '.safetensors')
print(pipe:read(64))
pipe:close()
os.remove(out .. '.safetensors')
]]

local function run(program, environment, rest)
	local pipe = io.popen(('%s exec /proc/$PPID/exe %s %s'):format(environment, program, rest or ''))
	local hash = pipe:read 'l'
	pipe:close()
	return hash
end

return function()
	tools.need 'weights/stories260K.bin'
	local name = os.tmpname()
	local program, kept = name .. '.lua', name .. '.q'
	local file = io.open(program, 'w')
	file:write(PROGRAM:format(here .. '../tests/golden/'))
	file:close()
	local rows, first = {columns = {'run', 'codes', 'same'}}, nil
	local function add(text, hash)
		first = first or hash
		rows[#rows + 1] = {text, (hash or 'none'):sub(1, 16), hash == first and 'yes' or 'no'}
	end
	for _, level in ipairs {'native', 'ref', 'avx2', 'avxvnni', 'avx512vnni'} do
		for _, threads in ipairs {1, 2} do add(('kernels %s, %d threads'):format(level, threads), run(program, ('QUOLL_KERNEL=%s QUOLL_THREADS=%d'):format(level, threads))) end
	end
	os.execute(('timeout -s KILL 2 /proc/$PPID/exe %s %s >/dev/null 2>&1'):format(program, kept))
	add('killed and gone on', run(program, '', kept))
	os.execute(('rm -f "%s"*'):format(name))
	print(report(rows))
end
