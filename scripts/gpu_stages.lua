-- SPDX-License-Identifier: MIT
-- The stages of scripts/gpu_check.lua, in the folder that it packs:
--   quoll gpu_stages.lua STAGE DEVICE TABLE SECONDS     adds the rows of one stage to the table
-- The goals of the backend are ratios of times or bytes in one process: short calls are recorded as a graph and replayed, long ones
-- queued; operands rotate, so that they are not in the cache; medians.
local stage, device, path, most = arg[1], arg[2], arg[3], tonumber(arg[4])
local real = device ~= 'cudaemu'
local stop = os.time() + most
local function left() return stop - os.time() end
local function pick(on_device, on_emulation) return real and on_device or on_emulation end

local ROTATED = 200 << 20 -- bytes of operands, more than any cache
local SAMPLE, SAMPLES = pick(0.01, 0), pick(7, 1) -- seconds of a sample at least, and their number

-- state: passed, failed, measured, missing, reached, below
local function row(name, state, text)
	local line = ('%-9s %-54.54s %-8s %s'):format(stage, name, state, (text or ''):gsub('%s+', ' '):sub(1, 240))
	print(line)
	local handle = assert(io.open(path, 'a'))
	handle:write(line, '\n')
	handle:close()
end

-- Runs fn(…); an error is a row.
local function try(name, fn, ...)
	if left() < 3 then return row(name, 'missing', 'no time is left') end
	local good, why = pcall(fn, ...)
	if good then return end
	row(name, 'failed', tostring(why):match '[^\n]*')
	if tostring(why):find 'lost' then os.exit(3) end -- each process has a context of its own: the next stage may run
end

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end
local function output(command)
	local pipe = assert(io.popen(command))
	local text = pipe:read 'a'
	return pipe:close() and text or nil, text
end
local loader = os.getenv 'CHECK_LOADER' or ''

-- ---- times ----

