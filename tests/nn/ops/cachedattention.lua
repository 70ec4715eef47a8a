-- SPDX-License-Identifier: MIT
-- labels: quick host
-- nn.cachedattention: in steps what nn.rope and nn.attention give at once, for every format of the caches; rows that begin at different
-- places; what codes of a position are.
tensor.seed(1)
local checks = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checks.lua')
local refused = checks.refused
local B, H, S, D, N, T = 2, 6, 3, 8, 40, 30
local x, kk, vv = tensor.randn(B, T, H * D), tensor.randn(B, T, S * D), tensor.randn(B, T, S * D)

local function heads(t, h) return t:view(B, T, h, D):transpose(2, 3) end

local function whole(o, turn)
	local q, k = heads(x, H), heads(kk, S)
	if turn then q, k = nn.rope(q, turn), nn.rope(k, turn) end
	return nn.attention(q, k, heads(vv, S), o):transpose(2, 3):reshape(B, T, H * D)
end

local function room(format, rows)
	local c = tensor.zeros {rows or B, S, N, D}
	if format:find '^b?float' then return c:to(format) end
	return c:quantize(format), format
end

local function options(o, kspec, vspec)
	local with = {heads = H, kspec = kspec, vspec = vspec}
	for key, value in pairs(o) do with[key] = value end
	return with
end

