-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Integer products against 64-bit sums in Lua, for every pair of dtypes and granularities.
local seed = 7
local function random() seed = (seed * 1103515245 + 12345) % 2147483648 return seed / 2147483648 end
local function noise(m, n)
	local t = {}
	for i = 1, m do
		t[i] = {}
		for j = 1, n do t[i][j] = (random() - 0.4) * 4 end
	end
	return tensor(t)
end

-- (float)sum * (sa * sb), each step rounded to float32
local function f32(v) return string.unpack('f', string.pack('f', v)) end
local function numbers(q, axis, n)
	local p, s, z = q:qparams(), {}, {}
	for i = 1, n do
		local at = p.axis == axis and i or nil
		s[i] = at and p.scale[at]:item() or p.scale:item()
		z[i] = p.zero_point and (at and p.zero_point[at]:item() or p.zero_point:item()) or 0
	end
	return s, z
end
local function oracle(qa, qb)
	local a, b = qa:codes():to('int64'):totable(), qb:codes():to('int64'):totable()
	local m, k, n = #a, #b, #b[1]
	local sa, za = numbers(qa, 1, m)
	local sb, zb = numbers(qb, 2, n)
	local out = {}
	for i = 1, m do
		out[i] = {}
		for j = 1, n do
			local sum = 0
			for l = 1, k do sum = sum + (a[i][l] - za[i]) * (b[l][j] - zb[j]) end
			out[i][j] = f32(f32(sum) * f32(sa[i] * sb[j]))
		end
	end
	return tensor(out)
end

local x, w = noise(5, 37), noise(37, 19)
local left = {'int8', 'int8/1', 'uint8', 'uint8/1', 'int4', 'uint4/1', 'int16', 'uint16/1', 'binary', 'binary/1',
	{dtype = 'int8', scheme = 'asymmetric', axis = 1}, {dtype = 'uint8', scheme = 'symmetric'}, {bits = 3}}
local right = {'int8', 'int8/2', 'uint8', 'uint8/2', 'int4/2', 'uint4', 'int16/2', 'uint16', 'binary', 'binary/2'}

describe('matmul', function()
	it('is the exact integer sum, scaled', function()
		for _, sa in ipairs(left) do
			for _, sb in ipairs(right) do
				local qa, qb = x:quantize(sa), w:quantize(sb)
				local y = qa:matmul(qb)
				local name = tostring(quant.spec(sa)) .. ' x ' .. tostring(quant.spec(sb))
				assert(y:metrics(oracle(qa, qb)).max == 0, name)
				local wide = qa:dtype():find '16' or qb:dtype():find '16'
				local bits = qa:dtype() == 'binary' and qb:dtype() == 'binary'
				assert(y:origin().path == (bits and 'binary' or wide and 'int16' or 'int8'), name .. y:origin().path)
				assert(y:origin().kernel:find '^gemm_', name)
			end
		end
	end)
	it('takes views: transposed, sliced, stepped', function()
		local qa, qb = x:quantize 'uint8/1', w:t():clone():quantize 'int8/1'
		assert(qa:matmul(qb:t()):metrics(oracle(qa, qb:t())).max == 0)
		local pa, pb = qa['2:4, 3:20'], qb:t()['3:20, 4:9']
		assert(pa:matmul(pb):metrics(oracle(pa, pb)).max == 0)
		assert(pa:matmul(pb):origin().path == 'int8')
	end)
	it('takes batches, with scales per batch', function()
		local a, b = noise(6, 8):view(2, 3, 8), noise(8, 5)
		local qa, qb = a:quantize 'int8/1', b:quantize 'int8'
		local y = qa:matmul(qb)
		assert(y:origin().path == 'int8')
		for i = 1, 2 do assert(y[i]:metrics(qa[i]:matmul(qb)).max == 0) end
	end)
	it('of vectors drops their axis', function()
		local q = tensor{1, 2, 3}:quantize 'int8'
		assert(q:matmul(q):dim() == 0 and q:matmul(q):origin().path == 'int8')
	end)
	it('falls back with the reason where no integer product exists', function()
		local function reason(a, b) local o = a:matmul(b):origin() assert(o.path == 'fallback') return o.reason end
		assert(reason(x:quantize 'int8/2', w:quantize 'int8'):find 'varies along the summed axis')
		assert(reason(x:quantize 'int4:8', w:quantize 'int8'):find 'blocks')
		assert(reason(x:quantize 'int8', w):find 'not quantized')
		assert(reason(x:quantize{dtype = 'int8', scheme = 'log'}, w:quantize 'int8'):find 'not multiples of a scale')
		local q = x:quantize 'int8'
		assert(q:matmul(w):metrics(q:dequantize():matmul(w)).max == 0)
	end)
end)

