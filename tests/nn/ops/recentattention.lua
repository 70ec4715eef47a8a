-- SPDX-License-Identifier: MIT
-- labels: quick host
-- nn.recentattention: what a query sees is compared with codes and floats put together position by position; parts of any length, rows alone
-- and any number of threads give the same bits; codes are written once.
tensor.seed(2)
local checks = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checks.lua')
local refused = checks.refused
local B, H, S, D, N, T = 2, 6, 3, 8, 40, 30
local x, kk, vv = tensor.randn(B, T, H * D), tensor.randn(B, T, S * D), tensor.randn(B, T, S * D)

local function heads(t, h) return t:view(t:size(1), t:size(2), h, D):transpose(2, 3) end

local function block_of(spec) return spec and spec:find '/2' and math.tointeger(tonumber(spec:match ':(%d+)')) or 1 end

local function room(spec, recent, rows)
	local c = tensor.zeros {rows or B, N, S * D}
	return spec and c:quantize(spec) or c, tensor.zeros {rows or B, math.max(1, spec and recent + block_of(spec) - 1 or 1), S * D}
end

-- What is there of the first n positions for a query that sees n.
local function seen(t, spec, recent, n)
	t = t:narrow(2, 1, n)
	local coded = spec and math.max(0, n - recent) // block_of(spec) * block_of(spec) or 0
	if coded == 0 then return t end
	local codes = t:narrow(2, 1, coded):contiguous():quantize(spec):dequantize()
	return coded == n and codes or tensor.cat({codes, t:narrow(2, coded + 1, n - coded)}, {axis = 2})
end

local function oracle(kspec, vspec, recent, turn, o)
	local list, q, k = {}, heads(x, H), heads(kk, S)
	if turn then q, k = nn.rope(q, turn), nn.rope(k, turn) end
	k = k:transpose(2, 3):reshape(B, T, S * D)
	for n = 1, T do
		local keys, values = heads(seen(k, kspec, recent, n):contiguous(), S), heads(seen(vv, vspec, recent, n):contiguous(), S)
		local from = o and o.window and math.max(1, n - o.window + 1) or 1
		list[n] = nn.attention(q:narrow(3, n, 1), keys:narrow(3, from, n - from + 1), values:narrow(3, from, n - from + 1), {softcap = o and o.softcap or nil})
			:transpose(2, 3):reshape(B, 1, H * D)
	end
	return tensor.cat(list, {axis = 2})
end

local function together(at, rows)
	local list = {dtype = 'int64'}
	for b = 1, rows or B do list[b] = at end
	return tensor(list)
end

