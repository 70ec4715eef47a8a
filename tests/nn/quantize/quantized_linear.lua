-- SPDX-License-Identifier: MIT
-- labels: quick host
-- The quantized linear layer in training: symmetric int8 per tensor and per row, the fused product with scales, bias and activation, its
-- gradients with decoded codes, the module. The same statements hold on the CPU and on the device that QUOLL_TEST_DEVICE names.
local D = os.getenv 'QUOLL_TEST_DEVICE' or 'cpu'
local kernels = D ~= 'ghost' -- the ghost runs everything on the host
tensor.seed(11)

local function wide(t) return t:detach():to('cpu'):to 'float64' end
local function same(a, b) return a:dtype() == b:dtype() and a:to('cpu'):eq(b:to 'cpu'):all():item() end

-- The largest error of y relative to the largest value of the oracle.
local function off(y, oracle) return (wide(y) - oracle):abs():max():item() / math.max(1e-30, oracle:abs():max():item()) end

-- Sums of codes times scales plus bias in float64.
local function oracle(qx, qw, bias)
	local function scale(q)
		local s = wide(q:qparams().scale)
		return s:dim() == 1 and s:view(-1, 1) or s
	end
	local y = wide(qx:codes()):matmul(wide(qw:codes()):t()) * scale(qx)
	y = y * scale(qw):t()
	return bias and y + wide(bias) or y
end

-- Nothing ran on the host, or in float32 for want of a path of codes; on the CPU backward decodes by the latter.
local function on_device()
	for _, row in ipairs(D == 'cudaemu' and quant.log() or {}) do
		assert(row.path ~= 'host' and row.path ~= 'fallback', ('%s %s: %s'):format(row.op, row.path, row.reason))
	end
end

describe('quantize', function()
	it('per tensor: max|x| / 127, half to even, never -128', function()
		local x = tensor.randn(33, 65):to(D)
		local q = x:quantize 'int8'
		local s = x:abs():max():item() / 127
		assert(math.abs(q:qparams().scale:item() - s) <= 1e-7 * s and q:qparams().scale:dtype() == 'float32')
		local codes = (wide(x) / wide(q:qparams().scale)):round():clamp(-127, 127)
		assert(wide(q:codes()):error(codes).max == 0 and q:device() == D)
		print(tensor {-1, 1, 0.5}:to(D):quantize('int8'):codes():to 'cpu')  --> int8(3)  -127  127  64
	end)
	it('per row, of the transposed, of zeros', function()
		local x = tensor.randn(17, 129):to(D)
		x[3] = 0
		local q, t = x:quantize 'int8/1', x:t():quantize 'int8/2'
		assert(same(q:codes(), t:codes():t()) and same(q:qparams().scale, t:qparams().scale))
		assert(q:qparams().scale[3]:item() > 0 and q:codes()[3]:to('int32'):abs():sum():item() == 0)
		assert(wide(q:dequantize()):error(wide(x)).max <= q:qparams().scale:max():item() * 0.5001)
		local zero = tensor.zeros(4, 4):to(D):quantize 'int8'
		assert(zero:codes():to('int32'):abs():sum():item() == 0 and zero:qparams().scale:item() > 0)
	end)
	it('of 16-bit floats as of the same values in float32', function()
		for _, dtype in ipairs {'float16', 'bfloat16'} do
			local x = tensor.randn(9, 31):to(dtype):to(D)
			for _, spec in ipairs {'int8', 'int8/1'} do
				local a, b = x:quantize(spec), x:to('float32'):quantize(spec)
				assert(same(a:codes(), b:codes()) and same(a:qparams().scale, b:qparams().scale))
			end
		end
	end)
end)

describe('the product', function()
	it('is exact for all sizes at the edges of tiles', function()
		local sizes = {1, 3, 17, 63, 65, 127, 129}
		local x, w, b = tensor.randn(129, 129):to(D), tensor.randn(129, 129):to(D), tensor.randn(129):to(D)
		quant.log 'reset'
		for _, m in ipairs(sizes) do
			for _, k in ipairs(sizes) do
				local qx = x:narrow(1, 1, m):narrow(2, 1, k):quantize 'int8'
				for i, n in ipairs(sizes) do
					local qw = w:narrow(1, 1, n):narrow(2, 1, k):quantize(i % 2 == 0 and 'int8' or 'int8/1')
					local bias = n % 4 == 3 and b:narrow(1, 1, n) or nil
					local error = off(qx:linear(qw, bias), oracle(qx, qw, bias))
					assert(error <= 1e-6, ('%d x %d x %d: %g'):format(m, n, k, error))
				end
			end
		end
		on_device()
	end)
	it('with K larger than the stages of a kernel', function()
		local x, w = tensor.randn(9, 2100):to(D):quantize 'int8/1', tensor.randn(21, 2100):to(D):quantize 'int8/1'
		assert(off(x:linear(w), oracle(x, w)) <= 1e-6)
	end)
	it('adds bias and activation in float32, and rounds once to 16 bits', function()
		local x, w, b = tensor.randn(33, 40):to(D):quantize 'int8', tensor.randn(24, 40):to(D):quantize 'int8/1', tensor.randn(24):to(D)
		local y = x:linear(w, b)
		assert(same(x:linear(w, b, {act = 'relu'}), y:relu()))
		for _, dtype in ipairs {'float16', 'bfloat16'} do
			local half = x:linear(w, b, {out = dtype})
			assert(same(half, y:to(dtype)), dtype)
			assert(off(half, oracle(x, w, b)) <= (dtype == 'float16' and 1e-3 or 8e-3))
		end
	end)
end)

