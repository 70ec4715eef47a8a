-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Integer results under the rules of fixed point: every op against TensorFlow Lite's functions, written down here with Lua's
-- 64-bit integers.
local oracle = dofile 'tests/tools/requantize.lua'
tensor.seed(11)

local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end

-- The codes of y against want(i), i from 1 in order; some of them not saturated.
local function compare(y, want)
	local got, inner = y:codes():contiguous():view(y:nelem()):totable(), 0
	for i, code in ipairs(got) do
		local wanted, free = want(i)
		assert(code == wanted, ('element %d: %d instead of %d'):format(i, code, wanted))
		inner = inner + (free and 1 or 0)
	end
	assert(inner * 3 > #got, ('only %d of %d codes are not saturated'):format(inner, #got))
end

local function flat(t) return t:contiguous():view(t:nelem()):totable() end
-- Codes less zero points, and the scales as they are kept.
local function plain(q)
	local p = q:qparams()
	local codes = q:codes():to 'int64'
	if p.zero_point then codes = codes - p.zero_point:to('int64') end
	return codes, flat(p.scale:to 'float64')
end

local RULES = {'single', 'double', 'exact'}
local function out(dtype, scale, zero, rule) return {dtype=dtype, scale=scale, zero_point=zero, rounding=rule} end

local function path_of(op)
	for _, row in ipairs(quant.log()) do
		if row.op == op then return row.path end
	end
end

local x, w, bias = tensor.randn(5, 40), tensor.randn(7, 40), tensor.randn(7)
for _, case in ipairs {{'uint8', 'int8/1', 'int8', 0.31, -3}, {'int8', 'int8', 'uint8', 0.3, 120}, {'uint8', 'int4/1', 'int8', 0.25, nil},
	{'int16', 'int8/1', 'int16', 0.002, nil}, {'int16', 'int16', 'int16', 0.0013, nil}, {'uint16', 'int8/1', 'uint16', 0.001, 30000},
	{'uint8', 'int8/1', 'int16', 0.001, nil}} do
	local input, weight, dtype, scale, zero = table.unpack(case)
	for _, rule in ipairs(RULES) do
		it(('linear %s x %s to %s, %s'):format(input, weight, dtype, rule), function()
			local qx, qw = x:quantize(input), w:quantize(weight)
			local spec = out(dtype, scale, zero, rule)
			quant.log(true)
			local y = qx:linear(qw, bias, {out=spec})
			local wide = input:find '16' ~= nil
			assert(path_of 'linear' == (wide and 'int16 ' or 'int8 ') .. rule, path_of 'linear')
			local a, sa = plain(qx)
			local b, sb = plain(qw)
			local sums, biases = flat(a:matmul(b:t())), flat(bias)
			compare(y, function(i)
				local j = (i - 1) % 7 + 1
				local s = sb[#sb > 1 and j or 1]
				local sum = sums[i] + oracle.rint(biases[j] / oracle.single(sa[1] * s))
				return oracle.code(rule, wide, sum, sa[1] * s / oracle.single(scale), dtype, zero)
			end)
		end)
	end
end

for _, case in ipairs {{'uint8', 'int8/1', 'int8', 0.05, 4}, {'int8', 'int8', 'int16', 0.001, nil}, {'int16', 'int8/1', 'int16', 0.0005, nil}} do
	local input, weight, dtype, scale, zero = table.unpack(case)
	for _, rule in ipairs(RULES) do
		for _, groups in ipairs {1, 4} do
			it(('conv2d %s x %s to %s, %s, %d groups'):format(input, weight, dtype, rule, groups), function()
				local qx = tensor.randn(2, 4, 6, 6):quantize(input)
				local qw = tensor.randn(8, 4 // groups, 3, 3):quantize(weight)
				quant.log(true)
				local y = qx:conv2d(qw, {pad=1, groups=groups, act='relu', out=out(dtype, scale, zero, rule)})
				local wide = input:find '16' ~= nil
				assert(path_of 'conv2d' == (wide and 'int16 ' or 'int8 ') .. rule, path_of 'conv2d')
				local a, sa = plain(qx)
				local b, sb = plain(qw)
				local sums = flat(a:to('float64'):conv2d(b:to 'float64', {pad=1, groups=groups})) -- exact in double
				compare(y, function(i)
					local s = sb[#sb > 1 and (i - 1) // 36 % 8 + 1 or 1]
					local sum = math.max(0, math.tointeger(sums[i]))
					return oracle.code(rule, wide, sum, sa[1] * s / oracle.single(scale), dtype, zero)
				end)
			end)
		end
	end
end

local TYPES = {{'uint8', 'int8'}, {'int8', 'int8'}, {'int16', 'int16'}, {'uint16', 'int8'}, {'int8', 'uint16'}}
for _, types in ipairs(TYPES) do
	local dtype, zero = types[2], types[2]:find '^u' and 1000 or nil
	local scale = types[2] == 'int8' and 0.06 or 0.0004
	for _, rule in ipairs(RULES) do
		it(('add, mul and cat, %s to %s, %s'):format(types[1], types[2], rule), function()
			local qa, qb = tensor.randn(8, 9):quantize(types[1]), (tensor.randn(8, 9) * 3):quantize(types[1])
			local a, sa = plain(qa)
			local b, sb = plain(qb)
			local bits, unsigned = tonumber(types[1]:match '%d+'), types[1]:find '^u' ~= nil
			local left = bits == 8 and 20 or unsigned and 14 or 15
			local unit, spec = oracle.single(scale), out(dtype, scale, zero, rule)
			a, b, sa, sb = flat(a), flat(b), sa[1], sb[1]
			quant.log(true)
			local twice = 2 * math.max(sa, sb)
			compare(qa:add(qb, {out=spec}), function(i)
				local sum = oracle.times(rule, false, a[i] << left, sa / twice) + oracle.times(rule, false, b[i] << left, sb / twice)
				return oracle.code(rule, false, sum, twice / ((1 << left) * unit), dtype, zero)
			end)
			assert(path_of 'add' == 'integer ' .. rule)
			spec.scale = scale * 4
			compare(qa:mul(qb, {out=spec}), function(i)
				return oracle.code(rule, bits == 16 and unsigned, a[i] * b[i], sa * sb / oracle.single(scale * 4), dtype, zero)
			end)
			assert(path_of 'mul' == 'integer ' .. rule)
			compare(tensor.cat({qa, qb}, {axis=1, out=spec}), function(i)
				local code, s = i <= 72 and a[i] or b[i - 72], i <= 72 and sa or sb
				return oracle.code(rule, false, code, s / oracle.single(scale * 4), dtype, zero)
			end)
			compare(qb:requantize(spec), function(i) return oracle.code(rule, false, b[i], sb / oracle.single(scale * 4), dtype, zero) end)
			assert(path_of 'requantize' == 'integer ' .. rule)
		end)
	end
end

for _, rule in ipairs(RULES) do
	for _, input in ipairs {'uint8', 'int16'} do
		it('avgpool2d ' .. input .. ' ' .. rule, function()
			local q = tensor.randn(2, 3, 6, 6):quantize(input)
			local codes, scale = plain(q)
			for _, k in ipairs {3, 6} do
				local sums = flat((codes:to 'float64'):avgpool2d(k) * (k * k)) -- nearly whole
				compare(q:avgpool2d(k, {out=out('int8', 0.01, 2, rule)}), function(i)
					return oracle.code(rule, input == 'int16', oracle.rint(sums[i]), scale[1] / (k * k * oracle.single(0.01)), 'int8', 2)
				end)
			end
		end)
	end
end

it('a range that is found is that of the float rule', function()
	local qx, qw = x:quantize 'uint8', w:quantize 'int8/1'
	local y, z = qx:linear(qw, {out={dtype='int8', rounding='single'}}), qx:linear(qw, {out='int8'})
	assert(y:qparams().scale:item() == z:qparams().scale:item())
	assert((y:codes():to 'int32' - z:codes():to 'int32'):abs():max():item() <= 1)
end)

it('channels with scales of their own', function()
	local q = tensor.randn(4, 6):quantize 'int8/1'
	local spec = out('int8', 0.03, nil, 'single')
	for i = 1, 4 do assert(q:requantize(spec):codes()[i]:eq(q[i]:requantize(spec):codes()):all():item()) end
end)

it('the spec', function()
	print(quant.spec{dtype='int8', rounding='single'})  --> int8 rounding=single
	print(quant.spec{dtype='int8', rounding='single'}.rounding, quant.spec{dtype='int8'}.rounding)  --> single nil
	print(quant.spec{dtype='int8', rounding='float'} == quant.spec 'int8', quant.spec{dtype='int8', rounding='double'} == quant.spec 'int8')  --> true false
end)

it('what has no rule of fixed point says so', function()
	local qx, qw = x:quantize 'uint8', w:quantize 'int8/1'
	local spec = out('int8', 0.1, nil, 'double')
	refused("rounding: wanted one of float single double exact stochastic, got 'half'", quant.spec, {dtype='int8', rounding='half'})
	refused('rounding: wanted affine codes of 2 to 16 bits beside it, got log', quant.spec, {dtype='int8', scheme='log', rounding='single'})
	refused('rounding: wanted affine codes of 2 to 16 bits beside it, got float16', quant.spec, {dtype='float16', rounding='single'})
	refused("quantize: rounding: wanted integer results for 'double'", x.quantize, x, spec)
	refused("quantize: rounding: wanted integer results for 'double'", qx.linear, qx, qw, {act='gelu', out=spec})
	refused("softmax: out: wanted 8 bits from 8 bits, the scale 1/256 and the zero point -128 for rounding='double'", qx.softmax, qx, {out=spec})
	refused("softmax: out: rounding: wanted 'float', the only rule of this op, got 'single'", qx.softmax, qx, {out=out('int8', 0.1, nil, 'single')})
	refused("expm1: out: rounding: wanted 'float', the only rule of this op, got 'double'", qx.expm1, qx, {out=spec})
	local blocks = x:quantize 'int8:8'
	refused('requantize: rounding: wanted affine codes without blocks', blocks.requantize, blocks, spec)
end)
