-- SPDX-License-Identifier: MIT
-- labels: quick host
-- m:quantize{mode='train'} with float16 and bfloat16: results rounded once behind scales and bias, gradients with decoded codes,
-- codes kept for backward.
tensor.seed(5)
local function same(a, b) return a:dtype() == b:dtype() and a:contiguous():view(-1):eq(b:contiguous():view(-1)):all():item() end
local function f32(t) return t:to 'float32' end

-- Sums of codes times scales plus bias, each step rounded to float32, as integers and elementwise ops give them.
local function by_hand(x, weight, bias, input)
	local qx, qw = x:quantize(input or 'int8'), weight:detach():quantize 'int8/1'
	local scale = qx:qparams().scale
	if scale:dim() == 1 then scale = scale:view(-1, 1) end
	local y = f32(qx:codes():matmul(qw:codes():t())) * (scale * qw:qparams().scale)
	return bias and y + f32(bias:detach()) or y, qx, qw
end

for _, dtype in ipairs {'float16', 'bfloat16'} do
	describe(dtype, function()
		local m = nn.Linear(24, 40)
		local x = tensor.randn(50, 24):to(dtype)
		it('rounds once, behind the bias', function()
			for _, input in ipairs {'int8', 'int8/1'} do
				local q = m:quantize{mode = 'train', input = input}
				quant.log 'reset'
				local y = q(x):detach()
				local rows = quant.log():where{op = 'linear'}
				assert(#rows == 1 and rows[1].path == 'int8' and rows[1].operands:find 'int8q x int8q')
				assert(#quant.log():where{path = 'fallback'} == 0)
				local wide = by_hand(x, m.weight, m.bias, input)
				assert(same(y, wide:to(dtype)), input)
				-- what a rounding before the bias would give is something else
				local twice = (by_hand(x, m.weight, nil, input):to(dtype) + m.bias:detach():to(dtype)):to(dtype)
				assert(not same(y, twice))
			end
		end)
		it('has the gradients dX = dY deq(W), dW = dYt deq(X), db = sum dY', function()
			local q = m:quantize{mode = 'train'}
			local leaf = x:clone():requires_grad_()
			local g = tensor.randn(50, 40):to(dtype)
			q(leaf):backward(g)
			local _, qx, qw = by_hand(x, m.weight)
			assert(same(leaf:grad(), f32(g):matmul(qw:dequantize()):to(dtype)))
			assert(q.weight:grad():error(f32(g):t():matmul(qx:dequantize())).max < 1e-5)
			assert(q.bias:grad():error(f32(g):sum(1)).max < 1e-5)
		end)
		it('takes weights of the same dtype, and their gradient has it', function()
			local half = m:clone():to(dtype)
			local q = half:quantize{mode = 'train'}
			local y = q(x)
			assert(same(y:detach(), by_hand(x, f32(half.weight:detach()), half.bias):to(dtype)))
			y:sum():backward()
			assert(q.weight:grad():dtype() == dtype and q.bias:grad():dtype() == dtype)
		end)
		it('is what every layer with weights gives', function()
			local image, series = tensor.randn(2, 3, 8, 8):to(dtype), tensor.randn(2, 5, 6):to(dtype)
			for name, case in pairs {Conv2d = {nn.Conv2d(3, 4, 3), image}, LSTM = {nn.LSTM(6, 4, {layers = 2}), series},
				GRU = {nn.GRU(6, 4), series}, RNN = {nn.RNN(6, 4), series}, Attention = {nn.Attention(6, 2), series},
				Embedding = {nn.Embedding(9, 4):to(dtype), tensor{{3, 1}, {9, 9}, dtype = 'int64'}}} do
				for _, mode in ipairs {'train', 'dynamic'} do
					local q = case[1]:quantize{mode = mode}
					local y = q(case[2])
					assert(y:dtype() == dtype, name .. ' in mode ' .. mode)
					if name == 'Conv2d' or name == 'Embedding' then -- one product: float32 rounded
						local wide = name == 'Conv2d' and q(f32(case[2])) or case[1].weight:detach():quantize('int8/1'):embedding(case[2])
						assert(wide:dtype() == 'float32' and same(y:detach(), wide:detach():to(dtype)), name)
					end
				end
			end
		end)
		it('is kept by weight_only, too', function()
			assert(m:quantize{mode = 'weight_only'}(x):dtype() == dtype)
		end)
	end)
end

it('adds the bias before a sum is too large for float16', function()
	local m = nn.Linear(1, 1)
	tensor.nograd(function() m.weight:fill_(127) m.bias:fill_(-65000) end)
	local y = m:quantize{mode = 'train'}(tensor{{551.5}, dtype = 'float16'}):item()
	assert(math.abs(y - (127 * 551.5 - 65000)) <= 4, y) -- 70040.5 is beyond 65504
end)
it('keeps codes for backward: at most 0.27 of float32', function()
	local function kept(model, x)
		collectgarbage()
		collectgarbage()
		local start = tensor.memory().now
		local y = model(x)
		collectgarbage()
		collectgarbage()
		return tensor.memory().now - start - y:nbytes()
	end
	local layers = {}
	for i = 1, 6 do layers[i] = nn.Linear(64, 64) end
	local m = nn.Sequential(layers)
	local q, x = m:quantize{mode = 'train'}, tensor.randn(20000, 64)
	local float, codes, half = kept(m, x), kept(q, x), kept(q, x:to 'float16')
	assert(float > 5 * 20000 * 64 * 4) -- the inputs of all layers but the first
	assert(codes <= 0.27 * float * 6 / 5 and codes >= 6 * 20000 * 64, ('%d of %d'):format(codes, float))
	assert(math.abs(half - codes) < 0.01 * codes) -- codes again, and nothing in float16
end)
it('trains a model whose weights and activations are float16', function()
	local x = tensor.randn(256, 12)
	local target = (x:narrow(2, 1, 6) * x:narrow(2, 7, 6)):sum(2):gt(0):to 'int64' + 1
	local m = nn.Sequential{nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)}:to 'float16'
	local q = m:quantize{mode = 'train'}
	x = x:to 'float16'
	q:fit({{x, target}}, {opt = optim.sgd(q, {lr = 0.3, momentum = 0.9}), loss = nn.crossentropy, epochs = 150, log = false})
	assert(q[1].weight:dtype() == 'float16')
	local right = f32(q(x):detach()):argmax{axis = 2}:eq(target):to 'float32':mean():item()
	assert(right > 0.97, right)
end)