-- The gradients of sum(y * g) for y = linear(x, w, bias) by codes, stated with decoded codes in float64.
describe('its gradients', function()
	for _, case in ipairs {{'int8', 'int8/1'}, {'int8', 'int8'}, {'int8/1', 'int8/1'}} do
		it(('of x %s and w %s: dX = dY deq(W), dW = dYt deq(X), db = sum dY'):format(case[1], case[2]), function()
			for _, size in ipairs {{1, 3, 17}, {17, 65, 63}, {65, 33, 129}} do
				local m, n, k = table.unpack(size)
				local x, w, b = tensor.randn(m, k):to(D):requires_grad_(), tensor.randn(n, k):to(D):requires_grad_(), tensor.randn(n):to(D):requires_grad_()
				local g = tensor.randn(m, n):to(D)
				local qx, qw = x:quantize(case[1]), w:quantize(case[2])
				quant.log 'reset'
				qx:linear(qw, b):backward(g)
				on_device()
				local dy = wide(g)
				assert(off(x:grad(), dy:matmul(wide(qw:dequantize()))) <= 1e-5, 'dX')
				assert(off(w:grad(), dy:t():matmul(wide(qx:dequantize()))) <= 1e-5, 'dW')
				assert(off(b:grad(), dy:sum(1)) <= 1e-6, 'db')
				assert(x:grad():device() == D and x:grad():dtype() == 'float32')
			end
		end)
	end
	it('of 16-bit x and dY', function()
		for _, dtype in ipairs {'float16', 'bfloat16'} do
			local x, w = tensor.randn(33, 40):to(dtype):to(D):requires_grad_(), tensor.randn(24, 40):to(D):requires_grad_()
			local g = tensor.randn(33, 24):to(dtype):to(D)
			local qx, qw = x:quantize 'int8', w:quantize 'int8/1'
			qx:linear(qw, nil, {out = dtype}):backward(g)
			local unit = dtype == 'float16' and 2 ^ -10 or 2 ^ -7
			assert(x:grad():dtype() == dtype and w:grad():dtype() == 'float32')
			assert(off(x:grad(), wide(g):matmul(wide(qw:dequantize()))) <= unit)
			assert(off(w:grad(), wide(g):t():matmul(wide(qx:dequantize()))) <= unit)
		end
	end)
end)

describe('the module', function()
	local function layer(options) return nn.Linear(48, 40, options):to(D):quantize {mode = 'train', weight = 'int8/1', input = 'int8'} end
	it('begins within 1 / sqrt(inputs)', function()
		local q, bound = layer(), 1 / math.sqrt(48)
		assert(q.weight:abs():max():item() <= bound and q.weight:abs():max():item() > 0.99 * bound and q.bias:abs():max():item() <= bound)
		print(q.weight:dtype(), q.weight:device() == D, #q:parameters(), #layer {bias = false}:parameters())  --> float32	true	2	1
	end)
	it('gives the dtype of its input, by the integer product', function()
		local q = layer()
		for _, dtype in ipairs {'float32', 'float16', 'bfloat16'} do
			local x = tensor.randn(7, 48):to(dtype):to(D)
			quant.log 'reset'
			local y = q(x):detach()
			on_device()
			local row = quant.log():where {op = 'linear'}[1]
			assert(not kernels or row.path == 'int8' and row.operands:find 'int8q x int8q')
			local qx, qw = x:quantize 'int8', q.weight:detach():quantize 'int8/1'
			assert(y:dtype() == dtype and off(y, oracle(qx, qw, q.bias)) <= (dtype == 'float32' and 1e-6 or dtype == 'float16' and 1e-3 or 8e-3))
		end
	end)
	it('learns, and what it keeps for backward are codes', function()
		local x = tensor.randn(64, 12)
		local target = (x:narrow(2, 1, 6) * x:narrow(2, 7, 6)):sum(2):gt(0):to 'int64' + 1
		tensor.seed(2)
		local m = nn.Sequential {nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2)}:to(D)
		local q = m:quantize {mode = 'train', weight = 'int8/1', input = 'int8'}
		local r = q:fit({{x, target}}, {opt = optim.adam(q, {lr = 0.02}), epochs = 20, log = false})
		assert(r[20].loss < 0.7 * r[1].loss, r[20].loss)
		local dequantized = q:dequantize()
		assert(dequantized:device() == D and dequantized(x:to(D)):device() == D)
	end)
end)
