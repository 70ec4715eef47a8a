-- SPDX-License-Identifier: MIT
-- Checks a device and measures it, in at most 8 minutes. On the machine that builds:
--   quoll scripts/gpu_check.lua pack FOLDER BUILD      writes one folder of at most 64 MiB with all that the other needs
-- On the machine with the GPU, which may have no network and no compiler:
--   FOLDER/run.sh [DEVICE [STAGE ...]]                 cuda by default; cudaemu shows without a GPU that the check works
-- The stages are in scripts/gpu_stages.lua: each is a process with a limit of time, so that a kernel that hangs or a lost device ends
-- its own stage only. Rows are written to gpu_check.txt (in $OUT if that is set, else in the folder) as soon as they are known. What is missing (cuBLASLt,
-- compute-sanitizer, PyTorch) is a row with the reason. Times on cudaemu say nothing: shapes are small there.
local mode, folder, build = arg[1], arg[2], arg[3]
local LIMIT, SIZE = 480, 64 << 20
local NOT_FOR_A_GPU = {bugs = true, plugin = true, failures = true, faults = true} -- of the emulation
local LUA = 'tests/gpu/*.lua tests/nn/quantize/quantized_linear.lua tests/tools/*.lua' -- tests of ops on any device, and their tools

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
local function write(path, text)
	local handle = assert(io.open(path, 'w'))
	handle:write(text)
	handle:close()
end

-- ---- packing ----

local function copy(from, to, strip)
	local command = ('mkdir -p %s && cp -L %s %s'):format(quoted(to:match '^(.*)/'), quoted(from), quoted(to))
	if strip then command = command .. (' && { strip %s 2>/dev/null || :; }'):format(quoted(to)) end
	assert(os.execute(command), 'cannot copy ' .. from)
end

-- Shared libraries that the file needs: name -> path, and whether it is one of the C library.
local GLIBC = {['libc.so'] = true, ['libm.so'] = true, ['libpthread.so'] = true, ['libdl.so'] = true, ['librt.so'] = true}
local function libraries(file)
	local found = {}
	for name, path in (output('ldd ' .. quoted(file)) or ''):gmatch '%s(%S+) => (/%S+)' do found[name] = path end
	return found, (output('ldd ' .. quoted(file)) or ''):match '%s(/%S*/ld%-linux%S*)'
end

-- Begins the check: the libraries of Python packages (CUDA installed by pip) are named to the plug-in, PyTorch later runs without those
-- of this folder. On a machine with an older C library the programs run by the one that is carried.
local RUN = [[
#!/bin/sh
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")" || exit 1
PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}
device=${1:-cuda}
[ $# -gt 0 ] && shift
[ -x quoll ] || tar xzf binaries.tar.gz || exit 1
CHECK_LIBRARY_PATH=${LD_LIBRARY_PATH-}
packages=
for python in python3 "${VIRTUAL_ENV:-/usr}/bin/python3" /opt/conda/bin/python3 /opt/*/.venv/bin/python3; do
	command -v "$python" >/dev/null 2>&1 || continue
	packages=$("$python" -c 'import glob, site
print(":".join(f for s in site.getsitepackages() for p in ("nvidia/*/lib", "torch/lib") for f in glob.glob(s + "/" + p)))' 2>/dev/null)
	CHECK_PYTHON=$python
	[ -n "$packages" ] && break
done
QUOLL_CUDA_LIBDIR=${QUOLL_CUDA_LIBDIR:+$QUOLL_CUDA_LIBDIR:}$packages
LD_LIBRARY_PATH=$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
QUOLL_GPU_PLUGIN=$PWD/quoll_$device.so
export PATH CHECK_LIBRARY_PATH CHECK_PYTHON QUOLL_CUDA_LIBDIR LD_LIBRARY_PATH QUOLL_GPU_PLUGIN
CHECK_LOADER=
if ! ./quoll -e 'return 1' >/dev/null 2>&1; then
	CHECK_LOADER="$PWD/glibc/ld.so --library-path $PWD/glibc:$LD_LIBRARY_PATH"
	unset LD_LIBRARY_PATH
fi
export CHECK_LOADER
exec $CHECK_LOADER ./quoll gpu_check.lua run "$device" "$@"
]]

local function pack_programs(files)
	for path in output 'ls tests/gpu/*.c':gmatch '[^\n]+' do
		local stem = path:match '([%w_]+)%.c$'
		local program = ('%s/tests/tests_gpu_%s_c'):format(build, stem)
		if not NOT_FOR_A_GPU[stem] then
			if exists(program) then files[program] = 'kernels/' .. stem else print(('left out: %s: not built'):format(program)) end
		end
	end
	local nvcc = output 'command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null'
	local anchor = build .. '/gpu_anchor'
	local targets = '-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=[sm_90,compute_90]'
	if nvcc and os.execute(('%s -std=c++17 -O2 -I. %s -o %s tests/tools/gpu_anchor.cu gpu/cuda/library.c -cudart static -Xlinker -ldl'):format(
		nvcc:match '[^\n]+', targets, quoted(anchor))) then
		files[anchor] = 'anchor'
	else
		print 'left out: times of cuBLASLt: no nvcc, or no header of the library'
	end
end