local function median(times)
	table.sort(times)
	return times[(#times + 1) // 2]
end

-- Kernels of one call; 'host' where the host computes.
local function kernels_of(fn)
	quant.log 'reset'
	fn(1)
	local found, seen = {}, {}
	for _, r in ipairs(quant.log()) do
		local name = r.path == 'host' and 'host' or r.kernel
		if name and not seen[name] then found[#found + 1], seen[name] = name, true end
	end
	return table.concat(found, ' ')
end

local function closed(...)
	for i = 1, select('#', ...) do
		local _ <close> = select(i, ...)
	end
end

-- Seconds of fn(i), i = 1, 2, …, queued one after the other.
local function queued(fn)
	local function sample(calls)
		gpu.sync()
		local start = hw.clock()
		for i = 1, calls do closed(fn(i)) end
		gpu.sync()
		return (hw.clock() - start) / calls
	end
	sample(1)
	local once = sample(pick(3, 1))
	local calls, times = math.max(1, math.min(2000, math.ceil(SAMPLE / once))), {}
	if real then sample(calls) end
	for i = 1, SAMPLES do times[i] = sample(calls) end
	return median(times), 'queued'
end

-- Seconds of fn(i, inputs), recorded as a graph of many calls; queued where the graph cannot be, or would leave calls out.
local CALLS = pick(64, 4)
local function replayed(inputs, fn)
	local function eager(i) return fn(i, inputs) end
	local m = nn.module(function(_, ...)
		local results, given = {}, {...}
		for i = 1, CALLS do results[i] = fn(i, given) end
		return table.unpack(results)
	end, {})
	local good, g = pcall(graph.trace, m, inputs, {batch = false})
	if not good then return queued(eager) end
	local function sample(runs)
		gpu.sync()
		local start = hw.clock()
		for _ = 1, runs do closed(g:run(inputs)) end
		gpu.sync()
		return (hw.clock() - start) / runs / CALLS
	end
	quant.log 'reset'
	local ran = pcall(sample, 1)
	local ops = 0
	for _, r in ipairs(quant.log()) do ops = ops + (r.op ~= 'graph' and r.count or 0) end
	if not ran or ops < CALLS then return queued(eager) end
	local once = math.max(sample(pick(3, 1)), 1e-7)
	local runs, times = math.max(1, math.ceil(SAMPLE / once / CALLS)), {}
	for i = 1, SAMPLES do times[i] = sample(runs) end
	quant.log 'reset'
	sample(1)
	local replays = 0
	for _, r in ipairs(quant.log()) do replays = replays + (r.path == 'replay' and r.count or 0) end
	local text = replays > 0 and 'replayed' or 'a graph, queued'
	local time, direct = median(times), queued(eager)
	if direct < time then return direct, 'queued' end
	return time, text
end

-- How many sets of operands of so many bytes are rotated.
local function sets_of(bytes) return math.max(2, math.min(pick(16, 2), ROTATED // math.max(1, bytes) + 1)) end
local function rotated(n, make)
	local sets = {}
	for i = 1, n do sets[i] = make(i) end
	return function(i) return sets[(i - 1) % n + 1] end, sets
end

local function goal(name, ratio, wanted, text)
	if not real then return row(name, 'measured', ('%.2f, goal %.2f (not on cudaemu): %s'):format(ratio, wanted, text)) end
	row(name, ratio >= wanted and 'reached' or 'below', ('%.2f, goal %.2f: %s'):format(ratio, wanted, text))
end

-- Seconds of other programs by name, and why there are none.
local function parsed(text)
	local found, why = {}, {}
	for name, rest in text:gmatch '([%w+_]+) ([^\n]+)' do
		found[name], why[name] = tonumber(rest), rest:match '^missing (.*)'
	end
	return found, why
end
local function anchor(arguments)
	local handle = io.open 'anchor'
	if not handle then return {}, setmetatable({}, {__index = function() return 'the program of cuBLASLt was not built' end}) end
	handle:close()
	local limit = math.max(3, math.min(60, left() - 2))
	local _, text = output(('timeout -k 2 %d %s ./anchor %s 2>&1'):format(limit, loader, arguments))
	local found, why = parsed(text)
	return found, setmetatable(why, {__index = function() return 'no time of it: ' .. (text:match '[^\n]+' or 'nothing was printed') end})
end
local function anchors(m, n, k, kinds) return anchor(('%d %d %d %s'):format(m, n, k, kinds)) end

local copy_rate -- bytes a second of a copy, read and write counted: the driver's or ours, the faster one
local function bandwidth()
	if copy_rate then return copy_rate end
	local n = pick(1 << 28, 1 << 14)
	local x = tensor.ones(n, {device = device})
	local ours, found = 8 * n / queued(function() return x:clone() end), real and anchor 'copy' or {}
	copy_rate = math.max(ours, found.copy or 0)
	row('copy', 'measured', ('clone %.0f GB/s, of the driver %s'):format(ours / 1e9, found.copy and ('%.0f GB/s'):format(found.copy / 1e9) or 'missing'))
	return copy_rate
end

-- The share of the bandwidth of a copy that `bytes` in one call reach.
local function bandwidth_goal(name, wanted, bytes, fn)
	local rate, kernels = bandwidth(), kernels_of(fn)
	if kernels:find 'host' then return row(name, 'missing', ('runs on the host, goal %.2f'):format(wanted)) end
	local s, how = queued(fn)
	goal(name, bytes / s / rate, wanted, ('%.0f GB/s, %.4g ms, %s, %s'):format(bytes / s / 1e9, s * 1e3, kernels, how))
end

-- The ratio of another's seconds to ours, or a row that says why there is none.
local function against(name, found, why, key, ours, wanted, text)
	if found[key] then return goal(name, found[key] / ours, wanted, ('%.4g ms, %s %.4g ms; %s'):format(ours * 1e3, key, found[key] * 1e3, text)) end
	row(name, 'missing', ('goal %.2f: %s'):format(wanted, why[key] or 'nothing was printed'))
end

local function rates(name, s, operations, text)
	row(name, 'measured', ('%.4g ms, %.1f T/s%s'):format(s * 1e3, operations / s / 1e12, text or ''))
end

local stages = {}

-- ---- the machine ----

function stages.machine()
	local usable, why = gpu.available()
	local info = gpu.info()
	local d = info.devices and info.devices[1]
	if not usable or not d then
		row(device, 'failed', why)
		row('driver', 'measured', output 'nvidia-smi -L 2>&1 || ls /dev/nvidia* 2>&1 | head -3')
		error(why, 0)
	end
	row(device, 'passed', ('%s, capability %s, %d processors, %.0f GiB, %s'):format(d.name, d.capability, d.processors, d.memory / 2 ^ 30, os.date '%Y-%m-%d %H:%M'))
	local smi = output 'nvidia-smi --query-gpu=driver_version,power.limit,clocks.max.sm --format=csv,noheader 2>/dev/null'
	row('driver', smi and 'measured' or 'missing', smi or 'no nvidia-smi')
	local y = (tensor.arange(1, 1000, {dtype = 'float32'}):to(device) * 2):to 'cpu' -- has the plug-in code for this device?
	assert(y[1000]:item() == 2000, 'a product of numbers is wrong')
	row('one op', 'passed')
	for _, name in ipairs {'cublasLt', 'cudnn'} do
		local where = output(([[for d in $(echo "$QUOLL_CUDA_LIBDIR:$CHECK_LIBRARY_PATH:/usr/local/cuda/lib64:/usr/lib/x86_64-linux-gnu" | tr : ' '); do
			ls $d/lib%s.so.[0-9]* 2>/dev/null; done]]):format(name))
		row(name, where and where ~= '' and 'measured' or 'missing', where and where:match '[^\n]+' or 'not found in QUOLL_CUDA_LIBDIR')
	end
	for _, r in ipairs(gpu.kernels()) do if not r.used then row(r.kernel, 'measured', 'not for this device') end end
end

-- ---- programs ----

-- A test program on the plug-in, by a tool in front of it.
local function run_test(name, program, tool, limit)
	local seconds = math.max(3, math.min(limit or 30, left() - 2))
	local good, text = output(('QUOLL_TEST_PLUGIN="$QUOLL_GPU_PLUGIN" timeout -k 2 %d %s %s ./kernels/%s 2>&1; echo "ended $?"'):format(
		seconds, tool or '', loader, program))
	text = good or text
	local passed, bad, skipped = text:match '(%d+) passed, (%d+) failed, (%d+) skipped'
	local code = tonumber(text:match 'ended (%d+)%s*$')
	local errors = text:match 'ERROR SUMMARY: ([1-9]%d* errors?)'
	if passed and bad == '0' and code == 0 and not errors then
		if passed == '0' and skipped ~= '0' then return row(name, 'missing', text:match 'skipped: [^\n]*') end
		return row(name, 'passed', passed .. ' cases' .. (skipped ~= '0' and ', ' .. skipped .. ' skipped' or ''))
	end
	local why = text:match '[^\n]*failed:[^\n]*' or text:match '=* *[^\n]*[Ee]rror[^\n]*' or text:match '[^\n]*' or ''
	if (code == 124 or code == 137) and not passed then why = ('ended after %d s; %s'):format(seconds, text:match '[^\n]*' or '') end
	if tool and text:find 'Device not supported' then return row(name, 'missing', 'the sanitizer refuses this device') end
	row(name, 'failed', (errors and errors .. ': ' or '') .. why)
end

function stages.wrappers() run_test('wrappers of PTX', 'wrappers', nil, most) end

function stages.kernels()
	for stem in output 'ls kernels':gmatch '[%w_]+' do
		if stem ~= 'wrappers' then try(stem, run_test, stem, stem) end
	end
end

function stages.nets()
	local good_files, cases = 0, 0
	for file in output 'ls tests/gpu/*.lua tests/nn/quantize/*.lua | grep -v /program.lua':gmatch '[^\n]+' do -- it starts processes
		try(file, function()
			local seconds = math.max(3, math.min(60, left() - 2))
			local _, text = output(('QUOLL_TEST_DEVICE=%s timeout -k 2 %d %s ./quoll test %s 2>&1; echo "ended $?"'):format(device, seconds, loader, file))
			local passed = text:match 'ended 0%s*$' and text:match '(%d+) passed'
			if passed then
				good_files, cases = good_files + 1, cases + passed
			else
				row(file, 'failed', text:match '[^\n]*: [^\n]*%d[^\n]*failed[^\n]*' or text:match '[^\n]*%.lua:%d+:[^\n]*' or
					text:match '[^\n]*')
			end
		end)
	end
	row('files of tests', good_files > 0 and 'passed' or 'failed', ('%d files, %d cases'):format(good_files, cases))
end

function stages.sanitizer()
	local tool = output [[for f in "$(command -v compute-sanitizer)" /usr/local/cuda/bin/compute-sanitizer \
		$("${CHECK_PYTHON:-python3}" -c "import glob, site; print(' '.join(glob.glob(site.getsitepackages()[0] + '/nvidia/*/bin/compute-sanitizer')))" 2>/dev/null)
		do [ -x "$f" ] && echo "$f" && exit; done; exit 1]]
	for _, kind in ipairs {'memcheck', 'racecheck', 'synccheck'} do
		for _, stem in ipairs {'wrappers', 'reduce', 'gemm_i8_wgmma'} do
			local name = kind .. ' of ' .. stem
			if not (tool and real) then
				row(name, 'missing', real and 'compute-sanitizer is not installed' or 'it is for a GPU')
			else
				try(name, run_test, name, stem, ('%s --tool %s --error-exitcode 9'):format(quoted(tool:match '[^\n]+'), kind))
			end
		end
	end
end

-- ---- ops against the CPU ----

local function farthest(a, b)
	a, b = a:to 'cpu', b:to 'cpu'
	assert(a:dtype() == b:dtype(), 'another dtype')
	return (a:to 'float64' - b:to 'float64'):abs():max():item() / math.max(1e-30, b:to 'float64':abs():max():item())
end

local function compare(name, tolerance, fn, ...)
	local here, there = {...}, {}
	for i, t in ipairs(here) do there[i] = t:to(device) end
	local wanted, got = fn(table.unpack(here)), nil
	local kernels = kernels_of(function() got = fn(table.unpack(there)) end)
	local far = farthest(got, wanted)
	assert(far <= tolerance, ('%g away, allowed are %g; %s'):format(far, tolerance, kernels))
	row(name, 'passed', (far == 0 and 'the same bits' or ('%.2g away'):format(far)) .. ', ' .. kernels)
end

function stages.ops()
	local function case(name, ...) try(name, compare, name, ...) end
	for _, s in ipairs {{17, 9, 31}, {200, 261, 700}} do
		local m, n, k = table.unpack(s)
		local x, w, b = tensor.randn(m, k), tensor.randn(n, k), tensor.randn(n)
		local shape = (' %d x %d x %d'):format(m, n, k)
		case('linear uint8/1 int8/1' .. shape, 0, function(p, q, r) return p:linear(q, r, {act = 'relu'}) end, x:quantize 'uint8/1',
			w:quantize 'int8/1', b)
		case('linear float32' .. shape, 1e-5, function(p, q, r) return p:linear(q, r) end, x, w, b)
		case('linear float16' .. shape, 2e-3, function(p, q) return p:linear(q) end, x:to 'float16', w:to 'float16')
		case('linear f16 int4:32' .. shape, 2e-3, function(p, q) return p:linear(q) end, x:to 'float16', w:quantize 'int4:32')
		case('quantize int8/1' .. shape, 0, function(p) return p:quantize 'int8/1':dequantize() end, x)
		case('softmax' .. shape, 0, function(p) return p:softmax(2) end, x)
		case('sum' .. shape, 0, function(p) return p:sum(1) end, x)
		case('gelu' .. shape, 0, function(p) return p:gelu() end, x)
	end
	local x, w = tensor.randn(3, 6, 17, 19), tensor.randn(10, 6, 3, 3)
	for _, dtype in ipairs {'float32', 'float16', 'bfloat16'} do
		local tolerance = dtype == 'float32' and 1e-5 or dtype == 'float16' and 2e-3 or 1.6e-2
		for i, what in ipairs {'', ', gradient of x', ', gradient of w'} do
			case('conv2d ' .. dtype .. what, tolerance, function(p, q)
				if i == 1 then return p:conv2d(q, nil, {pad = 1, stride = 2}) end
				p, q = p:detach():requires_grad_(), q:detach():requires_grad_()
				p:conv2d(q, nil, {pad = 1, stride = 2}):sum():backward()
				return (i == 2 and p or q):grad()
			end, x:to(dtype), w:to(dtype))
		end
	end
end

-- ---- products ----

-- m, n, k, and the goals: fused int8 over the anchors
local SHAPES = {
	{8192, 8192, 8192, {int8 = 0.9, ['int8+dequantize'] = 1.1, bf16 = 1.6}},
	{4096, 4096, 1024, {['int8+dequantize'] = 1.7}},
	{4096, 4096, 4096, {['int8+dequantize'] = 1.1, bf16 = 1.6}},
	{16384, 4096, 4096, {['int8+dequantize'] = 1.1, bf16 = 1.6}},
}

local function product(m, n, k, goals)
	local shape = (' %d x %d x %d'):format(m, n, k)
	local count = sets_of((m + n) * k)
	local x = rotated(count, function() return tensor.randn(m, k, {device = device}):quantize 'int8/1' end)
	local w = rotated(count, function() return tensor.randn(n, k, {device = device}):quantize 'int8/1' end)
	local b = tensor.randn(n, {device = device})
	local function fn(i) return x(i):linear(w(i), b, {out = 'float16'}) end
	local kernels, time, how = kernels_of(fn), queued(fn)
	rates('fused int8' .. shape, time, 2 * m * n * k, ', ' .. kernels .. ', ' .. how)
	local found, why = anchors(m, n, k, 'int8 int8+dequantize bf16 fp8')
	for _, name in ipairs {'int8', 'int8+dequantize', 'bf16', 'fp8'} do
		if found[name] then rates('cuBLASLt ' .. name .. shape, found[name], 2 * m * n * k) end
		if goals[name] then
			against('fused int8 / ' .. name .. shape, found, why, name, time, goals[name], kernels)
		elseif not found[name] then
			row('cuBLASLt ' .. name .. shape, 'missing', why[name])
		end
	end
end

function stages.products()
	for _, s in ipairs(real and SHAPES or {{70, 80, 144, SHAPES[1][4]}}) do try('fused int8', product, table.unpack(s)) end
	-- quantizing x counts, too
	local m = pick(4096, 72)
	try('dynamic int8 linear', function()
		local x = rotated(sets_of(3 * m * m), function() return tensor.randn(m, m, {device = device}):to 'float16' end)
		local w = tensor.randn(m, m, {device = device}):quantize 'int8/1'
		local time, how = queued(function(i) return x(i):quantize 'int8/1':linear(w, nil, {out = 'float16'}) end)
		local found, why = anchors(m, m, m, 'bf16')
		against(('dynamic int8 linear / bf16 %d^3'):format(m), found, why, 'bf16', time, 1.3, how)
	end)
end

-- ---- gradients of the quantized linear layer ----

function stages.backward()
	local n = pick(8192, 64)
	local b = tensor.randn(n, {device = device}):requires_grad_()
	local xs, ws, g = tensor.randn(n, n, {device = device}):to 'float16', tensor.randn(n, n, {device = device}), tensor.randn(n, n, {device = device}):to 'float16'
	local function forward()
		local x, w = xs:detach():requires_grad_(), ws:detach():requires_grad_()
		return x:quantize 'int8/1':linear(w:quantize 'int8/1', b, {out = 'float16'})
	end
	local kernels = kernels_of(function() forward():backward(g) end)
	local only = queued(forward)
	local both = queued(function() forward():backward(g) end)
	rates(('dX, dW, db of f16 dY, %d^3'):format(n), both - only, 4 * n ^ 3, ', ' .. kernels)
	local found, why = anchors(n, n, n, 'backward')
	against(('backward of int8 / two f16 products, sum %d^3'):format(n), found, why, 'backward', both - only, 0.93, 'forward and backward less forward')
end

-- ---- bytes ----

function stages.quantize()
	local n = pick(16384, 48)
	local function floats(size) return function() return tensor.randn(size, size, {device = device}):to 'float16' end end
	local x = rotated(2, floats(n))
	try('row-wise quantize', bandwidth_goal, ('row-wise quantize f16 to int8, %d^2'):format(n), 0.9, 3 * n * n, function(i) return x(i):quantize 'int8/1' end)
	try('global quantize', bandwidth_goal, ('global quantize f16 to int8, %d^2'):format(n), 0.88, 5 * n * n, function(i) return x(i):quantize 'int8' end)
	local q = rotated(2, function(i) return x(i):quantize 'int8/1' end)
	local out = q(1):dequantize():dtype()
	try('dequantize', bandwidth_goal, ('dequantize int8 to %s, %d^2'):format(out, n), 0.92, (1 + (out == 'float16' and 2 or 4)) * n * n,
		function(i) return q(i):dequantize() end)
	x, q = nil, nil -- luacheck: ignore 311
	local few = pick(4096, 40) -- 32 MiB each
	local small = rotated(sets_of(2 * few * few), floats(few))
	try('global quantize', bandwidth_goal, ('global quantize f16 to int8, %d^2, in one pass'):format(few), 0.75, 3 * few * few,
		function(i) return small(i):quantize 'int8' end)
end

function stages.weights()
	local n = pick(8192, 128)
	local count = pick(8, 2)
	local base = tensor.randn(n, n)
	local w, sets = rotated(count, function() return base:quantize 'int4:128':to(device) end)
	for _, case in ipairs {{1, 3.0}, {16, 2.0}} do
		local m, wanted = table.unpack(case)
		try('4-bit weights', function()
			local x = tensor.randn(m, n, {device = device}):to 'float16'
			local kernels = kernels_of(function() return x:linear(w(1)) end)
			local title = ('4-bit weights group 128, %d^2, M = %d'):format(n, m)
			if kernels:find 'host' then return row(title, 'missing', 'runs on the host: ' .. kernels) end
			local time, how = replayed({x}, function(i, given) return given[1]:linear(w(i)) end)
			local found, why = anchors(m, n, n, 'f16')
			against(title .. ' / f16', found, why, 'f16', time, wanted, kernels .. ', ' .. how)
			if m == 1 then
				local bytes = sets[1]:nbytes()
				goal(title .. ' / copy', bytes / time / bandwidth(), 0.8, ('%.0f GB/s, %.4g ms, %s'):format(bytes / time / 1e9, time * 1e3, how))
			end
		end)
	end
end

function stages.lines()
	local n = pick(16384, 48)
	local x = rotated(2, function() return tensor.randn(n, n, {device = device}) end)
	local ones = tensor.ones(n, {device = device})
	local size = (' float32, %d^2'):format(n)
	try('softmax', bandwidth_goal, 'softmax' .. size, 0.85, 8 * n * n, function(i) return x(i):softmax(2) end)
	try('layernorm', bandwidth_goal, 'layernorm' .. size, 0.85, 8 * n * n, function(i) return x(i):layernorm(ones, ones) end)
	try('gelu', bandwidth_goal, 'gelu' .. size, 0.85, 8 * n * n, function(i) return x(i):gelu() end)
	try('add', bandwidth_goal, 'add' .. size, 0.85, 12 * n * n, function(i) return x(i) + x(i + 1) end)
	x = nil -- luacheck: ignore 311
	try('Adam', function()
		local count = pick(1 << 27, 5000)
		local p = tensor.randn(count, {device = device}):requires_grad_()
		local o = optim.adam({p}, {lr = 1e-3});
		(p * 0.5):sum():backward()
		bandwidth_goal(('Adam, %d parameters'):format(count), 0.85, 28 * count, function() o:step() end)
	end)
end

local function attention_case()
	local length, heads, d = pick(4096, 32), pick(16, 2), pick(128, 16)
	local function part() return tensor.randn(1, length, heads * d, {device = device}):to 'float16' end
	local q, k, v = part(), part(), part()
	local function fn() return nn.attention(q, k, v, {heads = heads}) end
	local kernels, s, how = kernels_of(fn), queued(fn)
	return s, 4.0 * heads * length * length * d, kernels .. ', ' .. how, length, d
end

function stages.attention()
	local s, operations, text, length, d = attention_case()
	rates(('attention f16, L = %d, d = %d'):format(length, d), s, operations, ', ' .. text)
end

-- ---- PyTorch and Triton ----

local function mlp()
	local m = nn.Sequential {nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)}:to(device)
	return m, tensor.randn(128, 784):to(device), tensor.randint {128, low = 1, high = 10}:to(device)
end
local function lstm()
	local vocab, size, batch, steps = pick(10000, 30), pick(256, 8), pick(20, 2), pick(35, 3)
	local m = nn.Sequential {nn.Embedding(vocab, size), nn.LSTM(size, size, {layers = 2}), nn.Linear(size, vocab)}:to(device)
	local function ids() return tensor.randint {batch, steps, low = 1, high = vocab}:to(device) end
	return m, ids(), ids()
end

-- Seconds of a training step through Lua.
local function step_seconds(make)
	local m, x, y = make()
	local o = optim.adam(m, {lr = 1e-3})
	return queued(function()
		local loss = nn.crossentropy(m(x), y)
		o:zero()
		loss:backward()
		o:step()
	end)
end

function stages.torch()
	local limit = math.max(5, left() - 25)
	local text = 'all missing it is for a GPU\n'
	if real then
		local _, printed = output(('LD_LIBRARY_PATH="$CHECK_LIBRARY_PATH" timeout -k 2 %d "${CHECK_PYTHON:-python3}" gpu_torch.py 2>&1'):format(limit))
		text = printed
	end
	local found, why = parsed(text)
	local all = why.all or (next(found) or next(why)) and 'nothing was printed' or 'no PyTorch: ' .. (text:match '([^\n]+)%s*$' or 'no output')
	setmetatable(why, {__index = function() return all end})
	local n = pick(4096, 64)
	try('linear layer', function()
		local x, w, b = tensor.randn(n, n, {device = device}):to 'float16', tensor.randn(n, n, {device = device}):quantize 'int8/1', tensor.randn(n, {device = device})
		local qx = x:quantize 'int8/1'
		local fused = queued(function() return qx:linear(w, b, {out = 'float16'}) end)
		local dynamic = queued(function() return x:quantize 'int8/1':linear(w, b, {out = 'float16'}) end)
		local quantize = queued(function() return x:quantize 'int8/1' end)
		local shape = (' %d^3'):format(n)
		against('int8 linear / torch._int_mm, dequantize' .. shape, found, why, 'int_mm', fused, 1.5, 'queued')
		against('dynamic int8 / torchao, compiled' .. shape, found, why, 'torchao', dynamic, 1.0, 'queued')
		against('int8 linear / Triton' .. shape, found, why, 'triton_linear', fused, 1.2, 'queued')
		against('row-wise quantize / Triton' .. (' %d^2'):format(n), found, why, 'triton_quantize', quantize, 1.0, 'queued')
	end)
	try('attention', function()
		local s, _, how, length, d = attention_case()
		against(('attention f16 / SDPA, L = %d, d = %d'):format(length, d), found, why, 'sdpa', s, 0.5, how)
	end)
	for _, net in ipairs {{'MLP', 'mlp', mlp}, {'LSTM', 'lstm', lstm}} do
		try(net[1], function()
			local s, how = step_seconds(net[3])
			row(net[1] .. ' step', 'measured', ('%.4g ms, %s'):format(s * 1e3, how))
			against(net[1] .. ' step / torch eager', found, why, net[2] .. '_eager', s, 1.5, how)
			against(net[1] .. ' step / torch CUDA graph', found, why, net[2] .. '_graph', s, 0.9, how)
		end)
	end
end

-- ---- residency ----

-- Bytes between host and device in a training step, but the batch and the loss.
function stages.residency()
	local m = mlp()
	local o = optim.adam(m, {lr = 1e-3})
	local x, t = tensor.randn(128, 784), tensor.randint {128, low = 1, high = 10}
	local function step()
		local loss = nn.crossentropy(m(x:to(device)), t:to(device))
		o:zero()
		loss:backward()
		o:step()
		return loss:item()
	end
	step() step()
	local before = gpu.memory()
	step()
	local after = gpu.memory()
	local up, down = after.written - before.written, after.read - before.read
	local extra = up - x:nbytes() - t:nbytes() + down - 4
	row('bytes of a step beyond batch and loss', extra == 0 and 'reached' or 'below', ('%d bytes, goal 0 (%d up, %d down)'):format(extra, up, down))
end

local run = assert(stages[stage], 'no such stage')
if stage == 'machine' then
	run()
else
	try(stage, run)
end