-- K beyond the 32-bit bound, extreme codes: the float is the exact sum rounded once
describe('long sums', function()
	for _, k in ipairs{70000, 139264} do
		it('are exact at K = ' .. k, function()
			local function full(code, dtype, shape)
				local q = tensor.zeros(shape):quantize{dtype = dtype, scale = 1}
				q:codes():fill_(code)
				return q
			end
			for _, c in ipairs{{'int8', -128, 'int8', -128}, {'int8', 127, 'int8', -128}, {'uint8', 255, 'uint8', 255},
				{'uint8', 255, 'int8', -128}, {'int16', -32768, 'int16', -32768}, {'int16', -32768, 'int8', 127}} do
				local a, b = full(c[2], c[1], {2, k}), full(c[4], c[3], {k, 3})
				local y = a:matmul(b)
				assert(y:origin().path ~= 'fallback')
				assert(y:totable()[2][3] == f32(c[2] * c[4] * k), c[1] .. ' ' .. c[3])
				local p = a:codes():matmul(b:codes(), {dtype = 'int64'})
				assert(p:totable()[1][1] == c[2] * c[4] * k)
			end
			local z = tensor.zeros{1, k}:quantize{dtype = 'uint8', scale = 1, zero_point = 255}
			z:codes():fill_(0)
			assert(z:matmul(z:t()):item() == f32(255 * 255 * k))
		end)
	end
	it('of plain 8-bit integers that leave int32 are an error', function()
		local a = tensor.zeros{1, 139264, dtype = 'int8'}
		a:fill_(-128)
		local ok, message = pcall(a.matmul, a, a:t())
		assert(not ok and message:find 'int32' and message:find 'int64', message)
	end)
end)

describe('linear', function()
	it('adds bias and activation behind the exact sum', function()
		local qx, qw = x:quantize 'uint8', noise(19, 37):quantize 'int8/1'
		local bias = noise(1, 19)[1]
		local y = qx:linear(qw, bias)
		assert(y:origin().path == 'int8')
		assert(y:metrics(qx:matmul(qw:t()) + bias).max == 0)
		assert(qx:linear(qw, bias, {act = 'relu'}):metrics(y:relu()).max == 0)
	end)
	it('keeps leading axes', function()
		local qx = noise(6, 37):view(2, 3, 37):quantize 'int8'
		local qw = noise(4, 37):quantize 'int8/1'
		local y = qx:linear(qw)
		assert(y:dim() == 3 and y:size(3) == 4 and y:origin().path == 'int8')
		assert(y[2]:metrics(qx[2]:linear(qw)).max == 0)
	end)
end)

describe('out=', function()
	it('rescales the sums once', function()
		local qa, qb = x:quantize 'int8', w:quantize 'int8/2'
		local q = qa:matmul(qb, {out = {dtype = 'uint8', scale = 0.2, zero_point = 100}})
		assert(q:dtype() == 'uint8' and q:origin().path == 'int8')
		local a, b, codes = qa:codes():to('int64'):totable(), qb:codes():to('int64'):totable(), q:codes():totable()
		local sa, sb, sy = qa:qparams().scale:item(), qb:qparams().scale:totable(), f32(0.2)
		for i = 1, 5 do
			for j = 1, 19 do
				local sum = 0
				for l = 1, 37 do sum = sum + a[i][l] * b[l][j] end
				local v = f32(f32(sum) * f32(sa * sb[j] / sy))
				local r = math.floor(v + 0.5)
				if r - v == 0.5 and r % 2 == 1 then r = r - 1 end
				assert(codes[i][j] == math.max(0, math.min(255, r + 100)))
			end
		end
	end)
	it('finds its own range when none is given', function()
		local y = x:quantize('int8'):matmul(w:quantize 'int8')
		local q = x:quantize('int8'):matmul(w:quantize 'int8', {out = 'int8'})
		assert(q:qparams().scale:item() == y:quantize('int8'):qparams().scale:item())
		assert(y:metrics(q).max <= q:qparams().scale:item() * 0.5001)
	end)
	it('with relu starts at zero', function()
		local qx, qw = x:quantize 'uint8', noise(19, 37):quantize 'int8/1'
		local q = qx:linear(qw, nil, {act = 'relu', out = 'uint8'})
		assert(q:qparams().zero_point:item() == 0 and q:dequantize():min():item() == 0)
	end)
	it('works for a result by rows through float', function()
		local q = x:quantize('int8'):matmul(w:quantize 'int8', {out = 'int8/1'})
		assert(q:qparams().scale:size(1) == 5)
	end)
end)

it('gives 16-bit floats as rounded from float32, whatever computes the sums', function()
	local function same(got, want, text)
		assert(got:dtype() == want:dtype(), text)
		assert(got:to('float32'):eq(want:to 'float32'):all():item(), text)
	end
	for _, out in ipairs {'float16', 'bfloat16'} do
		for _, code in ipairs {{'uint8', 'int8/1'}, {'int8', 'uint8'}, {'int16', 'int8'}, {'binary', 'binary'}, {'int4', 'int4/1'}} do
			for _, size in ipairs {{1, 3, 5}, {2, 70, 300}, {40, 64, 64}, {130, 200, 96}} do
				local m, n, k = table.unpack(size)
				local text = ('%s %s %dx%dx%d'):format(out, code[1], m, n, k)
				local x, w, b = tensor.randn(m, k):quantize(code[1]), tensor.randn(n, k):quantize(code[2]), tensor.randn(n)
				for _ = 1, 3 do -- panels are made meanwhile
					for _, act in ipairs {false, 'relu', 'gelu'} do
						same(x:linear(w, b, {out=out, act=act or nil}), x:linear(w, b, {act=act or nil}):to(out), text)
					end
					same(x:matmul(w:t(), {out=out}), x:matmul(w:t()):to(out), text)
				end
			end
		end
		local x, y = tensor.randn(3, 5, 7):quantize 'int8', tensor.randn(3, 7, 4):quantize 'uint8'
		same(x:matmul(y, {out=out}), x:matmul(y):to(out), out .. ' in batches')
		local large = tensor.full {4, 40000, value=200, dtype='uint8'} -- sums of 64 bits
		local q = large:to('float32'):quantize {dtype='uint8', scale=1, zero_point=0}
		same(q:linear(q, {out=out}), q:linear(q):to(out), out .. ' of sums of 64 bits')
	end
end)
