-- SPDX-License-Identifier: MIT
-- Sweeps, as a user runs them: scripts in a folder of their own, run as processes.
local scratch = dofile 'tests/tools/scratch.lua'
local folder, write, read_file = scratch.folder()
local function read(name) return read_file(name) or '' end
local function shell(command) return scratch.shell(folder, command) end
local function run(arguments) return shell('$exe ' .. arguments) end

local function lines(text) return select(2, text:gsub('\n', '')) end

-- A study that notes each run of a trial in a file.
local NOTE = "local function note(c) local f = io.open('ran.txt', 'a') f:write(c.x, '\\n') f:close() end\n"

local function study(options, body)
	return NOTE .. ('local r = sweep.run{name="s", %s run=function(c, log) note(c) %s end}\nprint(r)\n'):format(options,
		body or 'return {y=c.x * c.x}')
end

local function fresh(text)
	os.execute(('rm -f %s/*'):format(folder))
	write('s.lua', text)
end

it('runs each combination once, and nothing the second time', function()
	fresh(study 'grid={x={1,2,3}, b={true,"t"}},')
	local text, code = run 's.lua'
	assert(code == 0 and text:find '%[6/6%] done    b=t x=3', text)
	assert(text:find '\nt     3  9', text)
	assert(lines(read 'ran.txt') == 6)
	local again = run 's.lua'
	assert(lines(read 'ran.txt') == 6 and again:find 's: 6 of 6 trials were done before', again)
	assert(again:match 'x.*' and text:find(again:match '\n( *b .*)', 1, true), 'the same table')
end)

it('shows no escape sequence where there is no terminal', function()
	fresh(study 'grid={x={1}},')
	assert(not run 's.lua':find '\27')
end)

it('runs only what is new when the grid grows', function()
	fresh(study 'grid={x={1,3}},')
	run 's.lua'
	write('s.lua', study 'grid={x={1,3}},')
	run 's.lua x=1,2,3,4'
	assert(read 'ran.txt' == '1\n3\n2\n4\n', read 'ran.txt')
	local text = run [[-e "print(table.concat(sweep.load('s'):column 'x', ' '))"]]
	assert(text == '1 2 3 4\n', text)
end)

it('knows a trial by the script and the data', function()
	fresh(study 'grid={x={1}}, data="d.txt",')
	write('d.txt', 'one')
	run 's.lua'
	run 's.lua'
	assert(lines(read 'ran.txt') == 1)
	write('d.txt', 'two')
	run 's.lua'
	assert(lines(read 'ran.txt') == 2)
	write('s.lua', study('grid={x={1}}, data="d.txt",', 'return {y=7}'))
	assert(run 's.lua':find '1  7' and lines(read 'ran.txt') == 3)
	local text = run [[-e "print(#sweep.load 's', #sweep.load('s', {all=true}))"]]
	assert(text == '1\t3\n', text)
	assert(run [[-e "sweep.run{name='n', data='absent.txt', jobs=0, run=print}"]]:find 'data: absent.txt: No such file')
end)

it('loses one trial to a crash, and says why', function()
	fresh(study('grid={x={1,2,3}},', [[if c.x == 2 then print 'deep' io.stderr:write 'trouble\n'
		os.execute('kill -ABRT $PPID') end return {y=c.x}]]))
	local text, code = run 'sweep s.lua'
	assert(code == 1 and text:find '%[2/3%] FAILED  x=2: signal 6 %(aborted%)\n    | deep\n    | trouble\n', text)
	assert(text:find '2 of 3 trials are done, 1 failed, 0 are missing', text)
	write('ran.txt', '')
	run 's.lua'
	assert(read 'ran.txt' == '2\n', 'only the failed one again')
end)

it('shows the traceback of an error, 20 lines of output at most', function()
	fresh(study('grid={x={1}},', 'for i = 1, 50 do print("line " .. i) end error "no luck"'))
	local text = run 's.lua'
	assert(text:find 'FAILED  x=1: s.lua:2: no luck\n', text)
	assert(select(2, text:gsub('\n    | ', '')) == 20 and not text:find 'line 20\n' and text:find 'line 50\n', text)
	assert(text:find '| stack traceback:', text)
end)

