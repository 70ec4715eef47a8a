-- SPDX-License-Identifier: MIT
-- m:save and m:load. Mismatches are errors before anything is written to the model.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'
local progress = internal.import 'interp/prelude/progress'
local report = internal.import 'interp/prelude/report'
local fail, describe, is_tensor = base.fail, base.describe, base.is_tensor
local methods, method = module.methods, module.method
local files = {}

-- Tensors of a checkpoint that belong to the training, not to the model.
files.PREFIX = 'fit/'

-- save_folder(m, folder) writes the files of another program (nn/checkpoints/load.lua)

method('save', "m:save 'm.safetensors'  m:save 'folder/'", [[Saves all parameters and buffers by name (.safetensors; .npz for a model that
is not quantized; .gguf). The file is replaced as a whole or not at all. Returns m.

A name that ends in / is a folder of Hugging Face, which is made where it is missing: a model that `nn.load` has read from such a folder gets its
config.json and the names of the file.]],
	[[file = os.tmpname() .. '.safetensors'
m = nn.Linear(3, 2)
m:save(file)
print(tensor.load(file).weight:size())  --> 2 3]])
function methods.save(m, file)
	module.parts_of(m, 'save')
	if type(file) == 'string' and file:find '/$' then
		files.save_folder(m, base.path(file))
		return m
	end
	local all = {}
	for name, value in pairs(m:state()) do all[name] = value end
	tensor.save(file, all)
	return m
end

-- Why the tensor of the file cannot be put in the place of this one, or nil.
local function unfit(own, given)
	local a, b = {own:size()}, {given:size()}
	local same = #a == #b
	for i = 1, #a do same = same and a[i] == b[i] end
	if same then return end
	return ('shape (%s), the file has (%s)'):format(table.concat(a, ', '), table.concat(b, ', '))
end

