-- SPDX-License-Identifier: MIT
-- %save and %load.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local format = internal.import 'interp/repl/workspace_format'
local magics = {}

local function fail(text, ...) error(text:format(...), 0) end

-- The file and the names after it; a file without an ending gets one.
local function parse(verb, text)
	local words = {}
	for word in text:gmatch '%S+' do words[#words + 1] = word end
	local path = table.remove(words, 1)
	if not path then fail('usage: %%%s file [name ...]', verb) end
	path = base.path(path)
	if not path:match '[^/]*$':find('.', 1, true) then path = path .. '.safetensors' end
	if not path:find '%.safetensors$' then fail('%s: wanted a file that ends in .safetensors, got %s', verb, path) end
	return path, words
end

local function select_names(verb, variables, words)
	if #words == 0 then return variables end
	local known, names, chosen = {}, {}, {}
	for _, v in ipairs(variables) do
		known[v[1]] = v
		names[#names + 1] = v[1]
	end
	for i, word in ipairs(words) do
		chosen[i] = known[word] or fail("%s: no variable '%s'%s", verb, word, internal.import 'interp/prelude/base'.near(word, names))
	end
	return chosen
end

-- A kept local hides the global of its name.
local function variables()
	local list, locals = {}, internal.locals and internal.locals() or {}
	for name, value in pairs(locals) do list[#list + 1] = {name, value, true} end
	for name, value in next, _G do
		if type(name) == 'string' and not base.is_given(name) and locals[name] == nil then
			list[#list + 1] = {name, value, false}
		end
	end
	table.sort(list, function(a, b) return a[1] < b[1] end)
	return list
end

local function bytes_of(text)
	local list = {dtype = 'uint8'}
	for i = 1, #text, 4096 do
		local chunk = {text:byte(i, i + 4095)}
		table.move(chunk, 1, #chunk, #list + 1, list)
	end
	return tensor(list)
end

local function text_of(bytes)
	local list, parts = bytes:totable(), {}
	for i = 1, #list, 4096 do
		parts[#parts + 1] = string.char(table.unpack(list, i, math.min(i + 4095, #list)))
	end
	return table.concat(parts)
end

local function size_text(path)
	local file = io.open(path, 'rb')
	local n = file:seek 'end'
	file:close()
	return n < 1024 and n .. ' B' or n < 1 << 20 and ('%.1f KiB'):format(n / 1024) or ('%.1f MiB'):format(n / (1 << 20))
end

-- Whether the file may be replaced: it is none yet, or the variables of a session, by the names in its head. The weights of a
-- model have the same ending.
local function is_replaceable(path)
	local file = io.open(path, 'rb')
	if not file then return true end
	local room = (file:seek 'end' or 0) - 8
	file:seek 'set'
	local size = file:read(8) or ''
	local head = #size == 8 and file:read(math.max(0, math.min(string.unpack('<i8', size), room))) or ''
	file:close()
	return size == '' or head:find('"' .. format.NAME .. '"', 1, true) ~= nil
end

function magics.save(text)
	local path, words = parse('save', text)
	if not is_replaceable(path) then fail('save: %s is there already, and no session: wanted another name', path) end
	local chosen = select_names('save', variables(), words)
	if #chosen == 0 then fail 'save: there are no variables yet' end
	local tensors, json, dropped, kept = format.encode(chosen)
	if #kept == 0 then fail('save: nothing can be kept: %s', table.concat(dropped, ', ')) end
	tensors[format.NAME] = bytes_of(json)
	tensor.save(path, tensors)
	print(('%s in %s, %s: %s'):format(#kept == 1 and '1 variable' or #kept .. ' variables', path, size_text(path),
		table.concat(kept, ' ')))
	if #dropped > 0 then print('not kept: ' .. table.concat(dropped, ', ')) end
end

-- Marks (interp/input/stale.lua): this input assigns the variables.
local function mark(number, text, chosen)
	local names = {}
	for i, v in ipairs(chosen) do names[i] = v[1] end
	internal.import 'interp/input/stale'.session:before(number, function() end, names, text, true)
end

function magics.load(text, number)
	local path, words = parse('load', text)
	local tensors = tensor.load(path)
	local bytes = not internal.import 'interp/prelude/base'.is_tensor(tensors) and tensors[format.NAME]
	if not bytes then fail("load: %s: no variables of a session in it; tensor.load '%s' reads its tensors", path, path) end
	if bytes:dtype() ~= 'uint8' or bytes:dim() ~= 1 then fail('load: %s: wrong contents: %s', path, internal.describe(bytes)) end
	local good, list = pcall(format.decode, tensors, text_of(bytes))
	if not good then fail('load: %s: %s', path, tostring(list)) end
	local names, chosen = {}, select_names('load', list, words)
	mark(number, text, chosen)
	for i, v in ipairs(chosen) do
		if v[3] then internal.keep_local(v[1], v[2]) else rawset(_G, v[1], v[2]) end
		names[i] = v[1] .. (v[3] and ' (local)' or '')
	end
	print(('%s of %s: %s'):format(#names == 1 and '1 variable' or #names .. ' variables', path, table.concat(names, ' ')))
end

return magics
