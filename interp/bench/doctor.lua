-- SPDX-License-Identifier: MIT
-- quoll doctor and hw.doctor: what was found on this machine, and why not. A finding is 'ok', 'none' (not there, and
-- nothing needs it) or 'problem' (something works worse than it could, or is set wrongly); its detail says what to do.
local _, internal = ...
local report = internal.import 'interp/prelude/report'
local bytes_text

local function read_line(file, pattern)
	local handle = io.open(file, 'rb')
	local text = handle and handle:read 'a' or ''
	if handle then handle:close() end
	return text:match(pattern)
end

function bytes_text(n)
	if n >= 1 << 30 then return ('%.1f GiB'):format(n / (1 << 30)) end
	if n >= 1 << 20 then return ('%.4g MiB'):format(n / (1 << 20)) end
	return ('%.4g KiB'):format(n / 1024)
end

---------------------------------------------------------------- the checks: each gets add(item, state, detail)

local function check_program(add, facts)
	add('Quoll', 'ok', ('%s, %s'):format(facts.quoll, facts.program))
	add('Lua', 'ok', facts.lua)
	add('compiler', 'ok', facts.compiler)
	add('libpng', 'ok', facts.png)
	add('zlib', 'ok', facts.zlib)
	add('liblzma', 'ok', facts.lzma)
	add('cJSON', 'ok', facts.cjson)
	add('libturbojpeg', facts.jpeg and 'ok' or 'none', facts.jpeg and 'reads JPEG' or 'not here: no JPEG; apt-get install libturbojpeg0')
end

local EXTENSIONS = {'vnni', 'avxvnni', 'amx', 'bf16', 'bf16tiles', 'popcnt'}

