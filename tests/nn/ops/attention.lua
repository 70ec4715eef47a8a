-- SPDX-License-Identifier: MIT
-- labels: quick noproducts host
-- Masks, lengths, windows and capped scores of nn.attention, of which tests/nn/modules/attention.lua has the rest; literals from
-- PyTorch in float64, else beside the same formula in other ops.
tensor.seed(1)
local checks = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checks.lua')
local near, check_gradient, wide, check_bits, refused = checks.near, checks.gradient, checks.wide, checks.bits, checks.refused

local function cosines(n, by) return (tensor.arange(0, n - 1):to 'float64' * by):cos() end
local function sines(n, by, from) return (tensor.arange(0, n - 1):to 'float64' * by + from):sin() end
local q, k, v = sines(24, 1, 0):view(1, 4, 3, 2), cosines(20, 0.7):view(1, 2, 5, 2), sines(30, 0.3, 1):view(1, 2, 5, 3)
local seen = tensor{{1, 0, 1, 1, 0}, {0, 1, 1, 0, 1}, {1, 1, 0, 0, 0}}:ne(0)

for dtype, bound in pairs {float32 = 1e-6, float64 = 1e-9} do
	it('masks in ' .. dtype, function()
		local a, b, c = q:to(dtype):clone(), k:to(dtype):clone(), v:to(dtype):clone()
		near(nn.attention(a, b, c, {mask = seen}), {0.2835714575, 0.2133970114, 0.1241604457, -0.1888144979, -0.2692219384, -0.325580585,
			0.9239394028, 0.8415720244, 0.6840295235, 0.1934879637, 0.07974961501, -0.04111252931, -0.3369342158, -0.397894953,
			-0.4233129191, 0.9223520673, 0.8439199896, 0.6901030526, 0.500194028, 0.5529221221, 0.5562593299, 0.3546089549,
			0.1776178874, -0.01523925709, -0.1032974366, 0.1723373815, 0.4325778146, 0.5482511149, 0.6130611513, 0.623108261,
			0.355408415, 0.1690945753, -0.03232397927, -0.1623094878, 0.109925503, 0.3723411761}, bound)
		local bias = cosines(20, 1):view(4, 1, 5):to(dtype):clone():requires_grad_()
		a:requires_grad_()
		nn.attention(a, b, c, bias):backward(cosines(36, 0.5):view(1, 4, 3, 3):to(dtype))
		near(bias:grad(), {0.07813278893, -0.2779826653, 0.2782086043, 0.09544124342, -0.1737999714, 0.6437394856, 0.3000507703,
			-0.1093350382, -0.3470805937, -0.4873746241, 0.03746160448, -0.0793390819, 0.1028010964, -0.09420820723, 0.03328458821,
			0.153641678, 0.004642662951, -0.1025810478, -0.4374603042, 0.3817570111}, bound)
		near(a:grad():view(-1):narrow(1, 1, 6), {0.252158864, -0.05537434755, -0.1281786861, -0.02541094815, -0.4158978441, -0.07223757494},
			bound)
	end)
end

-- What a query sees by its position and the lengths.
local function places(b, t, s, o)
	local own = tensor.arange(1, t):view(t, 1) + (s - t)
	local far = tensor.arange(1, s):view(1, s) - own
	local all = far:ge(-1e9)
	if o.causal then all = all:band(far:le(0)) end
	if o.window then all = all:band(far:abs():lt(o.window)) end
	all = all:view(1, 1, t, s):expand(b, 1, t, s)
	if o.lengths then all = all:band(tensor.arange(1, s):view(1, 1, 1, s):le(o.lengths:to 'int64':view(b, 1, 1, 1))) end
	return all
end

