-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Codes of channels that differ in bits take their own widths, and everything reads and writes them as if they were
-- dense: the plain copy of the codes (`dense`) is what each view, read and write is compared with.
tensor.seed(5)
local function equal(a, b) return a:eq(b):all():item() end

-- Bits per channel of the axis with n channels, up to `most`.
local function bits_of(n, most)
	local bits = {}
	for i = 1, n do bits[i] = 2 + (i * 5 + most) % (most - 1) end
	bits[1], bits[n] = 2, most
	return bits
end

local CASES = {}
for _, most in ipairs {3, 4, 5, 6, 7, 8, 9, 13, 16} do
	for _, dtype in ipairs {'int', 'uint'} do
		for _, size in ipairs {{5}, {5, 33}, {4, 3, 7}, {3, 8, 2, 16}, {2, 1, 5}} do
			for axis = 1, #size do
				if size[axis] > 1 then
					local width = most <= 6 and most or most <= 8 and 8 or 16
					CASES[#CASES + 1] = {size = size, axis = axis, bits = bits_of(size[axis], most), dtype = dtype .. width, most = most}
				end
			end
		end
	end
end

local function make(c)
	local q = (tensor.randn(table.unpack(c.size)) * 2):quantize{dtype = c.dtype, bits = c.bits, axis = c.axis}
	return q, q:codes():clone()
end

-- By definition: rows of whole bytes, a float32 scale, a zero point (none for symmetric codes of int) and a byte of bits.
local function bytes_of(size, axis, bits, zero)
	local n, sum = 1, 0
	for _, s in ipairs(size) do n = n * s end
	for _, b in ipairs(bits) do sum = sum + (n // size[axis] * b + 7) // 8 + 4 + 1 + zero end
	return sum
end

it('has the bytes of each channel alone', function()
	for _, c in ipairs(CASES) do
		local q = make(c)
		local zero = q:qparams().zero_point
		zero = zero and zero:nbytes() // zero:nelem() or 0
		local same = true
		for _, b in ipairs(c.bits) do same = same and b == c.bits[1] end
		assert(not same and q:dtype() == c.dtype)
		local wanted = bytes_of(c.size, c.axis, c.bits, zero)
		assert(q:nbytes() == wanted and quant.bytes(c.size, {dtype = c.dtype, bits = c.bits, axis = c.axis}) == wanted)
		q:check()
	end
	print(tensor.randn(3, 5):quantize{bits = {8, 4, 2}, axis = 1}:nbytes())  --> 25
	print(tensor.randn(3, 5):quantize{bits = {8, 4, 2}, axis = 1}[2]:nbytes())  --> 7
end)
it('takes that memory', function()
	local x, bits = tensor.randn(8, 100000), {8, 2, 2, 2, 2, 2, 2, 2}
	do local _ <close> = x:quantize{bits = bits, axis = 1} end -- temporaries keep their size
	collectgarbage()
	local before = tensor.memory().now
	local q = x:quantize{bits = bits, axis = 1}
	local held = tensor.memory().now - before
	assert(held >= q:nbytes() and held < q:nbytes() + 8192, held)
	before = tensor.memory().now
	local copy = q:clone()
	assert(tensor.memory().now - before < q:nbytes() + 8192 and copy:nbytes() == q:nbytes())
	before = tensor.memory().now
	for _, f in ipairs {q.dequantize, q.relu, q.codes} do local _ <close> = f(q) end
	assert(tensor.memory().now <= before + 8192, 'nothing dense is left')
end)

local VIEWS = {
	function(t) return t end,
	function(t) return t:narrow(1, 2, t:size(1) - 1) end,
	function(t) return t[2] end,
	function(t) return t[{{1, 1}}] end,
	function(t) return t:t() end,
	function(t) return t:permute(3, 1, 2) end,
	function(t) return t:permute(2, 3, 1):contiguous() end,
	function(t) return t:select(2, 3) end,
	function(t) return t:narrow(-1, 9, 8) end,
	function(t) return t:narrow(-1, 1, 2):contiguous() end,
	function(t) return t:unsqueeze(1):expand(3, table.unpack{t:size()}) end,
	function(t) return t:view(t:size(1), 1, -1) end,
	function(t) return t:view(1, table.unpack{t:size()}) end,
	function(t) return t:t():contiguous():t() end,
	function(t) return t:chunk(2)[1] end,
}

it('follows every view that dense codes follow', function()
	local seen = 0
	for _, c in ipairs(CASES) do
		local q, dense = make(c)
		local real = q:dequantize()
		for i, view in ipairs(VIEWS) do
			local good, v = pcall(view, q)
			if good then
				seen = seen + 1
				local what = ('%s %s view %d'):format(c.dtype, table.concat(c.size, ','), i)
				assert(equal(v:codes():to 'int64', view(dense:to 'int64')), what)
				assert(equal(v:dequantize(), view(real)), what)
				assert(v:nbytes() < view(dense:to 'int64'):nelem() * 8 + 9 * #c.bits, what)
				v:check()
			end
		end
	end
	assert(seen > 7 * #CASES, seen)
end)
it('takes writes of elements, slices, ops and codes, in range', function()
	for _, c in ipairs(CASES) do
		local q, dense = make(c)
		local twin = q:clone()
		assert(equal(q:codes():to 'int64', dense:to 'int64') and twin:nbytes() == q:nbytes())
		-- a number in all of a channel: as a write into the channel alone, and nothing else changes
		local n = c.size[c.axis]
		local good, part = pcall(q.select, q, c.axis, n) -- not within the bytes of packed dtypes
		if good and part:dim() > 0 then
			part:fill_(0.25)
			assert(equal(part:codes():to 'int64', part:codes():to 'int64':max():expand(table.unpack{part:size()})))
			assert(equal(q:narrow(c.axis, 1, n - 1):dequantize(), twin:narrow(c.axis, 1, n - 1):dequantize()))
		end
		q:mul_(1000)
		q:check()
		assert(q:nbytes() == twin:nbytes())
		q:copy_(twin)
		assert(equal(q:codes(), dense), 'copied')
		q:copy_(twin:dequantize())
		assert(equal(q:codes(), dense), 'quantized again')
		-- codes are a view; what a channel cannot hold saturates
		local view = q:codes()
		view:fill_(0)
		assert(q:codes():to 'int64':abs():sum():item() == 0)
		view:copy_(dense)
		assert(equal(q:dequantize(), twin:dequantize()))
		view:fill_((1 << quant.dtype(c.dtype).bits - (c.dtype:find '^i' and 1 or 0)) - 1)
		local most = q:codes():to 'int64'
		for i, b in ipairs(c.bits) do
			local hi = (1 << b) - 1
			if c.dtype:find '^i' then hi = hi >> 1 end
			assert(equal(most:narrow(c.axis, i, 1), tensor{hi, dtype = 'int64'}))
		end
	end
end)
it('is read and written element by element', function()
	local q = tensor{{1, -0.5, 0.26}, {1, -0.5, 0.26}, {-0.9, 0.3, 1.4}}:quantize{bits = {8, 4, 2}, axis = 1}
	print(q:codes()[2][1]:item(), q[1][1]:dequantize():item(), #q, q:codes():totable()[1][2])  --> 7	1.0	3	-64
	q[2][3] = 1
	q[{3, {1, 2}}] = 1.4
	q[1] = tensor{0, 1, -1}
	print(q:codes())  --> int8(3, 3)
	--> 0 127 -127
	--> 7  -3   7
	--> 1   1   1
	local sum = 0
	for _, row in ipairs(q:codes():totable()) do for _, code in ipairs(row) do sum = sum + code end end
	print(sum)  --> 14
	print(tostring(q):match 'axis 1', q:nbytes())  --> axis 1	21
end)
it('gives results that are stored so', function()
	local q = tensor.randn(6, 50):quantize{bits = {8, 4, 2, 3, 5, 6}, axis = 1}
	local codes = (400 + 200 + 100 + 150 + 250 + 300 + 6 * 4) // 8 -- of the six rows, and what rounds them up to bytes
	print(q:nbytes() - 30, codes)  --> 177 178
	for _, f in ipairs {function(t) return t:relu() end, function(t) return t:clone() end, function(t) return t:t():contiguous() end,
		function(t) return t:narrow(2, 1, 50):clone() end, function(t) return t:dequantize():quantize(t:spec()) end} do
		assert(f(q):nbytes() == q:nbytes() and tostring(f(q):qparams().bits) ~= '8')
	end
	assert(q[{{2, 4}}]:clone():nbytes() == q[{{2, 4}}]:nbytes() and q[{{2, 4}}]:nbytes() == 25 + 13 + 19 + 15)
end)
it('multiplies as dense codes do, before and after a write', function()
	local w = tensor.randn(24, 70):quantize{bits = bits_of(24, 8), axis = 1}
	for _, rows in ipairs {1, 5, 200} do
		local a = tensor.randn(rows, 70):quantize 'int8'
		for round = 1, 4 do -- the third product and later ones use what is kept of w
			if round == 4 then w[7] = tensor.randn(70) end
			local sums = a:codes():to 'int64':matmul(w:codes():to 'int64':t())
			quant.log 'reset'
			local got = a:linear(w)
			assert(equal(got, sums:to 'float32' * (w:qparams().scale * a:qparams().scale)) and equal(a:matmul(w:t()), got))
			assert(#quant.log():where{path = 'fallback'} == 0)
		end
	end
end)
it('gives single elements and rows of a large table', function()
	local w = tensor.randn(600, 40):quantize{bits = bits_of(600, 8), axis = 1}
	local dense, twin = w:codes():clone(), w:clone()
	for _, ids in ipairs {tensor{599, 1, 7, 7, dtype = 'int64'}, tensor.arange(1, 600):to 'int64'} do
		assert(equal(w:embedding(ids), w:dequantize():embedding(ids)))
	end
	local row = tensor.randn(40)
	w[7] = row
	w:t()[3][9] = 0.5
	w[{{11, 12}, {1, 3}}] = w[{{21, 22}, {1, 3}}]
	w:codes()[13]:fill_(127)
	assert(w:check() and w:nbytes() == twin:nbytes())
	twin[7]:copy_(row) -- all rows at once, dense
	local all = twin:dequantize()
	all[9][3] = 0.5
	all[{{11, 12}, {1, 3}}] = all[{{21, 22}, {1, 3}}]
	all[13]:fill_(1e9)
	twin:copy_(all)
	local codes = twin:codes()
	assert(equal(w:codes(), codes) and not equal(w:codes(), dense))
end)
it('has the gradients of dense codes', function()
	local w = tensor.randn(6, 10):quantize{bits = bits_of(6, 8), axis = 1}
	local function gradient(weight)
		local x = tensor.ones(4, 10):requires_grad_()
		x:linear(weight):sum():backward()
		return x:grad()
	end
	assert(equal(gradient(w), gradient(w:dequantize())))
	local k, image = tensor.randn(6, 2, 3, 3):quantize{bits = bits_of(6, 8), axis = 1}, tensor.ones(1, 2, 5, 5):requires_grad_()
	image:conv2d(k):sum():backward()
	local g = image:grad():clone()
	image = tensor.ones(1, 2, 5, 5):requires_grad_()
	image:conv2d(k:dequantize()):sum():backward()
	assert(image:grad():error(g).max < 1e-6)
end)
it('is compared, measured, hashed and joined', function()
	local q = tensor.randn(4, 30):quantize{bits = {8, 4, 2, 3}, axis = 1}
	local real = q:dequantize()
	assert(real:error(q).max == 0 and equal(tensor.cat{q, q}:dequantize(), tensor.cat{real, real}))
	assert(equal(tensor.stack{q:codes(), q:codes()}, tensor.stack{q:codes():clone(), q:codes():clone()}))
	assert(equal(q + q, real + real) and equal(q:sum{axis = 2}, real:sum{axis = 2}) and equal(q:max{axis = 2}, real:max{axis = 2}))
	local batches = {}
	for x in data.loader(q:codes(), {batch = 2, prefetch = true})() do batches[#batches + 1] = x end
	assert(equal(tensor.cat(batches), q:codes()))
	assert(quant.compare(real, {{bits = {8, 4, 2, 3}, axis = 1}, 'int8'}))
	local file = os.tmpname() .. '.npy'
	tensor.save(file, q:codes())
	assert(equal(tensor.load(file), q:codes()))
	os.remove(file)
end)
