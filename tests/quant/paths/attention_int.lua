-- SPDX-License-Identifier: MIT
-- labels: quick host
-- nn.attention of codes with out=, against float64: at most a code off; layouts, shared heads, scale, threads.
tensor.seed(34)
local a, k, v = tensor.randn(2, 7, 24), tensor.randn(2, 9, 12), tensor.randn(2, 9, 12)

local function off(y, want)
	return (y:codes():to 'int64' - want:codes():to 'int64'):abs():max():item()
end

local function with(o, out)
	local made = {out=out}
	for key, value in pairs(o) do made[key] = value end
	return made
end

it('is within a code of the exact result', function()
	for _, input in ipairs {'int8', 'uint8', 'int16', 'uint16'} do
		local q = {a:quantize(input), k:quantize(input), v:quantize(input)}
		local d = {}
		for i = 1, 3 do d[i] = q[i]:dequantize():to 'float64' end
		for _, o in ipairs {{heads=4}, {heads=4, causal=true}, {heads=4, scale=-0.3}, {heads=2, scale=2}, {heads=4, scale=0}} do
			for _, out in ipairs {{dtype='int8', scale=0.02}, {dtype='uint8', scale=0.02, zero_point=130}, {dtype='int16', scale=1e-4}} do
				local y = nn.attention(q[1], q[2], q[3], with(o, out))
				assert(y:origin().kernel == 'attention_int')
				local want = nn.attention(d[1], d[2], d[3], o):to 'float32':quantize(out)
				assert(off(y, want) <= 1, ('%s %s: %d'):format(input, out.dtype, off(y, want)))
			end
		end
	end
end)

it('hides keys by masks, lengths and a window', function()
	local seen, added = tensor.randn(2, 4, 7, 9):gt(-0.6), tensor.randn(7, 9) * 3
	for i = 1, 9 do added[2][i] = -math.huge end
	local lengths = tensor {dtype='int64', 4, 0}
	local cases = {{mask=seen}, {mask=seen, causal=true}, {mask=seen:narrow(2, 1, 1), lengths=lengths}, {mask=added}, {mask=added:to 'float64', scale=-0.4},
		{mask=added:t():contiguous():t()}, {mask=added:narrow(1, 1, 1), window=3}, {lengths=lengths, causal=true}, {window=2}, {window=100, causal=true},
		{mask=tensor {0, -1e30, 1, 2, -1e9, 0, 0, 3, -math.huge}}, {mask=seen:narrow(3, 1, 1):narrow(2, 1, 1)}}
	for _, input in ipairs {'int8', 'uint8', 'int16'} do
		local q, d = {a:quantize(input), k:quantize(input), v:quantize(input)}, {}
		for i = 1, 3 do d[i] = q[i]:dequantize():to 'float64' end
		for n, c in ipairs(cases) do
			local o, out = {heads=4, mask=c.mask, lengths=c.lengths, causal=c.causal, window=c.window, scale=c.scale}, {dtype='int8', scale=0.02, zero_point=3}
			local y = nn.attention(q[1], q[2], q[3], with(o, out))
			assert(y:origin().kernel == 'attention_int', n)
			local want = nn.attention(d[1], d[2], d[3], o):to 'float32':quantize(out)
			assert(off(y, want) <= 1, ('%s case %d: %d'):format(input, n, off(y, want)))
		end
	end
	local q = {a:quantize 'int8', k:quantize 'int8', v:quantize 'int8'}
	local y = nn.attention(q[1], q[2], q[3], {heads=4, mask=added, out={dtype='int8', scale=0.02, zero_point=3}})
	assert(y:codes():select(2, 2):eq(3):all():item()) -- sees no key: zeros
	print(pcall(nn.attention, q[1], q[2], q[3], {heads=4, lengths=tensor {dtype='int32', 4, 10}, out={dtype='int8', scale=0.02}}))  --> false attention: lengths: wanted 0 to 9 keys, got 10
end)

-- Exact integers in Lua: the scores, the mask in their units, half to even.
it('adds a mask in units of the scores', function()
	local q, kk, vv = tensor {{{0.5, -0.25}}}:quantize {dtype='int8', scale=0.01}, tensor {{{0.3, 0.7}, {-0.2, 0.1}, {0.4, 0.4}}}:quantize {dtype='int8', scale=0.01},
		tensor {{{1, 0}, {0, 1}, {0.5, 0.5}}}:quantize {dtype='int8', scale=0.01}
	local unit = q:qparams().scale:item() * kk:qparams().scale:item() * 0.5
	local mask = tensor {unit * 2.5, unit * 3.5, unit * -1.5}
	local function units(list) return nn.attention(q, kk, vv, {scale=0.5, heads=1, mask=tensor(list), out={dtype='int16', scale=1e-4}}):codes() end
	assert(nn.attention(q, kk, vv, {scale=0.5, heads=1, mask=mask, out={dtype='int16', scale=1e-4}}):codes():eq(units {unit * 2, unit * 4, unit * -2}):all():item())
end)

it('the same codes from views by head, and for any number of threads', function()
	local out = {dtype='int8', scale=0.02}
	local q, kk, vv = a:quantize 'int8', k:quantize 'int8', v:quantize 'int8'
	local function split(t, heads) return t:view(t:size(1), t:size(2), heads, 6):transpose(2, 3) end
	local y = nn.attention(q, kk, vv, {heads=4, causal=true, out=out})
	local z = nn.attention(split(q, 4), split(kk, 2), split(vv, 2), {causal=true, out=out})
	print(off(z:transpose(2, 3):reshape(2, 7, 24), y))  --> 0
	local big = tensor.randn(4, 64, 64):quantize 'int8'
	local before = tensor.threads(1)
	local one = nn.attention(big, big, big, {heads=8, out=out})
	tensor.threads(2)
	print(off(nn.attention(big, big, big, {heads=8, out=out}), one))  --> 0
	tensor.threads(before)
	print(off(nn.attention(big:transpose(2, 3), big:transpose(2, 3), big:transpose(2, 3), {heads=8, out=out}),
		nn.attention(big:transpose(2, 3):contiguous(), big:transpose(2, 3):contiguous(), big:transpose(2, 3):contiguous(), {heads=8, out=out})))  --> 0
	print(nn.attention(q:narrow(1, 1, 0), kk:narrow(1, 1, 0), vv:narrow(1, 1, 0), {heads=4, out=out}):size())  --> 0 7 24
end)

it('falls back and says why', function()
	local q, kk, vv = a:quantize 'int8', k:quantize 'int8', v:quantize 'int8'
	print((nn.attention(q, kk, vv, {heads=4, out='int8'}):explain()))  --> ...fallback...one given scale
	print((nn.attention(q, kk, v, {heads=4, out={dtype='int8', scale=0.1}}):explain()))  --> ...fallback...an operand is not quantized
	print(nn.attention(q, kk, vv, {heads=4}):dtype())  --> float32
	print((nn.attention(q, kk, vv, {heads=4, softcap=5, out={dtype='int8', scale=0.1}}):explain()))  --> ...fallback...softcap
	print(pcall(nn.attention, q, kk, vv, {heads=5, out='int8'}))  --> false ...widths of q and k...
end)
