-- SPDX-License-Identifier: MIT
-- What a user does with a tensor of a device, as with one of the CPU: printing, indexing, writing, making, files, figures. Runs with
-- every device that QUOLL_TEST_DEVICE names (tests/CMakeLists.txt): the emulation, and the ghost, which runs no op itself.
local D = os.getenv 'QUOLL_TEST_DEVICE'
if not D then skip 'cudaemu: the emulation is not built' end

-- Equal bits, dtypes and devices.
local function same(a, b, device)
	assert(b:device() == (device or D), b:device())
	local p, q = a:quantized() and a:codes() or a, b:quantized() and b:codes():to 'cpu' or b:to 'cpu'
	return p:dtype() == q:dtype() and p:dim() == q:dim() and (p:eq(q) | (p:ne(p) & q:ne(q))):all():item()
end

local x = tensor.randn(5, 4)
local d = x:to(D)

it('prints as on the CPU', function()
	for _, t in ipairs {x, x:t(), x:quantize 'int8', x:quantize 'int4:2', x:quantize 'nf4', x:to 'bfloat16', x:gt(0), tensor {3}:sum()} do
		assert(tostring(t:to(D)) == tostring(t), tostring(t:to(D)))
	end
	assert(tostring(d:requires_grad_()) == tostring(x:clone():requires_grad_()))
	d = x:to(D)
end)

