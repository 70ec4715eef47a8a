-- SPDX-License-Identifier: MIT
-- The global `bench`: honest timings as reports. Wall time by the monotonic clock; a short function is called many
-- times per sample, so that the clock does not count; the median stands against outliers of a shared machine, and the
-- spread (median absolute deviation) says how much to believe it. All data is random, and the user's random numbers
-- are as if nothing had run. Kernels are those that the ledger saw.
local module, internal = ...
local base = internal.import 'interp/prelude/base'
local report = internal.import 'interp/prelude/report'
local files = internal.import 'interp/prelude/report_files'
local devices = internal.import 'interp/bench/devices'
local watch_peak = internal.import 'interp/prelude/peak'
local fail, doc, describe = base.fail, base.doc, base.describe
local clock, features, ledger, tensor = hw.clock, hw.features, quant.ledger, tensor
local sync = gpu.sync -- ops of devices are queued

local SAMPLE = 1e-3 -- seconds that one sample takes at least

---------------------------------------------------------------- measuring

local function key_of(row)
	return ('%s|%s|%s|%s|%s'):format(row.op, row.path, row.kernel, row.reason, row.operands)
end

local function counts()
	local by_key = {}
	for _, row in ipairs(ledger()) do by_key[key_of(row)] = row.count end
	return by_key
end

