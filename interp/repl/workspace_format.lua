-- SPDX-License-Identifier: MIT
-- Variables as text and tensors, and back. A file of variables is a .safetensors file: each tensor under the path at
-- which it was
-- found (w, m.linear1.weight), so other programs can read it, and one more, quoll.workspace, whose bytes are JSON:
--	{"version": 1, "variables": [{"name":, "local":, "value": V}], "objects": [O]}
--	V   text, true, false, an integer; {"f": "0x1.8p+1"} a float (C's %a), {"x": "00ff"} text that is no UTF-8,
--	    {"t": name} a tensor, {"r": number} one of the objects, {"k": "parts" or "state"} a hidden key
--	O   {"kind": "table", "items": [[key, value], …]}, also with kind module (class), optimizer (rule) or spec, whose
--	    items are its text, or its fields
-- What is shared, or contains itself, is one object. Reading builds tables and puts the metatables of known classes
-- on them:
-- nothing is run, no name is looked up but in the lists of classes and rules.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local is_tensor = base.is_tensor
local format = {NAME = 'quoll.workspace', VERSION = 1}

local SPEC_FIELDS = {'dtype', 'bits', 'scheme', 'axis', 'block', 'outer', 'observer', 'p', 'momentum', 'bins', 'octaves', 'scale', 'zero_point', 'minimum',
	'rounding', 'scaling', 'saturate'}

---------------------------------------------------------------- JSON

local function json_text(text)
	return '"' .. text:gsub('[%c"\\\127]', function(c) return ('\\u%04x'):format(c:byte()) end) .. '"'
end

local function json_value(value)
	if type(value) == 'string' then
		if utf8.len(value) then return json_text(value) end
		return '{"x":"' .. value:gsub('.', function(c) return ('%02x'):format(c:byte()) end) .. '"}'
	end
	if math.type(value) == 'float' then return ('{"f":"%s"}'):format(('%a'):format(value)) end
	return tostring(value) -- an integer, true, false
end

---------------------------------------------------------------- writing

local writer = {}
writer.__index = writer

local function drop(w, path, what)
	w.dropped[#w.dropped + 1] = ('%s (%s)'):format(path, what)
end

local function tensor_name(w, path)
	local name, i = path, 1
	while w.names[name] or name == format.NAME do
		i = i + 1
		name = path .. '#' .. i
	end
	w.names[name] = true
	return name
end

local function class_of(w, value, path)
	local module, optimizer = internal.import 'nn/base/module', internal.import 'nn/optim/optimizer'
	local meta = getmetatable(value)
	if meta == nil then return {kind = 'table'} end
	if module.is_module(value) then
		for key, item in next, value do
			if type(item) == 'function' and key ~= module.HOOK and key ~= 'watch' then
				return drop(w, path, 'a module with a function of yours; its m:save keeps the tensors')
			end
		end
		local name = module.class_of(value).name
		local known = module.classes[name] and module.classes[name].meta == meta
		if known then return {kind = 'module', class = name} end
		return drop(w, path, ('a module of a kind that is not built in, %s; its m:save keeps the tensors'):format(tostring(name)))
	end
	if optimizer.meta and meta == optimizer.meta then return {kind = 'optimizer', rule = rawget(value, optimizer.STATE).rule.name} end
	return drop(w, path, 'a table with a metatable')
end

local encode

local function key_path(path, key)
	if type(key) == 'string' and key:find '^[%a_][%w_.]*$' then return path .. '.' .. key end
	return ('%s[%s]'):format(path, type(key) == 'string' and ('%q'):format(key) or tostring(key))
end

-- Of a table's items; hidden keys by their names, functions that belong to the class left out.
local function add_items(w, object, value, path)
	local module, optimizer = internal.import 'nn/base/module', internal.import 'nn/optim/optimizer'
	local hidden = {[module.PARTS] = 'parts', [optimizer.STATE] = 'state'}
	for key, item in next, value do
		if hidden[key] then
			local text = encode(w, item, path)
			if text then object[#object + 1] = ('[{"k":"%s"},%s]'):format(hidden[key], text) end
		elseif key ~= module.HOOK and not (object.kind == 'module' and key == 'watch') and
			not (object.within == 'optimizer' and key == 'rule') then
			local k, v = encode(w, key, path .. '[key]'), nil
			if k then v = encode(w, item, key_path(path, key)) end
			if v then object[#object + 1] = ('[%s,%s]'):format(k, v) end
		end
	end
end

local function encode_table(w, value, path)
	local object = class_of(w, value, path)
	if not object then return nil end
	local optimizer = internal.import 'nn/optim/optimizer'
	object.within = w.within
	local number = #w.objects + 1
	w.objects[number], w.numbers[value] = object, number
	if object.kind == 'optimizer' then
		local state = rawget(value, optimizer.STATE)
		if type(state.lr) ~= 'number' then drop(w, path .. '.lr', 'a schedule') end
		w.within = 'optimizer'
		add_items(w, object, value, path)
		w.within = nil
	else
		w.within = nil
		add_items(w, object, value, path)
	end
	return ('{"r":%d}'):format(number)
end

-- The fields of a spec that has no text: its observer is a function, which is left out, or a list is long.
local function spec_fields(w, value, path)
	local items = {}
	for _, field in ipairs(SPEC_FIELDS) do
		local good, item = pcall(function() return value[field] end)
		local decided = value.format and (field == 'scheme' or field == 'bits')
		if field == 'dtype' then item = value.format or item end
		if field == 'bits' and type(item) == 'table' or field == 'scaling' and item == 'exact' or field == 'saturate' and item then item = nil end
		if good and item ~= nil and not decided then
			local text = encode(w, item, path .. '.' .. field)
			if text then items[#items + 1] = ('["%s",%s]'):format(field, text) end
		end
	end
	return items
end

local function encode_spec(w, value, path)
	local text = tostring(value)
	local good, back = pcall(quant.spec, text)
	local object = good and back == value and {('["text",%s]'):format(json_value(text))} or spec_fields(w, value, path)
	object.kind = 'spec'
	local number = #w.objects + 1
	w.objects[number], w.numbers[value] = object, number
	return ('{"r":%d}'):format(number)
end

-- The text of a value, or nil: it cannot be kept, which is noted.
function encode(w, value, path)
	local kind = type(value)
	if kind == 'string' or kind == 'number' or kind == 'boolean' then return json_value(value) end
	if w.numbers[value] then return ('{"r":%d}'):format(w.numbers[value]) end
	if is_tensor(value) then
		if not w.tensors[value] then
			local name = tensor_name(w, path)
			w.tensors[value] = name
			w.list[name] = value:detach()
		end
		return ('{"t":%s%s}'):format(json_text(w.tensors[value]), value:requires_grad() and ',"grad":true' or '')
	end
	if kind == 'table' then return encode_table(w, value, path) end
	if kind == 'userdata' and internal.is_spec(value) then return encode_spec(w, value, path) end
	return drop(w, path, kind == 'function' and 'a function' or kind == 'userdata' and
		(internal.describe(value) or 'userdata') or 'a ' .. kind)
end

local function object_text(object)
	local extra = object.class and ',"class":' .. json_text(object.class) or object.rule and ',"rule":' .. json_text(object.rule) or ''
	return ('{"kind":"%s"%s,"items":[%s]}'):format(object.kind, extra, table.concat(object, ','))
end

-- variables: list of {name, value, is_local}. Returns named tensors, the text, what was dropped, what was kept (names).
function format.encode(variables)
	local w = setmetatable({names = {}, tensors = {}, list = {}, objects = {}, numbers = {}, dropped = {}}, writer)
	local parts, kept = {}, {}
	for _, v in ipairs(variables) do
		local text = encode(w, v[2], v[1])
		if text then
			kept[#kept + 1] = v[1]
			parts[#parts + 1] = ('{"name":%s,"local":%s,"value":%s}'):format(json_text(v[1]), tostring(v[3]), text)
		end
	end
	local objects = {}
	for i, object in ipairs(w.objects) do objects[i] = object_text(object) end
	return w.list, ('{"version":%d,"variables":[%s],"objects":[%s]}'):format(format.VERSION, table.concat(parts, ','),
		table.concat(objects, ',')), w.dropped, kept
end

---------------------------------------------------------------- reading

local function wrong(what, ...) error('wrong contents: ' .. what:format(...), 0) end

local function hex_bytes(text)
	if type(text) ~= 'string' or #text % 2 == 1 or text:find '[^%x]' then wrong 'text that is no hexadecimal' end
	return (text:gsub('%x%x', function(h) return string.char(tonumber(h, 16)) end))
end

local function float_of(text)
	local special = {inf = math.huge, ['-inf'] = -math.huge, nan = 0 / 0, ['-nan'] = 0 / 0}
	local value = type(text) == 'string' and (special[text] or tonumber(text))
	if not value then wrong 'a float' end
	return math.type(value) == 'float' and value or value + 0.0 -- a sum would turn -0.0 into 0.0
end

local function decode(r, v)
	if type(v) ~= 'table' then return v end
	if v.f then return float_of(v.f) end
	if v.x then return hex_bytes(v.x) end
	if v.k then
		if v.k == 'parts' then return internal.import 'nn/base/module'.PARTS end
		if v.k == 'state' then return internal.import 'nn/optim/optimizer'.STATE end
		wrong 'a hidden key'
	end
	if v.t then
		local t = r.tensors[v.t]
		if not is_tensor(t) then wrong("no tensor '%.60s'", tostring(v.t)) end
		if v.grad and not t:requires_grad() then t:requires_grad_() end
		return t
	end
	local made = v.r and r.made[v.r]
	if made == nil then wrong 'an object that is not there' end
	return made
end

local function fill(r, object, target)
	if type(object.items) ~= 'table' then wrong 'items' end
	for _, pair in ipairs(object.items) do
		if type(pair) ~= 'table' or pair[1] == nil or pair[2] == nil then wrong 'an item' end
		local key = decode(r, pair[1])
		if key ~= key then wrong 'a key that is nan' end
		rawset(target, key, decode(r, pair[2]))
	end
end

-- Enough of a look that the methods find what they need.
local function check_module(m)
	local module = internal.import 'nn/base/module'
	local parts = rawget(m, module.PARTS)
	for _, name in ipairs {'tensors', 'buffers', 'children', 'counts'} do
		if type(parts) ~= 'table' or type(parts[name]) ~= 'table' then wrong 'a module without its parts' end
	end
	for _, child in ipairs(parts.children) do
		if type(child) ~= 'table' or type(child.name) ~= 'string' or not module.is_module(child.module) then wrong 'a child' end
	end
	for _, field in ipairs(parts.tensors) do
		local t = rawget(m, field)
		if type(field) ~= 'string' or t and not is_tensor(t) then wrong 'a parameter' end
	end
end

local function check_optimizer(o, rule)
	local optimizer = internal.import 'nn/optim/optimizer'
	local s = rawget(o, optimizer.STATE)
	if type(s) ~= 'table' or type(s.list) ~= 'table' or type(s.steps) ~= 'table' or type(s.moments) ~= 'table' or
		math.type(s.count) ~= 'integer' or #s.steps ~= #s.list then
		wrong 'an optimizer without its state'
	end
	for _, t in ipairs(s.list) do
		if not is_tensor(t) then wrong 'an optimizer of something else than tensors' end
	end
	s.rule = optimizer.rules[rule]
	s.lr = type(s.lr) == 'number' and s.lr or s.rule.lr
end

-- Tables first, with their metatables last, so that objects may refer to each other in any order; specs when all they
-- need is there.
local function make_objects(r, objects)
	local module, optimizer = internal.import 'nn/base/module', internal.import 'nn/optim/optimizer'
	for i = 1, #objects do
		if type(objects[i]) ~= 'table' then wrong 'an object' end
		if objects[i].kind == 'spec' then
			local fields = {}
			fill(r, objects[i], fields)
			r.made[i] = quant.spec(fields.text or fields)
		else
			r.made[i] = {}
		end
	end
	for i, object in ipairs(objects) do
		if object.kind ~= 'spec' then fill(r, object, r.made[i]) end
	end
	for i, object in ipairs(objects) do
		if object.kind == 'module' then
			local _ = nn[object.class] -- its file runs when it is first needed
			local class = module.classes[object.class]
			if not class then wrong("no kind of module '%.40s'", tostring(object.class)) end
			setmetatable(r.made[i], class.meta)
		elseif object.kind == 'optimizer' then
			local _ = optim[object.rule]
			if not optimizer.rules[object.rule] then wrong("no optimizer '%.40s'", tostring(object.rule)) end
			setmetatable(r.made[i], optimizer.meta)
		elseif object.kind ~= 'table' and object.kind ~= 'spec' then
			wrong("an object of kind '%.40s'", tostring(object.kind))
		end
	end
	for i, object in ipairs(objects) do
		if object.kind == 'module' then check_module(r.made[i]) end
		if object.kind == 'optimizer' then check_optimizer(r.made[i], object.rule) end
	end
end

-- List of {name, value, is_local}.
function format.decode(tensors, text)
	local data = internal.import 'interp/prelude/json'(text)
	if type(data) ~= 'table' or type(data.variables) ~= 'table' or type(data.objects) ~= 'table' then wrong 'no variables' end
	if data.version ~= format.VERSION then
		error(('written by a newer Quoll (version %s of the format, this one knows %d)'):format(tostring(data.version), format.VERSION), 0)
	end
	local r = {tensors = tensors, made = {}}
	make_objects(r, data.objects)
	local list = {}
	for i, v in ipairs(data.variables) do
		if type(v) ~= 'table' or type(v.name) ~= 'string' or not v.name:find '^[%a_][%w_]*$' or
			internal.baseline[v.name] == true then wrong 'a name' end
		list[i] = {v.name, decode(r, v.value), v['local'] == true}
	end
	return list
end

return format
