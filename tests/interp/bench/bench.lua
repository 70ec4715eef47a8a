-- SPDX-License-Identifier: MIT
-- labels: quick serial
-- Timings: what a row holds, that the numbers come from the clock, that data is random but the user's stream is not
-- touched, that kernels are those of the ledger.
local function spin(seconds)
	local stop = hw.clock() + seconds
	while hw.clock() < stop do end
end

---------------------------------------------------------------- time
local r = bench.time(function() spin(0.002) end, {runs = 5, warmup = 1, name = 'spin'})
print(#r, r.name, r.runs, r.calls, r.path, r.kernel)  --> 1 spin 5 1 nil nil
print(r.threads == tensor.threads(), r.level == hw.features().level, r.machine == hw.features().name)  --> true true true
print(table.concat(r:columns(), ' '))  --> name ms min spread runs calls kernel path peak threads level load machine
assert(r.min >= 2 and r.ms >= r.min and r.spread >= 0, tostring(r))
assert(type(r.load) == 'number' and r.load >= 0)

it('calls a fast function many times per sample and a slow one once', function()
	local n = 0
	local fast = bench.time(function() n = n + 1 end, {runs = 2, warmup = 20})
	assert(fast.calls > 100 and n == 20 + 2 * fast.calls, ('%d %d'):format(fast.calls, n))
	n = 0
	local slow = bench.time(function() n = n + 1 spin(0.003) end, {runs = 3, warmup = 2})
	assert(slow.calls == 1 and n == 5)
end)

-- The arithmetic, under a clock that only moves when it is told to: bench takes hw.clock when it is loaded.
it('takes the median, its deviation and the fastest, within the timeout', function()
	local code = [[
local now, i = 0, 0
hw.clock = function() return now end
local function steps(list) i = 0 return function() i = i + 1 now = now + list[(i - 1) % #list + 1] end end
local function show(r) print(('%g %g %g %d %d %d'):format(r.ms, r.min, r.spread, r.runs, r.calls, i)) end
show(bench.time(steps{0.002, 0.002, 0.030, 0.004, 0.003}, {runs = 5, warmup = 0}))
show(bench.time(steps{0.002, 0.004, 0.008, 0.016}, {runs = 4, warmup = 4}))
show(bench.time(steps{0.000125}, {runs = 3, warmup = 2}))
show(bench.time(steps{3}, {runs = 1000, warmup = 1, timeout = 10}))
show(bench.time(steps{3}, {runs = 1000, warmup = 1000, timeout = 10}))
show(bench.time(steps{60}))]]
	local pipe = io.popen('exec "/proc/$PPID/exe" - 2>&1 <<"END"\n' .. code .. '\nEND')
	local got = pipe:read 'a'
	pipe:close()
	assert(got == '3 2 1 5 1 5\n6 2 3 4 1 8\n0.125 0.125 0 3 8 26\n3000 3000 0 3 1 4\n3000 3000 0 3 1 4\n' ..
		'60000 60000 0 1 1 2\n', got)
end)

it('stops at the timeout with the samples it has', function()
	local one = bench.time(function() spin(0.05) end, {runs = 1000, warmup = 1000, timeout = 0.2})
	assert(one.runs >= 1 and one.runs < 10, tostring(one))
end)

it('names the kernels that ran and the memory they took, and leaves the peak as it was', function()
	local x = tensor.zeros(256, 256)
	local before = tensor.memory().peak
	local one = bench.time(function() return x:relu() end)
	assert(one.kernel == 'simd_' .. (hw.features().simd == 'sse2' and 'ref' or one.kernel:match '_(.*)'), one.kernel)
	assert(one.path == 'float32' and one.peak >= x:nbytes() and one.peak % 1 == 0)
	assert(tensor.memory().peak >= before)
	local q = x:quantize 'int8'
	local product = bench.time(function() return q:linear(q) end, {runs = 2})
	assert(product.path == 'int8' and product.kernel:find '^gemm_i8_', product.kernel)
	local level = hw.force 'ref'
	assert(bench.time(function() return q:linear(q) end, {runs = 1, warmup = 0}).kernel == 'gemm_i8_ref')
	hw.force(level)
end)

it('passes an error on and puts the peak back', function()
	tensor.zeros(1 << 20)
	collectgarbage()
	local before = tensor.memory().peak
	local good, message = pcall(bench.time, function() error('mine', 0) end)
	assert(not good and message == 'mine' and tensor.memory().peak == before)
end)

bench.time()                                     --> error: time: wanted a function, got nil
bench.time(print, {run = 3})                     --> error: time: unknown option 'run'; did you mean 'runs'?
bench.time(print, {runs = 0})                    --> error: time: runs: wanted 1 or more, got 0
bench.time(print, {runs = 1.5})                  --> error: time: runs: wanted integer, got 1.5
bench.time(print, {timeout = -1})                --> error: time: timeout: wanted seconds > 0, got -1
bench.time(print, {timeout = 0 / 0})             --> error: time: timeout: wanted seconds > 0
bench.tim(print)                                 --> error: attempt to call a nil value

---------------------------------------------------------------- ops
local o = bench.ops{runs = 1, warmup = 1}
print(#o:where{op = {'quantize', 'dequantize'}} >= 40, #o)  --> true 90
it('has one row per op, dtype and size, all measured', function()
	local seen = {}
	for _, row in ipairs(o) do
		local key = row.op .. row.dtype .. row.size
		assert(not seen[key] and row.ms > 0 and row.gbs > 0 and row.runs == 1 and row.kernel, key)
		seen[key] = true
	end
	for _, dtype in ipairs {'int8', 'uint8', 'int16', 'int4'} do
		for _, size in ipairs {1024, 4096, 16384, 65536, 262144} do assert(seen['quantize' .. dtype .. size]) end
	end
	assert(o:where{op = 'add', dtype = 'int8', size = 1024}.path == 'fallback')
	assert(o:where{op = 'relu', dtype = 'int8', size = 1024}.path == 'integer')
end)
print(#bench.ops{sizes = {64}, dtypes = {'float32', {bits = 3}, 'int4:32'}, ops = {'sum', 'quantize'}, runs = 1})  --> 5
bench.ops{ops = {'relux'}}                        --> error: no method 'relux'; did you mean 'relu'?
bench.ops{sizes = {0}}                            --> error: ops: sizes: item 1: got 0
bench.ops{sizes = {}}                             --> error: ops: sizes: wanted a list with items, got an empty one
bench.ops{dtypes = {'int9'}}                      --> error: got 'int9'
bench.ops{size = {64}}                            --> error: ops: unknown option 'size'; did you mean 'sizes'?

---------------------------------------------------------------- matmul
local m = bench.matmul{sizes = {64, {1, 96, 32}}, dtypes = {'int8', 'float32', 'int4:32', {weight = 'int8/1', input = 'int8/1'},
	'binary/1', 'uint8', 'int16'}, runs = 2}
print(#m, m[1].size, m[8].size, m[1].input, m[3].input, m[4].input, m[5].input)  --> 14 64 1x96x32 int8 float32 int8/1 binary
print(m[1].path, m[2].path, m[3].path, m[5].path, m[7].path)  --> int8 float32 weight_only binary int16
it('relates work and time', function()
	for i, row in ipairs(m) do
		local work = i <= 7 and 2 * 64 ^ 3 or 2 * 96 * 32
		assert(math.abs(row.gops * row.ms * 1e6 / work - 1) < 1e-9)
		local float = m[i <= 7 and 2 or 9]
		assert(math.abs(row.speedup * row.ms / float.ms - 1) < 1e-9)
	end
	assert(m[2].speedup == 1)
end)
bench.matmul{sizes = {{1, 2}}}                    --> error: matmul: sizes: wanted n or {m, n, k}, got table
bench.matmul{sizes = {8}, device = 'tpu'}         --> error: tpu

---------------------------------------------------------------- compare
tensor.seed(7)
local x = tensor.randn(64, 128)
local c = bench.compare(x, {'int8', 'int8/1', 'int4:32', 'binary/1'}, {runs = 1})
print(c:best('sqnr').spec, c:best('ratio').spec, #c:best('ms'))  --> int8/1 binary/1 1
it('agrees with what it measures', function()
	for _, row in ipairs(c) do
		local q = x:quantize(row.spec)
		assert(row.bytes == q:nbytes() and row.sqnr == x:error(q).sqnr and row.mse == x:error(q).mse and row.dequantize > 0)
		assert(row.ratio == q:ratio() and row.peak >= 0)
	end
end)
bench.compare({1}, {'int8'})                      --> error: compare: wanted a tensor, got table
bench.compare(x, 'int8')                          --> error: compare: wanted a list of specs, got 'int8'

---------------------------------------------------------------- data
it('leaves the stream of random numbers alone', function()
	tensor.seed(3)
	local a, b = tensor.randn(4), tensor.randn(4)
	tensor.seed(3)
	local c1 = tensor.randn(4)
	bench.ops{sizes = {100}, dtypes = {'int8'}, ops = {'quantize'}, runs = 1}
	local c2 = tensor.randn(4)
	assert(a:error(c1).max == 0 and b:error(c2).max == 0)
end)
