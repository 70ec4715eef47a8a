-- SPDX-License-Identifier: MIT
-- labels: quick host
-- prelu of codes with out=, against the formula in Lua: slopes of codes and of floats, every rule.
local oracle = dofile 'tests/tools/requantize.lua'
tensor.seed(61)
local x = tensor.randn(3, 4, 5)
local function flat(t) return t:contiguous():view(t:nelem()):totable() end
local function plain(q)
	local p = q:qparams()
	local codes = q:codes():to 'int64'
	return flat(p.zero_point and codes - p.zero_point:to 'int64' or codes), p.scale:item()
end

-- The code for a code less its zero point under a factor.
local function code(v, factor, out)
	if factor == 0 then return out.zero_point or 0 end
	if out.rounding then return (oracle.code(out.rounding, false, v, factor, out.dtype, out.zero_point)) end
	local lo, hi = out.dtype == 'uint8' and 0 or -128, out.dtype == 'uint8' and 255 or 127
	if out.dtype == 'int16' then lo, hi = -32768, 32767 end
	return math.max(lo, math.min(hi, oracle.rint(oracle.single(v * oracle.single(factor))) + (out.zero_point or 0)))
end

local OUTS = {{dtype='int8', scale=0.03, zero_point=-7}, {dtype='uint8', scale=0.02, zero_point=120}, {dtype='int16', scale=0.001}}
local function outs()
	local list = {}
	for _, o in ipairs(OUTS) do
		for _, rule in ipairs {false, 'single', 'double', 'exact'} do
			list[#list + 1] = {dtype=o.dtype, scale=o.scale, zero_point=o.zero_point, scheme=o.zero_point and 'asymmetric' or 'symmetric', rounding=rule or nil}
		end
	end
	return list
end

local function check(y, q, out, slope_of)
	local codes, s = plain(q)
	local unit = oracle.single(out.scale)
	assert(y:origin().kernel == 'prelu_int' and y:origin().path == (out.rounding and 'integer ' .. out.rounding or 'integer'))
	for i, got in ipairs(flat(y:codes())) do
		local a, scale = slope_of(i)
		local v = codes[i]
		local want = v >= 0 and code(v, s / unit, out) or code(v * a, s * scale / unit, out)
		assert(got == want, ('element %d: %d instead of %d'):format(i, got, want))
	end
end

it('slopes of codes, one for each channel', function()
	local slope = (tensor.rand(4) - 0.3):quantize {dtype='int8', scale=0.008, zero_point=-10, scheme='asymmetric'}
	local a, scale = plain(slope)
	for _, input in ipairs {'int8', 'uint8', 'int16'} do
		local q = x:quantize(input)
		for _, out in ipairs(outs()) do
			check(q:prelu(slope, {out=out}), q, out, function(i) return a[(i - 1) // 5 % 4 + 1], scale end)
		end
	end
end)

it('slopes of floats: one, along an axis, negative, 0, nan', function()
	local q = x:quantize 'uint8'
	local function parts(v)
		return v > 0 and 1 or v < 0 and -1 or 0, v == v and math.abs(v) or 0
	end
	for _, out in ipairs(outs()) do
		local slopes = {0.3, -0.2, 0.0, 0 / 0}
		check(q:prelu(tensor(slopes), {out=out}), q, out, function(i) return parts(oracle.single(slopes[(i - 1) // 5 % 4 + 1])) end)
		local last = {0.1, 2, -1.5, 0.25, 0.75}
		check(q:prelu(tensor(last), {axis=3, out=out}), q, out, function(i) return parts(oracle.single(last[(i - 1) % 5 + 1])) end)
		check(q:prelu(tensor(slopes):view(4, 1), {out=out}), q, out, function(i) return parts(oracle.single(slopes[(i - 1) // 5 % 4 + 1])) end)
		local many = (tensor.rand(5, 4) - 0.3):t() -- strided, along two axes
		local list = flat(many)
		check(q:prelu(many, {out=out}), q, out, function(i) return parts(list[(i - 1) % 20 + 1]) end)
	end
	local one = q:prelu(tensor {0.3}, {out=OUTS[1]})
	check(one, q, {dtype='int8', scale=0.03, zero_point=-7}, function() return 1, oracle.single(0.3) end)
end)

it('views, no elements, and where it falls back', function()
	local q, slope, out = x:quantize 'int8', tensor {0.3, -0.2, 0.5, 0.25}, OUTS[1]
	local turned = q:permute(3, 2, 1):prelu(slope, {out=out})
	assert(turned:codes():eq(q:prelu(slope, {out=out}):codes():permute(3, 2, 1)):all():item())
	assert(q:narrow(1, 1, 0):prelu(slope, {out=out}):nelem() == 0)
	for _, c in ipairs {{slope, 'int8', 'one given scale'}, {tensor.rand(4):to 'float64', out, 'neither codes nor float32'},
		{tensor.rand(4, 1):quantize 'int8/1', out, 'several scales'}} do
		local y = q:prelu(c[1], {out=c[2]})
		assert(y:quantized() and y:explain():find('fallback', 1, true) and y:explain():find(c[3], 1, true), y:explain())
	end
	local list = quant.ops() -- listed
	local found
	for _, row in ipairs(list) do found = found or row.op == 'prelu' end
	assert(found)
end)