-- Distinct values of a field of the ledger's rows that grew since `before`, in the order of first use.
local function ran(before, field)
	local list, seen = {}, {}
	for _, row in ipairs(ledger()) do
		local value = row[field]
		if value and not seen[value] and row.count > (before[key_of(row)] or 0) then
			seen[value] = true
			list[#list + 1] = value
		end
	end
	return list[1] and table.concat(list, ' ')
end

local function median(sorted)
	local n = #sorted
	return n % 2 == 1 and sorted[n // 2 + 1] or (sorted[n // 2] + sorted[n // 2 + 1]) / 2
end

local function deviation(times, middle)
	local off = {}
	for i, t in ipairs(times) do off[i] = math.abs(t - middle) end
	table.sort(off)
	return median(off)
end

-- Calls per sample, from the time of the fastest warm-up call.
local function calls_for(seconds)
	return math.max(1, math.min(100000, math.ceil(SAMPLE / math.max(seconds, 1e-8))))
end

-- Calls fn n times, but not for longer than `seconds` and one call; returns the time of the fastest.
local function warm_up(fn, n, seconds)
	local fastest, stop = n > 0 and math.huge or SAMPLE, clock() + seconds
	for _ = 1, n do
		local start = clock()
		fn()
		sync()
		local took = clock() - start
		fastest = math.min(fastest, took)
		if start + took > stop then break end
	end
	return fastest
end

-- Seconds of each sample's call, and the number of calls per sample.
local function samples(fn, runs, calls, stop)
	local times = {}
	repeat
		local start = clock()
		for _ = 1, calls do fn() end
		sync()
		local now = clock()
		times[#times + 1] = (now - start) / calls
	until #times == runs or now > stop
	return times
end

local RUNS, WARMUP, TIMEOUT = 10, 3, 10

-- Runs fn as the options say; returns the columns of one row by name.
local function measure(fn, o)
	local timeout = o.timeout or TIMEOUT
	local stop = clock() + timeout
	local fastest = warm_up(fn, o.warmup or WARMUP, timeout / 4)
	local calls = o.calls or calls_for(fastest)
	collectgarbage()
	local peak <close>, peak_of_devices = watch_peak(), devices.watch()
	local before = counts()
	local times = samples(fn, o.runs or RUNS, calls, stop)
	local row = {runs = #times, calls = calls, kernel = ran(before, 'kernel'), path = ran(before, 'path'),
		peak = peak:bytes(), device_peak = peak_of_devices()}
	table.sort(times)
	local middle = median(times)
	row.ms, row.min, row.spread = middle * 1e3, times[1] * 1e3, deviation(times, middle) * 1e3
	return row
end

local MACHINE = {'threads', 'level', 'load', 'machine'}

local function add_machine(row)
	local f = features()
	row.threads, row.level, row.load, row.machine = tensor.threads(), f.level, internal.load(), f.name
	return row
end

-- A report of rows that `each` adds; `columns` are the function's own, those of every measurement follow.
local function measured(columns, note, each)
	local list = {columns = table.move(columns, 1, #columns, 1, {}), note = note}
	for _, name in ipairs {'ms', 'min', 'spread', 'runs', 'calls', 'kernel', 'path', 'peak'} do
		local listed = false
		for _, known in ipairs(columns) do listed = listed or known == name end
		if not listed then list.columns[#list.columns + 1] = name end
	end
	table.move(MACHINE, 1, #MACHINE, #list.columns + 1, list.columns)
	each(function(row) list[#list + 1] = add_machine(row) end)
	devices.show(list)
	return report(list)
end

local function check_times(entry, o)
	local name = entry.name:match '[^.]+$'
	local function at_least(option, least)
		if o[option] and o[option] < least then fail('%s: %s: wanted %d or more, got %s', name, option, least, o[option]) end
	end
	at_least('runs', 1)
	at_least('calls', 1)
	at_least('warmup', 0)
	if o.timeout and not (o.timeout > 0) then fail('%s: timeout: wanted seconds > 0, got %s', name, o.timeout) end
	return o
end

local TIMES = {{'runs', 'integer', 'timed samples (default 10)'}, {'warmup', 'integer', 'calls before them (default 3), for at most a quarter of the timeout'},
	{'timeout', 'number', 'seconds after which no further sample begins (default 10)'}}

local function with_times(options) return table.move(TIMES, 1, #TIMES, #options + 1, options) end

local NOTE = 'ms: median time of a call, min: the fastest, spread: median absolute deviation, peak: bytes'

local time = doc {name = 'bench.time', usage = 'bench.time(fn, {runs=10, calls=, warmup=3, timeout=10, name=})',
	text = [[Times a function without arguments: a report of one row with the median in ms, the fastest sample, the spread
(median absolute deviation), the samples taken, the calls in each (a function faster than 1 ms is called several times
per sample), the kernels and paths that the ledger saw, the peak of tensor memory above the start in bytes (where devices were used, theirs
as device_peak, and the name of the device as gpu; the peak of gpu.memory begins again), and the
threads, level of kernels, load of the system and processor. Pinned threads (tensor.threads(n, {pin=true}) or --pin) give steadier times. The time includes the garbage collection that the calls
cause. Put several into one table with report{bench.time(f), bench.time(g)}.]],
	options = with_times {{'name', 'text', 'the text of the first column'},
		{'calls', 'integer', 'calls in each sample (default: as many as take 1 ms)'}},
	example = [[x = tensor.zeros(256, 256)
r = bench.time(function() return x:relu() end, {name='relu', runs=3})
print(r.name, r.runs, r.ms > 0, r.min <= r.ms)  --> relu 3 true true]]}

function module.time(fn, options)
	if type(fn) ~= 'function' then fail('time: wanted a function, got %s', describe(fn)) end
	local o = check_times(time, base.options(time, options))
	return measured({'name'}, NOTE, function(add)
		local row = measure(fn, o)
		row.name = o.name or 'fn'
		add(row)
	end)
end

---------------------------------------------------------------- data

-- Standard normal numbers, the same for every call; the user's stream goes on where it was.
local function random(...)
	local seed, position = internal.rng(20240229, 0)
	local x = tensor.randn(...)
	internal.rng(seed, position)
	return x
end

local function is_float(spec)
	return quant.spec(spec).scheme == nil
end

-- x stored or quantized as the spec says.
local function stored(x, spec)
	return is_float(spec) and x:to(spec) or x:quantize(spec)
end

local function check_list(name, option, list, kind)
	base.list(name .. ': ' .. option, list)
	for i, item in ipairs(list) do
		if not kind(item) then fail('%s: %s: item %d: got %s', name, option, i, describe(item)) end
	end
	if #list == 0 then fail('%s: %s: wanted a list with items, got an empty one', name, option) end
	return list
end

local function is_spec(value) return type(value) == 'string' or type(value) == 'table' or type(value) == 'userdata' end
local function is_size(value) return math.type(value) == 'integer' and value >= 1 end
local function is_text(value) return type(value) == 'string' end

---------------------------------------------------------------- ops

local TWO = {add = true, sub = true, mul = true, div = true, maximum = true, minimum = true, pow = true}

-- The function to time for an op on n numbers of a spec, and the tensors it reads; nil where it makes no sense.
local function op_case(op, spec, n)
	local x = random(n)
	if op == 'quantize' or op == 'dequantize' then
		if is_float(spec) then return nil end
		local q = x:quantize(spec)
		if op == 'quantize' then return function() return x:quantize(spec) end, {x} end
		return function() return q:dequantize() end, {q}
	end
	local a = stored(x, spec)
	local method = a[op] -- names the nearest one when there is none
	if not TWO[op] then return function() return method(a) end, {a} end
	local b = stored(random(2 * n):narrow(1, n + 1, n), spec)
	return function() return method(a, b) end, {a, b}
end

local function bytes_of(tensors)
	local sum = 0
	for _, t in ipairs(tensors) do
		sum = sum + (base.is_tensor(t) and t:nbytes() or 0)
	end
	return sum
end

local ops = doc {name = 'bench.ops', usage = "bench.ops{sizes={1024, 65536}, dtypes={'int8','int4:32'}, ops={'quantize','add'}}",
	text = [[Times ops on vectors of each size: a report with the columns op, dtype (the spec) and size, the time, gbs (bytes
read and written per second, in GB/s), path and kernel, and those of bench.time. Any op of one or two tensors may be named.
quantize and dequantize skip float dtypes. Data is standard normal.]],
	options = with_times {{'sizes', 'list', 'numbers of elements (default 1024 4096 16384 65536 262144)'},
		{'dtypes', 'list', "specs of the operands (default 'float32' 'int8' 'uint8' 'int16' 'int4')"},
		{'ops', 'list', "names of methods (default quantize dequantize relu add)"}},
	example = [[r = bench.ops{sizes={1024}, dtypes={'int8','int4'}, ops={'quantize','dequantize'}, runs=2}
print(#r, r[1].op, r[1].dtype, r[1].size, r[1].gbs > 0)  --> 4 quantize int8 1024 true]]}

function module.ops(options)
	local o = check_times(ops, base.options(ops, options))
	local sizes = check_list('ops', 'sizes', o.sizes or {1024, 4096, 16384, 65536, 262144}, is_size)
	local dtypes = check_list('ops', 'dtypes', o.dtypes or {'float32', 'int8', 'uint8', 'int16', 'int4'}, is_spec)
	local names = check_list('ops', 'ops', o.ops or {'quantize', 'dequantize', 'relu', 'add'}, is_text)
	local columns = {'op', 'dtype', 'size', 'ms', 'min', 'spread', 'gbs', 'path', 'kernel'}
	return measured(columns, NOTE .. ', gbs: GB/s read and written', function(add)
		for _, op in ipairs(names) do
			for _, spec in ipairs(dtypes) do
				for _, size in ipairs(sizes) do
					local fn, operands = op_case(op, spec, size)
					local row = fn and measure(fn, o)
					if row then
						row.op, row.dtype, row.size = op, tostring(quant.spec(spec)), size
						row.gbs = (bytes_of(operands) + bytes_of {fn()}) / row.ms / 1e6
						add(row)
					end
				end
			end
		end
	end)
end

---------------------------------------------------------------- matmul

-- The spec of the activations that goes with a spec of the weights: what an integer product takes, else float32.
local function input_for(weight)
	local spec = quant.spec(weight)
	if spec.block or not spec.affine then return 'float32' end
	local d = quant.dtype(spec.dtype)
	if d.bits > 8 or d.float or d.kind == 'binary' or d.bits == 8 and d.kind == 'uint' then return spec.dtype end
	return 'int8'
end

local function size_of(size)
	if is_size(size) then return size, size, size, size end
	if type(size) == 'table' and is_size(size[1]) and is_size(size[2]) and is_size(size[3]) then
		return ('%dx%dx%d'):format(size[1], size[2], size[3]), size[1], size[2], size[3]
	end
	fail('matmul: sizes: wanted n or {m, n, k}, got %s', describe(size))
end

local matmul = doc {name = 'bench.matmul', usage = "bench.matmul{sizes={256, {1, 4096, 4096}}, dtypes={'float32','int8','int4:32'}}",
	text = [[Times x:linear(w), x (m, k) times the transpose of w (n, k), for each size (n: a cube; {m, n, k}) and spec of w. The
columns: size, dtype (of w), input (of x), ms, gops (2·m·n·k per second, in 10^9), speedup over float32 of the same size,
path and kernel, and those of bench.time. x takes int8 beside weights of up to 8 bits, the same dtype beside uint8, 16-bit,
binary and float weights, float32 beside blocks (weights only); a table {weight=, input=} says otherwise. Both are
quantized before the clock starts. Data is standard normal.]],
	options = with_times {{'sizes', 'list', 'n or {m, n, k} each (default 64 128 256 512)'},
		{'dtypes', 'list', "specs of w, or {weight=, input=} (default 'float32' 'int8' 'int4:32')"},
		{'device', 'text', "where: 'cuda', … (default cpu, see --device); a column, too"}},
	example = [[r = bench.matmul{sizes={64}, dtypes={'float32','int8'}, runs=2}
print(r[2].size, r[2].dtype, r[2].path, r[1].speedup)  --> 64 int8 int8 1.0]]}

local function linear_case(x, w, input, weight)
	local a, b = stored(x, input), stored(w, weight)
	return function() return a:linear(b) end
end

local function pair_of(item)
	if type(item) == 'table' and (item.weight or item.input) then
		local weight = item.weight or 'float32'
		return weight, item.input or input_for(weight)
	end
	return item, input_for(item)
end

function module.matmul(options)
	local o = check_times(matmul, base.options(matmul, options))
	local dtypes = check_list('matmul', 'dtypes', o.dtypes or {'float32', 'int8', 'int4:32'}, is_spec)
	local columns = {'size', 'dtype', 'input', 'ms', 'min', 'spread', 'gops', 'speedup', 'path', 'kernel'}
	if o.device then table.insert(columns, 4, 'device') end
	return measured(columns, NOTE .. ', gops: 10^9 operations per second, speedup: over float32', function(add)
		for _, size in ipairs(base.list('matmul: sizes', o.sizes or {64, 128, 256, 512})) do
			local name, m, n, k = size_of(size)
			local x, w = random(m, k), random(n, k)
			if o.device then x, w = x:to(o.device), w:to(o.device) end
			local float
			for _, item in ipairs(dtypes) do
				local weight, input = pair_of(item)
				float = float or measure(linear_case(x, w, 'float32', 'float32'), o)
				local row = weight == 'float32' and input == 'float32' and float or measure(linear_case(x, w, input, weight), o)
				row.device = o.device
				row.size, row.dtype, row.input = name, tostring(quant.spec(weight)), tostring(quant.spec(input))
				row.gops, row.speedup = 2 * m * n * k / row.ms / 1e6, float.ms / row.ms
				add(row)
			end
		end
	end)
end

---------------------------------------------------------------- compare

local compare = doc {name = 'bench.compare', usage = "bench.compare(x, {'int8','int8/1','int4:32'})",
	text = [[Quantizes x by each spec: a report of time (ms: quantize, dequantize: back), error (mse, sqnr in dB, max), memory
(bytes with scales, ratio to float32, peak while quantizing) and those of bench.time. r:best 'ms', r:best 'sqnr',
r:best 'ratio' are the fastest, the most accurate and the smallest. quant.compare is the same without careful times.]],
	options = with_times {},
	example = [[x = tensor{{1,-2,3,-4},{0.5,0.25,-0.125,1}}
r = bench.compare(x, {'int8','int4'}, {runs=2})
print(r:best('sqnr').spec, r:best('ratio').spec)  --> int8 int4]]}

function module.compare(x, specs, options)
	if not base.is_tensor(x) then fail('compare: wanted a tensor, got %s', describe(x)) end
	if type(specs) ~= 'table' then fail('compare: wanted a list of specs, got %s', describe(specs)) end
	check_list('compare', 'specs', specs, is_spec)
	local o = check_times(compare, base.options(compare, options))
	local columns = {'spec', 'ms', 'min', 'spread', 'dequantize', 'mse', 'sqnr', 'max', 'bytes', 'ratio', 'peak', 'kernel'}
	return measured(columns, NOTE .. ', dequantize: ms, sqnr: dB', function(add)
		for _, spec in ipairs(specs) do
			local q = x:quantize(spec)
			local row, e = measure(function() return x:quantize(spec) end, o), x:error(q)
			row.spec, row.mse, row.sqnr, row.max = tostring(quant.spec(spec)), e.mse, e.sqnr, e.max
			row.dequantize = measure(function() return q:dequantize() end, o).ms
			row.bytes, row.ratio = q:nbytes(), q:ratio()
			add(row)
		end
	end)
end

---------------------------------------------------------------- files

doc {name = 'bench.load', usage = "bench.load 'results.csv'",
	text = [[The report in a .csv or .json file that r:save wrote, equal to r; also any other CSV file with a line of names, and
JSON lists of objects.]],
	example = [[report{{spec='int8', sqnr=38.9}}:save 'results.json'
print(bench.load 'results.json'.sqnr)  --> 38.9
os.remove 'results.json']]}
function module.load(file) return files.load(file) end

module.generate = internal.import 'interp/bench/generate'
module.models = internal.import 'interp/bench/models'
module.machine = internal.import 'interp/bench/machine'
module.kernels = internal.import 'interp/bench/kernels'

doc {name = 'bench', kind = 'module', usage = 'bench.time  bench.ops  bench.matmul  bench.compare  bench.models  bench.machine  bench.kernels  bench.load',
	text = [[Timings as reports: of a function, of ops, of matrix products, of specs, of models, of the machine and its kernels.]]}