it('ends a trial that takes too long, and tells where it was', function()
	fresh(study('grid={x={1,2}}, timeout=2,', 'while c.x == 1 do end return {y=1}'))
	local text = run 's.lua'
	assert(text:find 'FAILED  x=1: more than 2 s %(timeout%)\n    | quoll: s.lua:2: more than 2 s %(timeout%)\n', text)
	assert(text:find 'done    x=2' and not text:find 'interrupted', text)
	assert(select(2, text:gsub('stack traceback:', '')) == 1, text)
end)

it('ends a trial that ignores the interrupt', function()
	fresh(study('grid={x={1}}, timeout=0.2,', [[os.execute 'trap "" INT; sleep 60' return {y=1}]]))
	local start = hw.clock()
	assert(run 's.lua':find 'more than 0.2 s' and hw.clock() - start < 30)
end)

it('ends a trial that takes too much memory', function()
	fresh(study('grid={x={1,2}}, memory=200,', [[local keep = {}
		while c.x == 1 do keep[#keep+1] = tensor.ones(1 << 20) end return {y=1}]]))
	local text = run 's.lua'
	assert(text:find 'FAILED  x=1: .*memory' and text:find 'done    x=2' and not text:find 'interrupted', text)
	fresh(study('grid={x={1}}, memory="60M",', [[local keep = {}
		for i = 1, 1e9 do keep[i] = ('%d'):format(i):rep(1000) end return {y=1}]]))
	text = run 's.lua'
	assert(text:find 'FAILED  x=1: .*memory' and not text:find 'interrupted', text)
end)

it('tries again as often as told', function()
	fresh(study('grid={x={1}}, retry=2,', [[local n = select(2, io.open 'ran.txt':read 'a':gsub('\n', ''))
		assert(n == 3, 'attempt ' .. n) return {y=n}]]))
	local text, code = run 'sweep s.lua'
	assert(code == 0 and text:find 'again   x=1: .*attempt 1.*again   x=1: .*attempt 2.*done    x=1', text)
	fresh(study('grid={x={1}},', 'error "never"'))
	assert(select(2, run 'sweep s.lua --retry 1') == 1 and lines(read 'ran.txt') == 2)
end)

it('stops at the first failure when told', function()
	fresh(study('grid={x={1,2,3}},', 'assert(c.x ~= 2) return {y=1}'))
	local text, code = run 's.lua --fail-fast'
	assert(code == 1 and text:find 'a trial failed %(fail_fast%)' and read 'ran.txt' == '1\n2\n', text)
	text, code = run 'sweep s.lua --fail-fast --keep-going'
	assert(code == 1 and read 'ran.txt' == '1\n2\n2\n3\n', text)
end)

it('runs several at a time and shares the threads', function()
	local function overlaps(jobs)
		fresh(study('grid={x={1,2,3,4}},', [[local start = hw.clock() os.execute 'sleep 0.3'
			return {start=start, stop=hw.clock(), threads=tensor.threads()}]]))
		local text = run('s.lua --jobs ' .. jobs)
		local count, r = 0, sweep.load(folder .. '/s.db')
		assert(#r == 4 and r[1].threads == math.max(1, tensor.threads() // jobs), text)
		for _, a in ipairs(r) do
			for _, b in ipairs(r) do count = count + (a.x < b.x and a.start < b.stop and b.start < a.stop and 1 or 0) end
		end
		return count
	end
	assert(overlaps(1) == 0 and overlaps(4) > 1)
	fresh(study('grid={x={1}}, memory=300,', 'return {threads=tensor.threads(), memory=os.getenv "QUOLL_MEMORY"}'))
	local text = run '--threads 2 --memory=500 s.lua --jobs 2'
	assert(text:find 'memory=300 threads=1\n', text)
	text = run '--threads=2 sweep s.lua --force'
	assert(text:find 'memory=300 threads=2\n', text)
end)

it('stops when the script changes while it runs, and loses nothing', function()
	fresh [[
local factor = 1
sweep.run{name = 's', grid = {x = {1, 2, 3, 4}}, run = function(c)
	if c.x == 2 then
		local f = io.open(arg[0])
		local text = f:read 'a'
		f:close()
		f = io.open(arg[0], 'w')
		f:write((text:gsub('factor = 1', 'factor = 2')))
		f:close()
	end
	return {y = factor * c.x}
end}]]
	local text, code = run 's.lua'
	local _, failed = text:gsub('FAILED', '')
	assert(code == 1 and failed == 0 and text:find('run: s: the script or its data changed while it ran', 1, true), text)
	assert(text:find('2 of 4 trials are done, 0 failed', 1, true), text)
end)
it('knows a trial by its function, what that uses, and its parameters', function()
	local function script(o)
		write('s.lua', ([[
%s
local k = %d
%s
local function helper(x) return x * k end
local model = dofile 'model.lua'
local r = sweep.run{name = 's', grid = {x = {%s}}, run = function(c)
	local f = io.open('ran.txt', 'a') f:write(c.x, '\n') f:close() %s
	return {y = helper(c.x) + model.a}
end}
print(r:sort('y')) %s]]):format(o.above or '', o.k or 2, o.unused or '', o.grid or '1, 2', o.inside or '', o.below or ''))
	end
	local function ran()
		os.remove(folder .. '/ran.txt')
		local text, code = run 's.lua'
		assert(code == 0, text)
		return lines(read 'ran.txt'), text
	end
	fresh ''
	write('model.lua', 'return {a = 1}')
	script {}
	assert(ran() == 2 and ran() == 0)
	script {below = "-- a title\nprint 'more'"}
	assert(ran() == 0)
	script {above = '-- a comment\n\n', inside = '-- here, too', unused = 'local other = {1, 2}'}
	assert(ran() == 0)
	script {grid = '1, 2, 3'}
	assert(ran() == 1)
	write('model.lua', '-- as before\nreturn {a = 1}')
	assert(ran() == 0)
	script {k = 3}
	local n, text = ran()
	assert(n == 2, text)
	script {}
	assert(ran() == 0) -- what was done with k = 2 is still there
	write('model.lua', 'return {a = 2}')
	n, text = ran()
	assert(n == 2 and text:find('these values are not: model; 3 finished trials are left out', 1, true), text)
	script {inside = 'c.x = c.x + 0'}
	assert(ran() == 2)
	script {above = 'local file = io.open(arg[0])', inside = 'local _ = file'}
	assert(ran() == 2 and ran() == 0)
	script {above = 'local file = io.open(arg[0])', inside = 'local _ = file', below = '-- below'}
	assert(ran() == 0) -- an open file has no contents to compare: the text above counts
	script {above = 'local file = io.open(arg[0]) -- above', inside = 'local _ = file'}
	assert(ran() == 2)
	assert(run 's.lua --dry-run':find 's: 0 of 2 trials would run')
end)
it('counts the trials of a file of version 1 whose script has the same text', function()
	fresh(study 'grid={x={1,2,3}},')
	run 's.lua'
	os.remove(folder .. '/ran.txt')
	-- what an earlier version wrote: ids by the text, no table code
	local internal = debug.getregistry()['quoll.internal']
	local config = internal.import 'interp/sweep/config'
	local db = internal.sqlite_open(folder .. '/s.db', 'write')
	local text = db:rows 'SELECT text FROM code'[1].text
	local script = internal.sha256(read 's.lua')
	assert(text == internal.sha256(table.concat({script, script, internal.sha256 ''}, '\0')))
	for _, row in ipairs(db:rows 'SELECT key, config FROM trial') do
		db:run('UPDATE trial SET id = ?, code = ? WHERE key = ?', config.id(text, row.config), text, row.key)
	end
	db:run('UPDATE study SET code = ?', text)
	db:run 'DROP TABLE code'
	db:run 'PRAGMA user_version = 1'
	db:close()
	assert(#sweep.load(folder .. '/s.db') == 3)
	assert(run 's.lua --dry-run':find 's: 0 of 3 trials would run')
	local again, code = run 's.lua'
	assert(code == 0 and again:find 's: 3 of 3 trials were done before' and read 'ran.txt' == '', again)
	db = internal.sqlite_open(folder .. '/s.db', 'write')
	assert(db:rows 'PRAGMA user_version'[1].user_version == 2 and db:rows 'SELECT count(*) AS n FROM trial'[1].n == 3)
	db:close()
	write('s.lua', read 's.lua' .. '\n-- another text, the same function')
	assert(run 's.lua':find '3 of 3 trials were done before')
end)
it('ends with 1 when trials failed, as a script and by quoll sweep', function()
	fresh(study('grid={x={1,2}},', 'if c.x == 2 then error "no" end return {y=1}') .. "\nprint 'the rest'")
	local text, code = run 's.lua'
	assert(code == 1 and text:find 'the rest', text)
	assert(select(2, run 'sweep s.lua') == 1)
	write('s.lua', read 's.lua' .. '\nos.exit(0)')
	assert(select(2, run 's.lua') == 0)
end)
it('lists all trials of a dry run, whole', function()
	fresh(study 'grid={x={1,2,3,4,5,6,7,8,9,10}, y={1,2,3,4,5,6,7,8,9,10}, z={("long "):rep(30)}},')
	local text, code = run 's.lua --dry-run'
	local _, lines = text:gsub('\nnew    x=', '')
	assert(code == 0 and lines == 100 and not text:find '…' and text:find 's: 100 of 100 trials would run', text)
end)
it('takes zip, list, random and seeds', function()
	local function trials(options)
		fresh(study(options))
		local text, code = run 's.lua --dry-run'
		assert(code == 0, text)
		local found = {}
		for line in text:gmatch '\nnew +([^\n]+)' do found[#found + 1] = line end
		assert(not io.open(folder .. '/s.db') and read 'ran.txt' == '', 'a dry run does nothing')
		return table.concat(found, ', ')
	end
	print(trials 'zip={x={1,2}, y={"a","b"}},')                      --> x=1 y=a, x=2 y=b
	print(trials 'list={{x=1}, {x=2, y=3}, {x=1}},')                 --> x=1, x=2 y=3
	print(trials 'list={{x=1}, {x=2}}, grid={g={1,2}}, seeds={7},')  --> g=1 x=1 seed=7, g=2 x=1 seed=7, ...
	print(trials 'grid={x={1}}, seeds=2,')                           --> x=1 seed=1, x=1 seed=2
	local draws = trials 'grid={x={min=1, max=1000}, lr={min=1e-4, max=1e-1, log=true}}, random=5,'
	print(select(2, draws:gsub('x=%d+', '')), draws == trials 'grid={x={min=1, max=1000}, lr={min=1e-4, max=1e-1, log=true}}, random=5,')  --> 5 true
	print(trials 'grid={x={1,2}}, random=9,':gsub('x=2, x=1', 'x=1, x=2'))  --> x=1, x=2 ...
end)

it('draws from ranges as told', function()
	fresh [[r = sweep.run{name='s', jobs=0, log=false, random=400, grid={i={min=-2, max=2000}, u={min=0.0, max=1.0},
		l={min=1e-4, max=1.0, log=true}}, run=function(c) return {t=math.type(c.i)} end}
	local function count(column, test) return #r:where{[column]=test} end
	print(#r, r[1].t, count('i', function(v) return v >= -2 and v <= 2000 end), count('u', function(v) return v < 0.5 end),
		count('l', function(v) return v < 1e-2 end))]]
	local n, kind, within, half, tenths = run 's.lua':match '(%d+)%s+(%a+)%s+(%d+)%s+(%d+)%s+(%d+)'
	assert(n == '400' and kind == 'integer' and within == '400')
	assert(math.abs(half - 200) < 60 and math.abs(tenths - 200) < 60, half .. ' ' .. tenths)
end)

it('cuts the trials into shards with results files of their own', function()
	fresh(study 'grid={x={1,2,3,4,5}},')
	run 's.lua --shard 2/2'
	assert(read 'ran.txt' == '2\n4\n')
	run 's.lua --shard=1/2'
	assert(read 'ran.txt' == '2\n4\n1\n3\n5\n')
	assert(io.open(folder .. '/s.1of2.db') and io.open(folder .. '/s.2of2.db') and not io.open(folder .. '/s.db'))
end)

it('takes options and values from the command line', function()
	fresh(study 'grid={x={1,2,3}, w={"a"}}, db="own.db",')
	run 's.lua x=2 w=int8/1,true --db other.db'
	local text = run [[-e "for _, r in ipairs(sweep.load 'other.db') do print(r.x, r.w, math.type(r.x)) end"]]
	assert(text == '2\tint8/1\tinteger\n2\ttrue\tinteger\n', text)
	assert(run 's.lua z=1':find 'z=: wanted one of the parameters w x')
	assert(run 'sweep s.lua --job 2':find "%-%-job: no such option; did you mean 'jobs'")
	assert(run 's.lua --jobs x':find "%-%-jobs: wanted a whole number, got 'x'")
	assert(run 's.lua --jobs':find '%-%-jobs: wanted a value, got none')
	assert(run 's.lua --shard 3/2':find "shard: wanted i/n")
	assert(run 's.lua --timeout 5x':find "timeout: wanted seconds")
	assert(run 's.lua --memory 0':find "memory: wanted MiB")
	lines(read 'ran.txt')
	run 's.lua x=2 w=a --db other.db'
	local before = lines(read 'ran.txt')
	run 's.lua x=2 w=a --db other.db --force'
	assert(lines(read 'ran.txt') == before + 1)
end)

it('reports why a trial cannot be started, before it counts as failed', function()
	local name = ('n'):rep(140000) -- more than Linux takes for one variable of the environment
	write('s.lua', ("sweep.run{name='%s', db='long.db', grid={x={1,2}}, run=function(c) return {y=1} end}"):format(name))
	local text, code = run 's.lua'
	assert(code == 1 and text:find 'sweep: a trial cannot be started: Argument list too long\n', text:sub(-300))
	assert(not text:find 'FAILED', text:sub(-300))
end)

it('starts the random numbers of each trial from its seed', function()
	fresh(study('grid={x={1,2}}, seeds=2,', 'return {y=tensor.rand(1):item(), z=math.random()}'))
	run 's.lua'
	write('check.lua', [[local r = sweep.load 's'
		print(r[1].y == r[3].y, r[1].z == r[3].z, r[1].y ~= r[2].y, r[1].z ~= r[2].z, r[2].y == r[4].y)]])
	assert(run 'check.lua' == 'true\ttrue\ttrue\ttrue\ttrue\n')
end)

it('keeps every kind of result, what was logged, and the circumstances', function()
	fresh(study('grid={x={1}, big={1 << 53}, list={{1, 2.0, {a="b"}}}},', [[log('loss', 0.5) log('loss', 0/0, 2)
		assert(c.big == 1 << 53 and math.type(c.list[2]) == 'float' and c.list[3].a == 'b')
		return {i=math.mininteger, f=0.1, n=0/0, inf=-1/0, t='<b>', b=false, x=1, one=tensor{2.5}}]]))
	run 's.lua'
	write('check.lua', [[local r = sweep.load('s', {env=true})[1]
		print(r.i == math.mininteger, r.f == 0.1, r.n ~= r.n, r.inf == -math.huge, r.t, r.b, r.one, r.list)
		print(#r.processor > 0, r.threads, r.jobs, r.level, r.seconds > 0, #r.started)
		for _, s in ipairs(sweep.steps 's') do print(s.name, s.step, s.value) end]])
	local text = run 'check.lua':gsub('\t', ' ')
	assert(text:find 'true true true true <b> false 2.5 %[1,2.0,{"a":"b"}%]\n', text)
	assert(text:find('true ' .. tensor.threads() .. ' 1 %w+ true 20\nloss nil 0.5\nloss 2 %-?nan\n'), text)
end)

it('takes a row of a report, a report of one row, or a number', function()
	fresh(study('grid={x={1,2,3}},', [[local r = report{columns={'z', 'a', 'x'}, {1, 2, c.x}}
		return c.x == 1 and r or c.x == 2 and r[1] or 5]]))
	local text = run 's.lua'
	assert(text:find 'x  z  a  value\n.*\n1  1  2      %-\n2  1  2      %-\n3  %-  %-      5\n', text)
	fresh(study('grid={x={1,2}},', 'if c.x == 1 then return {x=7} end'))
	text = run 's.lua'
	assert(text:find 'x  x_result\n.*\n1         7' and text:find 'x=2: .*wanted results by name, .* got nothing', text)
end)

it('refuses parameters that cannot be written down, by name', function()
	local function refused(value)
		fresh(('local t = {} t.t = t\nsweep.run{name="s", grid={x={1, %s}}, run=print}'):format(value))
		local text, code = run 's.lua'
		assert(code == 1 and not io.open(folder .. '/s.db'), value)
		return text:match 'sweep: [^\n]*'
	end
	print(refused 'print')                    --> sweep: config.x: wanted numbers, text, booleans or tables of them, got a function
	print(refused 'tensor{1}')                --> sweep: config.x: wanted numbers, text, booleans or tables of them, got a tensor
	print(refused '{a={b=tensor{1}}}')        --> sweep: config.x.a.b: wanted numbers, text, booleans or tables of them, got a tensor
	print(refused 'quant.spec "int8"')        --> sweep: config.x: ... got a userdata; a spec can be given as text
	print(refused '0/0')                      --> sweep: config.x: wanted a finite number, got ...nan
	print(refused '{1/0}')                    --> sweep: config.x[1]: wanted a finite number, got inf
	print(refused 't')                        --> sweep: config.x.t: the table contains itself
	print(refused '{1, nil, 3}')              --> ...
	print(refused '{1, a=2}')                 --> sweep: config.x: wanted names or a list, got both ('a' and items)
	print(refused '{[1.5]=1}')                --> sweep: config.x: wanted names or a list without holes, got the key 1.5
	print(refused '"\\255"')                  --> sweep: config.x: wanted text in UTF-8, got "\xff"
	print(refused 'coroutine.create(print)')  --> sweep: config.x: ... got a thread
	print(refused 'report{{a=1}}')            --> sweep: config.x: wanted a plain table, got quoll.report
end)

it('refuses options that make no sense', function()
	local function refused(options)
		fresh('sweep.run{' .. options .. '}')
		return (run 's.lua':match '^[^\n]*':gsub('^quoll: s.lua:1: ', ''))
	end
	print(refused 'name="s"')                                     --> run: run: wanted a function, ...
	print(refused 'name="s", run=print, gird={}')                 --> run: unknown option 'gird'; did you mean 'grid'?; ...
	print(refused 'name="s", run=print, grid={x={}}')             --> sweep: grid.x: wanted a list of values, got an empty one
	print(refused 'name="s", run=print, grid={x=3}')              --> sweep: grid.x: wanted a list of values, got 3
	print(refused 'name="s", run=print, zip={x={1}, y={1,2}}')    --> sweep: zip: wanted lists of one length, got 1 items of x and 2 of y
	print(refused 'name="s", run=print, grid={x={1}}, zip={x={1}}')  --> sweep: grid: 'x' is given twice
	print(refused 'name="s", run=print, jobs=-1')                 --> run: jobs: wanted 0 or more, got -1
	print(refused 'name="s", run=print, seeds=0')                 --> sweep: seeds: wanted a number > 0 or a list, got 0
	print(refused 'name="s", run=print, random=3')                --> sweep: random: wanted a grid to draw from, got none
	print(refused 'name="s", run=print, random=3, grid={x={min=2, max=1}}')  --> sweep: grid.x: wanted {min=, max=} with min <= max, got min 2 and max 1
	print(refused 'name="s", run=print, random=3, grid={x={min=0, max=1, log=true}}')  --> sweep: grid.x: ... min > 0, got min 0 and max 1
end)

it('says so where there is no script to run again', function()
	fresh ''
	local code = [[sweep.run{name='s', grid={x={1}}, run=function(c) return {y=1} end}]]
	assert(run('-e "' .. code .. '"'):find 'there is none here %(prompt, %-e or stdin%); jobs=0')
	assert(shell(('echo "%s" | $exe -'):format(code)):find 'there is none here')
end)

it('is no trial of the outer sweep when a trial starts a sweep', function()
	fresh(study('grid={x={1}},', [[local exe = io.open('exe.txt'):read 'l'
		local p = io.popen(exe .. ' inner.lua 2>&1') local text = p:read 'a' p:close() return {n=#text:gsub('[^5]', '')}]]))
	write('inner.lua', 'print(sweep.run{name="inner", grid={x={5}}, run=function(c) return {y=555} end}.y)')
	local text = shell 'readlink /proc/$PPID/exe > exe.txt; $exe s.lua'
	assert(text:find 'done    x=1 .*n=%d' and run [[-e "print(sweep.load 'inner'.y)"]] == '555\n', text)
end)

it('waits for its own sweep.run in a script with two', function()
	fresh [[a = sweep.run{name='a', grid={x={1,2}}, db='ab.db', run=function(c) return {y=c.x} end}
	b = sweep.run{name='b', grid={x={1,2}}, db='ab.db', run=function(c) return {y=c.x + a:best('y', 'max').y} end}
	print(table.concat(b:column 'y', ' '))]]
	assert(run 's.lua':find '\n3 4\n$')
	assert(run [[-e "sweep.load 'ab.db'"]]:find 'study: wanted one of a, b of ab.db, got none')
	assert(run [[-e "print(#sweep.load('ab.db', {study='b'}))"]] == '2\n')
end)

it('gives a second sweep the results of the first, each in the file of its own name', function()
	fresh(NOTE .. [[
local first = sweep.run{name='a', grid={x={1,2}}, run=function(c) note(c) return {y=10 * c.x} end}
local second = sweep.run{name='b', list={{x=5}}, run=function(c) note(c) return {sum=first[1].y + first[2].y} end}
print(#first, second[1].sum)
]])
	local text, code = run 's.lua --shard 1/1'
	assert(code == 0 and text:find '\n2\t30', text)
	text, code = run 's.lua'
	assert(code == 0 and text:find '\n2\t30', text)
	assert(lines(read 'ran.txt') == 6 and #read 'a.db' > 0 and #read 'b.db' > 0 and #read 'b.1of1.db' > 0)
end)

it('says so when the script does not come to the sweep', function()
	fresh [[if os.getenv 'QUOLL_SWEEP_TRIAL' then os.exit(0) end
	sweep.run{name='s', grid={x={1}}, run=function(c) return {y=1} end}]]
	assert(run 's.lua':find 'FAILED  x=1: the script ended without coming to this sweep')
end)

it('shares the work with another process on the same file', function()
	-- the first trials wait until both processes are there: one of them may start late on a busy machine
	fresh([[if not os.getenv 'QUOLL_SWEEP_TRIAL' then io.open('started.' .. io.open '/proc/self/stat':read 'n', 'w'):close() end
]] .. study('grid={x=(function() local t = {} for i = 1, 30 do t[i] = i end return t end)()},',
		[[os.execute 'for i in $(seq 200); do [ $(ls started.* | wc -l) -ge 2 ] && break; sleep 0.1; done; sleep 0.05' return {y=c.x}]]))
	shell '$exe s.lua >one.txt 2>&1 & $exe s.lua >two.txt 2>&1; wait'
	local one, two = read 'one.txt', read 'two.txt'
	assert(lines(read 'ran.txt') == 30, read 'ran.txt')
	local a, b = select(2, one:gsub('done    ', '')), select(2, two:gsub('done    ', ''))
	assert(a + b == 30 and a > 0 and b > 0, a .. ' and ' .. b)
	assert(one:match '\n *x  .*' == two:match '\n *x  .*', 'both have all results')
end)

it('goes on where it was after a Ctrl-C, and says it was interrupted', function()
	fresh(study('grid={x={1,2,3,4,5,6,7,8}},', [[os.execute 'sleep 0.5' return {y=c.x}]]))
	local text, code = shell 'timeout --preserve-status -s INT 2 $exe s.lua'
	assert(code == 130 and text:find 'interrupted' and text:find 's: stopped with %d of 8 trials done; the same command goes on', text)
	local running = run [[-e "print(sweep.load('s.db'))"]]
	assert(running:find '%d of 8 trials are done, 0 failed', running)
	run 's.lua'
	assert(run [[-e "print(#sweep.load 's')"]] == '8\n' and lines(read 'ran.txt') <= 9)
end)

it('refuses files that are no results files', function()
	fresh(study 'grid={x={1}},')
	write('s.db', 'no database at all, only some text that is long enough to be looked at as the header of one: 0123456789')
	assert(run 's.lua':find 's.db: file is not a database')
	assert(read 's.db':find 'no database', 'it is left alone')
	run 's.lua --db v.db'
	if shell 'command -v sqlite3' ~= '' then
		shell 'sqlite3 v.db "PRAGMA user_version = 9"; sqlite3 o.db "CREATE TABLE t(a)"'
		assert(run 's.lua --db v.db':find 'v.db: the file is of version 9, made by a newer Quoll; this one reads 2')
		assert(run 's.lua --db o.db':find 'o.db: wanted a results file of sweeps, got another SQLite file')
	end
	assert(run 's.lua --db no/such/folder.db':find 'no/such/folder.db: unable to open database file')
	assert(run [[-e "sweep.load 'absent'"]]:find "there is no results file 'absent' or 'absent.db'")
end)

it('names the package when SQLite is absent', function()
	fresh(study 'grid={x={1}},')
	local text, code = shell 'QUOLL_SQLITE=/no/such/library.so $exe s.lua'
	assert(code == 1 and text:find 'no SQLite: no sweeps; install it with: apt%-get install %-%-no%-install%-recommends libsqlite3%-0', text)
	assert(shell 'QUOLL_SQLITE=libm.so.6 $exe s.lua':find 'lacks functions of SQLite')
	assert(shell 'QUOLL_SQLITE=/no/such/library.so $exe doctor':find 'SQLite +problem')
end)
