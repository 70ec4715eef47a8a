-- SPDX-License-Identifier: MIT
-- Fake quantization and training with it on a device: values, gradients and losses have the bits of the CPU.
local D = dofile 'tests/tools/gpu_tested.lua'

local same = dofile 'tests/tools/same.lua'

-- Rows of the ledger that ran on the host, but for ops named in `allowed`.
local function on_host(allowed)
	local found = {}
	for _, row in ipairs(quant.log()) do
		if row.path == 'host' and not (allowed or ''):find(row.op, 1, true) then
			found[#found + 1] = ('%s (%s)'):format(row.op, tostring(row.reason))
		end
	end
	return table.concat(found, ', ')
end

it('has the values and gradients of the CPU', function()
	local x = tensor.randn(24, 50)
	x[2][3], x[4][5] = 0 / 0, 1 / 0
	local dy = tensor.randn(24, 50)
	for _, spec in ipairs {'int8', 'uint8', 'int8/1', 'uint8/2', 'int16', 'int8 scale=0.01', 'uint8 scale=0.02 zero_point=7', 'float16'} do
		local a, b = x:clone():requires_grad_(), x:to(D):requires_grad_()
		quant.log 'reset'
		local p, q = a:fake(spec), b:fake(spec)
		local from, to = dy * 1, dy:to(D)
		;(p * from):sum():backward()
		;(q * to):sum():backward()
		assert(same(p:detach(), q:detach()) and same(a:grad(), b:grad()), spec)
		assert(on_host() == '', spec .. ': ' .. on_host())
	end
	for _, spec in ipairs {'nf4', 'int4:16', 'binary', 'log4'} do -- what the host finds
		local a, b = x:narrow(2, 1, 48):clone():requires_grad_(), x:narrow(2, 1, 48):to(D):requires_grad_()
		local ok, p = pcall(a.fake, a, spec)
		if ok then
			local q = b:fake(spec)
			p:sum():backward()
			q:sum():backward()
			assert(same(p:detach(), q:detach()) and same(a:grad(), b:grad()), spec)
		end
	end
	for _, dtype in ipairs {'float16', 'float64'} do
		local y = x:to(dtype)
		assert(same(y:fake 'int8/1', y:to(D):fake 'int8/1'), dtype)
	end
end)

it('learns scales with the gradients of the CPU', function()
	local function learn(device, x, axis, zero, dtype, dy)
		local n = axis and x:size(axis) or 1
		local leaf = x:to(dtype):to(device):requires_grad_()
		local s = (tensor.arange(1, n):to 'float32' * 0.03 / n + 0.02):to(device):requires_grad_()
		local z = zero and (tensor.arange(1, n):to 'float32' % 3):to(device):requires_grad_()
		local o = {bits = zero and 4 or 3, signed = not zero, axis = axis, features = zero and 7 or nil}
		local y = zero and leaf:lsq(s, z, o) or leaf:lsq(s, o)
		y:mul(dy:to(y:dtype()):to(device)):sum():backward()
		return {y:detach(), leaf:grad(), s:grad(), z and z:grad()}
	end
	for _, shape in ipairs {{9300}, {7, 12}, {3, 5, 11}, {4, 5000}, {500, 3}, {0, 4}} do
		local x, dy = tensor.randn(table.unpack(shape)), tensor.randn(table.unpack(shape))
		for axis = 0, #shape do
			for _, dtype in ipairs {'float32', 'float64', 'float16'} do
				for _, zero in ipairs {false, true} do
					local at = axis > 0 and axis or nil
					local want = learn('cpu', x, at, zero, dtype, dy)
					quant.log 'reset'
					local got = learn(D, x, at, zero, dtype, dy)
					for i = 1, zero and 4 or 3 do
						assert(same(want[i], got[i]), ('%d of %s, axis %d, %s'):format(i, table.concat(shape, 'x'), axis, dtype))
					end
					assert(on_host() == '', on_host())
				end
			end
		end
	end
end)

local function train(device, options)
	tensor.seed(3)
	local m = nn.Sequential {nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4)}
	m = m:quantize(options)
	m:to(device)
	m:train()
	local x, y, losses = tensor.randn(20, 12):to(device), (tensor.arange(1, 20) % 4 + 1):to('int64'):to(device), {}
	local o = optim.adam(m, {lr=0.01, clip=1})
	for i = 1, 4 do
		o:zero()
		local loss = nn.crossentropy(m(x), y)
		loss:backward()
		o:step()
		losses[i] = loss:item()
	end
	return losses
end

-- Products of the level ref are ordered, as are those of the device then.
it('trains with the losses of the CPU', function()
	local before = hw.force 'ref'
	local a = train('cpu', {mode='qat'})
	quant.log 'reset'
	local b = train(D, {mode='qat'})
	hw.force(before)
	for i = 1, 4 do assert(a[i] == b[i], ('%d: %.9g and %.9g'):format(i, a[i], b[i])) end
	assert(on_host 'crossentropy crossentropy_back relu relu_back' == '', on_host())
end)
