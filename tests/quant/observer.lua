-- SPDX-License-Identifier: MIT
-- labels: quick noproducts host
-- Observers as objects: streams, axes, dtypes, statistics, merging, what is refused; memory stays what it is.
local function all(x) return {x:min():item(), x:max():item()} end

it('minmax over batches is the minmax of all', function()
	tensor.seed(1)
	local batches, o = {}, quant.observer 'int8@minmax'
	for i = 1, 5 do
		batches[i] = tensor.randn(1000) * i
		assert(o:update(batches[i]) == o)
	end
	local whole = all(tensor.cat(batches, {axis = 1}))
	local lo, hi = o:range()
	assert(lo == whole[1] and hi == whole[2])
	assert(o:params().scale:item() == tensor.cat(batches, {axis = 1}):quantize('int8'):qparams().scale:item())
	assert(o:params().zero_point == nil)
end)
it('gives what quantize of all gives, for every kind and granularity', function()
	tensor.seed(2)
	local batches = {tensor.randn(3, 400), tensor.randn(3, 400) * 2, tensor.randn(3, 400) + 1}
	for _, kind in ipairs {'minmax', 'percentile', 'entropy', 'mse'} do
		for _, s in ipairs {'int8', 'uint8', 'uint4', 'int8/1', 'uint8/1', 'int4/-2'} do
			local o = quant.observer(s .. '@' .. kind)
			for _, x in ipairs(batches) do o:update(x) end
			local p, q = o:params(), tensor.cat(batches, {axis = 2}):quantize(s .. '@' .. kind):qparams()
			assert(p.scale:metrics(q.scale).max == 0, s .. '@' .. kind)
			assert(not q.zero_point or p.zero_point:to('int64'):metrics(q.zero_point:to 'int64').max == 0)
		end
	end
end)
it('gives what quantize gives for few values, whose cells are listed there and counted here', function()
	tensor.seed(12)
	for _, n in ipairs {1, 2, 31, 512, 513} do
		local x = tensor.randn(5, n) * tensor.randn(5, n):exp()
		x[2], x[3] = -x[2]:abs(), 0
		if n > 2 then x[4][2], x[4][1] = 0 / 0, 1 / 0 end
		for _, kind in ipairs {'percentile', 'mse', 'entropy'} do
			for _, s in ipairs {'int8/1', 'uint8/1', 'int4/1', 'uint4/1'} do
				local p, q = quant.observer(s .. '@' .. kind):update(x):params(), x:quantize(s .. '@' .. kind):qparams()
				assert(p.scale:eq(q.scale):all():item() and (not p.zero_point or p.zero_point:eq(q.zero_point):all():item()), s .. '@' .. kind .. ' ' .. n)
			end
		end
	end
end)
it('entropy counts a tensor exactly, batches in any order alike', function()
	tensor.seed(2)
	local batches = {tensor.randn(3, 400), tensor.randn(3, 400) * 2, tensor.randn(3, 400) + 1, tensor.zeros(3, 400)}
	for _, s in ipairs {'int8', 'uint8', 'uint4', 'int8/1', 'uint8/1', 'int4/-2'} do
		local scale
		for _, order in ipairs {{1, 2, 3, 4}, {4, 3, 2, 1}, {2, 4, 1, 3}} do
			local o, a, b = quant.observer(s .. '@entropy'), quant.observer(s .. '@entropy'), quant.observer(s .. '@entropy')
			for i, at in ipairs(order) do
				o:update(batches[at])
				local part = i < 3 and a or b
				part:update(batches[at])
			end
			scale = scale or o:params().scale
			assert(o:params().scale:eq(scale):all():item() and a:merge(b):params().scale:eq(scale):all():item(), s)
		end
		for _, x in ipairs(batches) do
			local one = quant.observer(s .. '@entropy'):update(x):params()
			assert(one.scale:eq(x:quantize(s .. '@entropy'):qparams().scale):all():item(), s)
			local empty = quant.observer(s .. '@entropy')
			assert(empty:merge(quant.observer(s .. '@entropy'):update(x)):params().scale:eq(one.scale):all():item(), s)
		end
	end
end)
it('finds the range in another way, from what it has seen', function()
	tensor.seed(9)
	local x = tensor.randn(4, 3000)
	x[1][5] = 30
	for _, s in ipairs {'int8', 'uint8', 'int4/1'} do
		local o = quant.observer(s):update(x)
		for _, kind in ipairs {'minmax', 'percentile', 'mse'} do
			local p, q = o:params {observer=kind}, x:quantize(s .. '@' .. kind):qparams()
			assert(p.scale:eq(q.scale):all():item() and (not p.zero_point or p.zero_point:eq(q.zero_point):all():item()), s .. kind)
		end
		local spec = quant.spec(s)
		assert(o:params {observer='percentile', p=90}.scale:eq(x:quantize {dtype=spec.dtype, axis=spec.axis, observer='percentile',
			p=90}:qparams().scale):all():item())
		assert(o:params().scale:eq(x:quantize(s):qparams().scale):all():item()) -- the spec's own stays
		local e = o:params {observer='entropy'}.scale / x:quantize(s .. '@entropy'):qparams().scale
		assert((e - 1):abs():max():item() < 0.4) -- from coarser bins than its own
	end
	local o = quant.observer 'int8@entropy':update(x)
	assert(o:params {observer='minmax'}.scale:item() == x:quantize('int8'):qparams().scale:item())
	local function refused(s, t) return select(2, pcall(quant.observer(s):update(x).params, quant.observer(s):update(x), t)) end
	print(refused('int8', {observer='average'}))  --> params: observer: wanted one that finds the range from all values...got average
	print(refused('int8', {observer='function'}))  --> params: observer: wanted one that finds...got function
	print(refused('int8@adaptive', {observer='mse'}))  --> params: observer: wanted none beside adaptive, which forgets old values, got mse
	print(refused('int8', {observer='mean'}))  --> params: observer: wanted one of minmax...got 'mean'...
	print(refused('int8', {bogus=1}))  --> params: unknown option 'bogus'...
	print(refused('int8', {p=99}))  --> params: p: wanted together with the observer percentile, got it with minmax
	print(refused('int8', {observer='percentile', p=10}))  --> params: p: wanted a percentage above 50...
	assert(quant.observer('int8@average'):update(x):params {observer='average'}.scale)
end)
it('observes any axis as its slices', function()
	tensor.seed(3)
	local x = tensor.randn(4, 6, 5)
	for axis = 1, 3 do
		local o = quant.observer{dtype = 'uint8', axis = axis, observer = 'mse'}
		local lo, hi = o:update(x):update(x * 0.5):range()
		for i = 1, x:size(axis) do
			local one = quant.observer 'uint8@mse'
			one:update(x:select(axis, i)):update(x:select(axis, i) * 0.5)
			local l, h = one:range()
			assert(math.abs(lo[i]:item() - l) < 1e-6 and math.abs(hi[i]:item() - h) < 1e-6, axis .. ' ' .. i)
		end
	end
end)
it('takes every float dtype, views and quantized tensors', function()
	local x = tensor{{-1, 0.5}, {2, 8}}
	for _, dtype in ipairs {'float16', 'bfloat16', 'float64', 'float32'} do
		local lo, hi = quant.observer 'int8':update(x:to(dtype)):range()
		assert(lo == -1 and hi == 8, dtype)
	end
	assert(select(2, quant.observer 'int8':update(x:quantize 'int8'):range()) == 8)
	assert(quant.observer('int8'):update(x:t()):update(x[1]):measure().count == 6)
	assert(quant.observer('int8'):update(tensor{3}:sum()):measure().count == 1)
	print(pcall(quant.observer('int8').update, quant.observer 'int8', tensor{1, 2, dtype = 'int32'}))  --> false ...wanted floats...got plain int32...
end)

