-- SPDX-License-Identifier: MIT
-- nn: networks. The ops of nn/ops.def are already in the table; the files of nn/modules.def add modules; this file
-- makes modules of functions.
local nn, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'
local fail, doc, describe = base.fail, base.doc, base.describe

doc {name = 'nn', kind = 'module', usage = 'nn.Sequential{nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)}',
	text = [[Modules: layers and whole networks; a call is forward. Losses and other functions that networks are made of.
A module has m:parameters, m:named, m:train, m:eval, m:fit, m:evaluate, m:calibrate, m:quantize, m:export, m:save, m:load.]]}

-- nn.module is its own kind: parts are children or tensors under the names of the user.
local custom = module.define(nn, {
	name = 'module', loose = true, list = true, usage = 'nn.module(function(self, …) … end, parts)',
	init = function() end,
	forward = function(self, ...) return self.run(self, ...) end,
})
doc {name = 'nn.module', usage = 'nn.module(function(self, …) … end, parts)',
	text = [[A module whose forward is the function. Its parts are modules and tensors, by name or in a list; they become fields of self:
tensors of a float dtype are trained parameters, others are saved with it, any other value is kept as it is.]],
	options = {},
	example = [[m = nn.module(function(self, x) return self.fc(x):relu() * self.gain end,
	{fc=nn.Linear(3, 2), gain=tensor.ones(2)})
print(m(tensor.ones(4, 3)):size())  --> 4 2
print(#m:parameters())  --> 3]]}

local function sorted_names(parts)
	local names = {}
	for name in next, parts do
		if math.type(name) ~= 'integer' then names[#names + 1] = name end
	end
	table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
	return names
end

local function add_part(m, name, value)
	if module.is_module(value) then
		m[name or #m + 1] = value
		module.child(m, value, name)
	elseif not name then
		fail('module: wanted modules in the list of parts, got %s', describe(value))
	elseif base.is_tensor(value) then
		local trained = value:dtype():find 'float' and not value:quantized()
		module[trained and 'parameter' or 'buffer'](m, name, value)
	else
		m[name] = value
	end
end

function nn.module(run, parts)
	if type(run) ~= 'function' then fail('module: wanted a function, got %s', describe(run)) end
	if parts ~= nil and (type(parts) ~= 'table' or getmetatable(parts)) then
		fail('module: parts: wanted a table, got %s', describe(parts))
	end
	if parts then base.list('module', parts, true) end
	local m = module.new(custom)
	m.run = run
	for _, value in ipairs(parts or {}) do add_part(m, nil, value) end
	for _, name in ipairs(sorted_names(parts or {})) do
		if type(name) ~= 'string' then fail('module: parts: wanted names, got %s', describe(name)) end
		if name ~= 'name' then add_part(m, module.check_name('module', name), parts[name]) end
	end
	if parts and parts.name then m.name = module.check_name('module', parts.name) end
	return m
end
module.custom = custom

for _, file in ipairs(internal.registry 'nn/modules') do internal.import(file) end
internal.import 'nn/base/files'
internal.import 'nn/base/fit'
internal.import 'nn/quantize/calibrate'
internal.import 'nn/quantize/fuse'
internal.import 'nn/quantize/quantize'
internal.import 'nn/graph/sites'
internal.import 'nn/graph/blocks'
internal.import 'nn/base/generate'
internal.import('nn/base/decoder').compile = function(...) return internal.import 'nn/graph/stepwise'(...) end
internal.import 'nn/base/summary'
internal.import 'nn/checkpoints/load'
