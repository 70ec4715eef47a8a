-- SPDX-License-Identifier: MIT
-- hw.recommend and hw.hints: what they say follows from what was measured, and is measured once.
local measured = dofile 'tests/tools/measured.lua'
local run, cache, lines_of_cache = measured.run, measured.file, measured.lines

it('recommends the fastest of what it measured, and says why', function()
	local output = run [[
		tensor.seed(5)
		local before = tensor.rand(1):item()
		tensor.seed(5)
		local r, all = hw.recommend{op='matmul', m=8, n=64, k=64}
		assert(tensor.rand(1):item() == before, 'the random numbers are the user\'s')
		assert(#all == 8 and all[1].spec == 'float32' and all[1].speedup == 1)
		for i = 1, #all do
			assert(all[i].refused ~= '' or r.ms <= 1.03 * all[i].ms, all[i].spec)
			assert((all[i].refused ~= '') == (all[i].sqnr < 20))
		end
		assert(r.why:find(r.spec == 'float32' and 'no other way' or 'times as fast as float32') and r.why:find(r.kernel, 1, true), r.why)
		r, all = hw.recommend{op='matmul', m=8, n=64, k=64, bytes=64 * 64}
		assert(r.saving > 0.5 and all[1].refused:find 'bytes are more than 4096')
		local none, why = hw.recommend{op='matmul', m=8, n=64, k=64, maxms=1e-9}
		assert(none == nil and why:find 'no way keeps' and why:find 'float32 %(float%): .* ms are more than')
		r = hw.recommend{op='conv2d', batch=1, channels=4, height=8, width=8, outputs=4, kernel=3, minsqnr=1}
		assert(r.ms > 0)
		print 'done']]
	assert(output == 'done\n', output)
	assert(lines_of_cache() == 16)
end)
it('measures once', function()
	measured.quiet()
	run "print(hw.recommend{op='matmul', m=8, n=64, k=64})"
	assert(lines_of_cache() == 16)
	-- what is stored decides
	local file = io.open(cache, 'rb')
	local text = file:read 'a'
	file:close()
	file = io.open(cache, 'wb')
	file:write((text:gsub('(m=8 n=64 k=64|weight_only int8/1\t)[^\t]+', '%10.0001')), 'torn|line\t1')
	file:close()
	local output = run "r = hw.recommend{op='matmul', m=8, n=64, k=64} print(r.spec, r.mode)"
	assert(output == 'int8/1\tweight_only\n', output)
end)
it('says when float32 is the fastest', function()
	measured.edit('(m=8 n=64 k=64|float float32\t)[^\t]+', '%10.000001')
	local output = run "r = hw.recommend{op='matmul', m=8, n=64, k=64} print(r.spec, r.why)"
	assert(output:find '^float32\tfloat32 takes 1e%-06 ms on %S+; no other way that keeps what was asked for is faster\n$', output)
	measured.edit('(m=8 n=64 k=64|float float32\t)[^\t]+', '%10.5')
end)
it('tries one scale for all weights', function()
	measured.edit('(m=8 n=64 k=64|static int8\t)[^\t]+', '%10.00001')
	local output = run "r = hw.recommend{op='matmul', m=8, n=64, k=64} print(r.spec, r.mode)"
	assert(output == 'int8\tstatic\n', output)
end)
it('measures again, three times at most, what scattered', function()
	local function count()
		local n = 0
		for line in io.lines(cache) do n = n + (line:find('m=8 n=64 k=64|static int8\t', 1, true) and 1 or 0) end
		return n
	end
	measured.edit('torn|line\t1', '')
	for n = 2, 4 do
		measured.edit('(m=8 n=64 k=64|static int8\t)([^\t]+)([^\n]*\t)[^\t\n]*\n', '%1%2%3%2\n') -- a spread as large as the median
		run "hw.recommend{op='matmul', m=8, n=64, k=64}"
		assert(count() == math.min(n, 3), count())
	end
end)
it('hints with reasons', function()
	local output = run [[
		local h = hw.hints()
		local by = {}
		for i = 1, #h do by[h[i].hint] = h[i] assert(#h[i].why > 5) end
		assert(by.dtypes.value:find 'float32' and by.schemes.value:find 'log' and tonumber(by.batch.value) >= 1)
		assert(by.inplace.value == 'true' or by.inplace.value == 'false')
		assert(by.block.value == '16' or by.block.value == '32' or by.block.value == '64' or by.block.value == '128')
		assert(by.tile.value:find '^%d+x%d+$', by.tile.value)
		assert(#h.dtypes == 8 and #h.accuracy == 7 and #h.schemes == 3 and table.concat(h.dtypes, ' ') == by.dtypes.value)
		assert(h.accuracy[1]:find 'int8' and h.accuracy[7]:find 'int4' and by.accuracy.why:find ' dB, ' and by.accuracy.why:find('int8(static)', 1, true))
		assert(math.type(h.batch) == 'integer' and math.type(h.block) == 'integer' and type(h.inplace) == 'boolean')
		assert(not pcall(function() return h.dtype end))
		local start = hw.clock()
		hw.hints()
		assert(hw.clock() - start < 0.5)
		print 'done']]
	assert(output == 'done\n', output)
end)
it('bad input', function()
	local function refused(text, o)
		local good, message = pcall(hw.recommend, o)
		assert(not good and message:find(text, 1, true), message)
	end
	refused("recommend: op: wanted 'matmul' or 'conv2d', got 'matmull'; did you mean 'matmul'?", {op='matmull'})
	refused('recommend: k: wanted an integer from 1 to 1048576 for matmul, got nil', {op='matmul', m=1, n=1})
	refused("recommend: unknown option 'mm'", {op='matmul', mm=1})
end)
measured.remove()

it('measures again what was measured on a busy machine', function()
	local folder = os.tmpname()
	os.execute(('rm %s && mkdir -p %s'):format(folder, folder))
	local code = "hw.recommend{op='matmul', m=1, n=32, k=32}"
	local function run()
		local pipe = io.popen(('XDG_CACHE_HOME=%s "/proc/$PPID/exe" -e "%s" 2>&1'):format(folder, code))
		local text = pipe:read 'a'
		pipe:close()
		local n = 0
		local handle = io.open(folder .. '/quoll/measured.tsv')
		for _ in handle and handle:lines() or function() end do n = n + 1 end
		if handle then handle:close() end
		return n, text
	end
	local first, text = run()
	assert(first > 0, text)
	local handle = io.open(folder .. '/quoll/measured.tsv')
	local quiet = handle:read 'a':gsub('\t[^\t\n]*\t[^\t\n]*\n', '\t0\t0\n')
	handle:close()
	local function write(contents)
		handle = io.open(folder .. '/quoll/measured.tsv', 'w')
		handle:write(contents)
		handle:close()
	end
	write(quiet)
	assert(run() == first)
	write((quiet:gsub('\t0\t([^\t\n]*)\n', '\t1e6\t%1\n')))
	assert(run() == 2 * first)
	os.execute('rm -r ' .. folder)
end)
