-- SPDX-License-Identifier: MIT
-- Ops that are made of views, copies and other ops run where their operands are: no bytes go through the host.
local D = dofile 'tests/tools/gpu_tested.lua'

local same = dofile 'tests/tools/same.lua'

local function host_rows()
	local found = {}
	for _, row in ipairs(quant.log()) do
		if row.path:find '^host' then found[#found + 1] = row.op .. ': ' .. tostring(row.reason) end
	end
	return table.concat(found, ', ')
end

local ops = {
	cat = function(x, y) return tensor.cat({x, y, x}, {axis = 2}) end,
	stack = function(x, y) return tensor.stack({x, y}, {axis = 2}) end,
	tile = function(x) return x:tile(2, 1, 3) end,
	flip = function(x) return x:flip{1, 2} end,
	pad = function(x) return x:pad{1, 2, 0, 3, value = -1.5} end,
	mse = function(x, y) return nn.mse(x, y) end,
	bce = function(x, y) return nn.bce(x:sigmoid(), y:sigmoid()) end,
	bcelogits = function(x, y) return nn.bcelogits(x, y:sigmoid()) end,
}

for name, op in pairs(ops) do
	it(name .. ' gives the bits of the CPU, and so does its gradient', function()
		local a, b = tensor.randn(5, 7), tensor.randn(5, 7)
		local function run(device)
			local x, y = a:to(device):requires_grad_(), b:to(device)
			local z = op(x, y)
			z:sum():backward()
			return z, x:grad()
		end
		quant.log 'reset'
		local z, g = run(D)
		assert(host_rows() == '', host_rows())
		assert(z:device() == D and g:device() == D)
		local want, slope = run 'cpu'
		assert(same(want, z) and same(slope, g))
	end)
end

it('integers, codes and packed elements, too', function()
	local x = tensor{{1, -2, 3}, {4, 5, -6}, dtype = 'int8'}
	local y = x:to(D)
	quant.log 'reset'
	assert(same(tensor.cat{x, x}, tensor.cat{y, y}) and same(x:pad{1, 1, value = 7}, y:pad{1, 1, value = 7}))
	assert(same(x:flip(2), y:flip(2)) and same(x:tile(2, 2), y:tile(2, 2)))
	print(host_rows())  -->
	local p = x:to 'int4'
	assert(same(tensor.cat{p, p}, tensor.cat{p:to(D), p:to(D)}))
	local q = tensor.randn(4, 6):quantize 'int8'
	assert(same(tensor.cat({q, q}, {out = 'int8 scale=0.1'}):codes(), tensor.cat({q:to(D), q:to(D)}, {out = 'int8 scale=0.1'}):codes()))
end)

it('a number fills a view there', function()
	local x = tensor.zeros(4, 6):to(D)
	x:narrow(2, 2, 3):fill_(2.5)
	x[2] = -1
	print(x:sum():item(), x:device() == D)  --> 16.5	true
	local h = tensor.zeros(3, 3, {dtype = 'int8'}):to(D)
	h:t():narrow(1, 2, 2):fill_(100)
	print(h:sum():item())  --> 600
end)
