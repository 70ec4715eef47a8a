-- SPDX-License-Identifier: MIT
-- The hash of a function: what changes it and what does not.
local identity = debug.getregistry()['quoll.internal'].import 'nn/base/identity'

-- The identity of the function that the text gives, its first line on another line, with other locals before it.
local function of(text, before)
	local f = assert(load((before or '') .. text))()
	return (identity.of(f))
end

it('is that of what the function does', function()
	local one = of 'return function(c) return c.x + 1 end'
	assert(one == of 'return function(c) return c.x + 1 end')
	assert(one == of '\n\n-- a comment\nreturn function(c) -- another\n\n return c.x + 1 end')
	assert(one == of('return function(k) return k.x + 1 end')) -- names of parameters
	assert(one == of('return function(c) return c.x + 1 end', 'local title, other = "t", 2\n'))
	for _, other in ipairs {'c.x + 2', 'c.x - 1', 'c.y + 1', 'c.x + 1.0', '(c.x + 1) * 2', 'function() return c.x + 1 end'} do
		assert(one ~= of('return function(c) return ' .. other .. ' end'), other)
	end
	assert(of 'return function() return "a" end' ~= of 'return function() return "b" end')
end)
it('holds upvalues by their contents, in any place', function()
	local text = 'return function(c) return a * b * c.x end'
	local one = of(text, 'local a, b = 1, 2\n')
	assert(one == of(text, 'local unused, b, a = {}, 2, 1\n'))
	assert(one ~= of(text, 'local a, b = 1, 3\n') and one ~= of(text, 'local a, b = 2, 1\n') and one ~= of(text, 'local a, b = 1.0, 2\n'))
	local deep = 'return function() return t end'
	one = of(deep, 'local t = {x = {1, 2, 3}, y = "z"}\n')
	assert(one == of(deep, 'local t = {y = "z", x = {1, 2, 3}}\n') and one ~= of(deep, 'local t = {x = {1, 2, 4}, y = "z"}\n'))
	assert(of(deep, 'local t = {} t.self = t\n') == of(deep, 'local t = {} t.self = t\n')) -- cycles
	assert(of(deep, 'local t = setmetatable({}, {__index = {a = 1}})\n') ~= of(deep, 'local t = setmetatable({}, {__index = {a = 2}})\n'))
end)
it('follows functions, their upvalues and globals of the script', function()
	local text = 'local function inner(x) return x * k end\nreturn function(c) return inner(c.x) end'
	assert(of(text, 'local k = 2\n') == of('\n' .. text, 'local k = 2 --\n') and of(text, 'local k = 2\n') ~= of(text, 'local k = 3\n'))
	local recursive = 'local f f = function(n) return n > 0 and f(n - 1) or %d end return function(c) return f(c.x) end'
	assert(of(recursive:format(1)) == of(recursive:format(1)) and of(recursive:format(1)) ~= of(recursive:format(2)))
	_G.helper = function(x) return x + 1 end
	local one = of 'return function(c) return helper(c.x) end'
	_G.helper = function(x) return x + 1 --[[ same ]] end
	assert(one == of 'return function(c) return helper(c.x) end')
	_G.helper = function(x) return x + 2 end
	assert(one ~= of 'return function(c) return helper(c.x) end')
	_G.unrelated = 1
	one = of 'return function(c) return c.x end'
	_G.unrelated = 2
	assert(one == of 'return function(c) return c.x end')
	_G.helper, _G.unrelated = nil, nil
	one = of 'return function(c) return function() return outside end end'
	_G.outside = 5
	assert(one ~= of 'return function(c) return function() return outside end end')
	_G.outside = nil
	local library = data
	_G.data = {1, 2}
	one = of 'return function(c) return data[c.x] end'
	_G.data = {1, 3} -- a variable, though the program has one of that name
	assert(one ~= of 'return function(c) return data[c.x] end')
	_G.data = library
end)
it('holds tensors, models and specs by their contents, Quoll by name', function()
	local text = 'return function() return x end'
	local function with(make) return of(text, 'local x = ' .. make .. '\n') end
	assert(with 'tensor{1, 2}' == with 'tensor{1, 2}' and with 'tensor{1, 2}' ~= with 'tensor{1, 3}' and with 'tensor{1, 2}' ~= with 'tensor{{1, 2}}')
	assert(with 'tensor{1, 2}' ~= with 'tensor{1, 2}:quantize "int8"' and with 'tensor{1, 2}:quantize "int8"' == with 'tensor{1, 2}:quantize "int8"')
	assert(with '(function() tensor.seed(1) return nn.Linear(2, 2) end)()' == with '(function() tensor.seed(1) return nn.Linear(2, 2) end)()')
	assert(with '(function() tensor.seed(1) return nn.Linear(2, 2) end)()' ~= with '(function() tensor.seed(2) return nn.Linear(2, 2) end)()')
	assert(with 'quant.spec "int8"' == with 'quant.spec "int8"' and with 'quant.spec "int8"' ~= with 'quant.spec "int4"')
	assert(with 'math' == with 'math' and with 'math' ~= with 'string' and with 'math.sin' ~= with 'math.cos' and with 'nn.Linear' ~= with 'nn.Conv2d')
	for _, known in ipairs {'math.sin', 'nn', 'print', 'quant.compare', 'tensor.zeros', 'report{{a = 1}}', 'nn.crossentropy', 'string.format'} do
		local _, _, unknown = identity.of(assert(load('local x = ' .. known .. '\n' .. text))())
		assert(#unknown == 0, known .. ': ' .. table.concat(unknown, ' '))
	end
	for _, made in ipairs {'io.tmpfile()', 'coroutine.create(print)', '{[{}] = 1}'} do
		local _, _, unknown = identity.of(assert(load('local x = ' .. made .. '\n' .. text))())
		assert(#unknown == 1, made)
	end
end)
it('follows files that are run by constant names', function()
	local file = os.tmpname()
	local function write(contents)
		local handle = assert(io.open(file, 'w'))
		handle:write(contents)
		handle:close()
	end
	local text = ('return function() return dofile %q end'):format(file)
	write 'return 1'
	local one = of(text)
	write '-- a comment\nreturn 1'
	assert(one == of(text))
	write 'return 2'
	assert(one ~= of(text))
	os.remove(file)
	local _, _, unknown = identity.of(load 'return function(c) return dofile(c.name .. ".lua") end' ())
	assert(unknown[1] == 'a file whose name is computed')
	_, _, unknown = identity.of(load 'return function(c) return _G[c.name] end' ())
	assert(unknown[1] == 'globals by computed names')
end)
it('names its parts', function()
	local _, parts = identity.of(assert(load 'local rate, name = 1, "n"\nreturn function() return rate, name end')())
	local names = {}
	for i, part in ipairs(parts) do names[i] = part[1] end
	assert(table.concat(names, ' ') == 'code rate name')
end)
