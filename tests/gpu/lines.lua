-- SPDX-License-Identifier: MIT
-- Ops on lines, channels and rows of logits on a device, with their gradients: the bits of the CPU, and no host.
local D = dofile 'tests/tools/gpu_tested.lua'

local same = dofile 'tests/tools/same.lua'

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
					local z, dz = both(op, p:to(D), q:to(D), axis)
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
	assert(same(x:softmax(), x:to(D):softmax()))
	for _, row in ipairs(quant.log()) do
		if row.path == 'host' then print(row.op, row.reason) end  --> softmax	float64, whose functions are those of the host's library
	end
end)

it('crossentropy and its gradient run there; a class out of range is an error at the next wait', function()
	for _, case in ipairs {{shape = {40, 10}}, {shape = {3, 7, 300}, ignore = 3, smoothing = 0.1}, {shape = {4, 6, 5}, axis = 2}, {shape = {4, 6, 5}, axis = -2}} do
		local x, axis = tensor.randn(table.unpack(case.shape)), case.axis and 2 or #case.shape
		local classes = case.shape[axis]
		table.remove(case.shape, axis)
		local target = (tensor.rand(table.unpack(case.shape)) * classes):floor():to 'int64' + 1
		local options = {ignore = case.ignore, smoothing = case.smoothing, axis = case.axis}
		local function loss(a, b)
			a = a:clone():requires_grad_()
			local y = nn.crossentropy(a, b, options)
			y:backward()
			return y:detach(), a:grad()
		end
		local y, dx = loss(x, target)
		quant.log 'reset'
		local z, dz = loss(x:to(D), target:to(D))
		assert(kernels '^crossentropy' == 'crossentropy float32 crossentropy, crossentropy_back float32 crossentropy', kernels '')
		assert(same(y, z) and same(dx, dz))
	end
	local x, bad = tensor.randn(2, 3):to(D), tensor{1, 9, dtype = 'int64'}:to(D)
	local _, words = pcall(function() return nn.crossentropy(x, bad):item() end)
	print((words:gsub('^.-: ', '', 1)))  --> crossentropy: target: wanted classes 1 to 3, got 9 at position (2)
end)

it('whatever shows a value raises what a kernel found on the way to it', function()
	local target, path = tensor{1, 9, dtype = 'int64'}:to(D), os.tmpname() .. '.npy'
	local ways = {tostring = tostring, item = function(y) return y:item() end, totable = function(y) return y:view(1):totable() end,
		to = function(y) return y:to 'cpu' end, sync = function() gpu.sync() end, save = function(y) return tensor.save(path, y:view(1)) end, text = function(y) return tostring(y:view(1)) end,
		index = function(y) return y:view(1)[1]:item() end, iterate = function(y) for _, v in ipairs(y:view(1)) do v:item() end end,
		codes = function(y) return tostring(y:view(1):quantize 'int8') end, scale = function(y) return tostring(y:view(1):quantize('int8'):qparams().scale) end,
		qparams = function(y) return tostring(y:view(1):quantize('int8'):qparams()) end, host = function(y) return y:view(1):cumsum(1) end,
		equal = function(y) return y:eq(1):item() end, error = function(y) return y:view(1):error(y:view(1):quantize 'int8') end}
	for name, show in pairs(ways) do
		local y = nn.crossentropy(tensor.randn(2, 3):to(D), target)
		local good, words = pcall(show, y)
		assert(not good and words:find 'crossentropy: target: wanted classes 1 to 3, got 9 at position %(2%)', name .. ': ' .. tostring(words))
		assert(pcall(gpu.sync), name) -- once
	end
	os.remove(path)
end)

it('the accuracy of a step is computed there', function()
	local x, target = tensor.randn(50, 7), (tensor.rand(50) * 7):floor():to 'int64' + 1
	local p, q = x:to(D), target:to(D)
	quant.log 'reset'
	local accuracy = p:argmax(2):eq(q):to 'float32':mean()
	print(kernels '^arg', same(accuracy, x:argmax(2):eq(target):to 'float32':mean()))  --> argmax float32 reduce	true
	for _, op in ipairs {'argmax', 'argmin', 'any', 'all'} do
		assert(same(x[op](x, 1), p[op](p, 1)) and same(x[op](x), p[op](p)), op)
		assert(same(target[op](target), q[op](q)), op)
	end
	kernels ''
end)

it('batchnorm trains there and writes its running statistics', function()
	for _, shape in ipairs {{12, 5}, {3, 4, 6, 7}} do
		local x, w = tensor.randn(table.unpack(shape)) + 3, tensor.randn(table.unpack(shape))
		local c = shape[2]
		local weight, bias = tensor.randn(c), tensor.randn(c)
		local function step(device, training)
			local mean, var = tensor.zeros(c):to(device), tensor.ones(c):to(device)
			local a, b, d = x:to(device):clone():requires_grad_(), weight:to(device):clone():requires_grad_(), bias:to(device):clone():requires_grad_()
			local y = nn.batchnorm(a, b, d, mean, var, {training = training, momentum = 0.3})
			y:mul(w:to(device)):sum():backward()
			return {y:detach(), a:grad(), b:grad(), d:grad(), mean, var, mean + 1}
		end
		for _, training in ipairs {true, false} do
			local want = step('cpu', training)
			quant.log 'reset'
			local got = step(D, training)
			assert(kernels '^batchnorm' == 'batchnorm float32 batchnorm, batchnorm_back float32 batchnorm', kernels '')
			for i = 1, #want do assert(same(want[i], got[i]), i) end
		end
	end
end)

it('layernorm and rmsnorm run there, with their gradients', function()
	for _, op in ipairs {'layernorm', 'rmsnorm'} do
		for _, shape in ipairs {{4, 5, 30}, {3, 400}, {2, 1300}} do
			for _, size in ipairs {1, 1e25} do -- squares of the larger ones overflow
				local x, w, n = tensor.randn(table.unpack(shape)) * size, tensor.randn(table.unpack(shape)), shape[#shape]
				local weight, bias = tensor.randn(n), tensor.randn(n)
				local function step(device)
					local a, b, c = x:to(device):clone():requires_grad_(), weight:to(device):clone():requires_grad_(), bias:to(device):clone():requires_grad_()
					local y = op == 'layernorm' and a:layernorm(b, c) or a:rmsnorm(b)
					y:mul(w:to(device)):sum():backward()
					return {y:detach(), a:grad(), b:grad(), op == 'layernorm' and c:grad() or nil}
				end
				local want = step 'cpu'
				quant.log 'reset'
				local got = step(D)
				assert(kernels 'norm' == ('%s float32 layernorm, %s_back float32 layernorm'):format(op, op), kernels '')
				for i = 1, #want do assert(same(want[i], got[i]), op .. i) end
			end
		end
	end
end)
