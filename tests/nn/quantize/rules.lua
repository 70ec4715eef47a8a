-- SPDX-License-Identifier: MIT
-- Rules of modules and graphs alike: false for floats, and the dialect of patterns.
tensor.seed(8)
local m = nn.Sequential {nn.Linear(8, 6, {name='fc1'}), nn.ReLU(), nn.Linear(6, 4, {name='my_fc2'})}
local x = tensor.randn(5, 8)
m:calibrate({{x, x}}, {log=false})
local g = graph.trace(m, x)

-- Modes of both layers by m:quantize, g:quantize and g:match.
local function modes(options)
	local _, a = m:quantize(options)
	local _, b = g:quantize(options)
	local list, o = options.rules or {}, {}
	for key, value in pairs(options) do if key ~= 'rules' then o[key] = value end end
	local c = g:match(list, o)
	local function of(r, graph)
		local found = {}
		for _, row in ipairs(r) do
			if not graph or row.op == 'linear' then found[#found + 1] = row.mode end
		end
		return table.concat(found, ' ')
	end
	return of(a), of(b, true), of(c, true)
end
local function all(wanted, options)
	local a, b, c = modes(options)
	assert(a:gsub('%-', 'float') == wanted, 'm:quantize ' .. a)
	assert(b == wanted and c == wanted, 'graph ' .. b .. ', ' .. c)
end

describe('false', function()
	it('as weight of the call leaves what no rule takes float', function()
		all('float dynamic', {weight=false, rules={{'my_fc2', {mode='dynamic', weight='int8/1'}}}})
		all('float float', {weight=false})
	end)
	it('as input of the call makes it weight_only', function()
		all('weight_only weight_only', {input=false})
		all('weight_only static', {input=false, rules={{'my', {mode='static', input='uint8'}}}})
	end)
	it('in rules', function()
		all('static float', {rules={{'fc1', 'int8/1'}, {'.*', false}}})
		all('float static', {rules={{'fc1', weight=false}}})
		all('weight_only static', {rules={{'fc1', input=false}}})
		all('float float', {rules={function() return false end}})
		all('float float', {rules={function() return {weight=false} end}})
	end)
	it('is the same as float32', function()
		local a, b = m:quantize {weight=false, rules={{'my', 'int8/1'}}}, m:quantize {weight='float32', rules={{'my', 'int8/1'}}}
		assert(a(x):eq(b(x)):all():item() and a.fc1.weight:dtype() == 'float32')
	end)
end)

describe('patterns', function()
	local function refused(pattern, reason)
		for name, f in pairs {['m:quantize'] = function() m:quantize {rules={{pattern, 'int8'}}} end,
			['g:quantize'] = function() g:quantize {rules={{pattern, 'int8'}}} end, ['g:match'] = function() g:match {{pattern, 'int8'}} end,
			['g:export'] = function() g:export {dir='/nowhere', profile=pattern} end} do
			local ok, message = pcall(f)
			assert(not ok and message:find('wanted a POSIX extended regular expression, got \'' .. pattern, 1, true) and message:find(reason, 1, true),
				name .. ': ' .. tostring(message))
		end
	end
	it('that mean something else in POSIX are refused with a hint', function()
		refused('fc1.*?', "there are no lazy quantifiers; write '*' without '?'")
		refused('fc+?', "write '+' without '?'")
		refused('fc??', "write '?' without '?'")
		refused('f{1,2}?', "write '}' without '?'")
		refused('fc\\d', "'\\d' is none; write [0-9]")
		refused('\\w+', "'\\w' is none; write [A-Za-z0-9_]")
		refused('fc\\b', 'write the characters themselves')
		refused('fc%d', "'%d' is none; write [0-9]")
		refused('(?:fc)1', "there are no groups that begin with '(?'")
		refused('fc(', '')
	end)
	it('of the dialect are taken', function()
		for _, pattern in ipairs {'fc[0-9]+', 'fc1?', 'f(c1|c2)', 'fc\\.?1', '[[:alpha:]]+1', '[]?*]?fc1', '[^?]*c1', 'fc{0,1}c1|fc1', 'f.{1}1', '[\\d]?fc1'} do
			assert(#g:match {{pattern, 'int8'}} > 0, pattern)
		end
	end)
end)
