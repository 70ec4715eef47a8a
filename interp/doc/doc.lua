-- SPDX-License-Identifier: MIT
-- `quoll doc`: everything that help knows, in other forms. Returns the exit code.
local _, internal = ...
local base = internal.import 'interp/prelude/base'

local FORMS = {html = 'interp/doc/manual', md = 'interp/doc/manual', man = 'interp/doc/shell', bash = 'interp/doc/shell',
	zsh = 'interp/doc/shell', fish = 'interp/doc/shell', luals = 'interp/doc/luals', luacheck = 'interp/doc/luals'}
local ENDINGS = {html = 'html', htm = 'html', md = 'md', ['1'] = 'man', lua = 'luals', bash = 'bash', zsh = 'zsh', fish = 'fish',
	luacheckrc = 'luacheck'}

-- The wanted form and file, or nil and a message.
local function parse(arguments)
	local form, file
	for _, word in ipairs(arguments) do
		local name = word:match '^%-%-(%a+)$'
		if name and FORMS[name] then
			if form then return nil, ('doc: wanted one form, got --%s and --%s'):format(form, name) end
			form = name
		elseif word:find '^%-.' then
			local names = {}
			for known in pairs(FORMS) do names[#names + 1] = '--' .. known end
			return nil, ('doc: %s: no such form%s (quoll doc --help lists them)'):format(word, base.near(word, names))
		elseif file then
			return nil, ("doc: wanted one file, got '%s' and '%s'"):format(file, word)
		else
			file = word
		end
	end
	local ending = file and (file:match '%.([%w]+)$' or ''):lower()
	if file and not form and not ENDINGS[ending] then
		return nil, ("doc: %s: the name does not say which form is wanted (quoll doc --help lists them)"):format(file)
	end
	return form or ENDINGS[ending] or 'md', file
end

return function(command_line, arguments)
	local form, file = parse(arguments)
	if not form then
		io.stderr:write('quoll: ', file, '\n')
		return 1
	end
	local text = internal.import(FORMS[form])[form](command_line())
	if file then
		local good, problem = pcall(internal.write_file, file, text)
		if not good then
			io.stderr:write('quoll: ', tostring(problem), '\n')
			return 1
		end
	else
		io.write(text)
	end
	return 0
end
