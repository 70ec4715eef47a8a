-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Codes that wait for a product, which encodes them while it packs: the bits of quantize and linear one after the other.
local same = dofile 'tests/tools/same.lua'
local left_out = dofile 'tests/tools/sanitizers.lua'.left_out
local N = 1 << 18 -- elements from which on codes wait

local function activations(...)
	local x = tensor.randn(...)
	local flat = x:view(-1)
	flat[1], flat[2], flat[3], flat[4] = 1 / 0, -1 / 0, 0 / 0, -0.0
	return x
end

local function check(f, ...)
	assert(same(tensor.fuse(f)(...), f(...)))
end

local function product(spec, w, b, o)
	return function(x) return x:quantize(spec):linear(w, b, o) end
end

it('has the bits of two ops', function()
	for i, size in ipairs {{700, 400, 130}, {65, 4099, 64}, {129, 4096, 33}, {5000, 53, 97}} do
		local x, b = activations(size[1], size[2]), tensor.randn(size[3])
		for j, weight in ipairs {'int8/1', 'uint8/1', 'int4/1', 'int8:32', 'nf4:64', 'int16'} do
			local w = tensor.randn(size[3], size[2]):quantize(weight)
			for k, spec in ipairs {'uint8', 'int8', 'int8@percentile'} do
				if not left_out(i + j + k, 4) then check(product(spec, w, b), x) end
			end
		end
		local w = tensor.randn(size[3], size[2]):quantize 'int8/1'
		for _, scale in ipairs {0.02, 1e-30, 1e30} do
			check(product({dtype = 'uint8', scale = scale, zero_point = 77}, w, b, {act = 'relu'}), x)
			check(product({dtype = 'int8', scale = scale}, w, b, {out = {dtype = 'int8', scale = 0.5}}), x)
			if left_out(1, 2) then break end
		end
		for _, threads in ipairs(left_out(i, 2) and {3} or {1, 3, 8}) do
			local before = tensor.threads()
			tensor.threads(threads)
			check(product('uint8', w, b), x)
			tensor.threads(before)
		end
	end
end)

it('takes leading axes, and other ops', function()
	local x, w = activations(4, 300, 256), tensor.randn(70, 256):quantize 'int8/1'
	check(product('uint8', w), x)
	check(function(a) return a:quantize 'uint8':matmul(w:t()) end, activations(1200, 256))
	check(function(a) return a:quantize 'uint8':codes() end, x)
	check(function(a) return a:quantize 'uint8':dequantize() * 2 end, x)
	check(function(a) return a:quantize 'uint8':view(1200, 256):linear(w) end, x)
	check(function(a) return a:quantize 'uint8'[{2, 3}]:linear(w) end, x)
	check(function(a) return (a * 2 + 1):quantize 'int8':linear(w) end, x)
end)

it('serves several products', function()
	local x = activations(1100, 256)
	local v, w = tensor.randn(70, 256):quantize 'int8/1', tensor.randn(70, 256):quantize 'int8/1'
	check(function(a)
		local q = a:quantize 'uint8'
		return q:linear(v) + q:linear(w) * q:linear(v)
	end, x)
end)

it('reads the values of the time of the call', function()
	local x, w = tensor.randn(1100, 256), tensor.randn(70, 256):quantize 'int8/1'
	local function late(a)
		a = a:clone()
		local q = a:quantize 'uint8'
		a:add_(1)
		return q:linear(w)
	end
	assert(same(tensor.fuse(late)(x), x:quantize 'uint8':linear(w)))
	local function later(a)
		a = a:clone()
		local q = a:quantize 'uint8'
		a[1] = 9
		return q
	end
	assert(same(tensor.fuse(later)(x):codes(), x:quantize 'uint8':codes()))
	assert(tensor.fuse(function(a) return tostring(a:quantize 'uint8') end)(x) == tostring(x:quantize 'uint8'))
end)

it('counts what is not finite', function()
	local x = activations(1100, 256)
	local q = tensor.fuse(function(a) return a:quantize 'uint8' end)(x)
	print(tostring(q) == tostring(x:quantize 'uint8'))  --> true
end)

it('is what a dynamic layer does', function()
	local x = activations(N // 128, 128)
	local m = nn.Sequential {nn.Linear(128, 96), nn.Linear(96, 40)}:quantize {mode = 'dynamic'}
	local h = x:quantize(m[1].quantized.input):linear(m[1].weight, m[1].bias)
	local y = h:quantize(m[2].quantized.input):linear(m[2].weight, m[2].bias)
	assert(same(tensor.nograd(function() return m(x) end), y))
	assert(same(graph.trace(m, x):run(x), y))
end)
