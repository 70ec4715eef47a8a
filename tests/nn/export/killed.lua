-- SPDX-License-Identifier: MIT
-- g:export that is ended by kill -9 at any moment: the folder holds one export or the other as a whole, and all that was there beside;
-- what a killed process leaves beside the folder goes at the next export.
-- labels: once
local program = dofile 'tests/tools/scratch.lua'.program
local exported = dofile 'tests/tools/exported.lua'
local put, base = exported.put, exported.new_folder()
os.execute('mkdir ' .. base)
local folder = base .. '/net_c'

local function text_of(file)
	local f = io.open(file, 'rb')
	if not f then return end
	local text = f:read 'a'
	f:close()
	return text
end

put(base .. '/export.lua', ([[
tensor.seed(5)
local made = {}
for i = 1, 2 do made[i] = graph.trace(nn.Sequential {nn.Linear(6 * i, 4)}, tensor.ones(1, 6 * i)) end
io.write 'ready\n'
io.flush()
for i = 1, arg and tonumber(arg[1]) or 1000 do made[i %% 2 + 1]:export {dir='%s', name='net'} end
]]):format(folder))
local function start(count) return io.popen(('echo $$; exec "%s" %s/export.lua %s 2>&1'):format(program, base, count or '')) end

local function export_once()
	local pipe <close> = start(1)
	local output = pipe:read 'a'
	assert(output:find '^%d+\nready\n$', output)
end

-- The stamp that all files have; nil where two differ or one is missing.
local function stamp()
	local found
	for _, name in ipairs {'net.h', 'net.c', 'net_ops.h', 'net_weights.h', 'main.c'} do
		local text = text_of(folder .. '/' .. name)
		local value = text and text:match 'STAMP !?=? ?(0x%x+)u'
		if not value or found and value ~= found then return nil, name end
		found = value
	end
	return found
end
local function leftovers()
	local pipe <close> = io.popen(("ls -d %s.quoll-* 2>/dev/null | wc -l"):format(folder))
	return pipe:read 'n'
end

export_once()
put(folder .. '/notes', 'mine')
os.execute(('mkdir %s/sub && echo inner > %s/sub/file && cp %s/net.h %s/first.h'):format(folder, folder, folder, folder))

it('kill -9 at any moment', function()
	local seen, count, left = {}, 0, 0
	for i = 1, 100 do -- a busy machine may get through one export only in many rounds
		local pipe = start()
		local pid = pipe:read 'l'
		assert(pipe:read 'l' == 'ready')
		os.execute(('sleep 0.%02d; kill -9 %s'):format(i * 37 % 60 + 5, pid))
		pipe:close()
		local value, name = stamp()
		assert(value, name)
		if not seen[value] then seen[value], count = true, count + 1 end
		assert(text_of(folder .. '/notes') == 'mine' and text_of(folder .. '/sub/file') == 'inner\n' and text_of(folder .. '/first.h'))
		left = math.max(left, leftovers())
		if i >= 6 and count == 2 then break end
	end
	io.stderr:write(('%d exports seen, at most %d folders left beside\n'):format(count, left))
	assert(count == 2 and left <= 1, count .. ' ' .. left) -- each export removes those of the dead
	export_once()
	assert(leftovers() == 0 and stamp())
end)
it('folders of processes that live, and of others, stay', function()
	local pid = io.popen('echo $PPID'):read 'l'
	local names = {('.quoll-%s-99.part'):format(pid), '.quoll-x-1.part', '.part', '.quoll-999999999-1.part'}
	for _, name in ipairs(names) do os.execute(('mkdir %s%s'):format(folder, name)) end
	export_once()
	for i, name in ipairs(names) do assert((os.execute(('test -d %s%s'):format(folder, name)) == true) == (i < 4), name) end
end)
it('a link to the folder stays a link', function()
	os.execute(('ln -s net_c %s/link'):format(base))
	graph.trace(nn.Linear(3, 2), tensor.ones(1, 3)):export {dir=base .. '/link', name='net'}
	assert(os.execute(('test -h %s/link'):format(base)) and stamp() and text_of(folder .. '/notes') == 'mine')
end)
os.execute('rm -r ' .. base)
