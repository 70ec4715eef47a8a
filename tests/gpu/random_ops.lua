-- SPDX-License-Identifier: MIT
-- Random numbers, constants and dropout on a device: the bits of the CPU from the same seed, made there.
local D = dofile 'tests/tools/gpu_tested.lua'

local same = dofile 'tests/tools/same.lua'

-- Kernels of the ledger since the last reset; nothing may have run on the host.
local function kernels()
	local found = {}
	for _, row in ipairs(quant.log()) do
		assert(row.path ~= 'host', row.op .. ': ' .. tostring(row.reason))
		found[#found + 1] = row.op .. ' ' .. row.kernel
	end
	table.sort(found)
	return table.concat(found, ', ')
end

it('constructors with device= make their numbers there', function()
	local function all(device)
		tensor.seed(7)
		return {
			tensor.rand{3, 50, device = device}, tensor.randn{77, dtype = 'bfloat16', device = device}, tensor.rand{5, dtype = 'float16', device = device},
			tensor.randint{9, 9, low = -3, high = 12, device = device}, tensor.randint{40, low = 0, high = 200, dtype = 'uint8', device = device},
			tensor.zeros{3, device = device}, tensor.ones{4, dtype = 'int8', device = device}, tensor.full{2, 2, value = 0.7, device = device},
			tensor.arange(3, 11, 2, {device = device}), tensor.eye(4, {device = device}), tensor.rand{6, device = device}, tensor.empty{2, device = device},
		}
	end
	local wanted = all 'cpu'
	quant.log 'reset'
	local got = all(D)
	local ran = kernels()
	print(select(2, ran:gsub('construct', '')), select(2, ran:gsub('random', '')), ran:find ' ref')  --> 6	5	nil
	for i, x in ipairs(wanted) do assert(got[i]:device() == D and same(x, got[i]), tostring(i)) end
	print(tensor.zeros{3, 4, device = D, quant = 'int8'}:device() == D)  --> true
end)

it('dropout and its gradient are those of the CPU', function()
	local x = tensor.randn(13, 77)
	local function both(at)
		tensor.seed(5)
		local leaf = at:clone():requires_grad_()
		local y = nn.dropout(leaf, 0.3)
		y:mul(y):sum():backward()
		return y, leaf:grad()
	end
	local y, g = both(x)
	quant.log 'reset'
	local dy, dg = both(x:to(D))
	print(kernels():match 'dropout dropout', kernels():match 'dropout_back %w+')  --> dropout dropout	dropout_back dropout
	assert(same(y, dy) and same(g, dg))
	local at = tensor.rand() -- the same place of the generator
	both(x)
	assert(same(at, tensor.rand()))
	x = x:to(D)
	quant.log 'reset'
	print(nn.dropout(x, 0.3, {training = false}) == x, nn.dropout(x, 0) == x, kernels() == '')  --> true	true	true
end)

it('the same with the numbers of the host path', function()
	tensor.seed(9)
	local y = nn.dropout(tensor.ones(100), 0.5)
	local z = tensor.rand(3)
	tensor.seed(9)
	local dy = nn.dropout(tensor.ones(100):to(D), 0.5)
	assert(same(y, dy) and same(z, tensor.rand(3)))
	tensor.seed(9)
	y = tensor.randint{30, low = 0, high = 7, dtype = 'uint4'}
	z = tensor.rand(3)
	tensor.seed(9)
	quant.log 'reset'
	dy = tensor.randint{30, low = 0, high = 7, dtype = 'uint4', device = D}
	print(quant.log()[1].path, dy:device() == D)  --> host	true
	assert(same(y, dy) and same(z, tensor.rand(3)))
end)