describe('statistics', function()
	it('are those of a normal distribution', function()
		tensor.seed(4)
		local o = quant.observer 'int8'
		for _ = 1, 10 do o:update(tensor.randn(100000)) end
		local s = o:stats()
		assert(s.count == 1000000 and s.nonfinite == 0 and s.batches == 10)
		assert(math.abs(s.mean) < 0.005 and math.abs(s.std - 1) < 0.005)
		assert(math.abs(s.outliers - 0.27) < 0.05, s.outliers)
		assert(s.clipped == 0 and s.suggested ~= nil)
	end)
	it('leave out what is not finite, and count it', function()
		local o = quant.observer 'uint8@mse':update(tensor{1, 2, 0 / 0, 1 / 0, -1 / 0, 3})
		local s = o:stats()
		assert(s.count == 3 and s.nonfinite == 3 and s.min == 1 and s.max == 3 and s.mean == 2)
	end)
	it('suggest the simplest observer that will do', function()
		tensor.seed(5)
		assert(quant.observer('int8@mse'):update(tensor.rand(50000) * 2 - 1):stats().suggested == 'minmax')
		local x = tensor.randn(50000)
		x[1] = 50
		assert(quant.observer('int4'):update(x):stats().suggested ~= 'minmax')
	end)
	it('of nothing are zeros', function() assert(quant.observer('int8'):stats().count == 0) end)
	it('do not overflow', function()
		local o = quant.observer 'uint8':update(tensor{-3.4e38, 3.4e38})
		assert(o:params().scale:item() < math.huge and math.abs(o:params().scale:item() * 255 / 6.8e38 - 1) < 1e-6)
		assert(o:stats().std < math.huge)
		for _, kind in ipairs {'percentile', 'entropy', 'mse', 'adaptive'} do
			for _, v in ipairs {{-3.4e38, 3.4e38}, {1e-45, 3e-45}, {0, 0}, {-0.0}, {5}} do
				local lo, hi = quant.observer('uint8@' .. kind):update(tensor(v)):range()
				assert(lo <= hi and hi < math.huge and lo > -math.huge, kind)
			end
		end
	end)
	it('conserve counts while the range grows by 60 octaves', function()
		local o = quant.observer 'int8@mse'
		tensor.seed(6)
		for i = -30, 30 do o:update(tensor.randn(100) * 2.0 ^ i) end
		local sum = 0
		for _, c in ipairs(o:histogram(1000).counts) do sum = sum + c end
		assert(math.abs(sum - 6100) < 1e-6, sum)
	end)
end)

