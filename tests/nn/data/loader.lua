-- SPDX-License-Identifier: MIT
-- data.loader: what batches hold, the same bits with and without the thread and for any number of threads, and that the
-- thread ends whenever a pass does.
-- labels: once
local n = 103
local x = tensor.arange(0, n - 1):to 'float32':view(n, 1):expand(n, 3):contiguous()
local y = tensor.arange(1, n):to 'int64'
local ds = data.tensors(x, y)

local function pass(loader)
	local xs, ys = {}, {}
	for a, b in loader() do xs[#xs + 1], ys[#ys + 1] = a, b end
	return tensor.cat(xs, {axis=1}), ys[1] and tensor.cat(ys, {axis=1}), #xs
end
local function same(a, b) return a:dtype() == b:dtype() and a:eq(b):all():item() end

describe('samples', function()
	it('come in order, the last batch smaller or left out', function()
		local loader = data.loader(ds, {batch=20})
		local a, b, count = pass(loader)
		assert(#loader == 6 and count == 6 and same(a, x) and same(b, y))
		local whole = data.loader(ds, {batch=20, drop=true})
		local c, _, five = pass(whole)
		assert(#whole == 5 and five == 5 and c:size(1) == 100)
		assert(#data.loader(ds, {batch=200}) == 1 and #data.loader(ds, {batch=200, drop=true}) == 0)
		assert(#data.loader(ds) == 4 and data.loader(ds).batch == 32)
	end)

	it('come each once in another order in every pass, by tensor.seed', function()
		tensor.seed(7)
		local loader = data.loader(ds, {batch=20, shuffle=true})
		local a, b = pass(loader)
		local c = pass(loader)
		assert(not same(a, x) and not same(a, c) and loader.epoch == 2)
		assert(same(b:sort(), y) and same(a:select(2, 1):to 'int64' + 1, b))
		tensor.seed(7)
		local again = data.loader(ds, {batch=20, shuffle=true})
		tensor.rand(1000) -- draws between do not matter
		assert(same(pass(again), a) and same(pass(again), c))
		again.epoch = 0
		assert(same(pass(again), a))
		tensor.seed(8)
		assert(not same(pass(data.loader(ds, {batch=20, shuffle=true})), a))
	end)

	it('are shuffled evenly', function()
		tensor.seed(1)
		local loader, sum = data.loader(data.tensors(y), {batch=n, shuffle=true}), tensor.zeros(n)
		for _ = 1, 400 do sum = sum + pass(loader):to 'float32' end
		local mean = sum * (1 / 400) -- of each place: 52 with a deviation of 29.7 / 20
		assert((mean - 52):abs():max():item() < 7.5, (mean - 52):abs():max():item())
	end)

	it('need no targets and keep dtypes and scales', function()
		for a, b in data.loader(data.tensors(y), {batch=5})() do
			assert(a:dtype() == 'int64' and b == nil)
		end
		local q = x:quantize 'int8'
		local c = pass(data.loader(data.tensors(q), {batch=40}))
		assert(c:dtype() == 'int8' or same(c, q:dequantize()))
		for a in data.loader(q, {batch=40})() do
			assert(a:dtype() == 'int8' and a:qparams().scale:item() == q:qparams().scale:item())
		end
		for a in data.loader(x:quantize 'int8/2', {batch=40})() do assert(a:qparams().scale:nelem() == 3) end
	end)

	it('may be a view, and none at all', function()
		assert(same(pass(data.loader(ds:narrow(11, 60), {batch=7})), x:narrow(1, 11, 50)))
		assert(same(pass(data.loader(tensor.ones(4, 6):t(), {batch=4})), tensor.ones(6, 4)))
		local empty = data.loader(data.tensors(tensor.zeros(0, 3)))
		assert(#empty == 0)
		for _ in empty() do error 'a batch of nothing' end
	end)
end)

-- 2 channels of 6 x 8 codes from 1 on: every pixel of an image tells where it is from
local count, h, w = 64, 6, 8
local base = tensor.arange(1, 2 * h * w):to 'uint8':view(1, 2, h, w):expand(count, 2, h, w):contiguous()
local images = tensor.empty{count, 2, h, w, quant={dtype='uint8', scale=1/255, zero_point=0}}
images:codes():copy_(base)
local pictures = data.tensors(images, tensor.arange(1, count):to 'int64')

-- The shift and flip that made an image, or nil. Pixels that are 0 may come from outside or be blanked.
local function find_change(codes, crop)
	for flip = 0, 1 do
		for dy = -crop, crop do
			for dx = -crop, crop do
				local good = true
				for c = 1, 2 do
					for i = 1, h do
						for j = 1, w do
							local sy, sx = i + dy, (flip == 1 and w + 1 - j or j) + dx
							local inside = sy >= 1 and sy <= h and sx >= 1 and sx <= w
							local wanted = inside and ((c - 1) * h + sy - 1) * w + sx or 0
							if codes[c][i][j] ~= wanted then good = false break end
						end
						if not good then break end
					end
					if not good then break end
				end
				if good then return dy, dx, flip end
			end
		end
	end
end

describe('augmentation', function()
	it('crops with zeros around and flips, all ways about equally often', function()
		tensor.seed(3)
		local loader, ways, flips, total = data.loader(pictures, {batch=16, augment={crop=2, flip=true}}), {}, 0, 0
		for _ = 1, 4 do
			for a in loader() do
				assert(a:dtype() == 'uint8' and a:qparams().scale:item() == images:qparams().scale:item())
				for i = 1, a:size(1) do
					local dy, dx, flip = find_change(a[i]:codes():totable(), 2)
					assert(dy, 'not a crop')
					ways[dy .. ' ' .. dx] = (ways[dy .. ' ' .. dx] or 0) + 1
					flips, total = flips + flip, total + 1
				end
			end
		end
		local kinds = 0
		for _ in pairs(ways) do kinds = kinds + 1 end
		assert(total == 256 and kinds == 25 and flips > 96 and flips < 160, kinds .. ' ' .. flips)
	end)

	it('blanks a square around a pixel of the image', function()
		tensor.seed(4)
		for a in data.loader(pictures, {batch=16, augment={cutout=4}})() do
			for i = 1, a:size(1) do
				local zero = a[i]:codes():eq(0):to 'int64'
				local sums = zero:view(2, h * w):sum{axis=2}:totable()
				local rows = zero[1]:sum{axis=2}:gt(0):sum():item()
				local columns = zero[1]:sum{axis=1}:gt(0):sum():item()
				assert(sums[1] == rows * columns and sums[1] == sums[2] and rows >= 2 and rows <= 4 and columns >= 2 and columns <= 4)
			end
		end
	end)

	it('blanks with the mean where there is one', function()
		tensor.seed(4)
		local mean = {100 / 255, 200 / 255}
		for a in data.loader(pictures, {batch=16, augment={cutout=4}, normalize={mean=mean, std=0.5}})() do
			for i = 1, a:size(1) do assert(a[i]:abs():lt(1e-6):sum():item() >= 8) end
		end
	end)

	it('gives an image the same change wherever it stands', function()
		tensor.seed(5)
		local plain = pass(data.loader(pictures, {batch=16, augment={crop=2, flip=true, cutout=3}}))
		tensor.seed(5)
		local a, b = pass(data.loader(pictures, {batch=10, shuffle=true, augment={crop=2, flip=true, cutout=3}}))
		local wanted = {}
		for i = 1, count do wanted[i] = plain[b[i]:item()] end
		assert(same(a, tensor.stack(wanted)))
	end)
end)

it('normalizes to the bits of the same arithmetic on tensors', function()
	local mean, std = tensor{0.4914, 0.4822}, tensor{0.247, 0.2435}
	local a = pass(data.loader(pictures, {batch=10, normalize={mean={0.4914, 0.4822}, std={0.247, 0.2435}}}))
	assert(same(a, (images:dequantize() - mean:view(1, 2, 1, 1)) / std:view(1, 2, 1, 1)))
	assert(same(pass(data.loader(pictures, {normalize=true})), images:dequantize()))
	assert(same(pass(data.loader(data.tensors(base), {normalize={std=2}})), base:to 'float32' / 2.0))
end)

describe('tokens', function()
	local tokens = tensor.arange(1, 101):to 'int32'

	it('come as streams that go on from batch to batch', function()
		local loader = data.loader(tokens, {batch=4, steps=7})
		assert(loader.stream and #loader == 4) -- streams of 25: 24 steps are 7 + 7 + 7 + 3
		local k = 0
		for a, b in loader() do
			local steps = k < 3 and 7 or 3
			assert(a:size(1) == 4 and a:size(2) == steps and a:dtype() == 'int32')
			for r = 1, 4 do
				for t = 1, steps do
					assert(a[r][t]:item() == (r - 1) * 25 + 7 * k + t and b[r][t]:item() == a[r][t]:item() + 1)
				end
			end
			k = k + 1
		end
		assert(k == 4 and #data.loader(tokens, {batch=4, steps=7, drop=true}) == 3)
	end)

	it('come as windows in order', function()
		local loader = data.loader(tokens, {batch=4, steps=7, order='windows'})
		local a, b = pass(loader)
		assert(not loader.stream and #loader == 4 and a:size(1) == 14)
		assert(same(a:reshape(98), tokens:narrow(1, 1, 98)) and same(b:reshape(98), tokens:narrow(1, 2, 98)))
	end)

	it('come as windows that begin anywhere', function()
		tensor.seed(2)
		local loader, first, seen = data.loader(tokens, {batch=4, steps=7, shuffle=true}), nil, {}
		for _ = 1, 40 do
			local a, b = pass(loader)
			assert(a:size(1) == 14 and same(b, a + 1) and same(a - a:narrow(2, 1, 1), (tensor.arange(0, 6):to 'int32'):view(1, 7):expand(14, 7)))
			for i = 1, 14 do seen[a[i][1]:item()] = true end
			assert(not first or not same(a, first))
			first = first or a
		end
		assert(seen[1] and seen[94] and not seen[95])
	end)

	it('know the steps of their text', function()
		local d = data.synth{kind='markov', n=1000, steps=10}
		assert(not data.loader(d.train, {batch=8}).stream and data.loader(d.train, {batch=8, steps=5}).stream)
		for a in data.loader(d.train, {batch=8})() do assert(a:size(2) == 10) end
		for a in data.loader(d.train, {batch=8, order='streams'})() do assert(a:size(1) == 8) end
	end)

	it('may be too few', function()
		for _, order in ipairs {'streams', 'windows'} do
			local loader = data.loader(tensor{1, dtype='int32'}, {batch=2, steps=3, order=order})
			assert(#loader == 0)
			for _ in loader() do error 'a batch of nothing' end
		end
	end)
end)

---------------------------------------------------------------- the thread

local function threads()
	local pipe = io.popen 'ls /proc/$PPID/task | wc -l'
	local number = tonumber(pipe:read 'a')
	pipe:close()
	return number
end

describe('the thread', function()
	local all = {batch=10, shuffle=true, augment={crop=2, flip=true, cutout=3}, normalize={mean=0.5, std=0.25}}
	local function with(prefetch)
		tensor.seed(9)
		all.prefetch = prefetch
		return data.loader(pictures, all)
	end

	it('changes no bit, nor does the number of threads', function()
		local before = tensor.threads()
		local a, b = with(false), with(true)
		local wanted = {pass(a)}
		assert(not a.prefetching and same(wanted[1], pass(b)) and b.prefetching)
		tensor.threads(1)
		local c = with(false)
		assert(same(wanted[1], pass(c)) and same(pass(b), pass(c)))
		tensor.threads(before)
	end)

	it('ends with the pass, a break, an error and the collector', function()
		pass(with(true))
		local before = threads()
		local loader = with(true)
		for _ in loader() do assert(threads() == before + 1) break end
		assert(threads() == before)
		pass(loader)
		assert(threads() == before)
		assert(not pcall(function() for _ in loader() do error 'x' end end) and threads() == before)
		local next_batch = loader()
		next_batch()
		assert(threads() == before + 1)
		next_batch = nil -- luacheck: ignore 311
		collectgarbage()
		assert(threads() == before)
		do
			local a, _, _, b <close> = loader()
			assert(a == b and threads() == before + 1)
		end
		assert(threads() == before)
	end)

	it('serves two passes at once', function()
		local a, b = with(true), with(true)
		local left, right = a(), b()
		for _ = 1, #a do assert(same(left(), right())) end
		assert(left() == nil and left() == nil and right() == nil)
	end)

	it('keeps no memory', function()
		local loader = with(true)
		for _ in loader() do break end
		pass(loader)
		collectgarbage()
		collectgarbage()
		local before = tensor.memory().now
		for _ = 1, 20 do
			for _ in loader() do break end
			pass(loader)
		end
		collectgarbage()
		collectgarbage()
		assert(tensor.memory().now == before, tensor.memory().now - before)
	end)

	it('is started only where it pays', function()
		local big = data.tensors(tensor.zeros{400, 3, 64, 64, dtype='uint8'})
		local cheap, dear = data.loader(ds, {batch=20}), data.loader(big, {batch=100, augment={flip=true}})
		for _ in cheap() do break end
		for _ in dear() do break end
		assert(not cheap.prefetching and dear.prefetching)
	end)

	it('ends by Ctrl-C, and so does the wait for it', function()
		local code = "big = data.tensors(tensor.zeros{2000, 3, 64, 64, dtype='uint8'}) " ..
			"loader = data.loader(big, {batch=1000, augment={crop=4}, prefetch=true}) print 'go' io.stdout:flush() " ..
			'while true do for x in loader() do end end'
		local pipe = io.popen(('timeout -s KILL 60 env --default-signal=INT timeout -s INT 2 "/proc/$PPID/exe" -e %q 2>&1; echo status $?'):format(code))
		local text = pipe:read 'a'
		pipe:close()
		assert(text:find '^go\n' and text:find 'interrupted' and not text:find 'status 137', text)
	end)
end)

it('prints what it does', function()
	assert(tostring(data.loader(ds, {batch=20, shuffle=true})) == 'loader: 6 batches of 20, shuffled, of float32(103, 3)')
	assert(tostring(data.loader(y:to 'int32', {batch=4, steps=5})) == 'loader: 5 batches of 4, 5 steps, streams, of int32(103)')
end)

data.loader()                                --> error: loader: wanted a data set or a tensor, got nil
data.loader(ds, {bach=3})                    --> error: did you mean 'batch'
data.loader(ds, {batch=0})                   --> error: loader: batch: wanted 1 or more, got 0
data.loader(ds, {batch='3'})                 --> error: loader: batch: wanted integer
data.loader(ds, {steps=3})                   --> error: loader: steps: wanted a tensor of tokens (d.train), got samples
data.loader(ds, {order='windows'})           --> error: loader: order: wanted a tensor of tokens
data.loader(x, {steps=3})                    --> error: loader: steps: wanted tokens, plain integers (n), got float32(103, 3)
data.loader(y, {steps=0})                    --> error: loader: steps: wanted 1 or more, got 0
data.loader(y, {steps=3, order='stream'})    --> error: loader: order: wanted 'streams' or 'windows', got 'stream'
data.loader(y, {steps=3, order='streams', shuffle=true})  --> error: loader: shuffle: streams continue
data.loader(ds, {augment={crop=1}})          --> error: loader: augment: wanted images, uint8 (n, channels, height, width), got float32(103, 3)
data.loader(ds, {normalize=true})            --> error: loader: normalize: wanted images
data.loader(data.tensors(tensor.rand(4, 1, 8, 8):quantize 'fp8_e4m3'), {normalize=true})  --> error: codes that are multiples of it
data.loader(pictures, {augment={crp=1}})     --> error: did you mean 'crop'
data.loader(pictures, {augment={crop=-1}})   --> error: loader: augment: crop: wanted a number of pixels, got -1
data.loader(pictures, {augment={flip=1}})    --> error: loader: augment: flip: wanted true or false, got 1
data.loader(pictures, {normalize={mean={1}}})     --> error: loader: normalize: mean: wanted a number or a list of 2, got a list of 1
data.loader(pictures, {normalize={std=0}})        --> error: loader: normalize: wanted finite means and std above 0
data.loader(pictures, {normalize={mean=0/0}})     --> error: loader: normalize: wanted finite means
data.loader(pictures, {normalize={men=1}})        --> error: loader: normalize: unknown field 'men'
data.loader(x:quantize 'int8/1')             --> error: loader: wanted one scale for all samples
data.loader(x:quantize 'int4')               --> error: loader: wanted samples along the first axis, whole bytes each
data.loader(tensor(1))                       --> error: loader: wanted samples along the first axis
