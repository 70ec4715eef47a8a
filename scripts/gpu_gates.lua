-- SPDX-License-Identifier: MIT
-- Compiles every kernel of gpu/kernels, compares registers and stack with gpu/kernels/budgets, and links them to a module to
-- see its size and how long it takes to load; the tests run it:
--   quoll scripts/gpu_gates.lua MODE BUILD [NVCC]         in the repository root; BUILD is the build folder
-- MODE: check   the targets that are shipped (sm_80 and sm_90, with PTX; *_wgmma.cu: sm_90a)
--       full    the other targets, too (sm_90a; *_wgmma.cu: the stubs), and the instructions in the SASS
--       update  writes budgets anew, with the words of lines that stay, and then notes that they pass
--       note    check, which compiles in any case and writes into budgets what passed: a hash of the sources, this file, the budgets,
--               the flags and the compiler's version. As long as it is the same, check compiles nothing
-- The aims are 90 s for check and 240 s for full, waiting at two idle cores: half of the processor time of all compilations,
-- which is printed, too. Objects, what the compiler said and the times of its parts (*.phases) stay in BUILD/gpu/gates until
-- the source, a header or the flags change, and count with the time that they took.
local mode, build, nvcc = arg[1], arg[2], arg[3]
assert(mode and build, 'usage: quoll scripts/gpu_gates.lua check|full|note|update BUILD [NVCC]')
local BUDGETS = 'gpu/kernels/budgets'
local CORES, LIMIT = 2, {check = 90, note = 90, full = 240}
local MODULE_BYTES = 8e6
local folder, generated = build .. '/gpu/gates', build .. '/gpu/generated'
local flags = ('-std=c++17 -O3 -fmad=false -I. -I%s -Xptxas -v -Xcompiler=-fPIC,-fvisibility=hidden,-ffp-contract=off,' ..
	'-fno-exceptions,-fno-asynchronous-unwind-tables'):format(generated)
local SHIPPED = {plain = '-gencode=arch=compute_80,code=[sm_80,sm_90,compute_80]', wgmma = '-gencode=arch=compute_90a,code=sm_90a'}
local OTHERS = {plain = SHIPPED.wgmma, wgmma = SHIPPED.plain}

local passed, failed, skipped = 0, 0, 0
local function check(good, ...)
	if good then
		passed = passed + 1
	else
		failed = failed + 1
		print(string.format(...))
	end
	return good
end
local function skip(what, why)
	skipped = skipped + 1
	print(('skipped: %s: %s'):format(what, why))
end
local function finish()
	print(('%d passed, %d failed, %d skipped'):format(passed, failed, skipped))
	os.exit(failed == 0)
end

local function read(path)
	local handle = io.open(path, 'rb')
	local text = handle and handle:read 'a'
	if handle then handle:close() end
	return text
end
local function write(path, text)
	local handle = assert(io.open(path, 'wb'))
	assert(handle:write(text))
	handle:close()
end
-- What a command prints; nil when it fails.
local function output(command)
	local pipe = assert(io.popen(command))
	local text = pipe:read 'a'
	return pipe:close() and text or nil
end
local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

if nvcc == '' or nvcc and nvcc:find 'NOTFOUND$' then nvcc = nil end
nvcc = nvcc or output 'command -v nvcc' and 'nvcc'
if not nvcc then
	skip('gates', 'nvcc is not installed')
	finish()
end

flags = flags .. ((output(quoted(nvcc) .. ' --help') or ''):find('--compress-mode', 1, true) and ' --compress-mode=size' or
	' -Xfatbin=-compress-all')

-- ---- compiling ----

