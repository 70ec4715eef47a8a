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

local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('Sequential: wanted a list, as in nn.Sequential{module, module, …}, got nil', nn.Sequential)
refused("Residual: unknown option 'shorcut'; did you mean 'shortcut'?", nn.Residual, {double, shorcut=plus})
