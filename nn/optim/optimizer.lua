-- SPDX-License-Identifier: MIT
-- The base of every optimizer: the list of trained tensors, their states, a learning rate or schedule, clipping,
-- checkpoints. A rule is a file in nn/optim/ that calls optimizer.define; the arithmetic is nn/optimizer.c.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, near, doc, describe, is_tensor = base.fail, base.near, base.doc, base.describe, base.is_tensor

local STATE = {}
local optimizer = {STATE = STATE, rules = {}}
local methods = {}
local meta = {__name = 'quoll.optimizer', __index = methods, methods = methods}
debug.getregistry()[meta.__name] = meta -- for help and completion
optimizer.meta = meta

local function state_of(o, name)
	local s = type(o) == 'table' and rawget(o, STATE)
	if not s then fail('%s: wanted an optimizer, as in o:%s(…), got %s', name, name, describe(o)) end
	return s
end

---------------------------------------------------------------- what is trained

-- The tensors of a module or of a list, each once.
function optimizer.tensors(what, m)
	if type(m) == 'table' and type(m.parameters) == 'function' then m = m:parameters() end
	if type(m) ~= 'table' or getmetatable(m) then fail('%s: wanted a module or a list of tensors, got %s', what, describe(m)) end
	base.list(what, m)
	local list, seen = {}, {}
	for i, t in ipairs(m) do
		if not is_tensor(t) then fail('%s: item %d: wanted a tensor, got %s', what, i, describe(t)) end
		if not seen[t] then list[#list + 1] = t end
		seen[t] = true
	end
	return list
end

local function trained(what, m)
	local list = optimizer.tensors(what, m)
	if #list == 0 then fail('%s: wanted at least one tensor to train, got none', what) end
	for i, t in ipairs(list) do
		if not t:requires_grad() then
			fail('%s: item %d: wanted a tensor with requires_grad, got %s without', what, i, internal.describe(t))
		end
	end
	return list
end

local function with_gradient(list)
	local at, values, gradients = {}, {}, {}
	for i, t in ipairs(list) do
		local g = t:grad()
		if g then
			local n = #at + 1
			at[n], values[n], gradients[n] = i, t, g
		end
	end
	return at, values, gradients
end

-- The gradients there are, of a module or a list.
function optimizer.gradients(what, m)
	local _, _, gradients = with_gradient(optimizer.tensors(what, m))
	return gradients
end

---------------------------------------------------------------- numbers

function optimizer.number(what, name, value, lo, hi)
	if type(value) ~= 'number' or not (value >= lo and value <= hi) or value == math.huge then
		fail(hi == math.huge and '%s: %s: wanted a number of at least %g, got %s' or
			'%s: %s: wanted a number from %g to %g, got %s', what, name, lo, table.unpack(
			hi == math.huge and {describe(value)} or {hi, describe(value)}))
	end
	return value + 0.0
end
local number = optimizer.number

-- A learning rate: a number, or a function of the number of the step.
local function check_lr(what, value)
	local m = getmetatable(value)
	if type(value) == 'function' or type(value) == 'table' and m and m.__call then return value end
	if type(value) ~= 'number' then
		fail('%s: lr: wanted a number or a schedule such as optim.cosine{…}, got %s', what, describe(value))
	end
	return number(what, 'lr', value, 0, math.huge)
end

local function rate(s, step)
	if type(s.lr) == 'number' then return s.lr end
	return number(s.rule.name, 'lr: the schedule at step ' .. step, s.lr(step), 0, math.huge)
end

-- How much the gradients are scaled, and their norm; nil for the scale: it is not finite. 1e-6 as in PyTorch.
function optimizer.scale(gradients, clip)
	local norm = internal.gradient_norm(gradients)
	if norm ~= norm or norm == math.huge then return nil, norm end
	return math.min(1.0, clip / (norm + 1e-6)), norm
end

---------------------------------------------------------------- making one

local COMMON = {{'lr', 'any', 'learning rate: a number, or a schedule, which is called with the number of each step from 1'},
	{'decay', 'number', 'weight decay (default %s)'},
	{'clip', 'number', 'largest norm of all gradients together; above it all are scaled down (default: none)'},
	{'limit', 'number', 'each element of a gradient is limited to -limit..limit, after clip (default: none)'}}

-- Makes optim.<name> of an entry: doc fields as for base.doc, and
--   lr, decay     defaults
--   states(self)  names of the tensors kept for each parameter, which begin with `first` (default 0)
--   check(self, options, number)    reads further options into self
--   step(self, values, gradients, states, steps, scale, limit, lr)    states: one list for each name
function optimizer.define(optim, entry)
	for i, option in ipairs(COMMON) do
		table.insert(entry.options, i, {option[1], option[2], (option[3]:format(entry.decay))})
	end
	doc {name = 'optim.' .. entry.name, usage = entry.usage, text = entry.text, example = entry.example, options = entry.options}
	optimizer.rules[entry.name] = entry
	local options_of = {name = entry.name, options = entry.options}
	optim[entry.name] = function(m, options, more)
		if type(options) == 'number' then -- optim.sgd(m, 0.1): lr, as in PyTorch
			local given = {lr = options}
			for key, value in next, base.options(options_of, more) do
				if key == 'lr' then fail('%s: lr: wanted it once, got it as argument 2 and as option', entry.name) end
				given[key] = value
			end
			options, more = given, nil
		end
		if more ~= nil then base.surplus(entry.name, 2, more) end
		options = base.options(options_of, options)
		local what = entry.name
		local s = {rule = entry, list = trained(what, m), count = 0, skipped = 0, steps = {}, moments = {}}
		s.lr = check_lr(what, options.lr == nil and entry.lr or options.lr)
		s.decay = number(what, 'decay', options.decay or entry.decay, 0, math.huge)
		s.clip = options.clip and number(what, 'clip', options.clip, 0, math.huge)
		s.limit = options.limit and number(what, 'limit', options.limit, 0, math.huge)
		if s.limit == 0 then fail('%s: limit: wanted a number above 0, got 0', what) end
		entry.check(s, options, number)
		for i = 1, #s.list do s.steps[i] = 0 end
		for _, name in ipairs(entry.states(s)) do s.moments[name] = {} end
		return setmetatable({[STATE] = s}, meta)
	end
end

function meta.__tostring(o)
	local s = rawget(o, STATE)
	local n = 0
	for _, t in ipairs(s.list) do n = n + t:nelem() end
	return ('optim.%s: %d tensors, %d parameters, lr %g, %d steps%s'):format(s.rule.name, #s.list, n,
		rate(s, math.max(s.count, 1)), s.count, s.skipped > 0 and (', %d skipped'):format(s.skipped) or '')
end

---------------------------------------------------------------- methods

local function method(name, usage, text, example)
	doc {name = 'optimizer:' .. name, usage = usage, text = text, example = 'x = tensor{1, 2, grad=true}\n' .. example}
end

local function state_like(t)
	local shape = {t:size()}
	shape.dtype, shape.device = t:dtype() == 'float64' and 'float64' or 'float32', t:device()
	return tensor.zeros(shape)
end

-- The state called `name` of the tensors at `at`; what is new begins with zeros.
local function moments(s, name, at)
	local all, list = s.moments[name], {}
	for n, i in ipairs(at) do
		all[i] = all[i] or state_like(s.list[i]):add_(s.first or 0)
		list[n] = all[i]
	end
	return list
end

method('step', 'o:step()', [[Changes every tensor that has a gradient by one step of the rule; others stay as they are, their states too.
With clip= it returns the norm of all gradients before clipping, and when that is nan or inf nothing is changed at all (such
steps are counted as skipped when o is printed).]], [[o = optim.sgd({x}, {lr=0.1, clip=1})
y = (x * x):sum()
y:backward()
print(o:step())  --> 4.4721
print(x:detach())  --> float32(2)  0.9553  1.9106]])
function methods.step(o)
	local s = state_of(o, 'step')
	local at, values, gradients = with_gradient(s.list)
	local scale, norm = 1.0, nil
	if s.clip then
		scale, norm = optimizer.scale(gradients, s.clip)
		if not scale then
			s.skipped = s.skipped + 1
			return norm
		end
	end
	local lr, lists, steps = rate(s, s.count + 1), {}, {}
	for k, name in ipairs(s.rule.states(s)) do lists[k] = moments(s, name, at) end
	for n, i in ipairs(at) do steps[n] = s.steps[i] + 1 end
	s.rule.step(s, values, gradients, lists, steps, scale, s.limit or 0.0, lr)
	for n, i in ipairs(at) do s.steps[i] = steps[n] end
	s.count = s.count + 1
	return norm
end

method('zero', 'o:zero()', [[Forgets the gradients of all its tensors and returns o.]], [[o = optim.sgd({x}, {lr=0.1})
y = x:sum()
y:backward()
o:zero()
print(x:grad())  --> nil]])
function methods.zero(o)
	for _, t in ipairs(state_of(o, 'zero').list) do t:zero_grad() end
	return o
end

method('lr', 'o:lr()  o:lr(value)', [[The learning rate of the last step (before the first: of the first); with a value, a number or a
schedule, sets it from the next step on and returns o.]], [[o = optim.sgd({x}, {lr=0.1})
print(o:lr(0.05):lr())  --> 0.05]])
function methods.lr(o, ...)
	local s = state_of(o, 'lr')
	if select('#', ...) == 0 then return rate(s, math.max(s.count, 1)) end
	if select('#', ...) > 1 then base.surplus('lr', 2, select(2, ...)) end
	s.lr = check_lr('lr', (...))
	return o
end

method('state', 'o:state()', [[What is needed to go on later as if nothing had happened: a table of copies, numbers and named tensors, for o:load,
tensor.save takes it when numbers are made tensors (as m:fit does with save=). A schedule is not in it, only how many steps were
made.]], [[o = optim.adam({x})
y = x:sum()
y:backward()
o:step()
s = o:state()
print(s.count, s['first.1'])  --> 1 float32(2)  0.1000  0.1000]])
function methods.state(o)
	local s = state_of(o, 'state')
	local state = {count = s.count, skipped = s.skipped, lr = rate(s, math.max(s.count, 1)),
		steps = tensor {dtype = 'int64', table.unpack(s.steps)}}
	for name, list in pairs(s.moments) do
		for i, t in pairs(list) do state[name .. '.' .. i] = t:clone() end
	end
	return state
end

local function value_of(value)
	return is_tensor(value) and value:nelem() == 1 and value:item() or value
end

local function count_of(what, value)
	local n = math.tointeger(value_of(value) or -1)
	if not n or n < 0 then fail('load: %s: wanted a number of steps, got %s', what, describe(value)) end
	return n
end

-- A copy of a moment as it was saved: of the shape and dtype it has here.
local function loaded_moment(name, value, t)
	local like = state_like(t)
	if type(value) == 'number' and t:nelem() == 1 then return like:add_(value) end
	if not is_tensor(value) or internal.describe(value) ~= internal.describe(like) then
		fail('load: %s: wanted %s, got %s', name, internal.describe(like), describe(value))
	end
	return value:to(t:device()):clone()
end

local function loaded_moments(s, state)
	local all, known = {}, {count = true, skipped = true, lr = true, steps = true}
	for name in pairs(s.moments) do
		all[name] = {}
		for i, t in ipairs(s.list) do
			local key = name .. '.' .. i
			known[key] = true
			if state[key] ~= nil then all[name][i] = loaded_moment(key, state[key], t) end
		end
	end
	for name in pairs(state) do
		if not known[name] then
			local names = {}
			for k in pairs(known) do names[#names + 1] = k end
			fail("load: unknown name '%.40s'%s", tostring(name), near(name, names))
		end
	end
	return all
end

method('load', 'o:load(state)', [[Takes over what o:state() gave, for the same tensors in the same order: the next steps have the same bits as those
after the moment it was taken. The learning rate is taken over unless o has a schedule. When something does not fit, o stays as
it is.]], [[o = optim.adam({x})
s = o:state()
print(optim.adam({x}):load(s))  --> optim.adam: 1 tensors, 2 parameters, lr 0.001, 0 steps]])
function methods.load(o, state)
	local s = state_of(o, 'load')
	if type(state) ~= 'table' then fail('load: wanted a table from o:state(), got %s', describe(state)) end
	local steps, count, skipped = state.steps, count_of('count', state.count), count_of('skipped', state.skipped or 0)
	if is_tensor(steps) then steps = steps:nelem() == 1 and {steps:item()} or steps:totable() end
	if type(steps) == 'number' then steps = {steps} end
	if type(steps) ~= 'table' or #steps ~= #s.list then
		fail('load: steps: wanted one number for each of %d tensors, got %s', #s.list,
			type(steps) == 'table' and #steps or describe(steps))
	end
	for i, n in ipairs(steps) do steps[i] = count_of('steps', n) end
	local all = loaded_moments(s, state)
	for name, list in pairs(all) do
		for i, n in ipairs(steps) do
			if n > 0 and not list[i] then fail("load: wanted '%s.%d', got none", name, i) end
		end
	end
	local lr = type(s.lr) == 'number' and state.lr ~= nil and check_lr('load', value_of(state.lr)) or s.lr
	s.count, s.skipped, s.steps, s.moments, s.lr = count, skipped, steps, all, lr
	return o
end

return optimizer