it('gives numbers', function()
	local list, wanted = d:totable(), x:totable()
	assert(list[2][3] == wanted[2][3] and d:sum():item() == x:sum():item())
	assert(d[2][3]:item() == wanted[2][3] and #d == #x and d:nbytes() == x:nbytes())
	local n = 0
	for i, row in ipairs(d) do n = n + (same(x[i], row) and 1 or 0) end
	print(n)  --> 5
end)

it('is indexed', function()
	local ids = tensor {3, 1, dtype = 'int64'}
	assert(same(x[2], d[2]) and same(x['2:3'], d['2:3']) and same(x[{{1, 2}, {2, 3}}], d[{{1, 2}, {2, 3}}]))
	assert(same(x[x:gt(0)], d[d:gt(0)]) and same(x:gather(1, ids:view(1, 2)), d:gather(1, ids:view(1, 2):to(D))))
end)

it('is written to', function()
	local function written(t)
		local y = t:clone()
		y[2], y[3][1], y['4:5'] = 7, 9, -1
		y[{{1, 2}, {2, 3}}] = 0.5
		y[1] = tensor {1, 2, 3, 4}:to(t:device())
		y[y:gt(6)] = 6
		y:t():sub_(3)
		y:add_(1):mul_(2)
		y:narrow(2, 1, 2):fill_(5)
		y[5]:copy_(y[1])
		return y
	end
	assert(same(written(x), written(d)))
	local y = d:clone()
	y[1] = tensor.ones(4) -- a value from the CPU, and one that goes there
	y[2]:copy_(tensor.zeros(4))
	local back = tensor.ones(4):copy_(y[2])
	print(y[1]:sum():item(), back:sum():item(), back:device(), y:device() == D)  --> 4.0	0.0	cpu	true
end)

it('moves codes of every format, and views', function()
	for _, f in ipairs(quant.formats()) do
		local real = tensor.randn(4, 256)
		local ok, q = pcall(real.quantize, real, f.name or f)
		if ok then
			local moved = q:to(D)
			assert(moved:device() == D and moved:quantized() and tostring(moved:spec()) == tostring(q:spec()))
			assert(same(q:dequantize(), moved:dequantize()), f.name)
			assert(same(q:narrow(1, 2, 2):dequantize(), moved:narrow(1, 2, 2):dequantize()), f.name)
			assert(same(q:dequantize(), moved:to('cpu'):dequantize(), 'cpu'), f.name)
		end
	end
	assert(same(x:t(), d:t()) and same(x:t(), x:t():to(D)) and same(x['2:3'], x['2:3']:to(D)))
end)

it('is made there by device=', function()
	local function made(device)
		tensor.seed(7)
		return {tensor {1, 2, device = device}, tensor.zeros {2, 3, device = device}, tensor.ones {3, device = device}, tensor.rand {2, 3, device = device},
			tensor.randn {2, 3, device = device}, tensor.full {2, 2, value = 3, device = device}, tensor.eye(3, {device = device}),
			tensor.arange(1, 4, {device = device}), tensor.linspace(0, 1, 5, {device = device}), tensor.randint {3, low = 1, high = 5, device = device},
			tensor {1, -2, quant = 'int8', device = device}, tensor.zeros {4, quant = 'uint8', device = device}, tensor {true, false, device = device}}
	end
	local here, there = made 'cpu', made(D)
	for i, t in ipairs(here) do assert(same(t, there[i]), i) end
	print(#there, tensor.empty {3, device = D}:device() == D)  --> 13	true
end)

it('has gradients there', function()
	local function gradient(t)
		local w = t:clone():requires_grad_()
		local loss = (w * w):sum() + w[2]:exp():sum() + w:t():matmul(t):mean()
		loss:backward()
		return w:grad()
	end
	assert(gradient(d):error(gradient(x):to(D)).max < 1e-5 and gradient(d):device() == D)
end)

it('goes to files and comes from them', function()
	local file = os.tmpname()
	for _, ending in ipairs {'.safetensors', '.npz'} do
		local name = file .. ending
		tensor.save(name, {x = d, t = d:t(), n = tensor {1, 2, dtype = 'int64', device = D}})
		local here, there = tensor.load(name, {device = 'cpu'}), tensor.load(name, {device = D})
		assert(same(x, there.x) and same(x:t(), there.t) and same(here.n, there.n) and here.x:device() == 'cpu')
	end
	tensor.save(file .. '.npy', d)
	assert(same(x, tensor.load(file .. '.npy', {device = D})))
	local q = x:quantize 'int4:2'
	tensor.save(file .. '.safetensors', {q = q:to(D)})
	local there = tensor.load(file .. '.safetensors', {device = D}).q
	assert(same(q, there) and same(q:dequantize(), there:dequantize()))
	local ok, why = pcall(tensor.load, file .. '.npy', {device = 'nowhere'})
	print(ok, why:match 'load: device: wanted [^,]*')  --> false	load: device: wanted cpu
end)

it('is drawn', function()
	local function drawn(t)
		local file, text = os.tmpname() .. '.svg', {}
		for i, draw in ipairs {function() plot.line(t[1], {file = file}) end, function() plot.scatter(t[1], t[2], {file = file}) end,
			function() plot.hist(t, {file = file}) end, function() plot.image(t, {file = file}) end} do
			draw()
			text[i] = io.open(file):read 'a'
		end
		return table.concat(text)
	end
	if pcall(drawn, x) then assert(drawn(d) == drawn(x)) end -- where plplot is
end)

it('is measured and compared', function()
	local a, b = quant.compare(x, {'int8', 'int4'}), quant.compare(d, {'int8', 'int4'})
	assert(a[1].sqnr == b[1].sqnr and a[2].max == b[2].max)
	local q = d:quantize 'int8'
	assert(d:error(q).max == x:error(x:quantize 'int8').max and q:ratio() == x:quantize('int8'):ratio())
	assert(q:explain():find('device ' .. D, 1, true), q:explain())
	local o, p = quant.observer 'uint8@mse', quant.observer 'uint8@mse'
	o:update(x)
	p:update(d)
	local lo, hi = o:range()
	local l2, h2 = p:range()
	print(lo == l2, hi == h2)  --> true	true
end)

it('mixes with numbers only', function()
	local ok, why = pcall(function() return x + d end)
	assert(not ok and why:find(("add: wanted operands on one device, got cpu and %s; use :to '%s'"):format(D, D), 1, true), why)
	assert(same(x * 2 + 1, d * tensor {2}:sum() + 1))
	print((d + 1):device() == D)  --> true
end)

it('asks before it uses the host, when told to', function()
	print(gpu.fallback 'error')  --> silent
	local ok, why = pcall(d.sort, d)
	print(gpu.fallback 'silent')  --> error
	assert(not ok and why:find(('sort: wanted a kernel of %s, got none: '):format(D), 1, true), why)
	quant.log 'reset'
	d:sort()
	local row = quant.log():where {op = 'sort'}[1]
	print(row.path, row.reason ~= nil)  --> host	true
end)

it('counts bytes', function()
	local n, before = 1024, gpu.memory 'reset'
	assert(before.read == 0 and before.written == 0 and before.peak == before.now)
	local y = tensor.ones(n):to(D)
	local after = gpu.memory()
	print(after.now - before.now >= 4 * n, after.peak >= after.now, after.written, after.read)  --> true	true	4096	0
	y:sum():item()
	assert(gpu.memory().read >= 4)
end)
