-- SPDX-License-Identifier: MIT
-- file= of m:quantize{method=}: finished blocks on disk, so that a run that was killed goes on behind the last of them with the same bits.
--
-- <file> is a text of lines: what it is, the identities of model, data and options, and how many blocks are finished with the state of
-- the random numbers behind the last. <file>.<b>.safetensors has the codes of block b, the tensors of the model that it changed and, as
-- metadata, its rows; <file>.values<b>.safetensors what the float and the quantized model give there, until the next block is finished.
-- Each is replaced as a whole, the text last: whatever stops a run, the text names complete files.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local identity = internal.import 'nn/base/identity'
local json = internal.import 'interp/prelude/json_write'
local module = internal.import 'nn/base/module'
local fail = base.fail
local store = {}

local VERSION = 'quoll quantize 1'

---------------------------------------------------------------- what it belongs to

local function sorted(t)
	local list = {}
	for key in next, t do list[#list + 1] = key end
	table.sort(list)
	return list
end

-- Kinds, tensors and, where it could be traced, ops of the model.
local function of_model(run)
	local parts = {}
	module.walk(run.model, function(name, inner)
		parts[#parts + 1] = name .. ' ' .. module.class_of(inner).name
		if rawget(inner, 'run') then parts[#parts + 1] = identity.of(inner.run) end
		for _, field in ipairs(module.tensors(inner)) do
			local value = rawget(inner, field)
			if value then parts[#parts + 1] = field .. ' ' .. identity.tensor(value) end
		end
	end)
	for _, part in ipairs(run.parts[1]) do
		parts[#parts + 1] = 'block ' .. part.name
		for _, name in ipairs(part.graph and part.graph.order or {}) do
			local node = part.graph.nodes[name]
			parts[#parts + 1] = name .. ' ' .. node.op .. ' ' .. identity.value(node.attrs)
		end
	end
	return internal.sha256(table.concat(parts, '\n'))
end

local function of_data(run)
	local parts = {}
	for i, x in ipairs(run.inputs) do parts[i] = identity.value(x) end
	return internal.sha256(table.concat(parts, '\n'))
end

local function of_options(run, plan)
	local parts = {tostring(run.sequential)}
	for _, name in ipairs(sorted(plan)) do
		for _, item in ipairs(plan[name]) do
			parts[#parts + 1] = ('%s %s %s %s'):format(name, item.field, identity.value(item.spec), tostring(item.first))
			for _, link in ipairs(item.chain) do parts[#parts + 1] = link.name .. ' ' .. identity.value(link.options) end
		end
	end
	return internal.sha256(table.concat(parts, '\n'))
end

---------------------------------------------------------------- files

-- What touches the disk; tests stop a run here.
store.disk = {
	save = function(path, tensors, metadata) tensor.save(path, tensors, {metadata = metadata}) end,
	write = function(path, text) internal.write_file(path, text) end,
	remove = function(path) os.remove(path) end,
}

local methods = {}
local meta = {__index = methods}

local function block_path(s, b) return ('%s.%d.safetensors'):format(s.path, b) end
local function values_path(s, b) return ('%s.values%d.safetensors'):format(s.path, b) end

local function guarded(what, f, ...)
	local good, why = pcall(f, ...)
	if not good then fail('quantize: file: %s', (tostring(why):gsub('^[^:]*:%d+: ', ''):gsub('^' .. what .. ': ', ''))) end
	return why
end

local function read(path)
	local file = io.open(path, 'rb')
	if not file then return nil end
	local text, why = file:read 'a'
	file:close()
	if not text then fail("quantize: file: '%s': wanted a file, got one that cannot be read: %s", path, why) end
	return text
end

-- Reads <file>, or leaves it for the first block.
local function begin(s)
	local text = read(s.path)
	if not text then return end
	local version, model, data, options, count, seed, position = text:match '^([^\n]*)\nmodel (%x+)\ndata (%x+)\noptions (%x+)\nblocks (%d+)\nrandom (%-?%d+) (%-?%d+)\n$'
	if version ~= VERSION then
		fail("quantize: file: '%s': wanted a file of m:quantize of this version, got another; remove it or give another name", s.path)
	end
	for _, pair in ipairs {{'model', model}, {'data', data}, {'options', options}} do
		if s.head[pair[1]] ~= pair[2] then
			fail("quantize: file: '%s': wanted blocks of this model, data and options, got those of other %s; remove it or give another name", s.path,
				pair[1] == 'model' and 'models' or pair[1])
		end
	end
	s.count, s.seed, s.position = math.tointeger(count), math.tointeger(seed), math.tointeger(position)
end

-- The store of a run that has its blocks (nn/quantize/learn.lua). s.count: finished blocks.
function store.open(path, run, plan)
	local s = setmetatable({path = base.path(base.check_path('quantize: file', path)), run = run, count = 0}, meta)
	s.head = {model = of_model(run), data = of_data(run), options = of_options(run, plan)}
	begin(s)
	s.before = {}
	return s
end

---------------------------------------------------------------- a block

local function each_tensor(m, each)
	module.walk(m, function(path, inner)
		for _, field in ipairs(module.tensors(inner)) do each(path .. '.' .. field, rawget(inner, field)) end
	end)
end

-- Tensors of the model as they are now, by place, with how often they were written to.
local function tensors_of(m)
	local all = {}
	each_tensor(m, function(place, value) all[place] = value and {value = value, writes = internal.writes(value)} or nil end)
	return all
end

-- Called before a block: what it changes is what differs afterwards.
function methods.watch(s) s.before = tensors_of(s.run.model) end

local function has_changed(before, now) return not before or not rawequal(before.value, now.value) or before.writes ~= now.writes end

-- Codes that are packed along another axis are saved in their own order.
local function packed(q, name, turned)
	if q:dim() ~= 4 or q:iscontiguous() then return q end
	turned[#turned + 1] = name
	return q:permute(1, 3, 4, 2)
end

-- Numbers of JSON are finite, and rows are to have the same bits.
local function row_text(row)
	local list = {}
	for key, value in next, row do list[key] = math.type(value) and {math.type(value) == 'float' and ('%a'):format(value) or tostring(value)} or value end
	return list
end

local function row_of(list)
	local row = {}
	for key, value in next, list do
		if type(value) == 'table' then value = value[1] == 'inf' and math.huge or value[1] == '-inf' and -math.huge or tonumber(value[1]) or 0 / 0 end
		row[key] = value
	end
	return row
end

local function values_of(prefix, list, into)
	for i, x in ipairs(list) do into[prefix .. i] = x end
end

-- Writes block b, whose layers are `names`. floats, values: what follows it, nil behind the last.
function methods.finish(s, b, plan, names, floats, values)
	local all, turned, rows = {none = tensor.zeros {1}}, {}, {}
	for _, name in ipairs(names) do
		for i, item in ipairs(plan[name] or {}) do
			local key = ('codes %d %s'):format(i, name)
			if item.codes then
				all[key] = packed(item.codes, key, turned)
				rows[key] = row_text(item.row)
			end
		end
	end
	for place, now in next, tensors_of(s.run.model) do
		if has_changed(s.before[place], now) then all['model ' .. place] = now.value:detach() end
	end
	guarded('save', store.disk.save, block_path(s, b), all, {rows = json.write(rows), turned = table.concat(turned, '\n')})
	if floats then
		local both = {}
		values_of('float ', floats, both)
		if not rawequal(values, floats) then values_of('value ', values, both) end
		guarded('save', store.disk.save, values_path(s, b), both)
	end
	local seed, position = internal.rng(0, 0)
	internal.rng(seed, position)
	guarded('save', store.disk.write, s.path, ('%s\nmodel %s\ndata %s\noptions %s\nblocks %d\nrandom %d %d\n'):format(VERSION, s.head.model, s.head.data,
		s.head.options, b, seed, position))
	if b > 1 then store.disk.remove(values_path(s, b - 1)) end
end

---------------------------------------------------------------- going on

local function load(path)
	local good, all, metadata = pcall(tensor.load, path, {metadata = true, map = true})
	if not good then fail('quantize: file: %s', (tostring(all):gsub('^[^:]*:%d+: ', ''))) end
	return all, metadata
end

local function restore_model(s, all)
	local device = module.device(s.run.model)
	module.walk(s.run.model, function(path, inner)
		local prefix = 'model ' .. path .. '.'
		for name in pairs(all) do
			local field = name:sub(1, #prefix) == prefix and name:sub(#prefix + 1) or ''
			if field ~= '' and not field:find('.', 1, true) then
				local value = all[name]:to(device):clone()
				local buffers = module.class_of(inner).apart or {}
				if rawget(inner, field) then
					module.set_tensor(inner, field, value)
				else
					(buffers[field] and module.buffer or module.parameter)(inner, field, value)
				end
			end
		end
	end)
end

local function restore_block(s, b, plan, names)
	local all, metadata = load(block_path(s, b))
	local rows, turned = json.read(metadata.rows), {}
	for key in metadata.turned:gmatch '[^\n]+' do turned[key] = true end
	local device = module.device(s.run.model)
	for _, name in ipairs(names) do
		for i, item in ipairs(plan[name] or {}) do
			local key = ('codes %d %s'):format(i, name)
			local q = rows[key] and all[key]
			if q then
				q = q:to(device)
				item.codes, item.row = turned[key] and q:permute(1, 4, 2, 3) or q, row_of(rows[key])
			end
		end
	end
	restore_model(s, all)
end

-- Takes the finished blocks. Returns their number and what follows the last of them: floats, values (nil, nil: nothing does).
function methods.resume(s, plan, blocks)
	for b = 1, s.count do restore_block(s, b, plan, blocks[b].layers) end
	if s.count > 0 then internal.rng(s.seed, s.position) end
	if s.count > 1 then store.disk.remove(values_path(s, s.count - 1)) end
	if s.count == 0 or s.count >= #blocks then return s.count end
	local all = load(values_path(s, s.count))
	local floats, values = {}, {}
	local device = module.device(s.run.model)
	for i in ipairs(s.run.inputs) do
		floats[i] = module.moved(all['float ' .. i], device)
		values[i] = module.moved(all['value ' .. i], device)
	end
	return s.count, floats, #values > 0 and values or floats
end

return store
