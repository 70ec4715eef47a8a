-- SPDX-License-Identifier: MIT
-- nn.Sequential: modules in sequence. nn.Residual: the same, plus its input.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'
local fail, describe = base.fail, base.describe

-- {'name', module}; a module has a metatable.
local function is_named(item)
	return type(item) == 'table' and not getmetatable(item) and #item == 2 and type(item[1]) == 'string'
end

local function add_all(self, list)
	for i = 1, #list do
		local item = list[i]
		if is_named(item) then
			self[i] = module.child(self, item[2], module.check_name(module.class_of(self).name, item[1]))
		else
			self[i] = module.child(self, item)
		end
	end
end

-- The first `count` children one after the other. What is given besides x (states, caches) goes to those that take it.
local function run(self, count, x, ...)
	if ... == nil then
		for i = 1, count do x = self[i](x) end
		return x
	end
	local used = false
	for i = 1, count do
		local child = self[i]
		if module.takes_more(child) then
			x, used = child(x, ...), true
		else
			x = child(x)
		end
	end
	if not used then base.surplus(module.class_of(self).name, 1, ...) end
	return x
end

module.define(nn, {
	name = 'Sequential', list = true,
	usage = 'nn.Sequential{module, module, …}',
	text = [[Runs the modules in order, each on the result of the one before. m[i] is a module, #m their number; their
names are kind and number, m.linear1; {'name', module} in place of a module names it. m:add appends one.]],
	example = [[m = nn.Sequential{nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)}
print(m(tensor.ones(5, 3)):size())  --> 5 2
print(#m, m.linear2 == m[3])  --> 3 true
m = nn.Sequential{{'fc1', nn.Linear(3, 4)}, nn.ReLU(), {'fc2', nn.Linear(4, 2)}}
print(m.fc1 == m[1], m.fc2 == m[3])  --> true true]],
	init = add_all,
	forward = function(self, x, ...) return run(self, #self, x, ...) end,
	sequences = function(self) return {table.move(self, 1, #self, 1, {})} end,
	resizes = true,
})

base.doc {name = 'module:add', usage = "m:add(module)  m:add('fc1', module)",
	text = [[Appends a module to an nn.Sequential, with a name if one is given, and returns m. Optimizers
made before do not train it, and earlier calibration does not cover it.]],
	example = [[m = nn.Sequential{nn.Linear(3, 4)}:add(nn.ReLU()):add('out', nn.Linear(4, 2))
print(#m, m.out == m[3], m(tensor.ones(5, 3)):size())  --> 3 true 5 2]]}

function module.methods.add(m, ...)
	local name, child = ...
	if select('#', ...) == 1 then name, child = nil, name end
	if select('#', ...) > 2 then base.surplus('add', 3, select(3, ...)) end
	local kind = module.is_module(m) and module.class_of(m).name or describe(m)
	if kind ~= 'Sequential' then fail("add: wanted an nn.Sequential, as in m:add(module), got %s", kind) end
	if not module.is_module(child) then fail('add: wanted a module, got %s', describe(child)) end
	if name ~= nil and type(name) ~= 'string' then fail("add: wanted a name, as in m:add('fc1', module), got %s", describe(name)) end
	module.walk(child, function(_, inner)
		if inner == m then fail 'add: wanted a module that does not hold this one' end
	end)
	m[#m + 1] = module.child(m, child, name and module.check_name('add', name))
	return m
end

return module.define(nn, {
	name = 'Residual', list = true,
	usage = 'nn.Residual{module, module, …, shortcut=module}',
	text = [[x + the modules applied to x; with shortcut= that module's result instead of x. Put an activation of the sum after
the Residual.]],
	options = {{'shortcut', 'any', 'module applied to x (default: x unchanged)'}},
	example = [[m = nn.Residual{nn.Linear(3, 3)}
print(m(tensor.ones(2, 3)):size())  --> 2 3]],
	init = function(self, list)
		add_all(self, list)
		self.shortcut = false
		if list.shortcut then self.shortcut = module.child(self, list.shortcut, rawget(list.shortcut, 'name') or 'shortcut') end
		self.body = #list
	end,
	forward = function(self, x, ...)
		local y = run(self, self.body, x, ...)
		local around = self.shortcut and self.shortcut(x) or x
		return module.add(self, 'add1', y, around)
	end,
	sites = {add1 = {'body', 'around'}},
	sequences = function(self) return {table.move(self, 1, self.body, 1, {})} end,
	resizes = true,
})
