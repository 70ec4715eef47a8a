-- SPDX-License-Identifier: MIT
-- kill -9 at random points of a sweep, of the sweep itself and of its trials: no finished trial is lost or run again,
-- one more command completes it, and the table is that of an undisturbed run. QUOLL_KILLS: how many points
-- (kill_full.lua: 40).
local KILLS = tonumber(os.getenv 'QUOLL_KILLS') or KILLS or 8
local TRIALS = 24
local folder = os.tmpname()
os.execute(('rm %s && mkdir %s'):format(folder, folder))
local _ <close> = setmetatable({}, {__close = function() os.execute('rm -r ' .. folder) end})

local script = assert(io.open(folder .. '/s.lua', 'w'))
script:write(([[
local xs = {}
for i = 1, %d do xs[i] = i end
print(sweep.run{name='s', grid={x=xs}, run=function(c, log)
	local f = io.open('started.txt', 'a')
	f:write(c.x, '\n')
	f:close()
	for i = 1, 20 do log('loss', c.x / i, i) end
	os.execute('sleep 0.0' .. c.x %% 7)
	return {square=c.x * c.x, draw=tensor.rand(1):item(), name='n' .. c.x}
end})
]]):format(TRIALS))
script:close()

local function shell(command)
	local pipe = io.popen(('cd %s && exe=/proc/$PPID/exe && { %s; }'):format(folder, command))
	local text = pipe:read 'a'
	pipe:close()
	return text
end

local function read(file)
	local handle = io.open(file, 'rb')
	local text = handle and handle:read 'a' or ''
	if handle then handle:close() end
	return text
end

-- Running, and no zombie that waits for its parent.
local function is_alive(pid)
	local state = read(('/proc/%s/stat'):format(pid)):match '^.*%) (%a)'
	return state ~= nil and state ~= 'Z'
end

local function wait_for(pid)
	local start = hw.clock()
	while is_alive(pid) do
		assert(hw.clock() - start < 120, 'process ' .. pid .. ' does not end')
		os.execute 'sleep 0.01'
	end
end

local function children(pid)
	local list = {}
	for child in read(('/proc/%s/task/%s/children'):format(pid, pid)):gmatch '%d+' do list[#list + 1] = child end
	return list
end

local function starts()
	local count = {}
	for x in read(folder .. '/started.txt'):gmatch '%d+' do count[tonumber(x)] = (count[tonumber(x)] or 0) + 1 end
	return count
end

local function finished()
	if read(folder .. '/s.db') == '' then return {} end
	local good, r = pcall(sweep.load, folder .. '/s.db')
	return good and r or {} -- killed before the tables were made
end

local function start() return shell '$exe s.lua --jobs 3 >>out.txt 2>&1 & echo $!':match '%d+' end

it('gives one table without disturbance', function()
	wait_for(start())
	assert(#finished() == TRIALS, read(folder .. '/out.txt'))
end)
local expected = tostring(finished())

-- The number of kills that hit the sweep and its trials.
local hit = {sweep = 0, trial = 0}

local function kill_somewhere(pid)
	os.execute(('sleep %.3f'):format(math.random() * 0.45))
	while hit.trial == 0 and #children(pid) == 0 and is_alive(pid) do os.execute 'sleep 0.01' end -- a slow machine
	local before, counts = finished(), starts()
	local list = children(pid)
	if #list > 0 and (hit.trial == 0 or math.random() < 0.35) then
		shell(('kill -9 %s 2>/dev/null'):format(list[math.random(#list)]))
		hit.trial = hit.trial + 1
		return before, counts, false
	end
	shell(('kill -9 %s 2>/dev/null'):format(pid))
	wait_for(pid)
	for _, child in ipairs(list) do wait_for(child) end
	hit.sweep = hit.sweep + 1
	return before, counts, true
end

-- Every row of `before` is still there, and its trial was not started again.
local function check(before, counts)
	local now, again = finished(), starts()
	local by_x = {}
	for _, row in ipairs(now) do
		assert(not by_x[row.x], 'doubled: ' .. row.x)
		by_x[row.x] = row
	end
	for _, row in ipairs(before) do
		assert(by_x[row.x] and tostring(by_x[row.x]) == tostring(row), 'lost: ' .. row.x)
		assert(again[row.x] == counts[row.x], 'run again: ' .. row.x)
	end
end

it('loses and doubles nothing, whatever is killed when', function()
	math.randomseed(20240607)
	local killed = 0
	while killed < KILLS do
		shell 'rm -f s.db* started.txt out.txt'
		local pid = start()
		repeat
			local before, counts, sweep_is_dead = kill_somewhere(pid)
			killed = killed + 1
			if sweep_is_dead then pid = start() end
			check(before, counts)
		until #finished() == TRIALS or killed >= KILLS
		wait_for(pid)
		for _ = 1, 2 do wait_for(start()) end -- one for trials that were killed, one that has nothing to do
		check(finished(), starts())
		assert(tostring(finished()) == expected, tostring(finished()))
		assert(#sweep.steps(folder .. '/s.db') == 20 * TRIALS)
	end
	assert(hit.sweep > 0 and hit.trial > 0, 'both kinds')
end)
