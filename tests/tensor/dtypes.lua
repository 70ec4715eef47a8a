-- SPDX-License-Identifier: MIT
-- Every dtype from Lua: casts, indexing and writes, copies, files, print, facts; what float8 and packed types are in arithmetic.
local function names(test)
	local list = {}
	for _, name in ipairs(quant.dtype()) do
		if test(quant.dtype(name)) then list[#list + 1] = name end
	end
	return list
end
local packed = names(function(d) return d.bits < 8 end)
local small = names(function(d) return d.float and d.bits == 8 end)
assert(#packed >= 11 and #small >= 3)

local function same(a, b) return a:dtype() == b:dtype() and (a:to 'float64'):eq(b:to 'float64'):all():item() end

it('has its facts', function()
	print(quant.dtype('int3').packed, quant.dtype('int6').packed, quant.dtype('int2').packed, quant.dtype('int8').packed)  --> 8 4 4 1
	print(quant.dtype('uint3').whole, quant.dtype('int5').whole, quant.dtype('binary').whole, quant.dtype('int16').whole)  --> uint8 int8 int8 int16
	print(quant.dtype('float8_e4m3').kind, quant.dtype('uint2').kind, quant.dtype('bool').kind, quant.dtype('binary').kind)  --> float uint bool binary
	print(pcall(quant.dtype, 'float8'))  --> false dtype: wanted one of float32...got 'float8'; did you mean 'float...
end)

for _, name in ipairs(packed) do
	describe(name, function()
		local d = quant.dtype(name)
		local size = 2 * d.packed + 3
		local function numbers(n) -- whole numbers of the type
			if d.kind == 'binary' then return (tensor.arange(0, n - 1) % 3):eq(1):to 'int64' * 2 - 1 end
			return tensor.arange(0, n - 1) * 7 % (d.max - d.min + 1) + d.min
		end
		local x = numbers(5 * size):view(5, size)
		local q = x:to(name)
		it('holds what it is made from', function()
			assert(q:dtype() == name and (q:to 'int64'):eq(x:to 'int64'):all():item())
			assert(q:nbytes() == 5 * ((size + d.packed - 1) // d.packed) * d.packed * d.bits // 8)
			assert(same(q:clone(), q) and same(q:reshape(size, 5), (x:reshape(size, 5)):to(name)) and same(q:t(), (x:t()):to(name)))
			assert(tensor {2, dtype = 'float32'}:to(name):to('float32'):item() == math.max(d.min, math.min(d.max, 2)) or d.kind == 'binary')
		end)
		it('is read and written by index', function()
			local y = q:clone()
			y[2] = q[5]
			y[{3, d.packed + 1}] = d.min
			local z = x:to 'int64':clone()
			z[2], z[{3, d.packed + 1}] = z[5]:clone(), d.min
			assert(not pcall(function() y[{3, 2}] = d.min end), 'an element within a byte')
			assert((y:to 'int64'):eq(z):all():item())
			assert(same(y[{{2, 4}}], z[{{2, 4}}]:to(name)))
			assert(same(y[{{}, {d.packed + 1, size}}], z[{{}, {d.packed + 1, size}}]:to(name)))
			assert(not pcall(function() return y[{{}, {2, size}}] end), 'a slice that begins within a byte')
			assert(same(q[x:eq(d.max)], x[x:eq(d.max)]:to(name)))
		end)
		it('is joined, saved and printed', function()
			assert(same(tensor.cat {q, q}, tensor.cat {x, x}:to(name)) and same(tensor.stack {q, q}, tensor.stack {x, x}:to(name)))
			local file = os.tmpname() .. '.safetensors'
			tensor.save(file, {a = q, b = q:t(), c = q[{{}, {d.packed + 1, size}}]})
			local back = tensor.load(file)
			assert(same(back.a, q) and same(back.b, q:t()) and same(back.c, q[{{}, {d.packed + 1, size}}]:clone()))
			os.remove(file)
			assert(tostring(q):find(name, 1, true))
		end)
	end)
end

for _, name in ipairs(small) do
	describe(name, function()
		local positive = name:find 'e8m0' ~= nil
		local x = tensor {1, 2, 0.5, 4, 8, 0.25}
		local q = x:to(name)
		it('holds powers of two', function()
			assert(q:nbytes() == 6 and (q:to 'float32'):eq(x):all():item() and (q:to 'float64'):eq(x:to 'float64'):all():item())
			assert((q:to 'int32'):eq(x:to 'int32'):all():item())
			assert(same(q:to 'float16':to(name), q) and same(q:view(2, 3):t():contiguous():t():reshape(6), q))
		end)
		it('computes in float32 and rounds once', function()
			assert((q * 2):dtype() == name and ((q * 2):to 'float32'):eq(x * 2):all():item())
			assert((q + tensor {0.5, dtype = 'float16'}):dtype() == 'float32')
			assert(q:view(2, 3):matmul(q:view(3, 2)):dtype() == name)
			assert(positive or q:neg():to('float32'):eq(-x):all():item())
		end)
		it('is saved by its name, but not for NumPy', function()
			local file = os.tmpname() .. '.safetensors'
			tensor.save(file, {a = q})
			assert(same(tensor.load(file).a, q))
			local f <close> = assert(io.open(file, 'rb'))
			assert(f:read 'a':find('"F8_' .. name:match '_(.*)$':upper() .. '"', 1, true))
			os.remove(file)
			local good, message = pcall(tensor.save, os.tmpname() .. '.npy', q)
			assert(not good and message:find('wanted a dtype that NumPy has, got ' .. name, 1, true), message)
		end)
		it('is printed and written by index', function()
			local y = q:clone()
			y[2] = 4
			assert(y[2]:item() == 4 and y[1]:item() == 1 and tostring(y):find(name, 1, true))
		end)
	end)
end

it('float8 overflows as its format says', function()
	local x = tensor {448, 464, 465, -1e9, 0 / 0}
	print(x:to 'float8_e4m3')  --> float8_e4m3(5) ...448...448...nan...nan...nan
	print(tensor {57344, 61440, -1e9}:to 'float8_e5m2')  --> float8_e5m2(3)...57344...inf...-inf
	print(tensor {0, -1, 1.5, 3, 1e39}:to 'float8_e8m0')  --> float8_e8m0(5)...nan...nan...2...4...nan
end)

it('float8 is trained and cast in models', function()
	local w = tensor {1, 2, 3, 4, dtype = 'float8_e4m3', grad = true}
	local o = optim.sgd({w}, {lr = 1})
	local y = (w * 2):sum()
	y:backward()
	o:step()
	print(w:detach():to 'float32')  --> float32(4) -1  0  1  2
	local m = nn.Linear(4, 2):to 'float8_e5m2'
	print(m.weight:dtype(), m:forward(tensor.ones(1, 4)):dtype())  --> float8_e5m2 float32
end)
