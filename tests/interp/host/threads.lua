-- SPDX-License-Identifier: MIT
-- Threads: pinned by an option, and fewer of them where the system refuses to start more.
local program = '/proc/$PPID/exe'
local file = os.tmpname()

-- What a script says with these limits before it (shell), and how it ends.
local function run(limits, options, text)
	local f <close> = io.open(file, 'w')
	f:write(text):close()
	local pipe = io.popen(('q=$(readlink -f "%s"); %s; "$q" %s %s 2>&1; echo "exit $?"'):format(program, limits, options, file))
	local said = pipe:read 'a'
	pipe:close()
	return said
end

-- Allowed processors of the threads, one text each.
local TASKS = [[
x = tensor.randn(400, 400)
for i = 1, 3 do y = x:matmul(x) end
for path in io.popen 'ls -d /proc/$PPID/task/*':lines() do
	print('task', io.open(path .. '/status'):read 'a':match 'Cpus_allowed_list:%s*(%S+)')
end
print('pinned', hw.features().pinned)
]]

local function allowed(said)
	local list = {}
	for task in said:gmatch 'task%s+(%S+)' do list[#list + 1] = task end
	table.sort(list)
	return list
end

local all = io.open '/proc/self/status':read 'a':match 'Cpus_allowed_list:%s*(%S+)'
local several = all:find '[-,]' ~= nil

describe('pinned threads', function()
	it('stay on a processor each', function()
		local said = run('export QUOLL_TEAM_NS=0', '--pin --threads 2', TASKS)
		local list = allowed(said)
		assert(#list == 2 and said:find 'pinned%s+true', said)
		for _, task in ipairs(list) do assert(task:find '^%d+$', said) end
		assert(not several or list[1] ~= list[2], said)
	end)
	it('are set and let go by tensor.threads', function()
		local said = run('export QUOLL_TEAM_NS=0', '', 'tensor.threads(2, {pin=true})\n' .. TASKS .. 'tensor.threads(2, {pin=false}) print "---"\n' .. TASKS)
		local before, after = said:match '^(.-)%-%-%-(.*)$'
		assert(#allowed(before) == 2 and before:find 'pinned%s+true', said)
		for _, task in ipairs(allowed(before)) do assert(task:find '^%d+$', said) end
		assert(#allowed(after) == 2 and after:find 'pinned%s+false', said)
		for _, task in ipairs(allowed(after)) do assert(task == all, said) end
	end)
	it('respect the processors that the process may use', function()
		local one = all:match '%d+$'
		local said = run('export QUOLL_TEAM_NS=0', '--threads 3 --pin', TASKS):gsub('exit', 'exit')
		assert(#allowed(said) == 3, said)
		local pipe = io.popen(('q=$(readlink -f "%s"); QUOLL_TEAM_NS=0 taskset -c %s "$q" --threads 2 --pin %s 2>&1'):format(program, one, file))
		said = pipe:read 'a'
		pipe:close()
		if not said:find 'taskset: not found' then
			assert(#allowed(said) == 2, said)
			for _, task in ipairs(allowed(said)) do assert(task == one, said) end
		end
	end)
end)

describe('threads that cannot be started', function()
	local product = 'tensor.seed(1) x = tensor.randn(300, 300) y = x:matmul(x) print("sum", y:sum():item(), tensor.threads())'
	local want = run('true', '--threads 1', product):match 'sum%s+(%S+)'
	-- AddressSanitizer reserves terabytes of address space.
	local limited = not run('ulimit -v 400000', '', 'print "starts"'):find 'starts' and 'the address space cannot be limited in this build'
	it('are a smaller team: little address space', function()
		if limited then return skip(limited) end
		local said = run('ulimit -v 150000', '--threads 64', product)
		assert(said:match 'sum%s+(%S+)' == want and said:find 'exit 0\n$', said)
		said = run('ulimit -v 400000', '', 'tensor.threads(200)\n' .. product .. '\nz = tensor.randn(800, 800):matmul(tensor.randn(800, 800))')
		assert(said:match 'sum%s+(%S+)' == want and said:find 'exit 0\n$', said)
	end)
	it('say so once', function()
		if limited then return skip(limited) end
		local said = run('ulimit -v 120000; export QUOLL_TEAM_NS=0', '', 'tensor.threads(900)\n' .. product .. '\nfor i = 1, 3 do y = x:matmul(x) end print(tensor.threads())')
		assert(select(2, said:gsub('threads: the system starts no more', '')) == 1, said)
		assert(said:match 'sum%s+(%S+)' == want and tonumber(said:match '(%d+)\nexit 0\n$') < 900, said)
	end)
	it('are a smaller team: few processes', function()
		if io.popen 'id -u':read 'a' ~= '0\n' or not os.execute 'command -v prlimit setpriv >/dev/null' then
			return skip 'only root can limit another user'
		end
		local uid = 54321
		local f <close> = io.open(file, 'w')
		f:write('tensor.threads(50)\n' .. product):close()
		os.execute('chmod 644 ' .. file .. '; chmod 755 $(dirname ' .. file .. ')')
		local pipe = io.popen(('q=$(readlink -f "%s"); QUOLL_TEAM_NS=0 setpriv --reuid %d --clear-groups prlimit --nproc=6 "$q" %s 2>&1; echo "exit $?"')
			:format(program, uid, file))
		local said = pipe:read 'a'
		pipe:close()
		if said:find 'ermission denied' then return skip 'another user cannot read the program' end
		assert(said:match 'sum%s+(%S+)' == want and said:find 'exit 0\n$' and said:find 'threads: the system starts no more', said)
	end)
end)

tensor.threads(0)                --> error: threads: n: wanted 1 to 1024, got 0
tensor.threads(2, {pins=true})   --> error: unknown option 'pins'
