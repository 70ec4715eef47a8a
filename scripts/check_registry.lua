-- SPDX-License-Identifier: MIT
-- A registry is a folder of descriptors and a .def with a line for each (HACKING.md). A line without a descriptor is
-- a link error; this finds the rest: descriptors without a line, files without a descriptor, files without a test
-- of their name. Run in the repository root; exit status 1 when something is missing. Functions of more than 60
-- lines and files of more than 500 (headers: 150) are named, but are no error. Errors, too, are
--   * two structs of one name, and two functions that are given to the prelude or made global under one name: the later one would
--     silently win
--   * a function with a struct ql_back that reads or writes elements: backwards only compose ops (tensor/autograd/README.md)
--   * a source file of more than 600 lines
--   * two sources of one stem in a folder: box.c with box.h is one, box.c with box.lua are two
--   * a folder without a README.md (below tests/ only that one needs one), and a path in HACKING.md or a README.md that does not exist
--   * two rows of a table in these that begin with the same cell, and a header of gpu/kernels without exactly one row there
--
-- The folder of ops.def is ops/ beside it; that of io/formats.def, which has no formats/, is io/ itself. A .def
-- whose lines are not descriptors in files of their name (dtype.def, options.def) is no registry.
local checked, broken = 0, 0
local function check(good, ...)
	checked = checked + 1
	if not good then
		broken = broken + 1
		print(string.format(...))
	end
end

local function read(file)
	local handle = assert(io.open(file, 'rb'))
	local text = handle:read 'a'
	handle:close()
	return text
end

