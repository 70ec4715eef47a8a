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
