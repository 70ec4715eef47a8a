-- SPDX-License-Identifier: MIT
-- Pooling on a device: results, codes and gradients have the bits of the CPU, and nothing runs on the host.
local D = dofile 'tests/tools/gpu_tested.lua'

local same = dofile 'tests/tools/same.lua'

-- Kernels in the ledger since the last reset; none may be the host's.
local function ran()
	local found = {}
	for _, row in ipairs(quant.log()) do
		assert(row.path ~= 'host', row.op .. ': ' .. tostring(row.reason))
		found[row.op] = row.path .. ' ' .. row.kernel
	end
	return found
end

local windows = {{2}, {3, {stride=2, pad=1}}, {{3, 2}, {stride={1, 3}, pad={1, 0}}}}

it('forward and backward', function()
	for _, op in ipairs {'maxpool2d', 'avgpool2d'} do
		for i = 1, op == 'maxpool2d' and 3 or 4 do
			local k, o = table.unpack(windows[i] or {})
			local function both(at)
				local leaf = at:clone():requires_grad_()
				local y = leaf[op](leaf, k, o)
				y:mul(y):sum():backward()
				return y, leaf:grad()
			end
			local x = tensor.randn(2, 3, 8, 8)
			local y, g = both(x)
			quant.log 'reset'
			local dy, dg = both(x:to(D))
			local kernels = ran()
			assert(kernels[op] == 'float32 pool' and kernels[op .. '_back'] == 'float32 pool_back')
			assert(same(y, dy) and same(g, dg), op)
		end
	end
end)

it('codes stay codes, under the params of x', function()
	for _, spec in ipairs {'uint8', 'int8/2', 'int16'} do
		local x = tensor.randn(2, 3, 6, 6):quantize(spec)
		local dx = x:to(D)
		quant.log 'reset'
		local y, dy = x:maxpool2d(2), dx:maxpool2d(2)
		local m, dm = x:avgpool2d(3, {stride=2}), dx:avgpool2d(3, {stride=2})
		assert(dy:device() == D and dy:dtype() == y:dtype() and dm:qparams().axis == m:qparams().axis)
		assert(ran().maxpool2d == 'integer pool' or ran().maxpool2d == 'integer maxpool2d_int')
		assert(same(y:codes(), dy:codes()) and same(y:dequantize(), dy:dequantize()), spec)
		assert(same(m:codes(), dm:codes()) and same(m:dequantize(), dm:dequantize()), spec)
	end
	local x = tensor.randn(2, 3, 6, 6):quantize 'uint8'
	for _, out in ipairs {{dtype='int8', scale=0.01}, {dtype='uint8', scale=0.02, zero_point=7}} do
		local y = x:avgpool2d {out=out}
		local dy = (x:to(D)):avgpool2d {out=out}
		assert(same(y:codes(), dy:codes()) and same(y:dequantize(), dy:dequantize()))
	end
	ran()
end)

it('codes that the kernel does not take keep their dtype by way of the host', function()
	local x = tensor.randn(1, 2, 4, 4):quantize 'int4'
	local y = (x:to(D)):maxpool2d(2)
	print(y:dtype(), y:device() == D, same(y:dequantize(), x:maxpool2d(2):dequantize()))  --> int4	true	true
end)
