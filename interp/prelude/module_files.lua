-- SPDX-License-Identifier: MIT
-- m:save and m:load. What does not fit is found before anything is written to the model.
local _, internal = ...
local base = internal.import 'base'
local module = internal.import 'module'
local fail, describe = base.fail, base.describe
local methods, method = module.methods, module.method
local files = {}

-- Tensors of a checkpoint that belong to the training, not to the model.
files.PREFIX = 'fit/'

method('save', "m:save 'm.safetensors'", [[Saves all parameters and buffers by name (.safetensors; .npz for a model that is not
quantized). The file is replaced as a whole or not at all. Returns m.]],
	[[file = os.tmpname() .. '.safetensors'
m = nn.Linear(3, 2)
m:save(file)
print(tensor.load(file).weight:size())  --> 2 3]])
function methods.save(m, file)
	module.parts_of(m, 'save')
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

-- Tensors of the file by the model's names; what is missing, extra or does not fit.
local function match(m, given, rename)
	local found, missing, extra, wrong, used = {}, {}, {}, {}, {}
	for name, own in pairs(m:state()) do
		local key = rename and rename(name) or name
		local value = given[key]
		used[key] = true
		if not value then
			missing[#missing + 1] = name
		elseif unfit(own, value) then
			wrong[#wrong + 1] = ('%s has %s'):format(name, unfit(own, value))
		else
			found[name] = value
		end
	end
	for name in pairs(given) do
		if not used[name] and name:sub(1, #files.PREFIX) ~= files.PREFIX then extra[#extra + 1] = name end
	end
	return found, missing, extra, wrong
end

-- A plain tensor is written into the one that is there, which optimizers hold; a quantized one takes its place.
local function put(m, found)
	local guard <close> = internal.nograd()
	module.change_tensors(m, function(own, name)
		local value = found[name]
		if value and (own:quantized() or value:quantized()) then return value end
		if value then own:copy_(value) end
	end)
end

local load = method('load', "m:load 'm.safetensors'  m:load(file, {partial=true, rename=fn})",
	[[Loads parameters and buffers by name into m and returns m. A name that is missing in the file, extra in it, or of another
shape is an error that lists them, and nothing has changed; with partial=true what fits is loaded, and the lists of missing
and extra names are returned behind m. rename tells for each name in m the name in the file.]],
	[[file = os.tmpname() .. '.safetensors'
a, b = nn.Linear(3, 2), nn.Linear(3, 2)
a:save(file)
print(b:load(file).weight:error(a.weight).max)  --> 0.0]],
	{{'partial', 'true or false', 'take what fits (default false)'},
		{'rename', 'function', 'name in the model -> name in the file'}})
function methods.load(m, file, options)
	module.parts_of(m, 'load')
	options = base.options(load, options)
	local given = tensor.load(file)
	if base.is_tensor(given) then fail('load: %s: wanted named tensors, got one without a name', file) end
	local found, missing, extra, wrong = match(m, given, options.rename)
	local trouble = {}
	if #missing > 0 then trouble[#trouble + 1] = ('%d missing: %s'):format(#missing, list(missing)) end
	if #extra > 0 then trouble[#trouble + 1] = ('%d extra: %s'):format(#extra, list(extra)) end
	if #wrong > 0 then trouble[#trouble + 1] = list(wrong) end
	if #wrong > 0 or not options.partial and #trouble > 0 then
		fail('load: %s: wanted the tensors of the model, got %s', file, table.concat(trouble, '; '))
	end
	put(m, found)
	if options.partial then return m, missing, extra end
	return m
end

return files