-- The file and everything that it includes from the repository and the generated headers.
local function sources(file, seen, list)
	seen, list = seen or {}, list or {}
	local path = read(file) and file or generated .. '/' .. file
	local text = not seen[path] and read(path)
	seen[path] = true
	if not text then return list end
	list[#list + 1] = path
	for name in ('\n' .. text):gmatch '\n%s*#%s*include%s*"([^"]+)"' do sources(name, seen, list) end
	return list
end

-- Jobs: {name, file, key, command}; what is needed again is read from the folder.
local jobs, order = {}, {}
local function add(file, set)
	local stem = file:match '([%w_]+)%.cu?$'
	local list = sources(file)
	table.sort(list)
	for i, path in ipairs(list) do list[i] = quoted(path) end
	local host = file:find '%.c$'
	local targets = host and '-DQUOLL_VERSION=\\"gates\\"' or set[stem:find '_wgmma$' and 'wgmma' or 'plain']
	local command = ('%s %s %s'):format(quoted(nvcc), flags, targets)
	local name = ('%s/%s.%s'):format(folder, stem, host and 'host' or set == SHIPPED and 'shipped' or 'others')
	local key = command .. '\n' .. assert(output('sha256sum ' .. table.concat(list, ' ')), file)
	jobs[name] = {name = name, stem = stem, file = file, key = key, shipped = not host and set == SHIPPED, host = host, targets = targets, command =
		('%s --time %s.phases -c %s -o %s.o 2>&1 && echo compiled; times'):format(command, name, file, name)}
	order[#order + 1] = name
end

local function is_cached(job) return read(job.name .. '.key') == job.key and read(job.name .. '.o') ~= nil end

-- Two compilers at a time.
local function compile()
	local running = {}
	local function take()
		local job = table.remove(running, 1)
		job.log = job.pipe:read 'a'
		job.pipe:close()
		write(job.name .. '.log', job.log)
		if job.log:find '\ncompiled\n' then write(job.name .. '.key', job.key) end
	end
	for _, name in ipairs(order) do
		local job = jobs[name]
		if is_cached(job) then
			job.log = read(job.name .. '.log')
		else
			if #running == CORES then take() end
			os.remove(job.name .. '.key')
			job.pipe = assert(io.popen(job.command))
			running[#running + 1] = job
		end
	end
	while running[1] do take() end
end

-- Processor time of a compilation: the second line of `times` is that of the commands.
local function seconds(log)
	local sum = 0
	for minutes, rest in (log:match '([^\n]*)\n?$' or ''):gmatch '(%d+)m([%d.]+)s' do sum = sum + minutes * 60 + rest end
	return sum
end

-- ---- what the compiler said ----

-- The name of a kernel without arguments, from a mangled one: of the last part that is not the compiler's own.
local function plain_name(mangled)
	local rest, name = mangled:match '^_ZN?(.*)$', mangled
	while rest do
		local length = rest:match '^L?(%d+)'
		if not length then break end
		rest = rest:gsub('^L?%d+', '', 1)
		local part = rest:sub(1, tonumber(length))
		rest = rest:sub(#part + 1)
		if not part:find '^_' then name = part end
		if not mangled:find '^_ZN' then break end
	end
	return name
end

-- Row functions are arguments of dense_rows.
local function row_name(mangled) return mangled:match '_ZN%d+_INTERNAL_[%w_]-_rows_cu_%x+%d+rows_[%a_]+%d+([%a_][%w_]*_f%d%d)E' end

-- Registers, stack and spills by file and kernel: the most of all targets.
local measured, names = {}, {}
local function parse(job)
	local kernel
	for line in job.log:gmatch '[^\n]+' do
		local entry = line:match "Compiling entry function '([^']+)'"
		local stack, stores, loads = line:match '(%d+) bytes stack frame, (%d+) bytes spill stores, (%d+) bytes spill loads'
		local registers = line:match 'Used (%d+) registers'
		if entry then
			local name = job.stem .. '.' .. plain_name(entry)
			if not measured[name] then
				measured[name] = {registers = 0, stack = 0, spills = 0}
				names[#names + 1] = name
			end
			kernel = measured[name]
		elseif stack and kernel then
			kernel.stack = math.max(kernel.stack, tonumber(stack))
			kernel.spills = math.max(kernel.spills, stores + loads)
		elseif registers and kernel then
			kernel.registers = math.max(kernel.registers, tonumber(registers))
			kernel = nil
		end
		if line:find 'serialized' then check(false, '%s: %s', job.file, line) end
	end
end

-- ---- budgets ----

-- Lines of: file.kernel registers stack words
local function budgets()
	local found, head = {}, {}
	for line in (read(BUDGETS) or ''):gmatch '[^\n]+' do
		local name, registers, stack, words = line:match '^([%w_.]+)%s+(%d+)%s+(%d+)%s*(.*)$'
		if name then
			found[name] = {registers = tonumber(registers), stack = tonumber(stack), words = words}
		else
			head[#head + 1] = line
		end
	end
	return found, head
end

-- The processor gives registers to a warp eight at a time.
local function allocated(registers) return (registers + 7) // 8 * 8 end

local function update()
	local old, lines = budgets()
	table.sort(names)
	for _, name in ipairs(names) do
		local m, words = measured[name], old[name] and old[name].words or ''
		check(m.spills == 0, '%s: %d bytes of spills', name, m.spills)
		lines[#lines + 1] = (('%-48s %3d %4d  %s'):format(name, allocated(m.registers), m.stack, words):gsub('%s+$', ''))
	end
	write(BUDGETS, table.concat(lines, '\n') .. '\n')
	print(('%s: %d kernels'):format(BUDGETS, #names))
end

local LIBRARY = {conv_cudnn = true} -- files without kernels where the header of their library is missing
local function compare()
	local budget, found = budgets(), {}
	for _, name in ipairs(names) do
		found[name:match '^[^.]*'] = true
		local m, b = measured[name], budget[name]
		check(m.spills == 0, '%s: %d bytes of spills', name, m.spills)
		if check(b, '%s: no line in %s (quoll scripts/gpu_gates.lua update BUILD writes it)', name, BUDGETS) then
			check(m.registers <= b.registers, '%s: %d registers, the budget is %d', name, m.registers, b.registers)
			check(m.stack <= b.stack, '%s: %d bytes of stack, the budget is %d', name, m.stack, b.stack)
		end
	end
	for name in pairs(budget) do check(measured[name] or not found[name:match '^[^.]*'] and LIBRARY[name:match '^[^.]*'], '%s: a budget without a kernel', name) end
end

-- ---- what passed before ----

local PASSED = '# passed: '

-- The head of the budgets and their lines but the one that notes what passed.
local function budget_lines()
	local lines = {}
	for line in read(BUDGETS):gmatch '[^\n]+' do
		if line:sub(1, #PASSED) ~= PASSED then lines[#lines + 1] = line end
	end
	return lines
end

-- A hash of all that decides what a check of the shipped targets finds: the same on each machine with this compiler.
local function fingerprint()
	local function portable(text) return (text:gsub(generated:gsub('%p', '%%%0'), 'generated')) end
	local seen, paths, names_of, text = {}, {}, {}, budget_lines()
	for _, name in ipairs(order) do
		local job = jobs[name]
		if job.shipped or job.host then
			sources(job.file, seen, paths)
			text[#text + 1] = job.file .. ' ' .. job.targets
		end
	end
	for i, path in ipairs(paths) do
		paths[i] = portable(path)
		names_of[paths[i]] = path
	end
	table.sort(paths)
	table.sort(text)
	text[#text + 1] = portable(flags)
	text[#text + 1] = output(quoted(nvcc) .. ' --version')
	for _, path in ipairs(paths) do
		text[#text + 1] = path
		text[#text + 1] = read(names_of[path])
	end
	for _, path in ipairs {'gpu/plugin.map', 'scripts/gpu_gates.lua'} do text[#text + 1] = read(path) end
	write(folder .. '/fingerprint', table.concat(text, '\n'))
	return output('sha256sum < ' .. quoted(folder .. '/fingerprint')):match '^%x+'
end

local function note()
	local lines = budget_lines()
	table.insert(lines, 1, PASSED .. fingerprint())
	write(BUDGETS, table.concat(lines, '\n') .. '\n')
end

-- ---- the module ----

-- Links what is shipped. Loading is dlopen, with nothing of the device; the best of a few processes, as others may run, too.
local function link()
	local module, objects = folder .. '/quoll_cuda.so', {}
	for _, name in ipairs(order) do
		if jobs[name].shipped or jobs[name].host then objects[#objects + 1] = quoted(name .. '.o') end
	end
	local said = output(('%s -shared -cudart=static %s -o %s -Xlinker -s -Xlinker --version-script=gpu/plugin.map 2>&1 && echo linked'):format(
		quoted(nvcc), table.concat(objects, ' '), quoted(module)))
	if not check(said and said:find 'linked\n$', 'linking the module: %s', said) then return end
	local handle = assert(io.open(module, 'rb'))
	local bytes = handle:seek 'end'
	handle:close()
	check(bytes <= MODULE_BYTES, 'the module has %d bytes, at most %d are let pass', bytes, MODULE_BYTES)
	local best = math.huge
	for _ = 1, 5 do
		local code = ("local t = os.clock() assert(package.loadlib('%s', '*')) print(os.clock() - t)"):format(module)
		best = math.min(best, tonumber(output(('%s -e %s'):format(quoted(arg[-1]), quoted(code))) or '') or math.huge)
	end
	check(best < math.huge, 'the module cannot be loaded')
	print(('the module: %.2f MB, loaded in %.1f ms; wanted are at most %.0f MB and 5 ms'):format(bytes / 1e6, best * 1e3, MODULE_BYTES / 1e6))
end

-- ---- instructions ----

-- The disassembler: on the path, beside nvcc, or from PyPI into the build folder; its folder, or nil and why not.
local function disassembler()
	local beside = (output('readlink -f "$(command -v ' .. quoted(nvcc) .. ')"') or ''):match '^(.*)/[^/]*$' or '.'
	local venv = folder .. '/venv'
	local function find()
		local list = ('%s/lib/python3*/site-packages/nvidia/*/bin'):format(venv)
		return output(('for d in $(dirname "$(command -v cuobjdump)") %s %s; do [ -x "$d/cuobjdump" ] && [ -x "$d/nvdisasm" ] && ' ..
			'echo "$d" && exit; done; exit 1'):format(quoted(beside), list))
	end
	local found = find()
	if found then return found:match '[^\n]+' end
	if not output 'command -v python3' then return nil, 'there is no cuobjdump, and no python3 to install it' end
	if not output(('python3 -m venv %s 2>&1'):format(quoted(venv))) then return nil, 'python3 makes no environment (python3-venv)' end
	if not output(('%s/bin/pip install -q --disable-pip-version-check nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm 2>&1'):format(
		quoted(venv))) then return nil, 'PyPI is not to be reached' end
	found = find()
	if found then return found:match '[^\n]+' end
	return nil, 'the packages of PyPI have no cuobjdump'
end

-- Row functions of elementwise ops that divide, take a root or end in the C library, by themselves or in what they call.
local function dividing_rows()
	local bodies, divides = {}, {}
	for head, body in (read(generated .. '/gpu/kernels/rows.inc') or ''):gmatch 'QL_MARK_%u+%s+([^{;]-)%s*(%b{})' do
		local name = head:match '([%w_]+)%s*%('
		bodies[name] = body
		divides[name] = body:find '/' and true or body:find 'sqrt' and true or body:find '[^%w]f?ma[f]?%(' and true
		for called in body:gmatch '([%a_][%w_]*)%s*%(' do
			if ('pow powf sin sinf cos cosf tan tanf asin asinf acos acosf atan atanf fmod fmodf '):find(called .. ' ', 1, true) then
				divides[name] = true
			end
		end
	end
	local changed = true
	while changed do
		changed = false
		for name, body in pairs(bodies) do
			for called in body:gmatch '([%a_][%w_]*)%s*%(' do
				if divides[called] and not divides[name] then divides[name], changed = true, true end
			end
		end
	end
	return divides
end

-- Names of instructions by kernel (for dense_rows by function).
local function instructions(tools, job, seen)
	local pipe = assert(io.popen(('PATH=%s:"$PATH" cuobjdump --dump-sass %s'):format(quoted(tools), quoted(job.name .. '.o'))))
	local list
	for line in pipe:lines() do
		local entry = line:match 'Function : ([%w_$]+)'
		local name = line:match '^%s+/%*%x+%*/%s+(%u[%w_.]+)' or line:match '^%s+/%*%x+%*/%s+@!?U?P%w%s+(%u[%w_.]+)'
		if entry and entry:find '6absentE' then -- a function that an op lacks
			list = nil
		elseif entry then
			local kernel, row = job.stem .. '.' .. plain_name(entry), row_name(entry)
			seen[kernel] = seen[kernel] or {}
			seen[kernel][row or ''] = seen[kernel][row or ''] or {}
			list = seen[kernel][row or '']
		elseif name and list then
			list[name] = true
		end
	end
	return pipe:close()
end

local function has(list, word)
	for name in pairs(list) do
		if name == word or name:sub(1, #word + 1) == word .. '.' then return true end
	end
	return false
end

-- A word of a budget is the begin of an instruction's name that must be there, or fma: FFMA may be.
local function check_instructions()
	local tools, why = disassembler()
	if not tools then return skip('SASS', why) end
	local budget, divides, seen = budgets(), dividing_rows(), {}
	for _, name in ipairs(order) do
		local job = jobs[name]
		if job.shipped then check(instructions(tools, job, seen), '%s: cuobjdump fails', job.file) end
	end
	for kernel, rows in pairs(seen) do
		local words = budget[kernel] and budget[kernel].words or ''
		for row, list in pairs(rows) do
			check(not has(list, 'LDL') and not has(list, 'STL') or budget[kernel] and budget[kernel].stack > 0, '%s %s: local memory ' ..
				'(LDL, STL) without stack in its budget', kernel, row)
			local fused = has(list, 'FFMA')
			check(not fused or words:find '%f[%w]fma%f[%W]' or divides[row], '%s %s: FFMA, though nothing says that it divides, ' ..
				'takes a root or asks for fma (a word of its budget)', kernel, row)
		end
		for word in words:gmatch '%u[%w.]+' do
			for row, list in pairs(rows) do check(has(list, word), '%s %s: no %s', kernel, row, word) end
		end
	end
end

-- ---- ----

assert(os.execute('mkdir -p ' .. quoted(folder)))
if not check(read(generated .. '/gpu/kernels/rows.inc'), '%s: no rows.inc, build first', build) then finish() end
for file in output 'ls gpu/kernels/*.cu':gmatch '[^\n]+' do
	add(file, SHIPPED)
	if mode == 'full' then add(file, OTHERS) end
end
for file in output 'ls gpu/cuda/*.c':gmatch '[^\n]+' do add(file, SHIPPED) end
if mode == 'check' and not os.getenv 'QUOLL_GATES' then
	if read(BUDGETS):find(PASSED .. fingerprint(), 1, true) then
		check(true)
		print(('%d files as they were when they last passed: not compiled; QUOLL_GATES=1 does'):format(#order))
		finish()
	end
	print(('the kernels changed since they were noted to pass: quoll scripts/gpu_gates.lua note %s'):format(build))
end
compile()
local total = 0
for _, name in ipairs(order) do
	local job = jobs[name]
	total = total + seconds(job.log)
	if check(job.log:find '\ncompiled\n' or job.log:find '^compiled\n', '%s: %s', job.file, job.log) and job.shipped then parse(job) end
end
print(('%d compilations, %.0f s of processor time'):format(#order, total))
if mode == 'update' then update() end
print(('compiling takes %.0f s on %d cores; wanted are at most %d'):format(total / CORES, CORES, LIMIT[mode] or LIMIT.check)) -- a time is no test
compare()
if failed == 0 then link() end
if mode == 'full' then check_instructions() end
if failed == 0 and (mode == 'note' or mode == 'update') then note() end
finish()
