-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Codes of 2 to 6 bits in packed dtypes against the same codes in bytes ('int3' and 'int8 bits=3' have the same scales and codes):
-- equal codes, equal results, bit for bit, on the same integer paths; lengths that are no multiple of a group of elements.
local names = {}
for _, name in ipairs(quant.dtype()) do
	local d = quant.dtype(name)
	if d.bits < 8 and d.kind ~= 'binary' then names[#names + 1] = name end
end
assert(#names == 10)

-- the spec with the codes in bytes
local function whole(spec)
	local dtype, rest = spec:match '^(u?int%d)(.*)$'
	return ('%s8%s bits=%s'):format(dtype:sub(1, -2), rest, dtype:sub(-1))
end

local function equal(a, b, what)
	if a:quantized() or b:quantized() then
		assert(a:quantized() and b:quantized(), what .. ': one is quantized')
		local p, q = a:qparams(), b:qparams()
		assert(p.scale:eq(q.scale):all():item(), what .. ': scales')
		assert((p.zero_point == nil) == (q.zero_point == nil), what .. ': zero points')
		if p.zero_point then assert(p.zero_point:to('int32'):eq(q.zero_point:to 'int32'):all():item(), what .. ': zero points') end
		a, b = a:codes():to 'int32', b:codes():to 'int32'
	end
	assert(table.concat({a:size()}, ' ') == table.concat({b:size()}, ' '), what .. ': sizes')
	assert(a:dtype() == b:dtype(), what .. ': ' .. a:dtype() .. ' and ' .. b:dtype())
	assert(a:eq(b):all():item(), what .. ': values')
end

-- Runs f with packed and whole operands; `path`: what the ledger must say of the packed result.
local function compare(what, path, f, packed, bytes)
	local a, b = f(table.unpack(packed)), f(table.unpack(bytes))
	equal(a, b, what)
	if path then assert(a:origin().path == path, what .. ': path ' .. a:origin().path) end
end

tensor.seed(7)
local x, w, v = tensor.randn(5, 19), tensor.randn(11, 19), tensor.randn(5, 11)
local image, kernel = tensor.randn(2, 3, 7, 9), tensor.randn(5, 3, 3, 3)
local ids = tensor {3, 1, 4, 1, 5, dtype = 'int64'}

for _, name in ipairs(names) do
	local spec = quant.dtype(name)
	local function pair(t, grain)
		return t:quantize(name .. (grain or '')), t:quantize(whole(name .. (grain or '')))
	end
	describe(name, function()
		it('has codes, decodes and counts bytes', function()
			for _, grain in ipairs {'', '/1', '/2', ':4', ':7', ':32', '/1:3', '@mse'} do
				local a, b = pair(x, grain)
				equal(a, b, grain)
				equal(a:dequantize(), b:dequantize(), grain .. ' decoded')
				local group = spec.packed
				local bytes = 5 * ((19 + group - 1) // group * group * spec.bits // 8)
				local p = a:qparams()
				assert(a:nbytes() == bytes + p.scale:nbytes() + (p.zero_point and p.zero_point:nbytes() or 0), grain .. ': bytes')
			end
		end)
		it('multiplies exactly', function()
			local a, a8 = pair(x)
			for _, grain in ipairs {'', '/1'} do
				local b, b8 = pair(w, grain)
				compare('linear' .. grain, 'int8', function(p, q) return p:linear(q) end, {a, b}, {a8, b8})
				compare('linear out=' .. grain, 'int8', function(p, q) return p:linear(q, {out = 'uint8'}) end, {a, b}, {a8, b8})
				compare('matmul' .. grain, 'int8', function(p, q) return p:matmul(q:t()) end, {a, b}, {a8, b8})
				compare('with bytes' .. grain, 'int8', function(q) return x:quantize('uint8'):linear(q) end, {b}, {b8})
			end
			local blocks, blocks8 = pair(w, ':8')
			compare('blocks', nil, function(q) return x:linear(q) end, {blocks}, {blocks8})
		end)
		it('multiplies to codes of its own', function()
			local a, a8 = pair(x)
			local b, b8 = pair(w, '/1')
			equal(a:linear(b, {out = name}), a8:linear(b8, {out = whole(name)}), 'linear out=')
			equal(a:linear(b, {out = {dtype = name, scale = 0.5}}), a8:linear(b8, {out = {dtype = whole(name):match '%w+', bits = spec.bits, scale = 0.5}}),
				'linear out= with a scale')
		end)
		it('convolves', function()
			local a, a8 = pair(image)
			for _, grain in ipairs {'', '/1'} do
				local k, k8 = pair(kernel, grain)
				compare('conv2d' .. grain, 'int8', function(p, q) return p:conv2d(q, {pad = 1}) end, {a, k}, {a8, k8})
				compare('conv2d out=' .. grain, 'int8', function(p, q) return p:conv2d(q, {out = 'int8'}) end, {a, k}, {a8, k8})
				equal(a:conv2d(k, {out = name}), a8:conv2d(k8, {out = whole(name)}), 'conv2d out= of its own')
			end
		end)
		it('stays in integers elsewhere', function()
			local a, a8 = pair(x)
			local b, b8 = pair(x:flip(1))
			local i, i8 = pair(image)
			compare('relu', 'integer', function(p) return p:relu() end, {a}, {a8})
			for _, grain in ipairs {'/1', '/2'} do
				local c, c8 = pair(x, grain)
				compare('relu' .. grain, 'integer', function(p) return p:relu() end, {c}, {c8})
			end
			for _, op in ipairs {'max', 'min', 'argmax', 'argmin'} do
				compare(op, 'integer', function(p) return p[op](p, {axis = 2}) end, {a}, {a8})
			end
			compare('maxpool2d', 'integer', function(p) return p:maxpool2d(2) end, {i}, {i8})
			compare('avgpool2d', 'integer', function(p) return p:avgpool2d(2) end, {i}, {i8})
			for _, out in ipairs {'int8', 'uint8', 'int16'} do
				compare('add ' .. out, 'integer', function(p, q) return p:add(q, {out = out}) end, {a, b}, {a8, b8})
				compare('mul ' .. out, 'integer', function(p, q) return p:mul(q, {out = out}) end, {a, b}, {a8, b8})
				compare('cat ' .. out, 'integer', function(p, q) return tensor.cat({p, q}, {axis = 2, out = out}) end, {a, b}, {a8, b8})
				compare('gelu ' .. out, 'integer', function(p) return p:gelu {out = out} end, {a}, {a8})
			end
			local fixed = {out = {dtype = 'uint8', scale = 1 / 256}}
			compare('softmax', 'integer', function(p) return p:softmax(2, fixed) end, {a}, {a8})
			compare('mean', 'integer', function(p) return p:mean {axis = 2, out = {dtype = 'int8', scale = 0.02}} end, {a}, {a8})
			for _, op in ipairs {'add', 'mul'} do
				equal(a[op](a, b, {out = name}), a8[op](a8, b8, {out = whole(name)}), op .. ' to its own codes')
			end
			equal(tensor.cat({a, b}, {axis = 2, out = name}), tensor.cat({a8, b8}, {axis = 2, out = whole(name)}), 'cat to its own codes')
			equal(a:gelu {out = name}, a8:gelu {out = whole(name)}, 'gelu to its own codes')
		end)
		it('looks up rows', function()
			for _, grain in ipairs {'', '/1', ':4'} do
				local t, t8 = pair(w, grain)
				equal(t:embedding(ids), t8:embedding(ids), 'embedding' .. grain)
				assert(t:embedding(ids):origin().path == name)
			end
		end)
		it('falls back with the same numbers', function()
			local a, a8 = pair(x)
			equal(a + v:sum(), a8 + v:sum(), 'add')
			equal(a:sum {axis = 1}, a8:sum {axis = 1}, 'sum')
			equal(a:exp(), a8:exp(), 'exp')
			equal(a:sort(2), a8:sort(2), 'sort')
		end)
	end)
end