local function in_parts(parts, kspec, vspec, recent, o, row)
	local function of(t) return row and t:narrow(1, row, 1) or t end
	local rows = row and 1 or B
	local k, kring = room(kspec, recent, rows)
	local v, vring = room(vspec, recent, rows)
	local with, at, list = {heads = H, recent = recent, kspec = kspec, vspec = vspec}, 0, {}
	for key, value in pairs(o or {}) do with[key] = value end
	for _, n in ipairs(parts) do
		local function part(t) return of(t):narrow(2, at + 1, n) end
		list[#list + 1] = nn.recentattention(part(x), part(kk), part(vv), k, v, kring, vring, together(at, rows), with)
		at = at + n
	end
	return tensor.cat(list, {axis = 2}), k, v
end

local ONES = {}
for i = 1, T do ONES[i] = 1 end
local PARTS = {{T}, ONES, {9, 1, 1, 3, 8, 7, 1}, {3, 17, 10}}
local FORMATS = {{'uint4/2:4+min', 'uint4/3:8+min'}, {'uint3/2:8+min', 'int8/3:24'}, {'int8:8', 'int4/2:16'}, {'nf4/2:5', nil}, {nil, 'uint2/3:7+min'}}

it('sees codes and floats as if positions came one by one, in parts of any length', function()
	for i, format in pairs(FORMATS) do
		for _, recent in ipairs {0, 1, 6, 64} do
			local want = oracle(format[1], format[2], recent, {start = 1})
			local first
			for _, parts in ipairs(PARTS) do
				local y = in_parts(parts, format[1], format[2], recent, {rope = 'pairs'})
				first = first or y
				assert(y:metrics(want).max < 1e-5 and y:eq(first):all():item(), ('%d %d'):format(i, recent))
			end
		end
	end
end)

it('windows and softcaps', function()
	local o = {window = 5, softcap = 2}
	assert(in_parts(PARTS[3], 'uint4/2:4+min', 'uint4/3:8+min', 2, o):metrics(oracle('uint4/2:4+min', 'uint4/3:8+min', 2, nil, o)).max < 1e-5)
end)

it('a block is coded once, when it is complete and the recent positions are behind it', function()
	local k, kring = room('uint4/2:4+min', 3)
	local v, vring = room('uint4/3:8+min', 3)
	local before, written = k:codes():clone(), 0
	for at = 0, T - 1 do
		local function part(t) return t:narrow(2, at + 1, 1) end
		nn.recentattention(part(x), part(kk), part(vv), k, v, kring, vring, together(at), {heads = H, recent = 3, kspec = 'uint4/2:4+min', vspec = 'uint4/3:8+min'})
		local coded = math.max(0, at + 1 - 3) // 4 * 4
		if written > 0 then assert(k:codes():narrow(2, 1, written):eq(before:narrow(2, 1, written)):all():item()) end
		before, written = k:codes():clone(), coded
	end
	assert(written == 24 and k:narrow(2, 25, 16):dequantize():abs():max():item() == 0)
	local want = kk:narrow(2, 1, 24):contiguous():quantize 'uint4/2:4+min'
	assert(k:narrow(2, 1, 24):dequantize():eq(want:dequantize()):all():item())
end)

it('a row alone, rows at different places, threads', function()
	local parts, before = {5, 1, 12, 4}, tensor.threads()
	local both = in_parts(parts, 'uint4/2:4+min', 'uint4/3:8+min', 3)
	for row = 1, B do
		assert(in_parts(parts, 'uint4/2:4+min', 'uint4/3:8+min', 3, nil, row)[1]:eq(both[row]):all():item())
	end
	for _, threads in ipairs {1, 3} do
		tensor.threads(threads)
		assert(in_parts(parts, 'uint4/2:4+min', 'uint4/3:8+min', 3):eq(both):all():item())
	end
	tensor.threads(before)
	local k, kring = room('uint4/2:4+min', 3)
	local v, vring = room('uint4/3:8+min', 3)
	local o = {heads = H, recent = 3, kspec = 'uint4/2:4+min', vspec = 'uint4/3:8+min'}
	local function call(row, at, n) -- of one row
		local function part(t) return t:narrow(1, row, 1):narrow(2, at + 1, n) end
		return nn.recentattention(part(x), part(kk), part(vv), k:narrow(1, row, 1), v:narrow(1, row, 1), kring:narrow(1, row, 1), vring:narrow(1, row, 1),
			together(at, 1), o)
	end
	call(1, 0, 7)
	call(2, 0, 13)
	local function ahead(t) return tensor.cat({t:narrow(1, 1, 1):narrow(2, 8, 9), t:narrow(1, 2, 1):narrow(2, 14, 9)}) end
	local y = nn.recentattention(ahead(x), ahead(kk), ahead(vv), k, v, kring, vring, tensor {7, 13, dtype = 'int64'}, o)
	assert(y[1]:eq(both:narrow(2, 8, 9)[1]):all():item() and y[2]:eq(both:narrow(2, 14, 9)[2]):all():item())
end)

it('many codes are decoded where they are read, with the same bits', function()
	local n, wide, spec = 300, 512, 'uint4/2:32+min'
	local q, k, v = tensor.randn(1, n, wide), tensor.randn(1, n, wide), tensor.randn(1, n, wide)
	local first
	for _, parts in ipairs {{n}, {290, 1, 7, 2}} do
		local kc, vc = tensor.zeros {1, n, wide}:quantize(spec), tensor.zeros {1, n, wide}:quantize 'uint3/3:32+min'
		local kring, vring, at, list = tensor.zeros {1, 33, wide}, tensor.zeros {1, 2, wide}, 0, {}
		for _, t in ipairs(parts) do
			local function part(x_) return x_:narrow(2, at + 1, t) end
			list[#list + 1] = nn.recentattention(part(q), part(k), part(v), kc, vc, kring, vring, together(at, 1),
				{heads = 8, recent = 2, kspec = spec, vspec = 'uint3/3:32+min', rope = 'half'})
			at = at + t
		end
		local y = tensor.cat(list, {axis = 2})
		first = first or y
		assert(y:eq(first):all():item())
	end
end)

it('bad input', function()
	local SPEC = 'uint4/2:4+min'
	local k, kring = room(SPEC, 0)
	local v, vring = room(nil, 0)
	local function call(o, kc, ring, at)
		local function part(t) return t:narrow(2, 1, 2) end
		return nn.recentattention(part(x), part(kk), part(vv), kc or k, v, ring or kring, vring, at or together(0), o or {heads = H, kspec = SPEC})
	end
	assert(call():size(3) == H * D)
	refused('recentattention: starts: wanted 0 to 38, so that 2 more positions fit, got 39', call, nil, nil, nil, together(39))
	refused('recentattention: operand 6: wanted a contiguous ring of float32 with 4 positions or more', call, {heads = H, kspec = SPEC, recent = 1})
	refused('recentattention: recent: wanted 0 or more positions, got -1', call, {heads = H, kspec = SPEC, recent = -1})
	refused('recentattention: kspec: wanted the spec of the codes, got none', call, {heads = H})
	refused('recentattention: wanted kspec and vspec of the codes in the caches', call, {heads = H, kspec = 'uint4/2:2+min'}, nil, nil, together(3))
	refused('in blocks along axis 2 or 3', call, {heads = H, kspec = 'int8'}, tensor.zeros {B, N, S * D}:quantize 'int8')
	refused('recentattention: wanted heads= that divides q', call, {heads = 5, kspec = SPEC})
	refused('recentattention: wanted q (b, t, heads * d)', call, nil, tensor.zeros {B, S, N, D})
end)
