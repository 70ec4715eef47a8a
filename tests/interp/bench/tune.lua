-- SPDX-License-Identifier: MIT
-- hw.tune: what it says follows from what was measured, within the time, once; levels and threads stay as they are set.
local measured = dofile 'tests/tools/measured.lua'
local run, cache, lines_of_cache = measured.run, measured.file, measured.lines

local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end

it('stops by time, and goes on where it stopped', function()
	local output = run [[
		local w = {op='matmul', m=8, n=64, k=64}
		local r, all = hw.tune(w, {time=0})
		assert(#all == 1 and r.spec == 'float32' and r.why:find 'ways were not measured, the time was up', r.why)
		local level, threads = hw.features().level, tensor.threads()
		tensor.seed(5)
		local before = tensor.rand(1):item()
		tensor.seed(5)
		r, all = hw.tune(w, {runs=3})
		assert(tensor.rand(1):item() == before, 'the random numbers are the user\'s')
		assert(#all > 6 and not r.why:find 'not measured')
		assert(hw.features().level == level and tensor.threads() == threads)
		local now = math.huge
		for i = 1, #all do
			assert(all[i].refused ~= '' or r.ms <= all[i].ms / 0.95, all[i].spec)
			assert((all[i].refused ~= '') == (all[i].sqnr < 20))
			assert(all[i].threads <= threads)
		end
		local start = hw.clock()
		local again = hw.tune(w, {time=0})
		assert(hw.clock() - start < 0.5 and again.ms == r.ms and again.spec == r.spec and again.threads == r.threads)
		print(#all)]]
	assert(tonumber(output) == lines_of_cache(), output)
end)
it('another setting is named only where it wins enough', function()
	measured.quiet()
	local file = io.open(cache, 'rb')
	local text = file:read 'a'
	file:close()
	local first, level, threads = text:match '^([^|\n]*|([^|]*)|(%d+)|)'
	-- one thread of the same level, int8 static: a little faster than all, and much
	local function answer(ms, gain)
		file = io.open(cache, 'wb')
		for line in text:gmatch '[^\n]+' do
			local key, _, rest = line:match '^([^\t]+)\t([^\t]+)(\t.*)$'
			local value = key:find('|matmul m=8 n=64 k=64|static int8/1', 1, true) and
				(key:sub(1, #first) == first and 0.001 or key:find('|ref|' .. threads .. '|', 1, true) and ms or 0.5) or 0.6
			file:write(('%s\t%g%s\n'):format(key, value, rest))
		end
		file:close()
		return run(("r = hw.tune({op='matmul', m=8, n=64, k=64}, {time=0, gain=%g}) print(r.spec, r.mode, r.level)"):format(gain))
	end
	if level == 'ref' then skip 'no levels here' end
	assert(answer(0.00097, 0.05) == 'int8/1\tstatic\t' .. level .. '\n')
	assert(answer(0.00097, 0.01) == 'int8/1\tstatic\tref\n')
	assert(answer(0.0005, 0.05) == 'int8/1\tstatic\tref\n')
end)
it('no way within what is asked for', function()
	local output = run [[print(hw.tune({op='matmul', m=8, n=64, k=64, maxms=1e-9}, {time=0}))]]
	assert(output:find '^nil\tno way keeps what was asked for: float32 %(float, ', output)
end)
it('bad input', function()
	refused("tune: op: wanted 'matmul' or 'conv2d', got nil", hw.tune)
	refused("tune: op: wanted 'matmul' or 'conv2d', got 'matmull'; did you mean 'matmul'?", hw.tune, {op='matmull'})
	refused("tune: unknown option 'tim'; did you mean 'time'?", hw.tune, {op='matmul', m=1, n=8, k=8, tim=3})
	refused('tune: time: wanted a number of at least 0, got -1', hw.tune, {op='matmul', m=1, n=8, k=8}, {time=-1})
	refused('tune: runs: wanted positive integer, got 0', hw.tune, {op='matmul', m=1, n=8, k=8}, {runs=0})
	refused('tune: gain: wanted a number of at least 0', hw.tune, {op='matmul', m=1, n=8, k=8}, {gain=0 / 0})
end)
measured.remove()
