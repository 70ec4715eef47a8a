-- SPDX-License-Identifier: MIT
-- The base of every module of nn: named parameters and children, modes, files, copies. A kind of module is a file in
-- nn/modules/ that calls module.define with `init` and `forward`; nn.module makes one of a single Lua function.
--
-- An instance is a table: its tensors and children are fields, listed in order in the hidden field PARTS. A call runs
-- the forward of its class, unless calibration, quantization or summary has set a function in HOOK.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local arguments = internal.import 'nn/base/arguments'
local fail, doc, describe, is_tensor = base.fail, base.doc, base.describe, base.is_tensor

local PARTS, HOOK = {}, {}
local WIDEST = 60 -- characters of the column of names in the text of a model
-- tracer: what graph.trace puts there while it runs
local module = {classes = {}, HOOK = HOOK, PARTS = PARTS, tracer = nil}
local methods = {}
local registered = {__name = 'quoll.module', methods = methods} -- for help and completion
debug.getregistry()[registered.__name] = registered

local function is_module(value)
	return type(value) == 'table' and rawget(value, PARTS) ~= nil
end
module.is_module = is_module

local function parts_of(m, name)
	if not is_module(m) then fail('%s: wanted a module, as in m:%s(…), got %s', name, name, describe(m)) end
	return rawget(m, PARTS)
end

---------------------------------------------------------------- classes and instances

local forward -- what m.forward is

