-- SPDX-License-Identifier: MIT
-- hw: the features against what the kernel says of the processor, forcing of kernels, the clock.
local function read(file)
	local handle = io.open(file, 'rb')
	local text = handle and handle:read 'a' or ''
	if handle then handle:close() end
	return text
end

local f = hw.features()
local info = read '/proc/cpuinfo'
local flags = ' ' .. (info:match 'flags%s*:%s*([^\n]*)' or '') .. ' '
local function has(...)
	for _, flag in ipairs {...} do
		if not flags:find(' ' .. flag .. ' ', 1, true) then return false end
	end
	return true
end

it('agrees with /proc/cpuinfo', function()
	if info == '' then skip 'there is no /proc/cpuinfo' end
	local avx2 = has('avx2', 'fma', 'f16c')
	local avx512 = avx2 and has('avx512f', 'avx512bw', 'avx512dq', 'avx512vl', 'avx512cd')
	assert(f.simd == (avx512 and 'avx512' or avx2 and 'avx2' or 'sse2'), f.simd)
	assert(f.width == (avx512 and 64 or avx2 and 32 or 16))
	assert(f.vnni == (avx512 and has 'avx512_vnni'))
	assert(f.avxvnni == (avx2 and has 'avx_vnni'))
	assert(f.bf16 == (avx512 and has 'avx512_bf16'))
	assert(not f.bf16tiles or has 'amx_bf16')
	assert(f.popcnt == (avx512 and has 'avx512_vpopcntdq'))
	assert(not f.amx or has('amx_tile', 'amx_int8')) -- the system may refuse what is there
	assert(info:find(f.name, 1, true), f.name)
end)

it('agrees with the kernel about cores and caches', function()
	local online = 0
	for from, to in read('/sys/devices/system/cpu/online'):gmatch '(%d+)-?(%d*)' do
		online = online + (to ~= '' and to - from or 0) + 1
	end
	assert(f.cores >= 1 and (online == 0 or f.cores == online), f.cores)
	for i = 0, 3 do
		local folder = ('/sys/devices/system/cpu/cpu0/cache/index%d/'):format(i)
		local level, kilobytes = tonumber(read(folder .. 'level')), tonumber(read(folder .. 'size'):match '^(%d+)K')
		if level and kilobytes and not read(folder .. 'type'):find '^Instruction' then
			assert(f['l' .. level] == kilobytes * 1024, level .. ' ' .. f['l' .. level])
		end
	end
end)

it('is what the process was told by QUOLL_KERNEL', function()
	local wanted = os.getenv 'QUOLL_KERNEL'
	if wanted then assert(hw.force() == wanted) else assert(hw.force() == 'native') end
end)

---------------------------------------------------------------- force
local native = hw.force 'ref'
print(hw.force(), hw.features().level, hw.force 'avx2', hw.force(native))  --> ref ref ref avx2
print(hw.force() == native)  --> true
hw.force 'avx3'   --> error: force: wanted one of ref avx2 avxvnni avx512vnni amx native, got 'avx3'; did you mean 'avx2'?
hw.force(512)     --> error: force: wanted one of ref avx2 avxvnni avx512vnni amx native, got number
print(hw.force() == native)  --> true

it('gives kernels that the machine has, and the same integers on each', function()
	local a = tensor{{1, -2, 3, 100}, {5, 6, -7, -128}, dtype = 'int8'}
	local want = a:matmul(a:t()):totable()
	for level in ('ref avx2 avxvnni avx512vnni amx native'):gmatch '%S+' do
		hw.force(level)
		local r = hw.kernels()
		local used = r:where{used = true}
		local families = {}
		for _, row in ipairs(r) do families[row.family] = true end
		for family in pairs(families) do assert(#used:where{family = family} == 1, family) end
		for _, row in ipairs(used) do
			assert(row.here, row.family .. ' ' .. row.kernel)
			if level == 'ref' then assert(row.kernel == 'ref', row.family) end
		end
		assert(hw.features().level == used:where{family = 'gemm_i8'}.kernel)
		local got = a:matmul(a:t()):totable()
		for i = 1, 2 do for k = 1, 2 do assert(got[i][k] == want[i][k], level) end end
	end
	hw.force(native)
end)

it('reports the wall time', function()
	local start, cpu = hw.clock(), os.clock()
	os.execute 'sleep 0.05'
	local wall = hw.clock() - start
	assert(wall >= 0.05 and wall < 5 and os.clock() - cpu < wall, wall)
end)
