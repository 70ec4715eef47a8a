-- SPDX-License-Identifier: MIT
-- %set, %magics.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local magics = {}

local function save()
	local lines = {'# Settings of the prompt: %set name value --save writes them, %set lists them.'}
	for _, s in ipairs(internal.list_settings()) do
		if s[2] ~= s[3] then lines[#lines + 1] = s[1] .. ' ' .. s[2] end
	end
	local path, reason = internal.folder('config', 'settings')
	if not path then error('set: ' .. reason, 0) end
	internal.write_file(path, table.concat(lines, '\n') .. '\n')
	print('saved in ' .. path)
end

local function list(name)
	local found = false
	for _, s in ipairs(internal.list_settings()) do
		if not name or s[1] == name then
			local lines = {('  %-13s %-8s %s'):format(s[1], s[2], s[4])}
			base.wrap(lines, s[5], (' '):rep(24), 80)
			print(table.concat(lines, '\n'))
			found = true
		end
	end
	if not found then error(select(2, internal.setting(name, '')), 0) end
end

function magics.set(text)
	local words, keep = {}, false
	for word in text:gsub('=', ' '):gmatch '%S+' do
		if word:find '^%-%-' and word ~= '--save' then
			error(("set: unknown option '%s'%s"):format(word, base.near(word, {'--save'})), 0)
		end
		if word == '--save' then keep = true else words[#words + 1] = word end
	end
	if #words > 2 then error('set: wanted a name and a value, got ' .. #words .. ' words', 0) end
	if #words < 2 and not (keep and #words == 0) then return list(words[1]) end
	if #words == 2 then
		local ok, message = internal.setting(words[1], words[2])
		if not ok then error(message, 0) end
	end
	if keep then save() end
end

local MARKS = {{'?name', 'help on a name, or what a variable of yours is; name? does the same; ??name adds its source'}, {'?*part*', 'names and texts that have the part'},
	{'!command', 'runs a command of the shell; $ command does the same'}, {'=expression', 'the same as the expression'}}

function magics.magics()
	local rows = table.move(MARKS, 1, #MARKS, 1, {})
	for _, m in ipairs(internal.magics()) do
		rows[#rows + 1] = {'%' .. m[1] .. (m[2] ~= '' and ' ' .. m[2] or ''), m[3]}
	end
	for _, pair in ipairs(rows) do
		local lines = {}
		base.wrap(lines, pair[2], (' '):rep(18), 80)
		print(#pair[1] > 15 and '  ' .. pair[1] .. '\n' .. lines[1] or ('  %-15s '):format(pair[1]) .. lines[1]:sub(19))
		for i = 2, #lines do print(lines[i]) end
	end
end

function magics.help(text)
	local name = text:match '^%s*(.-)%s*;?%s*$'
	if name == '' then help() else help((name:gsub('^[\'"](.*)[\'"]$', '%1'))) end
end

return magics