local function check_processor(add)
	local f = hw.features()
	local here, absent = {f.simd}, {}
	for _, name in ipairs(EXTENSIONS) do table.insert(f[name] and here or absent, name) end
	add('name', 'ok', f.name)
	add('cores', 'ok', ('%d, threads used: %d%s'):format(f.cores, tensor.threads(), hw.features().pinned and ', pinned' or ''))
	local caches = {}
	for i, size in ipairs {f.l1, f.l2, f.l3} do
		if size > 0 then caches[#caches + 1] = ('L%d %s'):format(i, bytes_text(size)) end
	end
	add('caches', #caches > 0 and 'ok' or 'none', #caches > 0 and table.concat(caches, ', ') or 'the system does not report them')
	add('instructions', 'ok', table.concat(here, ' ') .. (#absent > 0 and '; not here: ' .. table.concat(absent, ' ') or ''))
end

local function check_kernels(add)
	local wanted, used = os.getenv 'QUOLL_KERNEL', {}
	for _, row in ipairs(hw.kernels():where{used = true}) do used[#used + 1] = row.family .. ' ' .. row.kernel end
	add('in force', 'ok', table.concat(used, ', '))
	add('QUOLL_KERNEL', wanted and 'ok' or 'none', wanted or 'not set: the best that this machine has')
end

local function check_memory(add, facts)
	local free = tonumber(read_line('/proc/meminfo', 'MemAvailable:%s*(%d+) kB'))
	local limit = tonumber(read_line('/sys/fs/cgroup/memory.max', '^(%d+)'))
	add('memory', 'ok', bytes_text(facts.memory) .. (free and (', %s available'):format(bytes_text(free * 1024)) or ''))
	if limit and limit < facts.memory then add('limit', 'ok', bytes_text(limit) .. ' for this group of processes') end
end

local function check_blas(add, facts)
	local blas, wanted = facts.blas, os.getenv 'QUOLL_BLAS'
	if blas.open then
		add('BLAS', 'ok', (blas.config ~= '' and blas.config .. ', ' or '') .. blas.library)
	elseif wanted and wanted ~= '' then
		add('BLAS', 'problem', 'QUOLL_BLAS: ' .. blas.error)
	else
		add('BLAS', 'none', 'not needed: the kernels are our own; QUOLL_BLAS may name a CBLAS')
	end
end

local function check_plot(add)
	local good, text = internal.plot_facts()
	add('plplot', good and 'ok' or 'problem', good and text .. ', with its drivers for PNG, PDF and SVG' or text)
end

local function check_sweep(add)
	local good, text = internal.sqlite_facts()
	add('SQLite', good and 'ok' or 'problem', text)
end

-- Only who uses Jupyter needs it, so its absence is no problem.
local function check_kernel(add)
	local good, text = internal.kernel_facts()
	add('kernel', good and 'ok' or 'none', text)
end

local function toolkit()
	local roots = {}
	for _, name in ipairs {'CUDA_HOME', 'CUDA_PATH'} do roots[#roots + 1] = os.getenv(name) end
	for folder in (os.getenv 'PATH' or ''):gmatch '[^:]+' do roots[#roots + 1] = folder:match '^(.*)/bin/?$' end
	roots[#roots + 1] = '/usr/local/cuda'
	for _, root in ipairs(roots) do
		if internal.exists(root .. '/bin/nvcc') then
			local version = tonumber(read_line(root .. '/include/cuda.h', '#define%s+CUDA_VERSION%s+(%d+)'))
			return root, version and ('%d.%d'):format(version // 1000, version % 1000 // 10)
		end
	end
end

local function check_gpu(add, facts)
	local driver, root, version = facts.driver, toolkit()
	local usable, why = gpu.available()
	local info = gpu.info()
	if driver.version then
		local names = table.concat(driver.devices, ', ')
		add('driver', 'ok', ('CUDA %s, %s'):format(driver.version, names ~= '' and names or 'no device'))
	else
		add('driver', 'none', driver.error)
	end
	add('toolkit', root and 'ok' or 'none', root and ('CUDA %s, %s'):format(version or '(unknown version)', root) or
		'no nvcc in CUDA_HOME, PATH or /usr/local/cuda')
	add('devices', 'ok', table.concat(gpu.devices(), ' '))
	if usable then
		add('plug-in', 'ok', info.plugin)
		return add('kernels', 'ok', info.state)
	end
	add('plug-in', (info.plugin or os.getenv 'QUOLL_GPU_PLUGIN') and 'problem' or 'none', why)
end

local SETS = {'images', 'mnist', 'weights', 'cifar10', 'ptb', 'text'}

local function check_data(add)
	local given = os.getenv 'QUOLL_DATA'
	local found_any = false
	for i, folder in ipairs(data.folders()) do
		local sets = {}
		for _, set in ipairs(SETS) do
			if internal.exists(folder .. '/' .. set) then sets[#sets + 1] = set end
		end
		local state, detail = 'ok', table.concat(sets, ' ')
		if not internal.exists(folder) then
			state, detail = given and 'problem' or 'none', 'no such folder'
		elseif #sets == 0 then
			state, detail = given and 'problem' or 'none', 'has none of ' .. table.concat(SETS, ' ')
		end
		found_any = found_any or state == 'ok'
		add('folder ' .. i, state, folder .. ': ' .. detail)
	end
	if not found_any then add('found', 'none', 'tutorials draw and compute their input; set QUOLL_DATA or use ./data') end
end

local function check_terminal(add, facts)
	add('output', facts.terminal and 'ok' or 'none', facts.terminal and
		('%s, %d columns'):format(os.getenv 'TERM' or 'TERM is not set', internal.width()) or 'not a terminal')
	add('graphics', internal.terminal_facts())
end

local PARTS = {{'program', check_program}, {'processor', check_processor}, {'kernels', check_kernels},
	{'memory', check_memory}, {'products', check_blas}, {'pictures', check_plot}, {'sweeps', check_sweep},
	{'jupyter', check_kernel}, {'gpu', check_gpu}, {'data', check_data}, {'terminal', check_terminal}}

---------------------------------------------------------------- as a report and as text

local doctor = {}

function doctor.report()
	local facts, list = internal.facts(), {columns = {'part', 'item', 'state', 'detail'}}
	for _, part in ipairs(PARTS) do
		part[2](function(item, state, detail)
			list[#list + 1] = {part = part[1], item = item, state = state, detail = detail}
		end, facts)
	end
	return report(list)
end

local function words(text, width)
	local lines, line = {}, ''
	for word in text:gmatch '%S+' do
		if line ~= '' and #line + 1 + #word > width then
			lines[#lines + 1], line = line, ''
		end
		line = line == '' and word or line .. ' ' .. word
	end
	lines[#lines + 1] = line
	return lines
end

-- Prints the findings by part; returns the exit code.
function doctor.run()
	local part, problems, width = nil, 0, math.max(40, math.min(100, internal.width()))
	for _, row in ipairs(doctor.report()) do
		if row.part ~= part then
			part = row.part
			print(part)
		end
		if row.state == 'problem' then problems = problems + 1 end
		local head = ('  %-13s  %-7s  '):format(row.item, row.state)
		for i, line in ipairs(words(row.detail, width - #head)) do
			print((i == 1 and head or (' '):rep(#head)) .. line)
		end
	end
	print(problems == 0 and 'No problem found.' or problems == 1 and '1 problem found.' or problems .. ' problems found.')
	return problems == 0 and 0 or 1
end

return doctor
