-- SPDX-License-Identifier: MIT
-- The identity of a value as a hash that is stable across processes and runs: numbers and strings by value, tensors
-- by contents, tables and models by fields, functions of Quoll by name, Lua functions by their bytecode without lines
-- and names, with everything they use: upvalues, the script's globals, files that they run. Values without such a
-- hash (an open file, a coroutine) are listed in `unknown`.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local bytecode = internal.import 'interp/prelude/bytecode'
local module = internal.import 'nn/base/module'
local titles = internal.import 'interp/prelude/titles'
local uses = internal.import 'interp/prelude/uses'
local identity = {}

local hash

-- A tensor by its dtype, how it is quantized, its shape and its values.
function identity.tensor(x)
	local p, sizes, dtype = x:qparams(), {x:size()}, x:dtype()
	local spec = p and ('%s %s %s'):format(p.scheme, p.axis or '-', p.block or '-') or ''
	if p then x = x:dequantize() end
	if quant.dtype(x:dtype()).bits < 8 then x = x:to 'int64' end
	return ('tensor %s %s %s %s'):format(dtype, spec, table.concat(sizes, ','), internal.sha256(x:detach():contiguous()))
end

-- The name of a global table of Quoll or Lua; nil: it is the user's.
local function library_of(value)
	for name, given in next, internal.baseline do
		if rawequal(given, value) and value ~= true then return name end
	end
end

local function key_text(key)
	if type(key) == 'number' then return ('%.17g'):format(key) end
	return type(key) == 'string' and key or type(key) == 'boolean' and tostring(key) or nil
end

-- Fields by sorted keys; what the class of an object of Quoll holds is Quoll's.
local function table_text(value, at)
	local meta, keys, parts = getmetatable(value), {}, {}
	local class = type(meta) == 'string' and meta or type(meta) == 'table' and rawget(meta, '__name')
	if module.is_module(value) then class = module.class_of(value).name end
	for key in next, value do
		local text = key_text(key)
		if text then keys[#keys + 1] = {type(key) .. ' ' .. text, key} elseif not class then at.unknown[#at.unknown + 1] = 'a table with the key ' .. type(key) end
	end
	table.sort(keys, function(a, b) return a[1] < b[1] end)
	for i, key in ipairs(keys) do parts[i] = key[1] .. '=' .. hash(rawget(value, key[2]), at) end
	return ('table %s %s %s'):format(class or '', not class and meta and hash(meta, at) or '', table.concat(parts, ' '))
end

---------------------------------------------------------------- functions

-- The files that a function runs by constant names: dofile 'model.lua', require 'model'.
local function file_hashes(texts, reads, at)
	local list, runs = {}, false
	for _, name in ipairs {'dofile', 'loadfile', 'require'} do
		runs = runs or reads[name] and rawget(_G, name) ~= nil
	end
	if not runs then return list end
	for _, text in ipairs(texts) do
		local file = reads.require and not text:find '[/%c]' and package.searchpath(text, package.path) or text
		local chunk = file:find '[^%c]' and internal.exists(file) and loadfile(file)
		if chunk then list[#list + 1] = file .. ' ' .. hash(chunk, at) end
	end
	if #list == 0 then at.unknown[#at.unknown + 1] = 'a file whose name is computed' end
	table.sort(list)
	return list
end

-- What a function takes from outside: {name, value} of upvalues in their order, then of the script's globals by name.
local function outside(f, reads)
	local list, names = {}, {}
	for i = 1, debug.getinfo(f, 'u').nups do
		local name, value = debug.getupvalue(f, i)
		if not rawequal(value, _G) then list[#list + 1] = {name, value} end
	end
	for name in next, reads do
		if not base.is_given(name) and rawget(_G, name) ~= nil then names[#names + 1] = name end
	end
	table.sort(names)
	for _, name in ipairs(names) do list[#list + 1] = {name, rawget(_G, name)} end
	return list
end

-- The parts of a function: code, files, and what it takes from outside, each {name, hash}.
local function parts_of(f, at)
	local found = uses(f)
	local code, texts
	bytecode.read(f, function(main) code, texts = bytecode.canonical(main) end)
	local parts = {{'code', internal.sha256(code)}}
	for _, file in ipairs(file_hashes(texts, found.reads, at)) do parts[#parts + 1] = {'file', file} end
	for _, one in ipairs(outside(f, found.reads)) do parts[#parts + 1] = {one[1], hash(one[2], at)} end
	if found.whole or found.reads._G then at.unknown[#at.unknown + 1] = 'globals by computed names' end
	return parts
end

-- The name of a function of Quoll or Lua: by its help, or as a member of a library.
local function name_of(f)
	for library, members in next, internal.baseline do
		if library == '_G' then members = false end
		if rawequal(members, f) then return library end
		for name, member in next, type(members) == 'table' and members or {} do
			if rawequal(member, f) then return library .. '.' .. tostring(name) end
		end
	end
	return titles.title_of(f)
end

local function function_text(f, at)
	local info = debug.getinfo(f, 'S')
	local name = name_of(f)
	if name then return 'function ' .. name end
	if internal.is_own(info.source) then return 'function of ' .. info.source end
	if info.what == 'C' then
		at.unknown[#at.unknown + 1] = 'a function of C'
		return 'function of C'
	end
	local texts = {}
	for i, part in ipairs(parts_of(f, at)) do texts[i] = part[2] end
	return 'function ' .. table.concat(texts, ' ')
end

---------------------------------------------------------------- values

-- at: {seen = {object = number}, n =, unknown = list}
function hash(value, at)
	local kind = type(value)
	if kind == 'nil' or kind == 'boolean' then return tostring(value) end
	if kind == 'number' then return math.type(value) .. (' %.17g'):format(value) end
	if kind == 'string' then return 'text ' .. internal.sha256(value) end
	if base.is_tensor(value) then return internal.sha256(identity.tensor(value)) end
	if at.seen[value] then return 'seen ' .. at.seen[value] end
	at.n = at.n + 1
	at.seen[value] = at.n
	if kind == 'table' then
		local library = library_of(value)
		return library and 'library ' .. library or internal.sha256(table_text(value, at))
	end
	if kind == 'function' then return internal.sha256(function_text(value, at)) end
	if getmetatable(value) == 'quoll.spec' then return 'spec ' .. tostring(value) end
	at.unknown[#at.unknown + 1] = internal.describe(value) or kind
	return kind
end

-- Of a function: its hash, its parts {{name, hash}, …}, and a list of what has no hash.
function identity.of(f)
	local at = {seen = {[f] = 0}, n = 0, unknown = {}}
	if debug.getinfo(f, 'S').what == 'C' then return internal.sha256(function_text(f, at)), {}, at.unknown end
	local parts, texts = parts_of(f, at), {}
	for i, part in ipairs(parts) do texts[i] = part[2] end
	return internal.sha256(_VERSION .. '\0' .. table.concat(texts, '\0')), parts, at.unknown
end

-- Of any value.
function identity.value(value) return internal.sha256(hash(value, {seen = {}, n = 0, unknown = {}})) end

return identity
