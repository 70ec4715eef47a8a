-- SPDX-License-Identifier: MIT
-- What a cell reads, writes and certainly writes first, from its compiled text, nothing of which runs.
local internal = debug.getregistry()['quoll.internal']
local effects, uses = internal.import 'interp/notebook/effects', internal.import 'interp/prelude/uses'

local function words(set)
	local list = {}
	for name in pairs(set) do list[#list + 1] = name end
	table.sort(list)
	return table.concat(list, ' ')
end
local function both(text)
	local facts = effects(text)
	return words(facts.reads) .. ' / ' .. words(facts.writes)
end

it('knows what a cell reads and writes', function()
	for text, want in pairs {['x = y + z'] = 'y z / x', ['local a, b = f(c)'] = 'c f / a b', ['print(tensor.ones(2))'] = ' / ', ['t.x = 1'] = 't / t',
		['t[i].y = u.v'] = 'i t u / t', ['x:add_(y)'] = 'x y / x', ['z = x:relu()'] = 'x / z', ['m:fit(d)'] = 'd m / m', ['x:add(1)'] = 'x / x',
		['function g() h = 1 end'] = ' / g h', ['-- x = 1'] = ' / ', ['for i = 1, n do end'] = 'n / ', ['if x == y then end'] = 'x y / ', [''] = ' / '} do
		assert(both(text) == want, text .. ': ' .. both(text))
	end
end)
it('is not misled by fields, options, parameters and inner locals of the same name', function()
	for text, want in pairs {['f{x = y}'] = 'f y / ', ['t = {a, b = c}'] = 'a c / t', ['print(p, q)'] = 'p q / ', ['f(function(a, b) return a.c + b end)'] = 'f / ',
		['do local a = 1; a = a + b end'] = 'b / ', ['for i, v in ipairs(l) do v.x = i end'] = 'l / ', ['goto a ::a::'] = ' / ',
		['f "x = y"'] = 'f / ', ['f "a <const>"'] = 'f / ', ['local m = a.b m.c = 1'] = 'a / a m', ['a, b = b, a'] = 'a b / a b', ['s.t:add_(1)'] = 's / s',
		['local t = s[1] t:add_(1)'] = 's / s t', ['function o.f() end'] = 'o / o', ['function o:f() self.x = y end'] = 'o y / o',
		['f().x = a'] = 'a f / ', ['(a or b).x = 1'] = 'a b / b', ['a.b:relu()'] = 'a / '} do
		assert(both(text) == want, text .. ': ' .. both(text))
	end
end)
it('reads what ends in an expression, and constants that the compiler folds away', function()
	assert(both 'x = 1\nx + y' == 'x y / x' and both 'x' == 'x / ' and both 'x;' == 'x / ')
	assert(both 'local a <const>, b <const> = 5, z' == 'z / a b' and both 'local c < const > = 5' == ' / c')
	assert(words(effects 'local a, b <const>, c <close> = 1, 2, nil d = 3'.locals) == 'a b c')
end)
it('takes every name of what does not compile, and of names that are computed', function()
	assert(both 'x = = y' == 'x y / ' and both 'a.b = _ENV[k]' == '_ENV a b k / a')
	assert(both 'x = 1 <' == 'x / ')
end)
it('knows names beyond the reach of instructions', function()
	local parts = {}
	for i = 1, 300 do parts[i] = ('v%d = %d.5'):format(i, i) end
	local text = table.concat(parts, '\n') .. '\nlast = other + v1 other.x = 2 function f() inner = v2 end o:add_(1) p:relu()'
	local facts = effects(text)
	assert(words(facts.reads) == 'o other p v1 v2', words(facts.reads))
	assert(facts.writes.last and facts.writes.v300 and facts.writes.inner and facts.writes.other and facts.writes.o and not facts.writes.p)
	assert(uses(load(text)).whole == nil and uses(load(text .. ' g(_ENV)')).whole and uses(load 'local e = _ENV e.x = 1').whole and
		uses(load(text .. ' x = _ENV[k]')).whole)
end)
it('knows what it certainly assigns first', function()
	for text, want in pairs {['x = 1 y = x'] = 'x y', ['y = x x = 1'] = 'y', ['if a then x = 1 end'] = '', ['local a = 1'] = 'a', ['x = f() y = 2'] = 'x y',
		['function f() x = 1 end y = 2'] = 'f y', ['for i = 1, 2 do x = i end'] = ''} do
		assert(words(effects(text).first) == want, text .. ': ' .. words(effects(text).first))
	end
	assert(words(effects 'function f() x = 1 end y = 2'.assigned) == 'f y')
	assert(words(effects 'function f() x = 1 end y = 2'.writes) == 'f x y')
end)
it('gives each reader of a variable that a cell only lists by name the same key as before', function()
	local notebook = internal.import 'interp/notebook/notebook'
	local function keys(...)
		local cells = {}
		for i, source in ipairs {...} do cells[i] = {kind = 'code', source = source, tags = {}, metadata = {}} end
		notebook.keys({cells = cells}, '')
		return cells
	end
	local a, b = keys('x = 1', 'y = {x = 2}', 'x'), keys('x = 1', 'y = {x = 3}', 'x')
	assert(a[3].key == b[3].key and a[2].key ~= b[2].key)
	a, b = keys('x = 1', 'x'), keys('x = 2', 'x')
	assert(a[2].key ~= b[2].key)
	a, b = keys('x = 1', 'function f() return x end', 'f()'), keys('x = 2', 'function f() return x end', 'f()')
	assert(a[3].key ~= b[3].key)
end)