local function list(names)
	local shown = table.concat(names, ' ', 1, math.min(#names, 4))
	return #names > 4 and ('%s and %d more'):format(shown, #names - 4) or shown
end

---------------------------------------------------------------- what is given

-- The named tensors of a file or a table, and what messages call them.
local function read(from)
	if type(from) == 'string' then
		local given = tensor.load(from)
		if is_tensor(given) then fail('load: %s: wanted named tensors, got one without a name', from) end
		return given, from
	end
	if type(from) ~= 'table' or module.is_module(from) then
		fail('load: wanted a file name or a table of tensors, got %s', module.is_module(from) and 'a model; m:load(other:state())' or describe(from))
	end
	for name, value in pairs(from) do
		if type(name) ~= 'string' or not is_tensor(value) then
			fail('load: wanted a table name -> tensor, got %s at %s', describe(value), type(name) == 'string' and base.word(name) or describe(name))
		end
	end
	return from, 'the table'
end

---------------------------------------------------------------- rename

-- Equal parts of a tensor along its first axis under these names.
local function divide(name, value, names)
	local n = value:dim() > 0 and value:size(1) or 0
	if #names == 0 or n % #names ~= 0 then
		fail('load: rename: %s: wanted a first axis that %d names divide, got %s', name, #names, describe(value))
	end
	local parts = {}
	for i, part in ipairs(names) do parts[part] = value:narrow(1, (i - 1) * (n // #names) + 1, n // #names) end
	return parts
end

-- What a tensor of the file becomes by its item of the table: name -> tensor.
local function parts_of(name, value, item)
	if type(item) == 'function' then item = item(value) end
	if item == false then return {} end
	if type(item) == 'string' then return {[item] = value} end
	if type(item) == 'table' and not getmetatable(item) then
		if item[1] ~= nil then item = divide(name, value, item) end
		local good = true
		for part, inner in next, item do good = good and type(part) == 'string' and is_tensor(inner) end
		if good then return item end
	end
	fail('load: rename: %s: wanted a name, a list of names, a function that gives name -> tensor, or false, got %s', name, describe(item))
end

-- The tensors under the names of the table's items; without an item they keep their names. Names of the file that are
-- excluded by false are in `left`.
local function by_table(given, items)
	local all, names, left = {}, {}, {}
	for name in pairs(given) do names[#names + 1] = name end
	for name in next, items do
		if type(name) ~= 'string' or not given[name] then
			fail("load: rename: no tensor '%s'%s", base.word(name), base.near(name, names))
		end
	end
	for _, name in ipairs(names) do
		local item = items[name]
		if item == false then left[name] = true end
		for part, value in next, parts_of(name, given[name], item == nil and name or item) do
			if all[part] then fail("load: rename: wanted each name once, got '%s' twice", base.word(part)) end
			all[part] = value
		end
	end
	return all, left
end

-- The tensor that a function finds for a name of the model: by name, or one that it makes of those of the file. What it reads counts as used.
local function by_function(name, given, rename, used)
	local seen = setmetatable({}, {__index = function(_, key)
		used[key] = true
		return given[key]
	end})
	local found = rename(name, seen)
	if is_tensor(found) then return found end
	if found ~= nil and type(found) ~= 'string' then
		fail('load: rename: %s: wanted a function that gives a name or a tensor, got %s', name, describe(found))
	end
	used[found or name] = true
	return given[found or name]
end

---------------------------------------------------------------- matching

-- Counts of PyTorch's batch norm, which nothing here reads.
local function is_ignored(name) return name:find '%f[%w_]num_batches_tracked$' ~= nil end

-- Why tensors of the file cannot be read, by name, or nil.
local function refused_of(given)
	local meta = getmetatable(given)
	return type(meta) == 'table' and meta.refused or nil
end

-- The tensor with that name; nil for one that cannot be read.
local function item_of(given, name)
	local refused = refused_of(given)
	if refused and refused[name] then return nil end
	return given[name]
end

-- Tensors by the model's names; what is missing, extra, of no use, or does not fit.
local function match(m, given, rename)
	local found, missing, extra, ignored, wrong, used = {}, {}, {}, {}, {}, {}
	if type(rename) == 'table' then given, used = by_table(given, rename) end
	for name, own in pairs(m:state()) do
		local value
		if type(rename) == 'function' then
			value = by_function(name, given, rename, used)
		else
			value, used[name] = item_of(given, name), true
		end
		if not value then
			missing[#missing + 1] = name
		elseif unfit(own, value) then
			wrong[#wrong + 1] = ('%s has %s'):format(name, unfit(own, value))
		else
			found[name] = value
		end
	end
	for name in pairs(given) do
		if not used[name] and name:sub(1, #files.PREFIX) ~= files.PREFIX then
			table.insert(is_ignored(name) and ignored or extra, name)
		end
	end
	table.sort(extra)
	return {found = found, missing = missing, extra = extra, ignored = ignored, wrong = wrong}
end

files.match, files.list = match, list

-- The same in one line.
function files.refused(given)
	local lines = {}
	for _, why in next, refused_of(given) or {} do lines[#lines + 1] = why end
	table.sort(lines)
	return lines[1] and ('what cannot be read: %s'):format(table.concat(lines, '; ', 1, math.min(#lines, 4)))
end

-- A plain tensor is written into the one that is there, which optimizers hold; a quantized one takes its place.
local function put(m, found, copy)
	local _ <close> = internal.nograd()
	module.change_tensors(m, function(own, name)
		local value = found[name]
		if value and (own:quantized() or value:quantized()) then return copy and value:to(own:device()):clone() or value:to(own:device()) end
		if value then own:copy_(value) end
	end)
end

-- What has become of every name: a report, and the same in one line.
local function summary(m, from, result)
	local rows, loaded = {columns = {'name', 'state', 'tensor'}}, 0
	for name, own in pairs(m:state()) do
		loaded = loaded + (result.found[name] and 1 or 0)
		rows[#rows + 1] = {name, result.found[name] and 'loaded' or 'missing', internal.describe(own)}
	end
	for _, state in ipairs {'extra', 'ignored'} do
		for _, name in ipairs(result[state]) do rows[#rows + 1] = {name, state, ''} end
	end
	local note = ('%d of %d loaded'):format(loaded, loaded + #result.missing)
	for _, state in ipairs {'missing', 'extra', 'ignored'} do
		if #result[state] > 0 then note = ('%s; %d %s: %s'):format(note, #result[state], state, list(result[state])) end
	end
	rows.note = note
	return report(rows), ('load: %s: %s'):format(from, note)
end

local load = method('load', "m:load 'm.safetensors'  m:load(file, {partial=true, rename=})  m:load{name=tensor, …}",
	[[Loads parameters and buffers by name, from a file or a table of tensors (m:state(), tensor.load), into m and returns m. A name
that is missing, extra, or of another shape is an error that lists them, and nothing has changed. PyTorch's num_batches_tracked
is passed over.

With partial=true what fits is loaded; a line on stderr (log=false: none) and a second result, a report, say what was left out.

rename= says where names differ. A table: name in the file -> name in the model, a list of names among which the tensor is divided
along its first axis, a function(tensor) that gives name -> tensor, or false, which leaves it out; other names stay. A function(name,
file): name in the model -> name in the file, or a tensor made of those in the table `file`.]],
	[[file = os.tmpname() .. '.safetensors'
a, b = nn.Linear(3, 2), nn.Linear(3, 2)
a:save(file)
print(b:load(file).weight:error(a.weight).max)  --> 0.0
-- the state of PyTorch's nn.MultiheadAttention(4, 2): query, key and value are one tensor
torch = {in_proj_weight=tensor.randn(12, 4), in_proj_bias=tensor.zeros(12), ['out_proj.weight']=tensor.randn(4, 4),
	['out_proj.bias']=tensor.zeros(4)}
m = nn.Attention(4, 2):load(torch, {rename={in_proj_weight={'query.weight', 'key.weight', 'value.weight'},
	in_proj_bias={'query.bias', 'key.bias', 'value.bias'}, ['out_proj.weight']='out.weight', ['out_proj.bias']='out.bias'}})
print(m.key.weight:error(torch.in_proj_weight['5:8']).max)  --> 0.0]],
	{{'partial', 'true or false', 'take what fits (default false)'}, {'log', 'true or false', 'the line of partial=true (default true)'},
		{'rename', 'any', 'a table name in the file -> name in the model, or a function name in the model -> name in the file'}})
function methods.load(m, from, options)
	module.parts_of(m, 'load')
	if from == nil and type(options) == 'string' then fail('load: %s', options) end -- nil and why, as data.find gives
	options = base.options(load, options)
	local rename = options.rename
	if rename ~= nil and type(rename) ~= 'function' and (type(rename) ~= 'table' or getmetatable(rename)) then
		fail('load: rename: wanted a table or a function, got %s', describe(rename))
	end
	local given, what = read(from)
	local result = match(m, given, rename)
	local trouble = {}
	for _, state in ipairs {'missing', 'extra'} do
		if #result[state] > 0 then trouble[#trouble + 1] = ('%d %s: %s'):format(#result[state], state, list(result[state])) end
	end
	if #result.wrong > 0 then trouble[#trouble + 1] = list(result.wrong) end
	if #result.missing > 0 then trouble[#trouble + 1] = files.refused(given) end
	if #result.wrong > 0 or not options.partial and #trouble > 0 then
		fail('load: %s: wanted the tensors of the model, got %s', what, table.concat(trouble, '; '))
	end
	put(m, result.found, type(from) == 'table')
	if not options.partial then return m end
	local rows, line = summary(m, what, result)
	progress.start('', nil, options.log):done(line)
	return m, rows
end

return files
