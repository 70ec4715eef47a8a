-- SPDX-License-Identifier: MIT
-- gpu: what is said with and without a device plug-in, in processes of their own.
local function run(setting, code)
	local pipe = io.popen(('exec env %s "/proc/$PPID/exe" -e %q 2>&1'):format(setting, code))
	local text = pipe:read 'a'
	pipe:close()
	return (text:gsub('\n$', ''))
end

local available = 'print(gpu.available())'

it('gives the reason when there is no plug-in', function()
	local text = run('-u QUOLL_GPU_PLUGIN', available)
	assert(text:find '^false\tno GPU plug%-in %(quoll_cuda%.so%) beside the program', text)
	text = run('QUOLL_GPU_PLUGIN=/no/such/plugin.so', available)
	assert(text:find '^false\t/no/such/plugin%.so: cannot open shared object file', text)
	text = run('QUOLL_GPU_PLUGIN=libz.so.1', available)
	assert(text:find 'has no function ql_gpu_entry: it is no plug%-in of Quoll', text)
end)

it('answers everything without one', function()
	local ok, why = gpu.available()
	local info, memory = gpu.info(), gpu.memory()
	assert(info.available == ok and info.reason == why and type(info.devices) == 'table')
	assert(memory.now == 0 and memory.peak == 0 and memory.total >= 0)
	gpu.sync()
	local f = hw.features()
	if not ok then
		assert(f.gpu == false and f.dp4a == false and f.imma == false and #info.devices == 0)
		local good, message = pcall(function() return tensor{1}:to 'cuda' end)
		assert(not good and not message:find '\n' and message:find 'cuda', message)
	end
end)

local plugin = os.getenv 'QUOLL_TEST_GPU_PLUGIN'
if not plugin then skip 'QUOLL_TEST_GPU_PLUGIN names no plug-in for tests' end
local here = ('QUOLL_GPU_PLUGIN=%s QUOLL_TEST_GPU='):format(plugin)

it('opens a plug-in that fits', function()
	assert(run(here .. 'yes', available) == 'true')
	local text = run(here .. 'yes', 'local d, f = gpu.info().devices[1], hw.features() print(d.name, d.capability, ' ..
		'd.processors, d.memory, d.usable, gpu.memory().total, f.gpu, f.dp4a, table.concat(f.imma, ","))')
	assert(text == 'Test GPU\t9.0\t132\t1073741824\ttrue\t1073741824\tTest GPU\ttrue\tint8,binary', text)
end)

it('says why one cannot be used', function()
	assert(run(here .. 'none', available) == 'false\tthe driver does not answer')
	assert(run(here .. 'empty', available) == 'false\tthe plug-in ghost found no device')
	assert(run(here .. 'unusable', available) == 'false\tTest GPU: compute capability too low')
	assert(run(here .. 'version', available):find 'was built for another version of the program')
	assert(run(here .. 'unusable', 'print(hw.features().gpu, gpu.info().devices[1].reason)') ==
		'false\tcompute capability too low')
end)
