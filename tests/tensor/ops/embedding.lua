-- SPDX-License-Identifier: MIT
-- Rows of a table by number, and the sums of their gradients.
local checks = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checks.lua')
local near, check_gradient, wide, check_bits, refused = checks.near, checks.gradient, checks.wide, checks.bits, checks.refused
tensor.seed(1)

local w = tensor{{1, 2}, {3, 4}, {5, 6}}
print(w:embedding(tensor{3, 1, dtype = 'int64'}))  --> float32(2, 2)
                                                   --> 5 6
                                                   --> 1 2
print(w:embedding(tensor{{1, 2}, {3, 3}, dtype = 'uint8'}):size())  --> 2 2 2
print(w:embedding(tensor.zeros{0, 4, dtype = 'int32'}):size())  --> 0 4 2
print(w:embedding(tensor(2):to 'int16'))  --> float32(2)  3 4
local two = tensor(2):to 'int64'
print(w:to 'float16':embedding(two):dtype(), w:to 'int8':embedding(two))  --> float16 int8(2) 3 4
print(w:t():embedding(two), w[{ {2, 3} }]:embedding(two))  --> float32(3) 2 4 6 float32(2) 5 6

it('gradients against finite differences; rows that are named often, or never', function()
	local ids = tensor{{2, 5, 2}, {2, 1, 6}, dtype = 'int32'}
	check_gradient(function(t) return t:embedding(ids) end, wide(6, 3))
	local t = tensor.zeros(6, 2):requires_grad_()
	t:embedding(ids):backward(tensor.ones(2, 3, 2))
	near(t:grad(), {1, 1, 3, 3, 0, 0, 0, 0, 1, 1, 1, 1}, 0)
	local half = tensor.zeros{6, 2, dtype = 'float16'}:requires_grad_()
	half:embedding(ids):sum():backward()
	print(half:grad():dtype(), half:grad()[2])  --> float16 float16(2) 3 3
end)

it('gives the same bits everywhere', function()
	local t, ids = tensor.randn(500, 300):requires_grad_(), tensor.randint {4000, low = 1, high = 500}
	local seed = tensor.randn(4000, 300)
	check_bits(function()
		t:zero_grad()
		local y = t:embedding(ids)
		y:backward(seed)
		return y:detach(), t:grad()
	end)
	local sum = tensor.zeros(500, 300):scatter(1, ids:view(-1, 1):expand(4000, 300), seed, {add = true})
	assert(sum:metrics(t:grad()).max < 1e-5)
end)

for _, call in ipairs {
	{'ids: wanted 1 to 3, the rows of the table, got 4 at position (2)', w, tensor{1, 4, dtype = 'int64'}},
	{'ids: wanted 1 to 3, the rows of the table, got 0 at position (2, 1)', w, tensor{{1}, {0}, dtype = 'int64'}},
	{'ids: wanted 1 to 3, the rows of the table, got -1 at position ()', w, tensor(-1):to 'int64'},
	{'ids: wanted integers, got float32(1)', w, tensor{1}},
	{'ids: wanted integers, got bool', w, tensor{true}},
	{'wanted a table of shape (v, d), got (2)', tensor{1, 2}, tensor{1, dtype = 'int64'}},
	{'ids: wanted 1 to 0, the rows of the table, got 1', tensor.zeros(0, 3), tensor{1, dtype = 'int64'}},
} do
	refused('embedding: ' .. call[1], function() return call[2]:embedding(call[3]) end)
end
refused("ids: wanted 1 to 3, the rows of the table, got 4", function() return w:quantize 'int8/1':embedding(tensor{4, dtype = 'int64'}) end)
