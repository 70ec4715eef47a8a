-- SPDX-License-Identifier: MIT
-- m:equalize; as a method of m:quantize: methods/equalize.lua.
local function largest(t, axis)
	local rows = axis == 1 and t or t:transpose(1, 2)
	return rows:contiguous():view(rows:size(1), rows:nelem() // rows:size(1)):abs():max {axis=2}
end
tensor.seed(9)

-- channels of very different sizes between two layers, of the same weight in the result
local function uneven(m, pairs)
	tensor.nograd(function()
		for _, pair in ipairs(pairs) do
			local one, two = m[pair[1]].weight, m[pair[2]].weight
			local each = two:nelem() // two:size(1) // one:size(1)
			for i = 1, one:size(1) do
				local factor = 10 ^ ((i % 5) - 2)
				one[i]:mul_(factor)
				if m[pair[1]].bias then m[pair[1]].bias[i]:mul_(factor) end
				if two:dim() == 4 and two:size(2) == 1 then
					two[i]:div_(factor) -- a group for each channel
				else
					two:view(two:size(1), one:size(1), each):narrow(2, i, 1):div_(factor)
				end
			end
		end
	end)
	return m
end
local mlp = uneven(nn.Sequential {nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 4)},
	{{'linear1', 'linear2'}, {'linear2', 'linear3'}})
local cnn = uneven(nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.Conv2d(8, 8, 3, {pad=1, groups=8}), nn.ReLU(), nn.MaxPool2d(2),
	nn.Conv2d(8, 6, 1, {bias=false}), nn.Flatten(), nn.Linear(6 * 16, 5)}, {{'conv1', 'conv2'}, {'conv3', 'linear1'}})
local x, images = tensor.randn(64, 16), tensor.randn(10, 3, 8, 8)

it('keeps the function and makes ranges equal', function()
	local e = mlp:equalize()
	assert(mlp(x):detach():error(e(x)).sqnr > 110)
	for _, pair in ipairs {{'linear1', 'linear2'}, {'linear2', 'linear3'}} do
		local r1, r2 = largest(e[pair[1]].weight:detach(), 1), largest(e[pair[2]].weight:detach(), 2)
		assert((r1 / r2 - 1):abs():max():item() < 0.01)
	end
	e = cnn:equalize()
	assert(cnn(images):detach():error(e(images)).sqnr > 100)
	local r1, r2 = largest(e.conv1.weight:detach(), 1), largest(e.conv2.weight:detach(), 1) -- a group for each channel
	assert((r1 / r2 - 1):abs():max():item() < 0.01)
	local last = e.linear1.weight:detach():view(5, 6, 16):permute(2, 1, 3):contiguous():view(6, 80):abs():max {axis=2}
	assert((largest(e.conv3.weight:detach(), 1) / last - 1):abs():max():item() < 0.01)
end)
it('wins much where a weight has one scale', function()
	for _, case in ipairs {{mlp, x}, {cnn, images}} do
		local m, input = case[1], case[2]
		local plain = m:quantize {mode='weight_only', weight='int8'}
		local better = m:quantize {mode='weight_only', weight='int8', method='equalize'}
		local y = m(input):detach()
		assert(y:error(better(input)).sqnr > y:error(plain(input)).sqnr + 6, y:error(better(input)).sqnr - y:error(plain(input)).sqnr)
	end
end)
it('leaves dead channels and what it does not know alone', function()
	local m = nn.Sequential {nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2), nn.Tanh(), nn.Linear(2, 2)}
	tensor.nograd(function() m.linear1.weight[2]:fill_(0) end)
	local e = m:equalize()
	assert(e.linear1.weight[2]:abs():max():item() == 0 and e.linear3.weight:detach():eq(m.linear3.weight:detach()):all():item())
	assert(e(tensor.ones(1, 4)):isfinite():all():item())
end)