describe('merge', function()
	it('is the same as seeing it all, in any order', function()
		tensor.seed(7)
		local batches = {}
		for i = 1, 6 do batches[i] = tensor.randn(500) * 3.0 ^ i end
		for _, kind in ipairs {'minmax', 'percentile', 'entropy', 'mse'} do
			local whole = quant.observer('uint8@' .. kind)
			local a, b = quant.observer('uint8@' .. kind), quant.observer('uint8@' .. kind)
			for i = 1, 6 do whole:update(batches[i]) end
			for i = 6, 1, -1 do (i % 2 == 0 and a or b):update(batches[i]) end
			b:merge(a)
			local l1, h1 = whole:range()
			local l2, h2 = b:range()
			assert(l1 == l2 and h1 == h2 and b:measure().count == 3000, kind)
		end
	end)
	it('wants the same spec', function()
		print(pcall(function() return quant.observer('int8'):merge(quant.observer 'uint8') end))  --> false ...merge: wanted two observers of one spec, got int8 and uint8
		local o = quant.observer 'int8'
		print(pcall(o.merge, o, o))  --> false ...the same one twice
		print(pcall(o.merge, o, 3))  --> false ...wanted an observer, got number
	end)
	it('takes over an empty one', function()
		print(quant.observer('int8'):merge(quant.observer('int8'):update(tensor{1, 2})):range())  --> 1.0 2.0
	end)
end)

