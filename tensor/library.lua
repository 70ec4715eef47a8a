-- SPDX-License-Identifier: MIT
-- tensor.load and tensor.save. A file of named tensors becomes a table name -> tensor in the order of the file: its
-- metatable has the list of names, which pairs, #t, printing and saving follow. Fields can be added and removed as in
-- any table; new ones follow the old ones, sorted.
local tensor, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, doc, describe, is_tensor = base.fail, base.doc, base.describe, base.is_tensor
local LINES = 60 -- tensors shown by print

local function check_file(what, file)
	if type(file) ~= 'string' or file == '' then fail('%s: file: wanted a file name, got %s', what, describe(file)) end
	if file:find('\0', 1, true) then fail('%s: file: wanted a file name, got one with a zero byte', what) end
end

-- Names in order, for any table whose keys are names.
local function names_of(t)
	local meta, names, known = getmetatable(t), {}, {}
	for _, name in ipairs(type(meta) == 'table' and meta.order or {}) do
		if rawget(t, name) ~= nil then names[#names + 1] = name end
		known[name] = true
	end
	local new = {}
	for name in next, t do
		if not known[name] then new[#new + 1] = name end
	end
	table.sort(new, function(a, b)
		if type(a) == type(b) and type(a) ~= 'table' then return a < b end
		return type(a) < type(b)
	end)
	return table.move(new, 1, #new, #names + 1, names)
end

local function each(t)
	local names, i = names_of(t), 0
	return function()
		local name, value
		repeat
			i = i + 1
			name = names[i]
			value = name ~= nil and rawget(t, name)
		until name == nil or value ~= nil -- some may have been removed meanwhile
		return name, value
	end
end

local function text_of(t)
	local names, width, lines, bytes = names_of(t), 0, {}, 0
	for i = 1, math.min(#names, LINES) do width = math.max(width, #tostring(names[i])) end
	width = math.min(width, 60)
	for i, name in ipairs(names) do
		local value = t[name]
		bytes = bytes + (is_tensor(value) and value:nbytes() or 0)
		if i <= LINES then
			lines[i] = ('  %-' .. width .. 's  %s'):format(name, describe(value))
		end
	end
	if #names > LINES then lines[LINES + 1] = ('  … (%d more)'):format(#names - LINES) end
	local refused = {}
	for name in next, getmetatable(t).refused do refused[#refused + 1] = name end
	table.sort(refused)
	if #refused > 0 then
		lines[#lines + 1] = ('  cannot be read: %s%s'):format(table.concat(refused, ' ', 1, math.min(#refused, 4)), #refused > 4 and (' and %d more'):format(#refused - 4) or '')
	end
	return ('%d tensor%s, %d bytes\n'):format(#names, #names == 1 and '' or 's', bytes) .. table.concat(lines, '\n')
end

local function value_text(value)
	if type(value) == 'table' then return ('%d texts'):format(#value) end
	if type(value) ~= 'string' then return is_tensor(value) and describe(value) or tostring(value) end
	return #value > 60 and ('%q…'):format(value:sub(1, 60)) or ('%q'):format(value)
end

local function metadata_text(t)
	local lines = {}
	for key, value in each(t) do lines[#lines + 1] = ('%s = %s'):format(key, value_text(value)) end
	return table.concat(lines, '\n')
end

-- The keys of a file in its order.
local function metadata(keys, values)
	local t = {}
	for i, key in ipairs(keys) do t[key] = values[i] end
	return setmetatable(t, {__name = 'metadata', order = keys, __pairs = each, __tostring = metadata_text,
		__len = function(self) return #names_of(self) end})
end

-- refused: why tensors of the file cannot be read, by name; asking for one is an error.
local function named(names, tensors, refused, file)
	local t = {}
	for i, name in ipairs(names) do t[name] = tensors[i] end
	return setmetatable(t, {__name = 'tensors', order = names, refused = refused, __pairs = each, __tostring = text_of,
		__len = function(self) return #names_of(self) end,
		__index = function(_, name)
			if refused[name] then fail('load: %s: %s', file, refused[name]) end
		end})
end

local load = doc {name = 'tensor.load', usage = "tensor.load 'w.safetensors'  tensor.load('w.npz', {device='cuda'})",
	text = [[Loads a file: .npy, idx (MNIST, .gz too) and .png give a tensor; .npz and .safetensors give a table name -> tensor in
which pairs follows the order of the file. help 'npy', 'safetensors' and so on describe what each format holds. A damaged file is
an error of one line, whatever is in it. A tensor of a .safetensors file of a dtype that there is none of here, or with damaged parameters, is an error
only where it is asked for; print names it.

With metadata=true the second result is a table of what the file says beside its tensors (.gguf, .safetensors), which `tensor.save` takes
as metadata=.

With map=true loading takes no time and no memory of its own: pages of the file are read when they are used, and writing to such a tensor
changes memory alone. No other program may shorten the file meanwhile, which would end this one; saving here replaces files and is safe. names= gives
only some of the tensors; with map=true the others are not read.]],
	options = {{'device', 'text', 'where the tensors will be (default cpu, see --device)'},
		{'metadata', 'true or false', 'give the metadata, too (default false)'},
		{'map', 'true or false', '.safetensors, .gguf: large plain tensors are the file itself, read when they are used (default false)'},
		{'names', 'list', 'only these tensors of a file of named ones (default: all)'}},
	example = [[file = os.tmpname() .. '.npz'
tensor.save(file, {a=tensor{1,2}, b=tensor{{3}}})
for name, x in pairs(tensor.load(file)) do print(name, x:nelem()) end  --> a 2
--> b 1]]}

-- The tensors called `wanted`, in the order of the file.
local function chosen(file, names, tensors, wanted, refused)
	local some, kept, set, there = {}, {}, {}, {}
	for _, name in ipairs(names) do there[name] = true end
	for _, name in ipairs(wanted) do
		if type(name) ~= 'string' then fail('load: names: wanted a list of texts, got %s', describe(name)) end
		if refused[name] then fail('load: %s: %s', file, refused[name]) end
		if not there[name] then fail("load: %s: wanted a tensor '%.80s', got none%s", file, name, base.near(name, names)) end
		set[name] = true
	end
	for i, name in ipairs(names) do
		if set[name] then some[#some + 1], kept[#kept + 1] = name, tensors[i] end
	end
	return some, kept
end

function tensor.load(file, options)
	check_file('load', file)
	options = base.options(load, options)
	if file:find '%.csv$' then fail("load: %s: wanted a file of tensors, got a table of text; bench.load '…csv' gives a report, r:column(name) its numbers", file) end
	local names, tensors, single, keys, values, refused = internal.load_file(file, options.device, options.map)
	if not names then fail('%s', tensors) end
	if single and options.names then fail('load: names: wanted a file of named tensors, got %s', file) end
	if single then return tensors[1] end
	if options.names then names, tensors = chosen(file, names, tensors, options.names, refused) end
	if options.metadata then return named(names, tensors, refused, file), metadata(keys, values) end
	return named(names, tensors, refused, file)
end

local save = doc {name = 'tensor.save', usage = "tensor.save('w.safetensors', {w=x, b=y})",
	text = [[Saves a tensor, or a table name -> tensor, as .npy (one tensor), .npz, .safetensors or .gguf. The file is replaced as a
whole or not at all. Quantized tensors keep their scales in .safetensors, and in .gguf if it has their format; other files take
x:codes() or x:dequantize(). A tensor without a name is called arr_0 in .npz and tensor in .safetensors.]],
	options = {{'compress', 'true or false', '.npz: deflate the data (default false)'},
		{'metadata', 'list', '.gguf: a table of numbers, texts, lists of texts and tensors; .safetensors: of texts'}},
	example = [[file = os.tmpname() .. '.safetensors'
tensor.save(file, {w=tensor.ones(2, 3):quantize 'int8/1'})
print(tensor.load(file).w:qparams().axis)  --> 1]]}

local function check(name, value)
	if type(name) ~= 'string' then fail('save: wanted names as keys, as in {w=x}, got %s', describe(name)) end
	if not is_tensor(value) then fail('save: %.80s: wanted a tensor, got %s', name, describe(value)) end
end

-- The keys and values of metadata, in order.
local function metadata_of(t)
	if t == nil then return {}, {} end
	local keys, values = names_of(t), {}
	for i, key in ipairs(keys) do
		local value = rawget(t, key)
		if type(key) ~= 'string' or key == '' or key:find('\0', 1, true) then
			fail('save: metadata: wanted texts as keys, got %s', describe(key))
		end
		local good = ({string = true, number = true, boolean = true})[type(value)] or is_tensor(value)
		if type(value) == 'table' then
			good = true
			for _, item in ipairs(value) do good = good and type(item) == 'string' end
			for k in next, value do good = good and math.type(k) == 'integer' and k >= 1 and k <= #value end
		end
		if not good then
			fail('save: metadata: %.80s: wanted a number, a boolean, a text, a list of texts or a tensor, got %s', key, describe(value))
		end
		values[i] = value
	end
	return keys, values
end

function tensor.save(file, t, options)
	check_file('save', file)
	options = base.options(save, options)
	local names, tensors = {''}, {t}
	if type(t) == 'table' then
		names, tensors = names_of(t), {}
		for i, name in ipairs(names) do
			tensors[i] = t[name]
			check(name, tensors[i])
		end
	elseif not is_tensor(t) then
		fail('save: wanted a tensor or a table of named tensors, got %s', describe(t))
	end
	local done, message = internal.save_file(file, names, tensors, options.compress, metadata_of(options.metadata))
	if not done then fail('%s', message) end
end

doc {name = 'tensor.nograd', usage = 'tensor.nograd(fn, …)',
	text = [[Calls fn(…) while nothing is recorded for gradients, and returns its results: for evaluation, which then keeps no
intermediate values, and for writing to tensors with requires_grad. Recording goes on afterwards, also after an error. A coroutine that fn resumes records nothing either; one that
yields inside of its own nograd leaves it on for itself only.]],
	example = [[w = tensor{1, 2, grad=true}
y = tensor.nograd(function() w:add_(1) return w * 2 end)
print(y, y:requires_grad())  --> float32(2)  4 6 false]]}

function tensor.nograd(fn, ...)
	if type(fn) ~= 'function' then fail('nograd: wanted a function, got %s', describe(fn)) end
	local _ <close> = internal.nograd()
	return fn(...)
end

doc {name = 'tensor.fuse', usage = 'g = tensor.fuse(f)',
	text = [[Gives a function that calls f and returns its results, in one pass over memory where it can: elementwise ops of float32 that f
applies one after another wait until their values are needed, and are then computed piece by piece, with intermediate pieces in the
processor's cache. The results have the same bits as f's. It pays for results of some hundred thousand elements or more.

What waits: elementwise ops with float32 results of 16384 elements or more, whose operands are numbers, float32 tensors of the shape of
the result, or such as its last axes (a bias). Other ops compute their operands first and run as always: reductions, products, results
of other dtypes, quantized operands, tensors on a device, in-place forms, what has a gradient to record, and what graph.trace records.
quant.log() shows kernel 'chain' for ops that waited. A result that f keeps elsewhere is computed when it is used.]],
	example = [[g = tensor.fuse(function(x, y) return (x * 2 + y):tanh() * x - y end)
x, y = tensor.randn(200, 100), tensor.randn(200, 100)
print(g(x, y):eq((x * 2 + y):tanh() * x - y):all():item())  --> true]]}

function tensor.fuse(f)
	if type(f) ~= 'function' then fail('fuse: wanted a function, got %s', describe(f)) end
	return function(...)
		local _ <close> = internal.deferring()
		return internal.settled(f(...))
	end
end
