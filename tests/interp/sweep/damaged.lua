-- SPDX-License-Identifier: MIT
-- A results file that was damaged is loaded, or refused in one line that names no place of ours.
local scratch = dofile 'tests/tools/scratch.lua'
local folder, write = scratch.folder(), scratch.write
local script, file = folder .. '/s.lua', folder .. '/s.db'

write(script, [[return {name='s', grid={bits={8,4,2}}, run=function(c)
	if c.bits == 2 then error 'no luck' end
	return {accuracy=c.bits / 10, good=true, word='a'}
end}]])
os.execute(('cd %s && /proc/$PPID/exe sweep s.lua >/dev/null 2>&1'):format(folder))
local f = io.open(file, 'rb')
if not f then
	skip 'damaged results files: no SQLite'
	return
end
local good = f:read 'a'
f:close()

local function load_with(text)
	write(file, text)
	for _, rest in ipairs{'-wal', '-shm'} do os.remove(file .. rest) end
	local fine, message = pcall(sweep.load, file)
	if not fine then
		assert(not message:find('quoll/interp/', 1, true) and not message:find('\n', 1, true), message)
	end
	return fine, tostring(message)
end

it('an unknown state is named', function()
	local fine, message = load_with(good:sub(1, 4096) .. good:sub(4097):gsub('done', 'dome'))
	assert(not fine and message:find('state: wanted pending, running, done or failed, got', 1, true), message)
	assert(load_with(good))
end)

it('any bytes may be wrong', function()
	local random, refused = 1, 0
	local function draw(n)
		random = random * 48271 % 2147483647
		return random % n + 1
	end
	for _ = 1, 400 do
		local at = draw(#good)
		local text = good:sub(1, at - 1) .. string.char(draw(256) - 1) .. good:sub(at + 1)
		if not load_with(text) then refused = refused + 1 end
	end
	assert(refused > 0)
end)