local function pack()
	assert(folder and build, 'usage: quoll scripts/gpu_check.lua pack FOLDER BUILD')
	assert(not exists(folder .. '/run.sh') or os.execute('rm -r ' .. quoted(folder)), 'cannot write ' .. folder) -- of an earlier pack
	local files, scripts, needed, loader = {[build .. '/quoll'] = 'quoll'}, {['scripts/gpu_check.lua'] = 'gpu_check.lua',
		['scripts/gpu_stages.lua'] = 'gpu_stages.lua', ['tests/tools/gpu_torch.py'] = 'gpu_torch.py'}, {}, nil
	for name, path in pairs {cuda = build .. '/gpu/quoll_cuda.so', cudaemu = build .. '/quoll_cudaemu.so'} do
		if exists(path) then files[path] = 'quoll_' .. name .. '.so' else print(('left out: %s: not built'):format(path)) end
	end
	pack_programs(files)
	for path in output('ls ' .. LUA):gmatch '[^\n]+' do scripts[path] = path end
	for from, to in pairs(scripts) do copy(from, folder .. '/' .. to) end
	for from, to in pairs(files) do
		copy(from, folder .. '/' .. to, true)
		local found, linker = libraries(from)
		loader = loader or linker
		for name, path in pairs(found) do needed[name] = path end
	end
	for name, path in pairs(needed) do copy(path, ('%s/%s/%s'):format(folder, GLIBC[name:match '^.-%.so'] and 'glibc' or 'lib', name), true) end
	if loader then copy(loader, folder .. '/glibc/ld.so') end
	local binaries = output(('cd %s && ls -d quoll *.so anchor kernels lib glibc 2>/dev/null; :'):format(quoted(folder))):gsub('%s+', ' ')
	assert(os.execute(('cd %s && tar czf binaries.tar.gz %s && rm -r %s'):format(quoted(folder), binaries, binaries)), 'cannot pack the binaries')
	write(folder .. '/run.sh', RUN)
	assert(os.execute('chmod +x ' .. quoted(folder .. '/run.sh')))
	local size = tonumber(output('du -sb ' .. quoted(folder)):match '%d+')
	print(('%s: %.1f MiB'):format(folder, size / 2 ^ 20))
	os.exit(size <= SIZE)
end

-- ---- running ----

local ROW, STATE = '%-9s %-54.54s %-8s %s', 66 -- of gpu_stages.lua: section, name, state, text; the column of the state

-- Seconds that each stage may take, in their order.
local STAGES = {{'machine', 30}, {'wrappers', 45}, {'kernels', 120}, {'ops', 45}, {'nets', 120}, {'products', 90}, {'backward', 40},
	{'quantize', 40}, {'weights', 50}, {'lines', 40}, {'attention', 20}, {'torch', 90}, {'residency', 20}, {'sanitizer', 60}} -- the last one is slow

local function run()
	local device, only = arg[2] or 'cuda', {}
	for i = 3, #arg do only[arg[i]] = true end
	local began, place = os.time(), os.getenv 'OUT'
	local path = (place and place ~= '' and place or '.') .. '/gpu_check.txt'
	local loader = os.getenv 'CHECK_LOADER' or ''
	write(path, '')
	local function row(name, state, text)
		local line = ROW:format(name, 'stage', state, text)
		print(line)
		local handle = assert(io.open(path, 'a'))
		handle:write(line, '\n')
		handle:close()
	end
	-- Why the stage cannot be, or has failed; nil: it ended well.
	local function stage(name, most)
		local limit, start = math.min(most, LIMIT - (os.time() - began) - 5), os.time()
		if limit < 8 then return 'missing', 'no time is left' end
		local sync = name == 'ops' and 'QUOLL_GPU_SYNC=1 ' or '' -- errors name their op
		local good, kind, code = os.execute(('%stimeout -k 5 %d %s ./quoll gpu_stages.lua %s %s %s %d 2>gpu_check.err'):format(sync, limit, loader, name,
			device, quoted(path), limit))
		if good then return end
		local handle = io.open 'gpu_check.err'
		local why = handle and handle:read 'l' or ''
		if handle then handle:close() end
		local what = ('%s %s'):format(kind, code)
		if (code == 124 or code == 137) and os.time() - start >= limit - 1 then what = ('ended after %d s'):format(limit) end
		return 'failed', what .. (why ~= '' and ': ' .. why:sub(1, 200) or '')
	end
	for _, known in ipairs(STAGES) do
		local name, most = table.unpack(known)
		if not next(only) or only[name] or name == 'machine' then
			local state, text = stage(name, most)
			if state then row(name, state, text) end
			if state and name == 'machine' then break end
		end
	end
	local count, bad = {}, {}
	for line in io.lines(path) do
		local state = line:sub(STATE):match '^%l+' or '?'
		count[state] = (count[state] or 0) + 1
		if state == 'failed' then bad[#bad + 1] = line end
	end
	local words = {}
	for state, n in pairs(count) do words[#words + 1] = n .. ' ' .. state end
	table.sort(words)
	row('all', 'measured', ('%s; %d of %d s'):format(table.concat(words, ', '), os.time() - began, LIMIT))
	for i = 1, math.min(#bad, 8) do print((i == 1 and 'first failure: ' or '') .. bad[i]) end
	os.exit(#bad == 0)
end

if mode == 'pack' then pack() elseif mode == 'run' then run() else
	error 'usage: quoll scripts/gpu_check.lua pack FOLDER BUILD, or run [DEVICE [STAGE ...]] in that folder'
end