-- The formula in other ops, in float64; a query that sees nothing gets zeros.
local function formula(a, b, c, o)
	local n, h, t, d = a:size()
	local r, s = h // b:size(2), b:size(3)
	local function wide_heads(x) return x:unsqueeze(3):expand(n, b:size(2), r, s, x:size(4)):reshape(n, h, s, x:size(4)) end
	local z = a:matmul(wide_heads(b):transpose(3, 4)) * (o.scale or 1 / math.sqrt(d))
	if o.softcap then z = (z / o.softcap):tanh() * o.softcap end
	local some = places(n, t, s, o)
	if o.mask and o.mask:dtype() == 'bool' then some = some:band(o.mask) elseif o.mask then z = z + o.mask end
	local p = tensor.where(some, z, tensor{-1e30, dtype = 'float64'}):softmax(4)
	return (p * some:any {axis = 4, keep = true}:to 'float64'):matmul(wide_heads(c))
end

local function of(dtype, f, operands, o)
	local x = {}
	for i, t in ipairs(operands) do x[i] = t:to(dtype):clone():requires_grad_() end
	local given = {}
	for name, value in pairs(o) do given[name] = value end
	if o.mask and o.mask:dtype() ~= 'bool' then
		given.mask = o.mask:to(dtype):clone():requires_grad_()
		x[4] = given.mask
	end
	local y = f(x[1], x[2], x[3], given)
	y:backward(sines(y:nelem(), 0.37, 0.2):view(y:size()):to(dtype))
	local list = {y:detach():to 'float64'}
	for _, t in ipairs(x) do list[#list + 1] = t:grad():to 'float64' end
	return list
end

it('options, alone and together, values and gradients', function()
	for _, c in ipairs {{1, 1, 1, 1, 1, 2, 2}, {2, 4, 2, 5, 9, 4, 3}, {2, 2, 1, 70, 70, 8, 8}, {1, 2, 2, 130, 150, 16, 4}, {2, 2, 2, 9, 4, 3, 5}} do
		local n, h, g, t, s, d, e = table.unpack(c)
		local operands = {wide(n, h, t, d), wide(n, g, s, d), wide(n, g, s, e)}
		local lengths = tensor.randint {n, low = 1, high = s}:to 'int32'
		local some = tensor.rand(n, 1, t, s):gt(0.3)
		for _, o in ipairs {{mask = some}, {mask = wide(h, t, s)}, {mask = wide(n, 1, 1, s)}, {mask = wide(t, 1)}, {lengths = lengths}, {window = 3},
			{softcap = 0.8}, {lengths = lengths, window = 20, softcap = 2, mask = wide(s), scale = 0.9}} do
			for _, causal in ipairs {false, s >= t or nil} do
				o.causal = causal
				local want = of('float64', formula, operands, o)
				for dtype, bound in pairs {float64 = 1e-10, float32 = 2e-5} do
					local got = of(dtype, nn.attention, operands, o)
					for i = 1, #want do
						local off = got[i]:metrics(want[i]).max
						assert(off < bound, ('%s %s, result %d: %g'):format(table.concat(c, ' '), dtype, i, off))
					end
				end
			end
		end
	end
end)

it('gradients against finite differences', function()
	local function operands() return wide(2, 2, 3, 4), wide(2, 1, 5, 4), wide(2, 1, 5, 2) end
	local a, b, c = operands()
	check_gradient(function(x, y, z, m) return nn.attention(x, y, z, m, {softcap = 1.5, window = 2}) end, a, b, c, wide(2, 1, 5))
	a, b, c = operands()
	local lengths = tensor{4, 0, dtype = 'int64'}
	check_gradient(function(x, y, z, m) return nn.attention(x, y, z, m, lengths, {causal = true}) end, a, b, c, wide(3, 5))
end)

it('hidden keys have no weight, and queries without keys get zeros', function()
	local a = wide(1, 1, 2, 4)
	local b, c = wide(1, 1, 3, 4), wide(1, 1, 3, 1)
	c[{1, 1, 3}] = 1e300
	local hidden = tensor{0, 0, -math.huge, dtype = 'float64'}
	local want = nn.attention(a, b:narrow(3, 1, 2), c:narrow(3, 1, 2))
	for _, y in ipairs {nn.attention(a, b, c, {mask = hidden}), nn.attention(a, b, c, {mask = tensor{1, 1, 0}:ne(0)}),
		nn.attention(a, b, c, {lengths = tensor{2, dtype = 'int32'}})} do
		assert(y:eq(want):all():item())
	end
	local none = tensor.zeros(1, 3):ne(0)
	for _, dtype in ipairs {'float32', 'float64'} do
		local function run(o) return nn.attention(a:to(dtype), b:to(dtype), c:clamp(-1, 1):to(dtype), o):abs():sum():item() end
		for _, o in ipairs {{mask = none}, {mask = tensor.full {3, value = -math.huge}}, {lengths = tensor{0, dtype = 'int32'}}} do
			assert(run(o) == 0)
		end
	end
	print(nn.attention(a * (0/0), b, c, {mask = hidden}):isnan():all())  --> true
end)

it('a mask of any layout and float dtype; nothing but floats decodes', function()
	local a, m = tensor.randn(2, 3, 6, 8), tensor.randn(6, 6)
	local want = nn.attention(a, a, a, {mask = m})
	assert(nn.attention(a, a, a, {mask = m:t():contiguous():t()}):eq(want):all():item())
	assert(nn.attention(a, a, a, {mask = m:to 'float64'}):eq(want):all():item())
	assert(nn.attention(a:transpose(2, 3):contiguous():view(2, 6, 24), a:transpose(2, 3):reshape(2, 6, 24), a:transpose(2, 3):reshape(2, 6, 24),
		{heads = 3, mask = m}):eq(want:transpose(2, 3):reshape(2, 6, 24)):all():item())
	local z, spec = a:quantize 'int8', {dtype = 'int8', scale = 0.03}
	assert(nn.attention(z, z, z, {out = spec}):explain():find 'path integer')
	local y = nn.attention(z, z, z, {mask = m, out = spec})
	assert(y:explain():find 'path integer', y:explain())
	local d = z:dequantize()
	assert((y:codes():to 'int64' - nn.attention(d, d, d, {mask = m}):quantize(spec):codes():to 'int64'):abs():max():item() <= 1)
	print(y:dtype())  --> int8
end)

it('gives the same bits on any number of threads', function()
	local a, m = tensor.randn(2, 3, 130, 32), tensor.randn(3, 130, 130)
	check_bits(function() return nn.attention(a, a, a, {mask = m, softcap = 3, window = 60}) end, {hw.features().level})
	a:requires_grad_()
	m:requires_grad_()
	check_bits(function()
		a:zero_grad()
		m:zero_grad()
		nn.attention(a, a, a, {mask = m, softcap = 3, lengths = tensor{100, 7, dtype = 'int32'}}):sum():backward()
		return a:grad(), m:grad()
	end, {hw.features().level})
end)

local x = tensor.zeros(2, 2, 3, 4)
for _, call in ipairs {
	{'mask: wanted a shape that is broadcast to (batch, heads, queries, keys) = (2, 2, 3, 3), got (2, 3)', {mask = tensor.zeros(2, 3)}},
	{'mask: wanted a tensor of bool float, got int64(3)', {mask = tensor{1, 1, 0, dtype = 'int64'}}},
	{'mask: wanted a tensor of bool float, got ', {mask = true}},
	{'lengths: wanted integers (2), one for each row of the batch, got int32(3)', {lengths = tensor{1, 2, 3, dtype = 'int32'}}},
	{'lengths: wanted a tensor of int, got float32(2)', {lengths = tensor{1, 2}}},
	{'lengths: wanted 0 to 3 keys, got 4', {lengths = tensor{1, 4, dtype = 'int32'}}},
	{'window: wanted 1 or more, got 0', {window = 0}},
	{'softcap: wanted a finite number above 0, got -1', {softcap = -1}},
} do
	refused('attention: ' .. call[1], nn.attention, x, x, x, call[2])
end
refused('attention: wanted a mask (bool or floats) and lengths (integers), got two of the same kind', nn.attention, x, x, x, tensor.zeros(3),
	{mask = tensor.zeros(3)})
