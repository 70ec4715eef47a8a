-- SPDX-License-Identifier: MIT
-- Ops on lines, channels and rows of logits on the device cudaemu, with their gradients: the bits of the CPU, and no host.
local plugin = os.getenv 'QUOLL_GPU_PLUGIN'
if not plugin or not plugin:find 'cudaemu' then skip 'cudaemu: the emulation is not built' end

local function same(a, b)
	a, b = a:to 'cpu', b:to 'cpu'
	return a:dtype() == b:dtype() and (a:eq(b) | (a:ne(a) & b:ne(b))):all():item()
end

-- Kernels in the ledger since the last reset, of ops whose name has the pattern; no row is `host`.
local function kernels(pattern)
	local found = {}
	for _, row in ipairs(quant.log()) do
		assert(row.path ~= 'host', row.op .. ': ' .. tostring(row.reason))
		if row.op:find(pattern) then found[#found + 1] = row.op .. ' ' .. row.path .. ' ' .. row.kernel end
	end
	return table.concat(found, ', ')
end

-- Result and gradient of the op, weighed with w so that the gradient is not 0.
local function both(op, x, w, axis)
	x = x:clone():requires_grad_()
	local y = x[op](x, axis)
	y:mul(w):sum():backward()
	return y:detach(), x:grad()
end

it('softmax and logsoftmax run there, with their gradients', function()
	for _, shape in ipairs {{7, 30}, {3, 5, 300}, {2, 1500}, {12}} do
		local x, w = tensor.randn(table.unpack(shape)), tensor.randn(table.unpack(shape))
		for _, dtype in ipairs {'float32', 'float16', 'bfloat16'} do
			for _, op in ipairs {'softmax', 'logsoftmax'} do
				for axis = 1, #shape do
					local p, q = x:to(dtype), w:to(dtype)
					local y, dx = both(op, p, q, axis)
					quant.log 'reset'
					local z, dz = both(op, p:to 'cudaemu', q:to 'cudaemu', axis)
					assert(kernels 'softmax' == ('%s float32 softmax, %s_slope float32 softmax'):format(op, op), kernels '')
					assert(same(y, z) and same(dx, dz), op .. ' of ' .. dtype)
				end
			end
		end
	end
end)

it('float64 runs on the host', function()
	local x = tensor{1, 2, 3, dtype = 'float64'}
	quant.log 'reset'
	assert(same(x:softmax(), x:to 'cudaemu':softmax()))
	for _, row in ipairs(quant.log()) do
		if row.path == 'host' then print(row.op, row.reason) end  --> softmax	float64, whose functions are those of the host's library
	end
end)