describe('refused', function()
	it('is to tell the range of nothing', function()
		for _, x in ipairs {tensor.zeros(0), tensor{0 / 0, 1 / 0}} do
			local o = quant.observer 'int8@mse':update(x)
			for _, method in ipairs {o.params, o.range, o.histogram} do
				local ok, message = pcall(method, o)
				assert(not ok and message:find('no samples', 1, true), message)
			end
		end
	end)
	it('are specs that an observer cannot fill', function()
		print(pcall(quant.observer, 'int8:32'))  --> false ...block: wanted none...
		print(pcall(quant.observer, 'float16'))  --> false ...wanted a spec with codes, got float16
		print(pcall(quant.observer, {dtype = 'int8', scale = 1}))  --> false ...scale: wanted none...
		print(pcall(quant.observer, 'int8@entrop'))  --> false ...observer: wanted one of minmax...adaptive..., got 'entrop'; did you mean 'entropy'?
		print(pcall(quant.observer))  --> false ...
	end)
	it('are batches of another size on the axis', function()
		local o = quant.observer 'int8/1':update(tensor.zeros(3, 4))
		print(pcall(o.update, o, tensor.zeros(4, 4)))  --> false ...wanted 3 on axis 1 as in the batches before, got 4
		print(pcall(quant.observer('int8/3').update, quant.observer 'int8/3', tensor.zeros(4, 4)))  --> false ...wanted an axis from 1 to 2...
	end)
	it('are unknown names', function()
		print(pcall(function() return quant.observer('int8'):paramz() end))  --> false ...did you mean 'params'?...
		print(pcall(function() return quant.observer('int8'):update(tensor{1}):plot{fil = 'x'} end))  --> false ...did you mean 'file'?...
	end)
end)

it('is reset', function()
	local o = quant.observer('int8/1'):update(tensor.zeros(3, 4)):reset()
	print(o:update(tensor{{1, 2}, {3, 4}}), o:measure().count)  --> observer int8/1: 4 values in 1 batches 4
end)
it('warns of clipped values', function()
	local o = quant.observer{dtype = 'int8', observer = 'percentile', p = 90}:update(tensor.linspace(-1, 1, 1000))
	assert(o:stats().clipped > 5 and o:stats().clipped < 15)
	local function said(code)
		local pipe <close> = io.popen('exec "/proc/$PPID/exe" -e "' .. code .. '" 2>&1')
		return pipe:read 'a'
	end
	local text = said "quant.observer{dtype='int8', observer='percentile', p=90}:update(tensor.linspace(-1, 1, 1000)):params()"
	assert(text:find('warning: observer int8@percentile p=90: 9', 1, true), text)
	text = said(("spec = {dtype='int8', observer='percentile', p=90} m = nn.Sequential{nn.Linear(40, 2)} " ..
		"m:calibrate({{tensor.randn(500, 40)}}, {input=spec, log=false}) for _ = 1, 3 do m:quantize{mode='static'} end"))
	local _, n = text:gsub('warning: observer int8@percentile p=90 of linear1.input: ', '')
	assert(n == 1, text) -- the layer is named, once
	assert(said "quant.observer('int8'):update(tensor.linspace(-1, 1, 1000)):params()" == '')
end)
it('keeps memory that does not depend on the amount of data', function()
	local o = quant.observer 'int8@entropy'
	o:update(tensor.randn(1000))
	collectgarbage()
	local before = tensor.memory().now
	for _ = 1, 20 do o:update(tensor.randn(100000)) end
	collectgarbage()
	assert(tensor.memory().now <= before, tensor.memory().now .. ' ' .. before)
end)
it('draws the histogram with the range', function()
	local file = os.tmpname()
	os.remove(file)
	quant.observer{dtype = 'int8', observer = 'percentile', p = 99}:update(tensor.randn(10000)):plot{file = file .. '.svg'}
	local handle = assert(io.open(file .. '.svg'))
	local text = handle:read 'a'
	handle:close()
	os.remove(file .. '.svg')
	assert(text:find '<svg' and #text > 10000) -- letters are drawn as curves
end)
