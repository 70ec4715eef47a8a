-- SPDX-License-Identifier: MIT
-- Devices in the program: --device and QUOLL_DEVICE, families of kernels, sweeps, tutorials, completion, the doctor; in processes of their own.
local D = os.getenv 'QUOLL_TEST_DEVICE'
if not D then skip 'cudaemu: the emulation is not built' end
local scratch = dofile 'tests/tools/scratch.lua'
local folder, write = scratch.folder()
local function run(words) return scratch.shell(folder, words) end
local emulated = D == 'cudaemu'

local WHERE = [[-e 'print(tensor.zeros(2):device(), tensor{1}:device(), tensor{1, 2, quant="int8"}:device(), nn.Linear(2, 1).weight:device())']]

it('make new tensors where --device and QUOLL_DEVICE say', function()
	local there = ('\t' .. D):rep(4):sub(2)
	for _, words in ipairs {'$exe --device ' .. D, 'QUOLL_DEVICE=' .. D .. ' $exe'} do
		local text, code = run(words .. ' ' .. WHERE)
		assert(code == 0 and text:sub(1, #there) == there, text)
	end
	local text = run('$exe --device cpu ' .. WHERE)
	assert(text:find '^cpu\tcpu\tcpu\tcpu', text)
	local code
	text, code = run '$exe --device nowhere -e 1'
	assert(code ~= 0 and text:find('--device: wanted cpu, cuda, cuda:1, … or cudaemu, got \'nowhere\'', 1, true), text)
end)

it('say what is there', function()
	local text = run [[$exe -e 'print(table.concat(gpu.devices(), " "), gpu.info().state, #gpu.kernels(), hw.features().gpu)']]
	assert(text:find(D, 1, true) and text:find 'tested on the CPU by emulation; not yet run on a GPU', text)
	text = run '$exe doctor'
	assert(text:find('devices *ok *cpu.* ' .. D) and text:find 'plug%-in *ok', text)
	text = run [[$exe -e 'for _, name in ipairs {"gpu", "gpu.fallback", "gpu.kernels", "x:to", "nn.module:to"} do help(name) end']]
	assert(text:find "x:to 'cuda'" and text:find 'cudaemu', text)
end)

it('wait for an input at the prompt: its errors, time and memory are its own', function()
	write('lines.txt', ([[e = nn.Embedding(4, 3):to '%s'
y = e(tensor{9, dtype = 'int64'}:to '%s')
print 'the next input'
%%time x = tensor.zeros({1 << 18}, {device = '%s'})
%%set footer on
y = x:clone()
]]):format(D, D, D))
	local text = run '$exe -i < lines.txt 2>&1'
	local failed, later = text:find 'embedding: ids: wanted 1 to 4, the rows of the table, got 9', text:find 'the next input'
	assert(failed and later and select(2, text:gsub('embedding:', '')) == 1, text)
	assert(text:find 'time [^\n]*, tensors %+%S+ %a+, on devices %+1%.0 MiB at the peak' and text:find 's, tensors %+%S+ %a+, on devices %+1%.0 MiB at the peak\n', text)
end)

local PRODUCT = [[local a, b = tensor.randn(8, 64):quantize "int8":to "%s", tensor.randn(8, 64):quantize "int8/1":to "%s" quant.log "reset"
a:linear(b) local row = quant.log()[1] print(row.path, row.kernel, row.reason)]]
local product = PRODUCT:gsub('%%s', D):gsub('\n', ' ')

if emulated then
	it('go on after a device is out of memory', function()
		local text = run [[QUOLL_EMU_MEMORY=1000000 $exe -e 'local good, why = pcall(tensor.zeros, {1000, 1000}, {device = "cudaemu"}) print(good, why)
			print(tensor.ones({100, 100}, {device = "cudaemu"}):sum():item())' 2>&1]]
		assert(text == 'false\tzeros: out of memory: wanted 4000000 bytes on cudaemu, 0 in use (allocating memory: cudaErrorMemoryAllocation)\n10000.0\n', text)
	end)

	it('choose the fastest way of a layer on a device: its families, never the host', function()
		write('tune.lua', [[local r, all = hw.tune({op = 'matmul', m = 2, n = 8, k = 32, device = 'cudaemu'}, {time = 100, runs = 1, minsqnr = 10})
local families, hosts = {}, 0
for _, row in ipairs(all) do
	families[row.level] = true
	hosts = hosts + (row.kernel:find '^host ' and row.refused == 'the device has no kernel of it' and 1 or 0)
	assert(not row.kernel:find 'avx' or row.kernel:find '^host ', row.kernel)
end
print(families.native and families.simt and families['simt mma'] and families['simt dp4a'], hosts > 0, r.kernel:find 'host' == nil, hw.force())
print(hw.recommend{op = 'matmul', m = 4, n = 32, k = 64}.kernel:find('_avx', 1, true) ~= nil or hw.features().level == 'ref')]])
		local text = run 'XDG_CACHE_HOME=$PWD/cache $exe tune.lua 2>&1'
		assert(text == 'true\ttrue\ttrue\tnative\ntrue\n', text)
		local handle = assert(io.open(folder .. '/cache/quoll/measured.tsv'))
		text = handle:read 'a'
		handle:close()
		assert(text:find('|native simt dp4a|', 1, true) and text:find('\n' .. hw.features().name, 1, true), text)
	end)

	it('choose families of kernels', function()
		local function kernel(level, words) return run(('%s$exe %s -e \'%s\''):format(level and ('QUOLL_KERNEL="%s" '):format(level) or '', words or '', product)) end
		local text = kernel()
		assert(text:find '^int8\tgemm_i8_mma', text)
		text = kernel 'simt dp4a'
		assert(text:find '^int8\tgemm_i8_dp4a', text)
		text = kernel(nil, '--kernel "ref dp4a"')
		assert(text:find '^int8\tgemm_i8_dp4a', text)
		text = kernel 'simt'
		assert(text:find '^host\t', text)
		text = run(([[$exe -e 'tensor.zeros(1):to "%s" print(hw.force "ref dp4a", hw.force()) for _, r in ipairs(gpu.kernels()) do if r.ops == "linear matmul" then print(r.kernel, r.used) end end %s print(hw.force "native", hw.force())']]):format(D, product))
		assert(text:find '^native\tref dp4a\n' and text:find 'gemm_i8_mma\tfalse' and text:find 'gemm_i8_dp4a\ttrue', text)
		assert(text:find '\nint8\tgemm_i8_dp4a' and text:find '\nref dp4a\tnative\n', text)
		for _, bad in ipairs {'dp5a', 'dp4a dp4a', 'ref avx2', ''} do
			local _, code = run(('$exe --kernel "%s" -e 1'):format(bad))
			assert(code ~= 0 or bad == '', bad)
		end
	end)
end

it('take trials of sweeps', function()
	write('s.lua', [[print(sweep.run{name="s", grid={x={1,2}}, log=false, run=function(c) return {where=tensor.zeros(c.x):device()} end})]])
	for _, words in ipairs {'$exe --device %s s.lua --db a.db', '$exe s.lua --device %s --db b.db', '$exe --device cpu s.lua --device=%s,%s --jobs 2 --db c.db'} do
		local text = run((words:gsub('%%s', D)))
		assert(select(2, text:gsub(D, '')) == 2 or text:find('all rows: where ' .. D, 1, true), text)
	end
	local text = run '$exe s.lua --device cpu,%'
	assert(text:find("sweep: device: wanted names of devices as 'cuda' or 'cuda:0,cuda:1'", 1, true), text)
	text = run("$exe -e 'sweep.run{name=\"s\", grid={x={1}}, run=print, jobs=0, device=\"cpu\"}'")
	assert(text:find 'run: device: wanted jobs=1 or more', text)
end)

it('say on stderr when the host helps, if they shall', function()
	local text = run(([[$exe -e 'gpu.fallback "warn" print(tensor{2, 1}:to "%s":sort():device())' 2>&1]]):format(D))
	assert(text:find(('warning: sort: runs on the host: %s: '):format(D), 1, true) and text:find('\n' .. D), text)
end)

it('are words of the prompt', function()
	local text = run(([[printf '%%s\n' 'tensor{1, 2}:to "%s"' 'Out[1] * 2' 'y = Out[1]' '?y' | $exe -i 2>&1]]):format(D))
	assert(text:find('float32%(2%)  2  4') and text:find('device *' .. D), text)
end)
