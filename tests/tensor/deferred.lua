-- SPDX-License-Identifier: MIT
-- labels: quick host
-- tensor.fuse: elementwise ops that wait give the bits of the ops one by one, whatever happens before their values are needed.
local same = dofile 'tests/tools/same.lua'
local N = 20001 -- elements; pieces have 1024

local function waited()
	local n = 0
	for _, row in ipairs(quant.log()) do n = n + (row.kernel == 'chain' and row.count or 0) end
	return n
end

-- f and its fused form agree, and `ops` of its ops wait.
local function check(ops, f, ...)
	quant.log 'reset'
	local got = {tensor.fuse(f)(...)}
	local n = waited()
	assert(n == ops, ('%d ops waited, not %d'):format(n, ops))
	local wanted = {f(...)}
	assert(#got == #wanted)
	for i, value in ipairs(wanted) do
		if type(value) == 'userdata' then assert(same(got[i], value)) else assert(got[i] == value) end
	end
end

local function values(...)
	local x = tensor.randn(...)
	local flat = x:view(-1)
	flat[1], flat[2], flat[3], flat[4] = 1 / 0, -1 / 0, 0 / 0, -0.0
	return x
end

it('computes a chain', function()
	local x, y = values(N), values(N)
	check(5, function(a, b) return (a * 2 + b):tanh() * a - b end, x, y)
	check(1, function(a) return -a end, x)
	check(2, function(a, b) return a * b, a + b end, x, y)
	check(3, function(a) return 1 - a / 3, 7, (2 ^ a) end, x)
end)

it('computes every op of one operand', function()
	local x = values(N)
	for _, name in ipairs {'exp', 'log', 'sqrt', 'abs', 'relu', 'gelu', 'sigmoid', 'silu', 'floor', 'sin', 'cos', 'square', 'sign', 'neg', 'tanh'} do
		check(2, function(a) return a[name](a) + 1 end, x)
	end
	check(2, function(a) return a:clamp(-0.5, 0.25) * 3 end, x)
end)

it('repeats rows and numbers', function()
	local x, row, plane, one = values(7, 60, 50), tensor.randn(50), tensor.randn(60, 50), tensor{3}
	check(3, function(a) return (a * row + plane) / one end, x)
	check(3, function(a) return (row + a) * (one - a) end, x)
	check(3, function(a) return a * (row:view(1, 50) * 2 + 1):view(50) + 1 + a end, x) -- the row itself is too small to wait
	local long = tensor.randn(20000)
	check(4, function(a) return a + (long * 2 + 1) * 3 end, tensor.randn(3, 20000)) -- a row that waits itself
end)

it('leaves other operands to the ops', function()
	local x = values(200, 150)
	check(0, function(a) return a:t() * 2 end, x)
	check(1, function(a) return (a + 1):gt(0.5) end, x)
	check(1, function(a) return (a + 1):sum() end, x)
	check(0, function(a) return a['1:20'] * 2 end, x)
	check(0, function(a) return a * 2 end, x:to 'float64')
	check(0, function(a) return a * 2 end, x:to 'float16')
	check(0, function(a) return a + 1 end, tensor.randn(100))
	check(0, function(a) return a:relu {out = 'int8 scale=0.1'} end, x)
	check(1, function(a) return (a * 2):quantize 'int8 scale=0.1' end, x)
	check(0, function(a) return a:quantize 'int8 scale=0.1' + 1 end, x)
	check(2, function(a) return (a + 1):t(), (a * 2):view(-1)['5:900'] end, x)
end)

it('divides what is long or needs many buffers', function()
	local x = tensor.randn(N)
	check(200, function(a)
		for _ = 1, 100 do a = a * 1.01 + 0.5 end
		return a
	end, x)
	check(23, function(a) -- twelve values that all wait until the end
		local t = {}
		for i = 1, 12 do t[i] = a * i end
		local sum = t[12]
		for i = 11, 1, -1 do sum = sum + t[i] end
		return sum
	end, x)
	check(11, function(a) -- shared by all that follow: 2^10 paths
		local y = a + 1
		for _ = 1, 10 do y = y * y end
		return y
	end, x)
end)

it('uses operands as they were', function()
	local x = tensor.randn(N)
	local before, kept = x * 3, nil
	local z = tensor.fuse(function(a)
		kept = a * 3
		local other = a * 3
		a:add_(1)
		return other + 0
	end)(x)
	assert(same(z, before) and same(kept, before))
	for _, write in ipairs {function(a) a[5] = 7 end, function(a) a:copy_(tensor.zeros(N)) end, function(a) a:fill_(0) end,
		function(a) a:view(-1)['1:9'] = 0 end, function(a) a:relu_() end} do
		local a = tensor.randn(N)
		before = a * 3
		tensor.fuse(function() kept = a * 3 end)()
		write(a)
		assert(same(kept, before))
	end
	local a = tensor.randn(N)
	before = a + 1
	assert(same(tensor.fuse(function()
		local t = {}
		do
			local gone <close> = a:clone()
			t[1] = gone + 1
		end
		return t[1]
	end)(), before))
end)

it('shows values within the function', function()
	local x = tensor.randn(N)
	local text
	check(2, function(a)
		local y = a * 2
		text = tostring(y)
		return y[7]:item(), y + 1
	end, x)
	assert(text == tostring(x * 2))
	local y
	tensor.fuse(function() y = x * 2 end)()
	assert(y:size(1) == N and y:dtype() == 'float32' and y:nbytes() == 4 * N and same(y, x * 2))
end)

it('leaves gradients and tracing as they are', function()
	local x = tensor.randn(N):requires_grad_()
	local f = function(a) return (a * 2):tanh():sum() end
	quant.log 'reset'
	tensor.fuse(f)(x):backward()
	assert(waited() == 0)
	local got = x:grad():clone()
	x:zero_grad()
	f(x):backward()
	assert(same(got, x:grad()))
	check(2, function(a) return (a * 2):tanh() end, x:detach())
	tensor.nograd(function() check(2, function(a) return (a * 2):tanh() end, x) end)
end)

it('ends with the function', function()
	local x = tensor.randn(N)
	local good, message = pcall(tensor.fuse(function(a) return a * 2 + tensor.ones(3) end), x)
	assert(not good and message:find('deferred.lua:%d+: add: wanted shapes that broadcast'), message)
	quant.log 'reset'
	local _ = x * 2
	assert(waited() == 0)
	local co = coroutine.wrap(tensor.fuse(function(a)
		local y = a * 2
		coroutine.yield(y)
		return y + 1
	end))
	assert(same(co(x), x * 2))
	quant.log 'reset'
	_ = x * 2
	assert(waited() == 0) -- the coroutine's own
	assert(same(co(), x * 2 + 1) and waited() == 1)
	local inner = tensor.fuse(function(a) return a * 2 end)
	check(2, function(a) return inner(a) + 1 end, x)
	good, message = pcall(tensor.fuse)
	assert(not good and message:find('fuse: wanted a function, got nil', 1, true), message)
	assert(select('#', tensor.fuse(function() end)()) == 0)
end)

it('gives the memory back', function()
	local x = tensor.randn(N)
	local f = tensor.fuse(function(a) return (a * 2 + 1):tanh() end)
	f(x)
	collectgarbage()
	local before = tensor.memory().now
	for _ = 1, 50 do f(x) end
	collectgarbage()
	assert(tensor.memory().now == before)
end)
