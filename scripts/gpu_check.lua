-- SPDX-License-Identifier: MIT
-- Checks a device and measures it, in at most 8 minutes. On the machine that builds:
--   quoll scripts/gpu_check.lua pack FOLDER BUILD      writes one folder of at most 64 MiB with all that the other needs
-- On the machine with the GPU, which may have no network and no compiler:
--   FOLDER/run.sh [DEVICE]                             cuda by default; cudaemu shows without a GPU that the check works
-- First the PTX wrappers one by one, then the kernels on ragged shapes, the sanitizer, ops against the CPU, bandwidth, the goals of
-- the backend with the ratio that was reached. What is missing (cuBLASLt, compute-sanitizer, an anchor) is a row with the reason. The
-- table also goes to FOLDER/gpu_check.txt. Times on cudaemu say nothing: shapes are small there.
local mode, folder, build = arg[1], arg[2], arg[3]
local LIMIT, SIZE = 480, 64 << 20
local NOT_FOR_A_GPU = {bugs = true, plugin = true, failures = true, faults = true} -- of the emulation

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end
local function output(command)
	local pipe = assert(io.popen(command))
	local text = pipe:read 'a'
	return pipe:close() and text or nil, text
end
local function exists(path)
	local handle = io.open(path, 'rb')
	if handle then handle:close() end
	return handle ~= nil
end

-- ---- packing ----

local function copy(from, to)
	assert(os.execute(('mkdir -p %s && cp %s %s && { strip %s 2>/dev/null || :; }'):format(quoted(to:match '^(.*)/'), quoted(from),
		quoted(to), quoted(to))), 'cannot copy ' .. from)
end

-- Shared libraries that the file needs, but those of the C library.
local function libraries(file)
	local found = {}
	for name, path in (output('ldd ' .. quoted(file)) or ''):gmatch '%s(%S+) => (/%S+)' do
		local glibc = name:find '^libc%.so' or name:find '^libm%.so' or name:find '^ld%-' or name:find '^libpthread' or name:find '^libdl%.' or
			name:find '^librt%.'
		if not glibc then found[name] = path end
	end
	return found
end

local function pack()
	assert(folder and build, 'usage: quoll scripts/gpu_check.lua pack FOLDER BUILD')
	local files = {[build .. '/quoll'] = 'quoll', ['scripts/gpu_check.lua'] = 'gpu_check.lua'}
	for name, path in pairs {cuda = build .. '/gpu/quoll_cuda.so', cudaemu = build .. '/quoll_cudaemu.so'} do
		if exists(path) then files[path] = 'quoll_' .. name .. '.so' else print(('left out: %s: not built'):format(path)) end
	end
	for path in output 'ls tests/gpu/*.c':gmatch '[^\n]+' do
		local stem = path:match '([%w_]+)%.c$'
		local program = ('%s/tests/tests_gpu_%s_c'):format(build, stem)
		if not NOT_FOR_A_GPU[stem] and exists(program) then files[program] = 'tests/' .. stem end
	end
	local nvcc = output 'command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null'
	local anchor = build .. '/gpu_anchor'
	if nvcc and os.execute(('%s -std=c++17 -O2 -I. -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90 -o %s ' ..
		'tests/tools/gpu_anchor.cu gpu/cuda/library.c -cudart static -Xlinker -ldl'):format(nvcc:match '[^\n]+', quoted(anchor))) then
		files[anchor] = 'anchor'
	else
		print 'left out: times of cuBLASLt: no nvcc, or no header of the library'
	end
	local needed = {}
	for from, to in pairs(files) do
		copy(from, folder .. '/' .. to)
		if to ~= 'gpu_check.lua' then for name, path in pairs(libraries(from)) do needed[name] = path end end
	end
	for name, path in pairs(needed) do copy(path, folder .. '/lib/' .. name) end
	local handle = assert(io.open(folder .. '/run.sh', 'w'))
	handle:write([[#!/bin/sh
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")" || exit 1
device=${1:-cuda}
LD_LIBRARY_PATH=$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} QUOLL_GPU_PLUGIN=$PWD/quoll_$device.so
export LD_LIBRARY_PATH QUOLL_GPU_PLUGIN
exec ./quoll gpu_check.lua run "$device"
]])
	handle:close()
	assert(os.execute('chmod +x ' .. quoted(folder .. '/run.sh')))
	local size = tonumber(output('du -sb ' .. quoted(folder)):match '%d+')
	print(('%s: %.1f MiB'):format(folder, size / 2 ^ 20))
	os.exit(size <= SIZE)