local function in_steps(format, o, starts)
	local k, spec = room(format)
	local v, at, parts = room(format), 0, {}
	for _, n in ipairs {9, 1, 1, 3, 8, 7, 1} do
		local function part(t) return t:narrow(2, at + 1, n) end
		parts[#parts + 1] = nn.cachedattention(part(x), part(kk), part(vv), k, v, starts(at), options(o, spec, spec))
		at = at + n
	end
	return tensor.cat(parts, {axis = 2}), k, v
end

local function together(at) return tensor {at, at, dtype = 'int64'} end

it('is attention of the whole text, for floats', function()
	for _, turn in ipairs {{}, {style = 'pairs', base = 500}, {style = 'half', dims = 6}} do
		for _, o in ipairs {{}, {window = 7}, {softcap = 2.5, scale = 0.4}} do
			local with = {rope = turn.style, base = turn.base, dims = turn.dims, window = o.window, softcap = o.softcap, scale = o.scale}
			local want = whole({causal = true, window = o.window, softcap = o.softcap, scale = o.scale}, turn.style and turn)
			assert(in_steps('float32', with, together):metrics(want).max < 1e-5)
			assert(in_steps('float16', with, together):metrics(want).max < 1e-2)
			assert(in_steps('bfloat16', with, together):metrics(want).max < 5e-2)
		end
	end
end)

it('is attention to what codes decode to', function()
	for _, format in ipairs {'int8:8', 'uint8:8', 'int8:4', 'int4:8', 'int4:8+min', 'nf4:8', 'fp8_e4m3:8'} do
		local y, k, v = in_steps(format, {}, together)
		local want = heads(kk, S):contiguous():quantize(format)
		assert(k:narrow(3, 1, T):dequantize():eq(want:dequantize()):all():item(), format)
		local decoded = nn.attention(heads(x, H), k:dequantize():narrow(3, 1, T), v:dequantize():narrow(3, 1, T), {causal = true})
		assert(y:metrics(decoded:transpose(2, 3):reshape(B, T, H * D)).max < 1e-5, format)
		assert(k:narrow(3, T + 1, N - T):dequantize():abs():max():item() == 0, format)
	end
end)

it('rows that begin at different places, and what is behind them', function()
	local want = whole({causal = true}, {start = 1})
	for _, format in ipairs {'float32', 'int8:8'} do
		local k, spec = room(format)
		local v, o = room(format), options({rope = 'pairs'}, spec, spec)
		nn.cachedattention(x:narrow(2, 1, 12), kk:narrow(2, 1, 12), vv:narrow(2, 1, 12), k, v, together(0), o)
		local function row(t, b, at, n) return t:narrow(1, b, 1):narrow(2, at, n) end
		local function both(t, n) return tensor.cat({row(t, 1, 6, n), row(t, 2, 13, n)}) end
		for _, n in ipairs {1, 3, 9} do -- the first row writes over what it has seen
			local y = nn.cachedattention(both(x, n), both(kk, n), both(vv, n), k, v, tensor {5, 12, dtype = 'int32'}, o)
			local bound = spec and 0.1 or 1e-5
			assert(y[1]:metrics(row(want, 1, 6, n)[1]).max < bound and y[2]:metrics(row(want, 2, 13, n)[1]).max < bound)
		end
	end
end)

it('tables of cosines and sines', function()
	local place = tensor.arange(0, N - 1):to 'float64':view(N, 1)
	local angle = place * (tensor {10000, dtype = 'float64'} ^ (tensor.arange(0, 3):to 'float64' * (-2 / 8)))
	local k, v, k2, v2 = room 'float32', room 'float32', room 'float32', room 'float32'
	for _, at in ipairs {0, 10} do
		local function part(t) return t:narrow(2, at + 1, 10) end
		local a = nn.cachedattention(part(x), part(kk), part(vv), k, v, together(at), {heads = H, rope = 'half'})
		local b = nn.cachedattention(part(x), part(kk), part(vv), k2, v2, together(at), {heads = H, rope = 'half', cos = angle:cos(), sin = angle:sin()})
		assert(a:eq(b):all():item() and k:eq(k2):all():item())
	end
	refused('cachedattention: cos: wanted 12 positions, got 11', nn.cachedattention, x:narrow(2, 1, 2), kk:narrow(2, 1, 2), vv:narrow(2, 1, 2), k, v, together(10),
		{heads = H, rope = 'half', cos = angle:cos():narrow(1, 1, 11), sin = angle:sin():narrow(1, 1, 11)})
end)

it('the same bits on any number of threads', function()
	local before, first = tensor.threads(), nil
	for _, threads in ipairs {1, 2, 3} do
		tensor.threads(threads)
		local y = in_steps('int8:8', {rope = 'pairs'}, together)
		first = first or y
		assert(y:eq(first):all():item())
	end
	tensor.threads(before)
end)

it('bad input', function()
	local k, v = room 'float32', room 'float32'
	local function call(o, q, at, kc)
		return nn.cachedattention(q or x:narrow(2, 1, 2), kk:narrow(2, 1, 2), vv:narrow(2, 1, 2), kc or k, v, at or together(0), o or {heads = H})
	end
	assert(call():size(3) == H * D)
	refused('cachedattention: starts: wanted 0 to 38, so that 2 more positions fit, got 39', call, nil, nil, together(39))
	refused('cachedattention: starts: wanted 0 to 38', call, nil, nil, together(-1))
	refused('cachedattention: heads: wanted 1 or more, got 0', call, {heads = 0})
	refused('cachedattention: wanted sizes that go together', call, {heads = 4})
	refused('cachedattention: wanted q (b, t, heads * d)', call, nil, x[1])
	refused('cachedattention: dims: wanted an even number from 2 to 8, got 3', call, {heads = H, rope = 'half', dims = 3})
	refused('cachedattention: window: wanted 1 or more, got 0', call, {heads = H, window = 0})
	refused('cachedattention: kspec: wanted the spec of the codes in operand 4, got none', call, nil, nil, nil, (room 'int8:8'))
	refused('codes with scales of their own in blocks along it', call, {heads = H, kspec = 'int8'}, nil, nil, tensor.zeros {B, S, N, D}:quantize 'int8')
	refused('cachedattention: wanted kspec and vspec of the codes in the caches', call, {heads = H, kspec = 'int8:4'}, nil, nil, (room 'int8:8'))
	refused('cachedattention: operand 1: wanted floats', call, nil, x:narrow(2, 1, 2):to 'int32')
	assert(call(nil, x:narrow(2, 1, 2), tensor {38, 0, dtype = 'int64'}):size(2) == 2)
end)