local function find(arguments)
	local files = {}
	for file in io.popen('find ' .. arguments .. ' 2>/dev/null | sort'):lines() do files[#files + 1] = file end
	return files
end

-- Keys of the lines: the first argument; family_isa where the table is of kernels.
local function lines_of(def)
	local keys, text = {}, read(def):gsub('/%*.-%*/', '')
	for arguments in text:gmatch '%f[%w]X(%b())' do
		local first, second = arguments:match '^%(%s*([%w_]+)%s*,?%s*([%w_]*)'
		keys[#keys + 1] = def:find '/kernels/kernels%.def$' and first .. '_' .. second or first
	end
	return keys
end

-- Macros whose body defines a descriptor, or calls a macro that does; their first argument is its name.
local function descriptor_macros(texts)
	local macros, found = {}, true
	while found do
		found = false
		for _, text in pairs(texts) do
			for name, body in text:gsub('\\\n', ' '):gmatch '#define ([%w_]+)%([^)]*%)([^\n]*)' do
				local defines = body:find 'const struct ql_%w+ ql_%w+_##'
				for known in pairs(macros) do defines = defines or body:find('%f[%w_]' .. known .. '%(') end
				if defines and not macros[name] then macros[name], found = true, true end
			end
		end
	end
	return macros
end

-- Names of the descriptors that a file defines.
local function descriptors_of(text, macros)
	local names = {}
	for symbol in ('\n' .. text):gmatch '\nconst struct ql_[%w_]+ ([%w_]+) = ' do
		names[#names + 1] = symbol:match '^ql_%l+_(.+)$' or symbol
	end
	for macro, name in ('\n' .. text):gmatch '\n([%u_%d]+)%(([%w_]+)' do
		if macros[macro] then names[#names + 1] = name end
	end
	return names
end

local function exists(arguments)
	return #find(arguments) > 0
end

-- The folder of a .def, and whether other files than descriptors may lie there; nil when it is no registry.
local function folder_of(def)
	local folder, parent = def:gsub('%.def$', ''), def:match '^(.*)/'
	if exists(folder .. ' -maxdepth 0 -type d') then return folder, false end
	for _, key in ipairs(lines_of(def)) do
		local file = ('%s/%s.c'):format(parent, key)
		if exists(file) and descriptors_of(read(file), {})[1] then return parent, true end
	end
end

-- Whether a file has a test of its name: at its place in tests/, in the folder of that name (commands: tests/interp/sweep/sweep.lua),
-- or beside the module that runs it (ops of nn).
local function has_test(folder, stem)
	local layer = folder:match '^[^/]+'
	for _, place in ipairs {folder, layer .. '/' .. stem, layer .. '/modules', layer} do
		local file = ('tests/%s/%s'):format(place, stem)
		if exists(("%s.lua %s.c -maxdepth 0"):format(file, file)) then return true end
	end
	return false
end

-- Entries written in Lua: a file, a line (here or among the layer's other files) and a test of one name each.
local function check_lua_registry(def, folder, files)
	local keys, others = {}, read(def:match '^[^/]+' .. '/lua.def')
	for _, key in ipairs(lines_of(def)) do
		keys[key] = true
		check(exists(('%s/%s.lua'):format(folder, key)), '%s: no file %s/%s.lua', def, folder, key)
	end
	for _, file in ipairs(files) do
		local stem = file:match '([^/]+)%.lua$'
		local other = others:find(('X("%s/%s"'):format(folder, stem), 1, true)
		check(keys[stem] or other, '%s: no line in %s', file, def)
		if not other then check(has_test(folder, stem), '%s: no test tests/%s/%s.lua', file, folder, stem) end
	end
end

-- Kernels of devices: a file and a line of one name each, and a test of that name in tests/gpu or one that names the kernel.
local function check_device_kernels(def, folder)
	local keys, tests = {}, {}
	for _, file in ipairs(find "tests/gpu -name '*.c'") do tests[#tests + 1] = read(file) end
	tests = table.concat(tests)
	for _, key in ipairs(lines_of(def)) do
		keys[key] = true
		check(exists(('%s/%s.cu'):format(folder, key)), '%s: no file %s/%s.cu', def, folder, key)
	end
	local table_of_files = read(folder .. '/README.md')
	for _, file in ipairs(find(folder .. " -maxdepth 1 -name '*.h'")) do
		local rows = 0
		for cell in table_of_files:gmatch '\n| ([^|]*)' do
			if cell:find(('`%s`'):format(file:match '[^/]+$'), 1, true) then rows = rows + 1 end
		end
		check(rows == 1, '%s: %d rows in %s/README.md, wanted one', file, rows, folder)
	end
	for _, file in ipairs(find(folder .. " -maxdepth 1 -name '*.cu'")) do
		local stem, names = file:match '([^/]+)%.cu$', {}
		for name in ('\n' .. read(file)):gmatch '\nconst struct ql_gpu_kernel ql_gpu_kernel_([%w_]+) = ' do names[#names + 1] = name end
		check(#names == 1 and names[1] == stem, '%s: wanted one descriptor, ql_gpu_kernel_%s', file, stem)
		check(keys[stem], '%s: no line in %s', file, def)
		check(exists(('tests/gpu/%s.c'):format(stem)) or exists(('tests/gpu/%s.sh'):format(stem)) or tests:find(('"%s"'):format(stem), 1, true), '%s: no test tests/gpu/%s.c, and none names it',
			file, stem)
	end
end

local function check_registry(def)
	local folder, mixed = folder_of(def)
	if not folder then return end
	if folder == 'gpu/kernels' then return check_device_kernels(def, folder) end
	local files = find(folder .. " -maxdepth 1 -name '*.lua'")
	if #files > 0 then return check_lua_registry(def, folder, files) end
	local keys, defined, texts = {}, {}, {}
	for _, file in ipairs(find(folder .. " -maxdepth 1 -name '*.[ch]'")) do texts[file] = read(file) end
	local macros = descriptor_macros(texts)
	for _, key in ipairs(lines_of(def)) do keys[key] = true end
	for file, text in pairs(texts) do
		local names = file:find '%.c$' and descriptors_of(text, macros) or {}
		for _, name in ipairs(names) do
			defined[name] = true
			check(keys[name], '%s: %s has no line in %s', file, name, def)
		end
		local stem = file:match '([^/]+)%.c$'
		if #names > 0 and not def:find '/kernels/kernels%.def$' then -- tests/kernels.c reads that table itself
			check(has_test(folder, stem), '%s: no test tests/%s/%s.lua', file, folder, stem)
		elseif stem and not mixed then
			check(#names > 0, '%s: no descriptor of %s', file, def)
		end
	end
	for key in pairs(keys) do check(defined[key], '%s: no descriptor for %s', def, key) end
end

local function warn_of_length(file, text)
	local rows, start, limit = 0, nil, file:find '%.h$' and 150 or 500
	for line in text:gmatch '([^\n]*)\n' do
		rows = rows + 1
		if line == '{' then start = rows end
		if line == '}' and start and rows - start > 60 then
			print(('%s:%d: a function of %d lines'):format(file, start, rows - start))
		end
	end
	if rows > limit then print(('%s: %d lines'):format(file, rows)) end
end

-- What a backward may not use, and the functions that may all the same.
local ELEMENTS = {'ql_tensor_data', 'storage%->data', 'ql_tensor_at_', 'ql_tensor_get_', 'to_[fi]64', 'from_[fi]64', 'ql_parallel_for'}
local MAY_READ = {
	ql_back_number = 'makes a tensor of one number', quantile_backward = 'the numbers q decide which ops run',
	pow_base_slope = 'a single exponent decides which ops run',
}
local function check_backwards(file, text)
	for name, head, body in text:gsub('/%*.-%*/', ''):gmatch '([%w_]+)(%b())[%s\\]*(%b{})' do
		if (head:find 'struct ql_back %*' or head:find 'struct backward %*') and not MAY_READ[name] then
			for _, what in ipairs(ELEMENTS) do
				check(not body:find(what), '%s: %s uses %s: a backward only composes ops', file, name, what)
			end
		end
	end
end

---------------------------------------------------------------- names that two files take

local REPLACES = {live = 'interp/jupyter/execute.c'} -- on purpose, while it is a Jupyter kernel
local taken = {}
local function take(kind, name, file)
	local before = taken[kind .. name]
	if kind == 'internal function' and REPLACES[name] == file then return end
	check(not before, "%s: %s '%s' is taken by %s", file, kind, name, before)
	taken[kind .. name] = before or file
end

-- Names of the functions in the tables of type luaL_Reg, by the table's name.
local function tables_of(file, text)
	local tables = {}
	for table_name, body in text:gmatch 'luaL_Reg ([%w_]+)%[%] = (%b{})' do
		local names, seen = {}, {}
		for name in body:gmatch '{%s*"([%w_]+)"' do
			check(not seen[name], "%s: %s names '%s' twice", file, table_name, name)
			seen[name] = true
			names[#names + 1] = name
		end
		tables[table_name] = tables[table_name] or names
	end
	return tables
end

-- What a function of C puts into the table that only the prelude sees: from where it asks for that table until it
-- makes another one or takes it away.
local function take_internal(file, text, tables)
	for body in text:gmatch 'QL_INTERNAL%);(.-)\n}' do
		body = body:gsub('lua_newtable.*', ''):gsub('lua_pop%(.*', ''):gsub('lua_settop%(.*', '')
		for name in body:gmatch 'set_?func%w*%(L, ([%w_]+)' do
			for _, f in ipairs(tables[name] or {}) do take('internal function', f, file) end
		end
		for name in body:gmatch 'lua_pushcfunction[^;]*;%s*lua_setfield%(L, %-2, "([%w_]+)"%)' do
			take('internal function', name, file)
		end
	end
end

local function take_names(file)
	local text = read(file):gsub('/%*.-%*/', '')
	for name in ('\n' .. text):gmatch '\nstruct (ql_[%w_]+) {' do take('struct', name, file) end
	if not file:find '^interp/.*%.c$' then return end
	local tables = tables_of(file, text)
	take_internal(file, text, tables)
	for name in text:gmatch 'lua_setglobal%(L, "([%w_]+)"%)' do take('global', name, file) end
end

-- Each line of a lua.def has its file, each Lua file a line, there or in the registry of its folder.
local function check_lua_files()
	local listed = {}
	for _, def in ipairs(find "tensor quant nn interp -name '*.def'") do
		for path in read(def):gsub('/%*.-%*/', ''):gmatch 'X%("([^"]+)", %u' do
			check(not listed[path], '%s: %s is listed twice', def, path)
			check(exists(path .. '.lua'), '%s: no file %s.lua', def, path)
			check(def == path:match '^[^/]+' .. '/lua.def', '%s: %s is not of this folder', def, path)
			listed[path] = true
		end
		local folder = def:gsub('%.def$', '')
		for _, key in ipairs(lines_of(def)) do listed[folder .. '/' .. key] = true end
	end
	for _, file in ipairs(find "tensor quant nn interp -name '*.lua'") do
		check(listed[file:match '^(.*)%.lua$'], '%s: no line in lua.def', file)
	end
end

---------------------------------------------------------------- files and folders

local LONGEST = 600 -- lines of a source
local SOURCES = "-name '*.c' -o -name '*.h' -o -name '*.lua' -o -name '*.cu' -o -name '*.cpp'"

local function check_sources()
	local stems = {}
	for _, file in ipairs(find('tensor quant nn gpu interp scripts tests tutorials ' .. SOURCES)) do
		local _, rows = read(file):gsub('\n', '')
		check(rows <= LONGEST, '%s: %d lines, wanted at most %d', file, rows, LONGEST)
		local place, ending = file:match '^(.*)%.(%w+)$'
		local kind = (ending == 'h' or ending == 'cpp') and 'c' or ending
		check(not stems[place] or stems[place] == kind, '%s: %s.%s has the same stem', file, place, stems[place])
		stems[place] = kind
	end
end

local TOPS = {}
for top in ('tensor quant nn gpu interp scripts tests tutorials'):gmatch '%l+' do TOPS[top] = true end
-- Files that a recipe of HACKING.md makes.
local EXAMPLES = {['tensor/ops/cube.c'] = true, ['tests/tensor/cube.lua'] = true, ['nn/graph/passes/double_negation.lua'] = true,
	['tests/nn/graph/passes/double_negation.lua'] = true, ['quant/grids/nf3.c'] = true, ['tests/quant/grids/nf3.lua'] = true}

-- All files and folders; where a path holds *, what stands for it has no /.
local all = {}
local function names_something(path)
	if not next(all) then
		for _, file in ipairs(find '* -name build -prune -o -print') do all[file] = true end
	end
	path = path:gsub('/$', '')
	while path:find '[^/]+/%.%./' do path = path:gsub('[^/]+/%.%./', '', 1) end
	if not path:find('*', 1, true) then return all[path] or all[path .. '.lua'] end
	local pattern = '^' .. path:gsub('%p', '%%%0'):gsub('%%%*', '[^/]*') .. '$'
	for file in pairs(all) do
		if file:find(pattern) then return true end
	end
end

-- Folders that git tracks; without git (a released archive) there are no others.
local function check_readmes()
	local seen = {}
	for file in io.popen "git ls-files 2>/dev/null || find tensor quant nn gpu interp scripts tests tutorials -type f":lines() do
		local folder = file:match '^tests/' and 'tests' or file:match '^(.*)/'
		if folder and TOPS[folder:match '^%l+'] and not seen[folder] then
			seen[folder] = true
			check(names_something(folder .. '/README.md'), '%s: no README.md', folder)
		end
	end
end

-- Paths from the root of the repository, up to a <name> that the reader fills in.
local function check_paths(file, number, line)
	for path, stop in line:gmatch '%f[%w_./<-](%l+/[%w_./*-]*)()' do
		path = line:sub(stop, stop) == '<' and path:match '^(.*)/' or path:gsub('[.-]+$', '')
		if TOPS[path:match '^%l+'] and not EXAMPLES[path] and not path:find('**', 1, true) then
			check(names_something(path), '%s:%d: no %s', file, number, path)
		end
	end
end

local function check_page(file)
	local number, folder, rows, code = 0, file:match '^(.*/)' or '', {}, false
	for line in read(file):gmatch '([^\n]*)\n' do
		number = number + 1
		if line:find '^%s*```' then code = not code end
		check_paths(file, number, line)
		local cell = line:match '^| ([^|]*[^|%s-])%s*|'
		check(not cell or not rows[cell], '%s:%d: a second row of %s', file, number, cell)
		if cell then rows[cell] = true elseif line:sub(1, 1) ~= '|' then rows = {} end
		for target in (code and '' or line):gmatch '%]%(([^)#:]+)%)' do
			check(names_something(folder .. target), '%s:%d: no %s%s', file, number, folder, target)
		end
	end
end

check_sources()
check_readmes()
for _, file in ipairs(find "HACKING.md README.md tensor quant nn gpu interp scripts tests tutorials -name '*.md'") do
	if file:find 'README%.md$' or file == 'HACKING.md' then check_page(file) end
end
check_lua_files()
for _, def in ipairs(find "tensor quant nn gpu interp -name '*.def'") do
	check_registry(def)
end
for _, file in ipairs(find "tensor quant nn gpu interp -name '*.[ch]'") do
	warn_of_length(file, read(file))
	check_backwards(file, read(file))
	take_names(file)
end
print(('%d rules checked, %d broken'):format(checked, broken))
os.exit(broken == 0 and checked > 0)