end

-- ---- rows ----

local device = arg[2] or 'cuda'
local real = device ~= 'cudaemu'
local began, rows, failed = os.time(), {}, 0
local function left() return LIMIT - (os.time() - began) end

-- state: passed, failed, measured, missing, reached, below
local function row(section, name, state, text)
	rows[#rows + 1] = ('%-12s %-58s %-9s %s'):format(section, name, state, text or '')
	failed = failed + (state == 'failed' and 1 or 0)
	print(rows[#rows])
end

-- Runs fn(…) unless the time is over; an error is a row.
local function try(section, name, fn, ...)
	if left() < 10 then return row(section, name, 'missing', 'no time is left') end
	local good, why = pcall(fn, ...)
	if not good then row(section, name, 'failed', tostring(why):match '[^\n]*') end
end

-- ---- programs ----

-- A test program on the plug-in, by a tool in front of it.
local function run_test(section, stem, tool)
	local _, text = output(('QUOLL_TEST_CUDAEMU="$QUOLL_GPU_PLUGIN" timeout %d %s ./tests/%s 2>&1'):format(
		math.max(5, math.min(90, left() - 5)), tool or '', stem))
	local passed, bad, skipped = text:match '(%d+) passed, (%d+) failed, (%d+) skipped'
	local good = passed and bad == '0' and not text:find 'ERROR SUMMARY: [1-9]'
	if good and skipped ~= '0' and passed == '0' then return row(section, stem, 'missing', text:match 'skipped: [^\n]*') end
	local why = text:match '[^\n]*failed:[^\n]*' or text:match '=* *[^\n]*[Ee]rror[^\n]*' or text:match '[^\n]*' or ''
	row(section, stem, good and 'passed' or 'failed', good and passed .. ' cases' or why:sub(1, 160))
end

local function programs()
	local list = {}
	for stem in output 'ls tests':gmatch '[%w_]+' do if stem ~= 'wrappers' then list[#list + 1] = stem end end
	try('wrappers', 'wrappers', run_test, 'wrappers', 'wrappers')
	for _, stem in ipairs(list) do try('kernels', stem, run_test, 'kernels', stem) end
	local tool = output [[for f in "$(command -v compute-sanitizer)" /usr/local/cuda/bin/compute-sanitizer \
		$(python3 -c "import glob, site; print(' '.join(glob.glob(site.getsitepackages()[0] + '/nvidia/*/bin/compute-sanitizer')))" 2>/dev/null)
		do [ -x "$f" ] && echo "$f" && exit; done; exit 1]]
	for _, kind in ipairs {'memcheck', 'racecheck'} do
		if tool and real then
			try('sanitizer', kind, function()
				for _, stem in ipairs {'wrappers', 'reduce'} do
					run_test(kind, stem, ('%s --tool %s --error-exitcode 9'):format(quoted(tool:match '[^\n]+'), kind))
				end
			end)
		else
			row('sanitizer', kind, 'missing', real and 'compute-sanitizer is not installed' or 'it is for a GPU')
		end
	end
end

-- ---- ops against the CPU ----

local function farthest(a, b)
	a, b = a:to 'cpu', b:to 'cpu'
	assert(a:dtype() == b:dtype(), 'another dtype')
	return (a:to 'float64' - b:to 'float64'):abs():max():item() / math.max(1e-30, b:to 'float64':abs():max():item())
end

local function ops()
	local function compare(name, tolerance, fn, ...)
		local here, there = {...}, {}
		for i, t in ipairs(here) do there[i] = t:to(device) end
		local far = farthest(fn(table.unpack(there)), fn(table.unpack(here)))
		assert(far <= tolerance, ('%g away, allowed are %g'):format(far, tolerance))
		row('ops', name, 'passed', far == 0 and 'the same bits' or ('%.2g away'):format(far))
	end
	local function case(name, ...) try('ops', name, compare, name, ...) end
	for _, s in ipairs {{1, 1, 1}, {17, 9, 31}, {129, 130, 336}, {200, 261, 700}} do
		local m, n, k = table.unpack(s)
		local x, w, b = tensor.randn(m, k), tensor.randn(n, k), tensor.randn(n)
		local shape = (' %d x %d x %d'):format(m, n, k)
		case('linear uint8/1 int8/1' .. shape, 0, function(p, q, r) return p:linear(q, r, {act = 'relu'}) end, x:quantize 'uint8/1',
			w:quantize 'int8/1', b)
		case('linear float32' .. shape, 1e-5, function(p, q, r) return p:linear(q, r) end, x, w, b)
		case('quantize int8/1' .. shape, 0, function(p) return p:quantize 'int8/1':dequantize() end, x)
		case('softmax' .. shape, 0, function(p) return p:softmax(2) end, x)
		case('sum' .. shape, 0, function(p) return p:sum(1) end, x)
		case('gelu' .. shape, 0, function(p) return p:gelu() end, x)
	end
end

-- ---- times ----

-- Seconds of one call: many are queued, then waited for.
local function seconds(fn)
	local r = bench.time(fn, {runs = real and 7 or 1, warmup = real and 3 or 0, timeout = real and 4 or 1})
	return r.ms / 1e3
end

-- Kernels of one call.
local function kernels_of(fn)
	quant.log 'reset'
	fn()
	local found = {}
	for _, r in ipairs(quant.log()) do found[#found + 1] = r.path == 'host' and 'host' or r.kernel end
	return table.concat(found, ' ')
end

local bandwidth -- bytes a second of a copy, read and write counted

local function goal(name, ratio, wanted, text)
	if not real then return row('goals', name, 'measured', ('%.2f of %.2f; no goal on cudaemu: %s'):format(ratio, wanted, text)) end
	row('goals', name, ratio >= wanted and 'reached' or 'below', ('%.2f of %.2f: %s'):format(ratio, wanted, text))
end

-- The share of the bandwidth of a copy that `bytes` in one call reach.
local function bandwidth_goal(name, wanted, bytes, fn)
	local kernels = kernels_of(fn)
	if kernels:find 'host' then return row('goals', name, 'missing', 'runs on the host') end
	if not bandwidth then return row('goals', name, 'missing', 'no bandwidth of a copy') end
	local s = seconds(fn)
	goal(name, bytes / s / bandwidth, wanted, ('%.0f GB/s, %s'):format(bytes / s / 1e9, kernels))
end

local function copies()
	local n = real and 1 << 26 or 1 << 14
	local x = tensor.ones(n):to(device)
	local s = seconds(function() return x:clone() end)
	bandwidth = 8 * n / s
	row('bandwidth', ('clone of %d MiB'):format(4 * n >> 20), 'measured', ('%.0f GB/s'):format(bandwidth / 1e9))
end

-- Seconds of cuBLASLt by name, and why there are none.
local function anchors(m, n, k)
	local found, why = {}, {}
	local text = output(('timeout 60 ./anchor %d %d %d 2>&1'):format(m, n, k)) or ''
	for name, rest in text:gmatch '([%w+]+) ([^\n]+)' do
		found[name], why[name] = tonumber(rest), rest:match '^missing (.*)'
	end
	return found, why
end

-- m, n, k, and the goals: fused int8 over the anchors
local SHAPES = {
	{8192, 8192, 8192, {['int8'] = 0.9, ['int8+dequantize'] = 1.1, bf16 = 1.6}},
	{4096, 4096, 1024, {['int8+dequantize'] = 1.7}},
	{4096, 4096, 4096, {['int8+dequantize'] = 1.1}},
	{16384, 4096, 4096, {['int8+dequantize'] = 1.1, bf16 = 1.6}},
}

local function product(m, n, k, goals)
	local shape = (' %d x %d x %d'):format(m, n, k)
	local x, w = tensor.randn(m, k, {device = device}):quantize 'int8/1', tensor.randn(n, k, {device = device}):quantize 'int8/1'
	local function fn() return x:linear(w) end
	local kernels, time = kernels_of(fn), seconds(fn)
	local function line(name, s) row('products', name .. shape, 'measured', ('%.3f ms, %.1f T/s'):format(s * 1e3, 2 * m * n * k / s / 1e12)) end
	line('fused int8, ' .. kernels, time)
	local found, why = anchors(m, n, k)
	for _, name in ipairs {'int8', 'int8+dequantize', 'bf16', 'fp8'} do
		local title = 'fused int8 over cuBLASLt ' .. name .. shape
		local missing = why[name] or 'the anchor program was not built'
		if found[name] then line('cuBLASLt ' .. name, found[name]) end
		if goals[name] and found[name] then
			goal(title, found[name] / time, goals[name], kernels)
		elseif not found[name] then
			row(goals[name] and 'goals' or 'products', goals[name] and title or 'cuBLASLt ' .. name .. shape, 'missing', missing)
		end
	end
end

local function products()
	for _, s in ipairs(real and SHAPES or {{70, 80, 144, SHAPES[1][4]}}) do try('goals', 'fused int8', product, table.unpack(s)) end
	-- quantizing x counts, too
	local m = real and 4096 or 72
	try('goals', 'dynamic int8 linear', function()
		local x, w = tensor.randn(m, m, {device = device}), tensor.randn(m, m, {device = device}):quantize 'int8/1'
		local time = seconds(function() return x:quantize 'int8/1':linear(w) end)
		local found, why = anchors(m, m, m)
		local title = ('dynamic int8 linear over cuBLASLt bf16 %d^3'):format(m)
		if found.bf16 then goal(title, found.bf16 / time, 1.3, ('%.3f ms'):format(time * 1e3))
		else row('goals', title, 'missing', why.bf16 or 'the anchor program was not built') end
	end)
end

local function streams()
	local n = real and 16384 or 48
	local x = tensor.randn(n, n, {device = device}):to 'float16'
	try('goals', 'row-wise quantize', bandwidth_goal, ('row-wise quantize f16 to int8, %d^2'):format(n), 0.9, 3 * n * n,
		function() return x:quantize 'int8/1' end)
	try('goals', 'global quantize', bandwidth_goal, ('global quantize f16 to int8, %d^2'):format(n), 0.88, 5 * n * n,
		function() return x:quantize 'int8' end)
	local q = x:quantize 'int8/1'
	try('goals', 'dequantize', bandwidth_goal, ('dequantize int8, %d^2'):format(n), 0.92,
		(1 + (q:dequantize():dtype() == 'float16' and 2 or 4)) * n * n, function() return q:dequantize() end)
	local y = x:to 'float32'
	for _, op in ipairs {'softmax', 'gelu', 'layernorm'} do
		try('goals', op, bandwidth_goal, ('%s float32, %d^2'):format(op, n), 0.85, 8 * n * n, function() return y[op](y, op == 'softmax' and 2 or nil) end)
	end
end

local function weights()
	local n = real and 8192 or 128
	local x, sets, at = tensor.randn(1, n, {device = device}), {}, 0
	for i = 1, real and 8 or 2 do sets[i] = tensor.randn(n, n):quantize 'int4:128':to(device) end
	bandwidth_goal(('4-bit weights group 128, %d^2, M = 1, rotated'):format(n), 0.8, n * n // 2 + n * n // 128 * 2, function()
		at = at % #sets + 1
		return x:linear(sets[at])
	end)
end

-- Bytes between host and device in a training step, but the batch and the loss.
local function residency()
	local m = nn.Sequential {nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 10)}:to(device)
	local o = optim.adam(m, {lr = 1e-3})
	local x, t = tensor.randn(16, 32), tensor.randint{16, low = 1, high = 10}
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
	row('goals', 'bytes of a training step beyond batch and loss', extra == 0 and 'reached' or 'below', ('%d bytes, wanted 0 (%d up, %d down)'):format(extra, up, down))
end

local function run()
	local usable, why = gpu.available()
	local info = gpu.info()
	local d = info.devices and info.devices[1] or {}
	row('machine', device, usable and 'passed' or 'failed', usable and ('%s, capability %s, %d processors, %.0f GiB, %s'):format(d.name,
		d.capability, d.processors, d.memory / 2 ^ 30, os.date '%Y-%m-%d') or why)
	if usable then
		programs()
		ops()
		try('bandwidth', 'copy', copies)
		products()
		streams()
		try('goals', '4-bit weights', weights)
		try('goals', 'bytes of a training step', residency)
		for _, name in ipairs {'attention over torch', 'linear layer over torch and torchao', 'MLP and LSTM steps over torch'} do
			row('goals', name, 'missing', 'the folder carries no torch')
		end
	end
	row('time', 'seconds', 'measured', ('%d of %d'):format(os.time() - began, LIMIT))
	local handle = io.open('gpu_check.txt', 'w')
	if handle then
		handle:write(table.concat(rows, '\n'), '\n')
		handle:close()
	end
	os.exit(usable and failed == 0)
end

if mode == 'pack' then pack() elseif mode == 'run' then run() else error 'usage: quoll scripts/gpu_check.lua pack FOLDER BUILD, or run [DEVICE] in that folder' end
