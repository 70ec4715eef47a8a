-- SPDX-License-Identifier: MIT
-- %cd, %pwd, %ls.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local magics = {}

local function fail(format, ...) error(format:format(...), 0) end

-- The rest as one name, perhaps in quotes.
local function name_of(text)
	local name = text:match '^%s*(.-)%s*;?%s*$'
	return name:match '^"(.*)"$' or name:match "^'(.*)'$" or name
end

local before -- the folder that %cd left

function magics.cd(text)
	local name = name_of(text)
	local from, to = internal.working_folder(), nil
	if name == '-' then
		to = before or fail 'cd: there is no folder before'
	elseif name == '' or name == '~' then
		to = os.getenv 'HOME' or fail 'cd: HOME is not set'
	elseif name:find '^%-.' then
		fail("cd: wanted a folder or -, got '%s'", name)
	else
		to = base.path(name)
	end
	local now, reason = internal.working_folder(to)
	if not now then fail('cd: %s: %s', to, reason) end
	before = from
	print(now)
end

function magics.pwd() print(internal.working_folder()) end

-- A pattern of the shell with * and ? as one of Lua.
local function pattern_of(name)
	return '^' .. name:gsub('[%-%.%+%[%]%(%)%$%^%%]', '%%%0'):gsub('%*', '.*'):gsub('%?', '.') .. '$'
end

local function print_columns(names)
	local widest = 1
	for _, name in ipairs(names) do widest = math.max(widest, utf8.len(name) or #name) end
	local columns = math.max(1, (internal.width() + 2) // (widest + 2))
	local rows = (#names + columns - 1) // columns
	for row = 1, rows do
		local line = ''
		for i = row, #names, rows do
			local name = names[i]
			line = line .. name .. (' '):rep(widest + 2 - (utf8.len(name) or #name))
		end
		print((line:gsub('%s+$', '')))
	end
end

function magics.ls(text)
	local name, folder, pattern = name_of(text), '.', nil
	if name:find '^%-' then fail("ls: wanted a folder or names with *, got '%s'; !ls %s is the shell's", name, name) end
	if name:find '[*?]' then
		local head, tail = name:match '^(.*/)([^/]*)$'
		folder, pattern = head and base.path(head) or '.', pattern_of(tail or name)
		if head and head:find '[*?]' then fail("ls: wanted * in the last part only, got '%s'; !ls takes it", name) end
	elseif name ~= '' then
		folder = base.path(name)
	end
	local entries = internal.entries(folder)
	if not entries then fail('ls: %s: no such folder', folder) end
	local names = {}
	for _, entry in ipairs(entries) do
		if entry[1]:sub(1, 1) ~= '.' and (not pattern or entry[1]:find(pattern)) then
			names[#names + 1] = entry[1] .. (entry[2] and '/' or '')
		end
	end
	table.sort(names)
	if #names == 0 then
		print(pattern and 'no such file' or 'no files')
		return
	end
	print_columns(names)
end

return magics
