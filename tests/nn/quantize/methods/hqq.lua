-- SPDX-License-Identifier: MIT
-- method='hqq': the iteration in plain Lua, its objective, identities, specs that it does not apply to.
local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end
tensor.seed(12)
local m = nn.Sequential {nn.Linear(40, 12)}
local function weight() return m.linear1.weight:detach() end
tensor.nograd(function() m.linear1.weight:copy_(tensor.randn(12, 40) * tensor.randn(12, 40):abs()) end) -- heavy tails
local function quantize(spec, method) return m:quantize {mode = 'weight_only', weight = spec, method = method or 'hqq'}.linear1.weight end

-- Round half to even.
local function round(v)
	local f = math.floor(v + 0.5)
	return (v + 0.5 == f and f % 2 == 1) and f - 1 or f
end
local function zero_of(w, n)
	local lo, hi = math.min(table.unpack(w)), math.max(table.unpack(w))
	local s = math.min(n / math.max(hi - lo, 1e-4), 2e4)
	local z, beta, best, least = -lo * s, 10, nil, math.huge
	for _ = 1, 20 do
		local sum, err = 0, 0
		for _, v in ipairs(w) do
			local q = math.max(0, math.min(n, round(v * s + z)))
			local d = v - (q - z) / s
			local size = math.abs(d)
			local e = math.max(size - math.max(size, 1e-12) ^ -0.3 / beta, 0) * (d < 0 and -1 or 1)
			sum, err = sum + q - (v - e) * s, err + size
		end
		if err < least then best, least = z, err end
		z, beta = sum / #w, beta * 1.01
	end
	return 1 / s, -best / s
end

it('has the scales and minimums of the iteration', function()
	local q = quantize 'uint4:16+min'
	local p = q:qparams()
	print(p.scale:dtype(), p.minimum:dtype())  --> float16	float16
	local others = 0 -- a code on the edge, which floats of 32 bits round the other way
	for r = 1, 12 do
		local row = weight()[r]:totable()
		for b = 1, 3 do
			local s, low = zero_of(table.move(row, 16 * b - 15, math.min(16 * b, 40), 1, {}), 15)
			assert(math.abs(p.scale[r][b]:item() / s - 1) < 1e-3, ('%g %g'):format(p.scale[r][b]:item(), s))
			local off = math.abs(p.minimum[r][b]:item() - low)
			assert(off < s / 4, ('%d %d: %g %g'):format(r, b, p.minimum[r][b]:item(), low))
			if off > 2e-3 * math.max(1, math.abs(low)) then others = others + 1 end
		end
	end
	assert(others <= 3, others)
end)
it('lowers the sum of |error|^p', function()
	local function sum(q) return ((weight() - q:dequantize()):abs() ^ 0.7):sum():item() end
	for _, spec in ipairs {'uint4:16+min', 'uint4/1+min', 'uint3:20+min', 'uint4/2+min'} do
		assert(sum(quantize(spec)) < 0.99 * sum(weight():quantize(spec)), spec)
	end
	assert(sum(quantize 'uint3/1') <= sum(weight():quantize 'uint3/1'))
end)
it('leaves weights that are codes already as they are', function()
	local keep = weight():clone()
	tensor.nograd(function() m.linear1.weight:copy_((tensor.randint {12, 40, low = 0, high = 15}:to 'float32' - 3) * 0.25) end)
	tensor.nograd(function()
		m.linear1.weight:narrow(2, 1, 1):fill_(-0.75)
		m.linear1.weight:narrow(2, 2, 1):fill_(3)
	end)
	for _, spec in ipairs {'uint4/1+min', 'uint4:40+min', 'uint4/1'} do
		assert((quantize(spec):dequantize() - weight()):abs():max():item() < 1e-3, spec)
	end
	tensor.nograd(function() m.linear1.weight:copy_(keep) end)
end)
it('zero points stay codes', function()
	local z = quantize('uint4:8'):qparams().zero_point
	assert(z:min():item() >= 0 and z:max():item() <= 15)
end)
it('before gptq, whose codes are then under these scales', function()
	local x = tensor.randn(100, 40)
	local q = m:quantize {mode = 'weight_only', weight = 'uint4:8+min', method = {'hqq', 'gptq'}, data = {{x}}, log = false}.linear1.weight
	assert(q:qparams().minimum:eq(quantize 'uint4:8+min':qparams().minimum):all():item())
	assert(not q:codes():eq(quantize 'uint4:8+min':codes()):all():item())
end)
it('convolutions', function()
	for _, make in ipairs {function() return nn.Conv2d(4, 8, 3) end, function() return nn.ConvTranspose2d(4, 8, 3) end} do
		local c = nn.Sequential {make()}
		for _, spec in ipairs {'uint4/1+min', 'uint4/1', 'uint4:9+min'} do
			local q = c:quantize {mode = 'weight_only', weight = spec, method = 'hqq'}
			local plain = c:quantize {mode = 'weight_only', weight = spec}
			local w = c[1].weight:detach()
			local function off(codes) return (codes:dequantize():reshape(w:size()) - w):square():sum():item() end
			assert(off(q[1].weight) <= off(plain[1].weight) * 1.0001, spec)
		end
	end
end)
it('refuses codes without a minimum', function()
	refused("method 'hqq': linear1: wanted codes with a minimum ('uint4:32+min') or a zero point ('uint4:32'), got 'int4:32'", quantize, 'int4:32')
	refused("wanted a spec that takes scale=, got 'q4_1'", quantize, 'q4_1')
end)