-- Fields of built-in kinds are all set by init (false: none), so that a wrong name is an error.
local function index(m, key)
	local class = getmetatable(m).class
	if key == 'forward' then return forward end
	local value = class[key]
	if value == nil then value = methods[key] end
	if value ~= nil or class.loose or type(key) ~= 'string' then return value end
	local names = {}
	for name in next, m do names[#names + 1] = type(name) == 'string' and name or nil end
	for _, list in ipairs {methods, class} do
		for name, f in next, list do names[#names + 1] = type(f) == 'function' and name or nil end
	end
	fail("%s: no field or method '%.40s'%s", class.name, key, internal.import 'interp/prelude/habits'.answer('module', key) or base.near(key, names))
end

local function new(class)
	local parts = {tensors = {}, buffers = {}, children = {}, counts = {}}
	return setmetatable({[PARTS] = parts, training = true, name = false}, class.meta)
end

module.modes = {} -- name -> how a quantized layer runs: function(m, q, …); filled by nn/base/modes.lua

-- The module itself, without its hook.
function module.run(m, ...)
	local q = rawget(m, 'quantized')
	local class = getmetatable(m).class
	if not q then return (rawget(m, 'forward') or class.forward)(m, ...) end
	local own = class.modes
	return (own and own[q.mode] or module.modes[q.mode])(m, q, ...)
end

local function same(...) return ... end

-- m(x, y): a kind whose forward has no second argument refuses it.
local function check_call(m, _, ...)
	local class = getmetatable(m).class
	if class.takes < 1 + select('#', ...) then base.surplus(class.name, class.takes, select(class.takes, ...)) end
end

-- Where a last bit decides on a code, sums of float products are ordered as in graphs (nn/graph/run.lua): the same codes on every
-- processor and in exported C. No tail call: tracebacks find the module that was running by this frame.
local function call(m, x, ...)
	if ... ~= nil then check_call(m, x, ...) end
	local hook = rawget(m, HOOK)
	local _ <close> = rawget(m, 'ordered') and internal.ordered() or nil
	if module.tracer then return same(module.tracer:call(m, hook or module.run, x, ...)) end
	if hook then return same(hook(m, x, ...)) end
	return same(module.run(m, x, ...))
end
debug.getregistry()['quoll.module call'] = call

-- m:forward(x) is m(x): quantized as it is, and seen by whoever watches.
function forward(m, ...)
	if not is_module(m) then fail('forward: wanted a module, as in m(x) or m:forward(x), got %s', describe(m)) end
	return call(m, ...)
end

-- The innermost of modules that are being called, by its name in the outermost one: 'residual1.linear2, Linear(6, 5)'.
function module.where(running)
	local inner, found = running[1], ''
	module.walk(running[#running], function(name, m)
		if m == inner and found == '' then found = name end
	end)
	return (found == '' and '' or found .. ', ') .. module.line(inner):gsub('%(%)', '', 1)
end

-- Shows a value inside of a forward to calibration, and to graph.trace, when they are watching.
function module.note(m, what, value)
	if module.tracer then module.tracer:note(m, what, value) end
	local watch = rawget(m, 'watch')
	if watch then watch(m, what, value) end
end

-- Makes nn.<name> of an entry: doc fields as for base.doc, and
--   word      what its instances are called inside a parent: 'conv' gives conv1, conv2 (default: name in lower case)
--   text      nil: the kind is documented elsewhere
--   list      called with one table: its items are children (Sequential)
--   positional    names of options that may also be given by position after the arguments, in PyTorch's order
--   loose     reading an unknown field gives nil
--   init(self, options, …)    sets every field; self:parameter, self:buffer, self:child
--   forward(self, …)
-- Other functions of the entry are methods of the kind.
function module.define(nn, entry)
	entry.options = entry.options or {}
	entry.options[#entry.options + 1] = {'name', 'text', 'what it is called inside its parent'}
	entry.own = arguments.parameters(entry.init) - 2
	entry.takes = entry.forward and arguments.parameters(entry.forward) - 1 or math.huge
	if entry.positional and entry.text then
		entry.text = ('%s\n\nBy position, as in PyTorch: %s.'):format(entry.text, table.concat(entry.positional, ', '))
	end
	entry.doc = entry.text and doc {name = 'nn.' .. entry.name, usage = entry.usage, text = entry.text, example = entry.example,
		options = entry.options} or {name = entry.name, usage = entry.usage, options = entry.options}
	entry.word = entry.word or entry.name:lower()
	entry.meta = {__name = 'quoll.module', class = entry, __index = index, __call = call, __tostring = module.text,
		__brief = module.brief, __mime = module.forms, __len = function(m) return #rawget(m, PARTS).children end}
	module.classes[entry.name] = entry
	nn[entry.name] = function(...)
		local given, n, options = arguments.split(entry, ...)
		local m = new(entry)
		if options.name then rawset(m, 'name', module.check_name(entry.name, options.name)) end
		entry.init(m, options, table.unpack(given, 1, n))
		return m
	end
	return entry
end

-- Options that are one of some words: choices is name -> list of words.
function module.check_words(what, choices, o)
	for name, words in pairs(choices) do
		if o[name] ~= nil and not base.one_of(o[name], words) then
			fail('%s: %s: wanted %s, got %s%s', what, name, table.concat(words, ' or '), describe(o[name]), base.near(o[name], words))
		end
	end
end

function module.check_name(what, name)
	if not name:find '^[%w_][%w_.]*$' then
		fail("%s: name: wanted letters, digits, '_' and '.', got '%.40s'", what, name)
	end
	return name
end

module.size, module.number, module.window, module.fields_text = arguments.size, arguments.number, arguments.window, arguments.fields_text
module.pad, module.along = arguments.pad, arguments.along

---------------------------------------------------------------- parts

-- A trained tensor: a leaf that collects a gradient.
function module.parameter(m, name, tensor)
	local parts = rawget(m, PARTS)
	parts.tensors[#parts.tensors + 1] = name
	rawset(m, name, tensor:requires_grad_())
	return tensor
end

-- A tensor that is saved but not trained.
function module.buffer(m, name, tensor)
	local parts = rawget(m, PARTS)
	parts.tensors[#parts.tensors + 1] = name
	parts.buffers[name] = true
	rawset(m, name, tensor)
	return tensor
end

-- A module inside; without a name it is called after its kind and number: linear1, linear2.
function module.child(m, child, name)
	local parts, class = rawget(m, PARTS), getmetatable(m).class
	if not is_module(child) then fail('%s: wanted modules, got %s', class.name, describe(child)) end
	local word = getmetatable(child).class.word
	local count, taken = (parts.counts[word] or 0) + 1, {}
	for _, other in ipairs(parts.children) do taken[other.name] = true end
	name = name or rawget(child, 'name')
	if name and taken[name] then fail("%s: wanted names that differ, got '%s' twice", class.name, name) end
	while not name and taken[word .. count] do count = count + 1 end
	name = name or word .. count
	parts.counts[word] = count
	parts.children[#parts.children + 1] = {name = name, module = child}
	if rawget(m, name) == nil and methods[name] == nil and class[name] == nil then rawset(m, name, child) end
	if rawget(child, 'ordered') then rawset(m, 'ordered', true) end
	return child
end

-- x itself, which has to be a tensor.
function module.input(m, x)
	if type(x) ~= 'userdata' then fail('%s: wanted a tensor, got %s', getmetatable(m).class.name, describe(x)) end
	return x
end

-- The input of a float layer: a quantized x with a plain weight is decoded here, on purpose.
function module.real(x, weight)
	if not is_tensor(x) then
		if weight then base.fail('module: wanted a tensor to go into a layer, got %s', base.describe(x)) end
		return x
	end
	return x:quantized() and not (weight and weight:quantized()) and x:dequantize() or x
end

local INTEGER = {static = true, dynamic = true} -- modes in which floats become codes on the way

-- Sets the field `ordered` of a module in or below which floats become codes; gives it.
function module.mark_codes(m)
	local q = rawget(m, 'quantized')
	local found = q and INTEGER[q.mode] or nil
	for _, child in ipairs(rawget(m, PARTS).children) do found = module.mark_codes(child.module) or found end
	rawset(m, 'ordered', found)
	return found
end

-- Puts another module in the place of a child.
function module.replace(m, name, child)
	for _, entry in ipairs(rawget(m, PARTS).children) do
		if entry.name == name then
			if rawget(m, name) == entry.module then rawset(m, name, child) end
			entry.module = child
			return child
		end
	end
end

-- A parameter or buffer is no longer one, and gone.
function module.forget(m, field)
	local parts = rawget(m, PARTS)
	for i, name in ipairs(parts.tensors) do
		if name == field then
			table.remove(parts.tensors, i)
			rawset(m, field, nil)
			return
		end
	end
end

-- Takes a child out; positions in lists are the caller's business.
function module.remove(m, child)
	local children = rawget(m, PARTS).children
	for i, entry in ipairs(children) do
		if entry.module == child then
			table.remove(children, i)
			if rawget(m, entry.name) == child then rawset(m, entry.name, nil) end
			return
		end
	end
end

-- The names of a layer's fields that can be quantized; nil when it has none.
function module.weights(m)
	local weights = getmetatable(m).class.weights
	if type(weights) == 'function' then return weights(m) end
	return weights
end

function module.children(m) return rawget(m, PARTS).children end
function module.tensors(m) return rawget(m, PARTS).tensors end
function module.is_buffer(m, name) return rawget(m, PARTS).buffers[name] == true end
function module.class_of(m) return getmetatable(m).class end

-- Whether m(x, y) does something with y.
function module.takes_more(m)
	local class = getmetatable(m).class
	if not class.list or class == module.custom then return arguments.parameters(rawget(m, 'run') or class.forward) > 2 end
	for _, child in ipairs(rawget(m, PARTS).children) do
		if module.takes_more(child.module) then return true end
	end
	return class.takes == 2
end

-- Calls each(name, module) for the module itself (name '') and all inside, parents first, in order; for one that occurs in several places
-- at the first only.
function module.walk(m, each, prefix, seen)
	prefix, seen = prefix or '', seen or {}
	if seen[m] then return end
	seen[m] = true
	each(prefix, m)
	for _, child in ipairs(rawget(m, PARTS).children) do
		module.walk(child.module, each, (prefix == '' and '' or prefix .. '.') .. child.name, seen)
	end
end

-- The set of modules that occur in several places, and of tensors that several modules share.
function module.shared(m)
	local count, shared = {}, {}
	local function add(object)
		count[object] = (count[object] or 0) + 1
		if count[object] > 1 then shared[object] = true end
	end
	module.walk(m, function(_, inner)
		for _, child in ipairs(rawget(inner, PARTS).children) do add(child.module) end
		for _, field in ipairs(rawget(inner, PARTS).tensors) do
			local tensor = rawget(inner, field)
			if tensor then add(tensor) end
		end
	end)
	return shared
end

-- Calls each(name, tensor, owner, field) for all parameters and buffers; for one that several modules share at its first
-- place only.
function module.each_tensor(m, each)
	local seen = {}
	module.walk(m, function(prefix, inner)
		for _, field in ipairs(rawget(inner, PARTS).tensors) do
			local tensor = rawget(inner, field)
			if tensor and not seen[tensor] then
				seen[tensor] = true
				each((prefix == '' and '' or prefix .. '.') .. field, tensor, inner, field)
			end
		end
	end)
end

-- Puts change(tensor, name) in the place of every parameter and buffer, also where it is shared; nil: it stays.
function module.change_tensors(m, change)
	local changed = {}
	module.each_tensor(m, function(name, tensor) changed[tensor] = change(tensor, name) end)
	module.walk(m, function(_, inner)
		for _, field in ipairs(rawget(inner, PARTS).tensors) do
			local tensor = rawget(inner, field)
			if tensor and changed[tensor] then module.set_tensor(inner, field, changed[tensor]) end
		end
	end)
end

-- The device of the first parameter or buffer, or nil.
function module.device(m)
	local found
	module.each_tensor(m, function(_, tensor) found = found or tensor:device() end)
	return found
end

-- The value with its tensors, also in lists, on the device; nil: it stays.
function module.moved(value, device)
	if not device then return value end
	if is_tensor(value) then return value:device() == device and value or value:to(device) end
	if type(value) ~= 'table' or getmetatable(value) then return value end
	local list = {}
	for key, inner in next, value do list[key] = module.moved(inner, device) end
	return list
end

-- A table name -> value that remembers the order; pairs follows it.
local function ordered(names, values, what)
	return setmetatable(values, {__name = what, order = names, __len = function() return #names end,
		__pairs = function()
			local i = 0
			return function()
				i = i + 1
				return names[i], values[names[i]]
			end
		end,
		__tostring = function()
			local lines = {}
			for i, name in ipairs(names) do
				lines[i] = ('  %-24s %s'):format(name, describe(values[name]))
			end
			return ('%d %s\n'):format(#names, what) .. table.concat(lines, '\n')
		end})
end

---------------------------------------------------------------- help of the methods

local function method(name, usage, text, example, options)
	return doc {name = 'module:' .. name, usage = usage, text = text, example = example, options = options}
end

method('parameters', 'm:parameters()', [[A list of all trained tensors, in the order of the modules: what an optimizer takes.]],
	[[m = nn.Linear(3, 2)
print(#m:parameters(), m:parameters()[1] == m.weight)  --> 2 true]])
function methods.parameters(m)
	parts_of(m, 'parameters')
	local list = {}
	module.each_tensor(m, function(_, tensor, owner, field)
		if not module.is_buffer(owner, field) then list[#list + 1] = tensor end
	end)
	return list
end

method('named', 'm:named()', [[A table name -> module of all modules inside, in order (pairs follows it): the names that rules
match. A name is the kind and a number, linear1, conv3, residual1.conv2, or what the option name= said.]],
	[[m = nn.Sequential{nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1, {name='last'})}
for name in pairs(m:named()) do print(name) end  --> linear1
--> relu1
--> last]])
function methods.named(m)
	parts_of(m, 'named')
	local names, values = {}, {}
	module.walk(m, function(name, inner)
		if name == '' then return end
		names[#names + 1] = name
		values[name] = inner
	end)
	return ordered(names, values, 'modules')
end

method('state', 'm:state()', [[A table name -> tensor of all parameters and buffers, in order: what m:save writes.]],
	[[m = nn.Sequential{nn.Linear(3, 2)}
for name in pairs(m:state()) do print(name) end  --> linear1.weight
--> linear1.bias]])
function methods.state(m)
	parts_of(m, 'state')
	local names, values = {}, {}
	module.each_tensor(m, function(name, tensor)
		names[#names + 1] = name
		values[name] = tensor
	end)
	return ordered(names, values, 'tensors')
end

-- The fields of the mode with their values, as internal.fields takes them.
function module.mode_fields(m, on)
	local list = {}
	module.walk(m, function(_, inner)
		if on and rawget(inner, 'frozen') then
			fail("train: wanted a float model, or one quantized with mode='qat' or 'train', got one with mode='%s'",
				rawget(inner, 'frozen'))
		end
		table.move({inner, 'training', on}, 1, 3, #list + 1, list)
	end)
	return list
end

local function set_training(m, on)
	local list = module.mode_fields(m, on)
	for i = 1, #list, 3 do rawset(list[i], list[i + 1], list[i + 2]) end
	return m
end

-- Puts a function into the HOOK of modules until the value is closed: of those for which make(name, inner) gives one.
function module.hooks(m, make)
	local list = {}
	module.walk(m, function(name, inner)
		local hook = make(name, inner)
		if hook then table.move({inner, HOOK, hook}, 1, 3, #list + 1, list) end
	end)
	return internal.fields(list)
end

method('train', 'm:train()  m:train(false)', [[Sets the mode of training (dropout drops, batch norm takes the batch's statistics) and returns m;
m:train(false) is m:eval(). A quantized model can be trained when its mode is qat or train.]],
	[[m = nn.Dropout(0.5):train()
print(m.training)  --> true]])
function methods.train(m, on)
	parts_of(m, 'train')
	if on ~= nil and type(on) ~= 'boolean' then fail('train: wanted true or false, got %s', describe(on)) end
	return set_training(m, on ~= false)
end

method('eval', 'm:eval()', [[Sets eval mode and returns m: dropout does nothing, batch norm uses its running statistics.]],
	[[m = nn.Dropout(0.5):eval()
print(m(tensor{1, 2}))  --> float32(2)  1 2]])
function methods.eval(m)
	parts_of(m, 'eval')
	return set_training(m, false)
end

method('nbytes', 'm:nbytes()', [[Bytes of all parameters and buffers, with the scales and zero points of quantized ones.]],
	'print(nn.Linear(3, 2):nbytes())  --> 32')
function methods.nbytes(m)
	parts_of(m, 'nbytes')
	local bytes = 0
	module.each_tensor(m, function(_, tensor) bytes = bytes + tensor:nbytes() end)
	return bytes
end

method('zero_grad', 'm:zero_grad()', [[Forgets the gradients of all parameters and returns m.]],
	[[m = nn.Linear(2, 1)
m:zero_grad()]])
function methods.zero_grad(m)
	for _, parameter in ipairs(methods.parameters(m)) do parameter:zero_grad() end
	return m
end

-- Puts a tensor in the place of a parameter or buffer, which it stays.
function module.set_tensor(m, field, tensor)
	rawset(m, field, tensor)
	if not module.is_buffer(m, field) and not tensor:quantized() then tensor:requires_grad_() end -- again where it is shared
end

method('device', 'm:device()', [[The name of the device of the parameters and buffers (of the first one), or nil without any.]],
	[[print(nn.Linear(2, 1):device())  --> cpu]])
function methods.device(m)
	parts_of(m, 'device')
	return module.device(m)
end

method('to', "m:to 'float16'  m:to 'cuda'", [[Casts the float parameters and buffers to a dtype, or moves all of them to a device (`gpu.devices`; codes
with their scales, too), and returns m. Make an optimizer after it: moved parameters are other tensors.]],
	[[m = nn.Linear(2, 1):to 'float16'
print(m.weight:dtype(), m:nbytes())  --> float16 6]])
function methods.to(m, where)
	parts_of(m, 'to')
	if type(where) ~= 'string' then fail('to: wanted the name of a dtype or a device, got %s', describe(where)) end
	local tried = tensor.zeros(1):to(where) -- before anything is changed; raises for a name that is neither
	local device = tried:device():match '^[%a_]+' == where:match '^[%a_]+' -- "cuda:0" is called "cuda"
	if not tried:dtype():find 'float' then
		fail("to: wanted a float dtype or a device, got '%s'; m:quantize gives a model with codes", where)
	end
	module.change_tensors(m, function(tensor)
		if device or not tensor:quantized() and tensor:dtype():find 'float' then return tensor:detach():to(where) end
	end)
	return m
end

---------------------------------------------------------------- copies

-- A copy with tensors of its own; what is shared inside stays shared. Hooks are not copied: they belong to the original.
local function copy_module(m)
	local copies = {}
	local function copy(value)
		if copies[value] then return copies[value] end
		if is_tensor(value) then
			copies[value] = value:detach():clone()
			if value:requires_grad() then copies[value]:requires_grad_() end
			return copies[value]
		end
		if type(value) ~= 'table' or getmetatable(value) and not is_module(value) then return value end
		local made = {}
		copies[value] = made
		for key, inner in next, value do
			if key ~= HOOK and key ~= 'watch' then rawset(made, key, copy(inner)) end
		end
		return setmetatable(made, getmetatable(value))
	end
	return copy(m)
end

method('clone', 'm:clone()', [[A copy with tensors of its own; tensors that several modules share are shared in the copy, too.]],
	[[m = nn.Linear(2, 1)
c = m:clone()
print(c.weight == m.weight, m.weight:error(c.weight).max)  --> false 0.0]])
function methods.clone(m)
	parts_of(m, 'clone')
	return copy_module(m)
end

---------------------------------------------------------------- text

local function parameter_count(m)
	local n = 0
	for _, field in ipairs(module.tensors(m)) do
		local tensor = rawget(m, field)
		n = n + (tensor and not module.is_buffer(m, field) and tensor:nelem() or 0)
	end
	return n
end
module.parameter_count = parameter_count

local function line(m)
	local class = module.class_of(m)
	local described = class.describe and class.describe(m) or ''
	return ('%s(%s)'):format(class.name, described) .. (rawget(m, 'said') and '  ' .. m.said or '')
end

module.line = line

-- For notebooks (interp/prelude/mime.lua): the rows of m:summary as a table.
function module.forms(m)
	local table = internal.import 'interp/prelude/mime'.bundle(m:summary())['text/html']
	return {['text/html'] = table, ['text/plain'] = module.text(m)}
end

function module.text(m)
	local lines, width, total, seen = {}, 0, 0, {}
	local function visit(inner, name, depth)
		if depth > 0 then lines[#lines + 1] = {('  '):rep(depth) .. name, line(inner) .. (seen[inner] and '  as ' .. seen[inner] or '')} end
		if seen[inner] then return end
		seen[inner], total = name, total + parameter_count(inner)
		for _, child in ipairs(rawget(inner, PARTS).children) do visit(child.module, child.name, depth + 1) end
	end
	visit(m, '', 0)
	for _, pair in ipairs(lines) do width = math.min(WIDEST, math.max(width, #pair[1])) end
	for i, pair in ipairs(lines) do lines[i] = pair[1] .. (' '):rep(width - #pair[1]) .. '  ' .. pair[2] end
	table.insert(lines, 1, line(m) .. ('  %d parameters'):format(total))
	return table.concat(lines, '\n')
end

-- In one line, for variables and tracebacks.
function module.brief(m)
	local total = 0
	module.walk(m, function(_, inner) total = total + parameter_count(inner) end)
	return ('%s, %d parameters'):format(line(m):gsub('%(%)', '', 1), total)
end

module.methods = methods
module.method = method
module.parts_of = parts_of
module.new = new
return module
