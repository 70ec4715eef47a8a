-- SPDX-License-Identifier: MIT
-- nn.Sequential and nn.Residual.
local double = nn.module(function(_, x) return x * 2 end)
local plus = nn.module(function(_, x) return x + 1 end)
print(nn.Sequential{double, plus}(tensor{1, 2}))  --> float32(2)  3 5
print(nn.Sequential{plus, double}(tensor{1, 2}))  --> float32(2)  4 6
print(nn.Sequential{}(tensor{1, 2}))  --> float32(2)  1 2
print(nn.Residual{double, plus}(tensor{1, 2}))  --> float32(2)  4 7
print(nn.Residual{double, shortcut=plus}(tensor{1, 2}))  --> float32(2)  4 7

it('names what is inside', function()
	local m = nn.Residual {nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2), shortcut=nn.Linear(2, 2)}
	local list = {}
	for name in pairs(m:named()) do list[#list + 1] = name end
	assert(table.concat(list, ' ') == 'linear1 relu1 linear2 shortcut')
end)

it('takes names as {name, module}', function()
	local m = nn.Sequential {{'fc1', nn.Linear(2, 2)}, nn.ReLU(), {'fc2', nn.Linear(2, 2)}}
	local list = {}
	for name in pairs(m:named()) do list[#list + 1] = name end
	assert(table.concat(list, ' ') == 'fc1 relu1 fc2' and #m == 3 and m.fc1 == m[1] and m.fc2 == m[3])
	assert(tostring(m(tensor.ones(1, 2))) == tostring(m.fc2(m[2](m.fc1(tensor.ones(1, 2))))))
	local r = nn.Residual {{'inner', nn.Linear(2, 2)}}
	assert(r.inner == r[1])
end)

it('grows with add', function()
	local a, b = nn.Linear(2, 3), nn.Linear(3, 2)
	local m = nn.Sequential {}
	assert(m:add(a) == m and m:add('act', nn.ReLU()):add(b) == m)
	local list = {}
	for name in pairs(m:named()) do list[#list + 1] = name end
	assert(table.concat(list, ' ') == 'linear1 act linear2' and #m == 3 and m[1] == a and m.linear2 == b and m.act == m[2])
	local x = tensor.randn(4, 2)
	local whole = nn.Sequential {a, nn.ReLU(), b}
	assert((m(x) - whole(x)):abs():max():item() == 0 and #m:parameters() == 4)
	local g = graph.trace(m, x)
	assert((g:run(x) - m(x)):abs():max():item() == 0)
	local c = m:clone():add(nn.ReLU())
	assert(#c == 4 and #m == 3 and c(x):min():item() >= 0)
	m:calibrate {{x}}
	assert(m:quantize {mode = 'static'}:add(nn.ReLU())(x):min():item() >= 0)
	local file = os.tmpname() .. '.safetensors'
	c:save(file)
	nn.Sequential {nn.Linear(2, 3)}:add('act', nn.ReLU()):add(nn.Linear(3, 2)):load(file)
	os.remove(file)
end)

local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('Sequential: wanted a list, as in nn.Sequential{module, module, …}, got nil', nn.Sequential)
refused("Residual: unknown option 'shorcut'; did you mean 'shortcut'?", nn.Residual, {double, shorcut=plus})
refused('Sequential: name: wanted', nn.Sequential, {{'a b', nn.ReLU()}})
refused("Sequential: wanted names that differ, got 'a' twice", nn.Sequential, {{'a', nn.ReLU()}, {'a', nn.ReLU()}})
refused('Sequential: wanted modules, got 3', nn.Sequential, {{'a', 3}})
refused('Sequential: wanted modules, got table', nn.Sequential, {{'a'}})
local m = nn.Sequential {nn.ReLU()}
refused('add: wanted a module, got 3', m.add, m, 3)
refused('add: wanted a module, got nil', m.add, m, nil)
refused("add: wanted a module, got 'fc1'", m.add, m, nn.ReLU(), 'fc1')
refused("add: wanted a name, as in m:add('fc1', module), got 3", m.add, m, 3, nn.ReLU())
refused("Sequential: wanted names that differ, got 'relu1' twice", m.add, m, 'relu1', nn.ReLU())
refused('add: name: wanted', m.add, m, 'a b', nn.ReLU())
refused('add: wanted a module that does not hold this one', m.add, m, m)
refused('add: wanted a module that does not hold this one', m.add, m, nn.Sequential {nn.Residual {m}})
refused('add: wanted an nn.Sequential, as in m:add(module), got Linear', m.add, nn.Linear(2, 2), nn.ReLU())
refused('m:add(module)', function() return m:append(nn.ReLU()) end)
print(#m, #m:add(nn.ReLU()), m.relu2 == m[2])  --> 1 2 true

it('m:forward(x) is m(x), quantized too', function()
	local m, x = nn.Sequential {nn.Linear(8, 4)}, tensor.randn(5, 8)
	local q = m:quantize {mode = 'dynamic'}
	assert((q.linear1:forward(x) - q.linear1(x)):abs():max():item() == 0)
	assert((q:forward(x) - m:forward(x)):abs():max():item() > 0)
	refused('forward: wanted a module, as in m(x) or m:forward(x), got float32(5, 8)', m.forward, x)
end)

it('a name by kind and number passes over those that were given', function()
	local m = nn.Sequential {{'linear2', nn.Linear(3, 4)}, nn.Linear(4, 2), nn.Linear(2, 2)}
	print(m.linear2 == m[1], m.linear3 == m[2], m.linear4 == m[3])  --> true true true
end)
