-- SPDX-License-Identifier: MIT
-- method='ocs': the function stays, codes of both halves have the sum of that of the whole, and outliers cost less.
local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end
tensor.seed(31)
local function linear()
	local m = nn.Sequential {nn.Linear(10, 24), nn.GELU(), nn.Linear(24, 16), nn.Tanh(), nn.Linear(16, 4)}
	tensor.nograd(function()
		m[3].weight:narrow(2, 7, 1):mul_(12)
		m[5].weight:narrow(2, 3, 1):mul_(12)
	end)
	return m, tensor.randn(60, 10)
end
local function images()
	local m = nn.Sequential {nn.Conv2d(2, 6, 3), nn.ReLU(), nn.Conv2d(6, 5, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(20, 3)}
	tensor.nograd(function() m[3].weight:narrow(2, 2, 1):mul_(12) end)
	return m, tensor.randn(20, 2, 8, 8)
end
local function row_of(r, name)
	for _, row in ipairs(r) do
		if row.name == name then return row end
	end
end

it('keeps the function', function()
	for _, make in ipairs {linear, images} do
		local m, x = make()
		for _, ratio in ipairs {0.02, 0.4, 1} do
			local q = m:quantize {mode = 'weight_only', weight = 'int16/1', method = {'ocs', ratio = ratio}}
			assert(m(x):detach():error(q(x)).sqnr > 70 and q:nbytes() > 0)
			local d = q:dequantize()
			assert(d(x):error(m(x):detach()).sqnr > 70)
		end
	end
end)
it('splits the channels with the largest weights', function()
	local m = linear()
	local q, r = m:quantize {mode = 'weight_only', weight = 'int16/1', method = 'ocs'}
	print(q.linear1.weight:size())  --> 25 10
	print(q.linear2.weight:size())  --> 17 25
	print(row_of(r, 'linear2').why:match '^[^;]*')  --> 1 channels split
	print(row_of(r, 'linear1').why:match '^[^;]*')  --> not split: no layer before it that can give its channels twice
	local w, one = q.linear2.weight:dequantize():narrow(1, 1, 16), q.linear1.weight:dequantize()
	assert((w:narrow(2, 7, 1) + w:narrow(2, 25, 1)):error(m[3].weight:detach():narrow(2, 7, 1)).max < 1e-3)
	assert(one[25]:error(one[7]).max == 0)
end)
it('codes of the halves have the sum of that of the whole', function()
	local m = nn.Sequential {nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 64)}
	tensor.nograd(function() m[3].weight:narrow(2, 7, 1):mul_(2) end)
	local q = m:quantize {mode = 'weight_only', weight = 'int8/1', method = 'ocs'}
	local s, codes = q.linear2.weight:qparams().scale:view(64, 1), q.linear2.weight:codes():to 'float32'
	local split = math.tointeger(q.linear1.weight:codes():to 'float32':sub(q.linear1.weight:codes()[25]:to 'float32'):abs():sum {axis = 2}:argmin(1):item())
	assert(split == 7, split)
	local sum, whole = codes:narrow(2, 7, 1) + codes:narrow(2, 25, 1), (m[3].weight:detach():narrow(2, 7, 1) / s):round()
	local halves = codes:narrow(2, 7, 1):abs():maximum(codes:narrow(2, 25, 1):abs())
	local rows = 0
	for i = 1, 64 do
		if halves[i]:item() < 127 then -- the scale is that of another channel
			assert(sum[i]:item() == whole[i]:item())
			rows = rows + 1
		end
	end
	assert(rows > 40, rows)
end)
it('outliers cost less', function()
	for _, make in ipairs {linear, images} do
		local m, x = make()
		for _, data in ipairs {{{x}}, false} do
			local function off(q) return m(x):detach():error(q(x)).sqnr end
			local plain = m:quantize {mode = 'weight_only', weight = 'int4'}
			local q = m:quantize {mode = 'weight_only', weight = 'int4', method = {'ocs', ratio = 0.02}, data = data or nil, log = false}
			assert(off(q) > off(plain) + 1, ('%g %g'):format(off(q), off(plain)))
		end
	end
end)
it('in blocks, before gptq, in static and dynamic modes', function()
	local m, x = images()
	m:calibrate({{x}}, {log = false})
	for _, mode in ipairs {'static', 'dynamic'} do
		local q = m:quantize {mode = mode, weight = 'int8', method = 'ocs', data = {{x}}, log = false}
		assert(m(x):detach():error(q(x)).sqnr > 20)
	end
	local l, y = linear()
	local q, r = l:quantize {mode = 'weight_only', weight = 'int4:16', method = {'ocs', 'gptq'}, data = {{y}}, log = false}
	assert(l(y):detach():error(q(y)).sqnr > 15 and row_of(r, 'linear2').method == 'ocs gptq')
end)
it('is left out of a model that it makes worse, with the sizes from before', function()
	local m = nn.Sequential {nn.Conv2d(2, 4, 1, {bias = false}), nn.ReLU(), nn.Conv2d(4, 3, 1, {bias = false})}
	tensor.nograd(function() -- codes already
		m[1].weight:fill_(7)
		for i, value in ipairs {7, 5, -3, 1} do m[3].weight:narrow(2, i, 1):fill_(value) end
	end)
	local x = tensor.rand(5, 2, 4, 4)
	local q, r = m:quantize {mode = 'weight_only', weight = 'int4', method = 'ocs', data = {{x}}, log = false}
	assert(row_of(r, 'conv2').why:find('made it worse: left out', 1, true))
	assert(q.conv2.weight:size(2) == 4 and tostring(q.conv2):find 'Conv2d%(4, 3')
	assert(q(x):error(m(x):detach()).max < 1e-3)
end)
it('says what it cannot split', function()
	local m = nn.Sequential {nn.Conv2d(4, 4, 3, {groups = 4}), nn.Conv2d(4, 4, 1)}
	local _, r = m:quantize {mode = 'weight_only', weight = 'int8', method = 'ocs'}
	print(r[2].why:match '^[^;]*')  --> not split: it or the layer before it has groups
	refused('wanted ratio= above 0 and at most 1, got 0', m.quantize, m, {mode = 'weight_only', method = {'ocs', ratio = 0}})
	refused('wanted data= to observe the ranges of inputs again', function()
		local l, x = linear()
		l:calibrate({{x}}, {log = false})
		l:quantize {mode = 'static', method = 'ocs'}
	end)
end)
