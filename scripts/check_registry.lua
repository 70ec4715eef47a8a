-- SPDX-License-Identifier: MIT
-- A registry is a folder of descriptors and a .def with a line for each (HACKING.md). A line without a descriptor is
-- a link error; this finds the rest: descriptors without a line, files without a descriptor, files without a test
-- of their name. Run in the repository root; exit status 1 when something is missing. Functions of more than 60
-- lines and files of more than 500 (headers: 150) are named, but are no error. Errors, too, are two structs of one name, and
-- two functions that are given to the prelude or made global under one name: the later one would silently win.
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
		keys[#keys + 1] = def:find '/kernels%.def$' and first .. '_' .. second or first
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

-- Entries written in Lua: a file, a line and a test of one name each.
local function check_lua_registry(def, folder, files)
	local keys, layer = {}, def:match '^[^/]+'
	for _, key in ipairs(lines_of(def)) do
		keys[key] = true
		check(exists(('%s/%s.lua'):format(folder, key)), '%s: no file %s/%s.lua', def, folder, key)
	end
	for _, file in ipairs(files) do
		local stem = file:match '([^/]+)%.lua$'
		check(keys[stem], '%s: no line in %s', file, def)
		check(exists(("tests/%s -name '%s.lua' -o -name '%s.c'"):format(layer, stem, stem)),
			'%s: no test tests/%s/%s.lua', file, layer, stem)
	end
end

local function check_registry(def)
	local folder, mixed = folder_of(def)
	if not folder then return end
	local files = find(folder .. " -maxdepth 1 -name '*.lua'")
	if #files > 0 then return check_lua_registry(def, folder, files) end
	local layer, keys, defined, texts = def:match '^[^/]+', {}, {}, {}
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
		if #names > 0 and not def:find '/kernels%.def$' then -- tests/kernels.c reads that table itself
			check(exists(("tests/%s -name '%s.lua' -o -name '%s.c'"):format(layer, stem, stem)),
				'%s: no test tests/%s/%s.lua', file, layer, stem)
		elseif stem and not mixed then
			check(#names > 0, '%s: no descriptor of %s', file, def)
		end
	end
	for _, file in ipairs(find(folder .. " -maxdepth 1 -name '*.lua'")) do -- a descriptor in Lua
		local stem = file:match '([^/]+)%.lua$'
		if not mixed then
			defined[stem] = true
			check(keys[stem], '%s: %s has no line in %s', file, stem, def)
			check(exists(("tests/%s -name '%s.lua'"):format(layer, stem)), '%s: no test tests/%s/%s.lua', file, layer, stem)
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

for _, def in ipairs(find "tensor quant nn gpu interp -name '*.def'") do
	check_registry(def)
end
for _, file in ipairs(find "tensor quant nn gpu interp -name '*.[ch]'") do
	warn_of_length(file, read(file))
	take_names(file)
end
print(('%d rules checked, %d broken'):format(checked, broken))
os.exit(broken == 0 and checked > 0)
