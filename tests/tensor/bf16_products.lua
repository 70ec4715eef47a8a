-- SPDX-License-Identifier: MIT
-- labels: quick noproducts host
-- hw.force 'bf16': products of matrices of floats are made of bfloat16 numbers, only then, and the ledger says so.
local LEVELS = {'ref bf16', 'avx2 bf16', 'avx512vnni bf16'}
local TILES = {'ref bf16tiles', 'avx2 bf16tiles', 'amx bf16tiles'} -- sums of another instruction
local before = hw.force()

-- f under a level
local function under(level, f)
	hw.force(level)
	local _ <close> = setmetatable({}, {__close = function() hw.force(before) end})
	return f()
end

local function same(a, b) return a:dtype() == b:dtype() and a:error(b).max == 0 end

it('is a word beside a level', function()
	for _, level in ipairs(table.move(TILES, 1, #TILES, #LEVELS + 1, {table.unpack(LEVELS)})) do
		hw.force(level)
		assert(hw.force() == level)
		hw.force(level:match '^%S+')
		assert(hw.force() == level:match '^%S+')
	end
	hw.force 'bf16 avx2'
	assert(hw.force() == 'avx2 bf16')
	hw.force 'simt bf16 ref'
	assert(hw.force() == 'ref bf16 simt')
	hw.force(before)
	assert(not pcall(hw.force, 'bf16 bf16tiles') and not pcall(hw.force, 'bf16 bf16') and not pcall(hw.force, 'bf17') and hw.force() == before)
	local good, why = pcall(hw.force, 'bf16')
	if hw.features().bf16 then
		assert(good and hw.force() == 'native bf16')
		hw.force(before)
	else
		assert(not good and why:find('force: bf16: wanted a processor with AVX512_BF16', 1, true) and hw.force() == before)
	end
	good, why = pcall(hw.force, 'bf16tiles')
	assert(good == hw.features().bf16tiles)
	assert(good or why:find('force: bf16tiles: wanted a processor with AMX_BF16', 1, true))
	hw.force(before)
end)

-- products at each level of a list have the same bits, and the errors of bfloat16
local function check(levels)
	for _, s in ipairs {{1, 70, 40}, {3, 33, 17}, {9, 130, 600}} do
		local m, n, k = table.unpack(s)
		for _, dtypes in ipairs {{'float32', 'float32'}, {'bfloat16', 'bfloat16'}, {'float32', 'bfloat16'}, {'float16', 'float32'}} do
			local x, w, b = tensor.randn(2, m, k):to(dtypes[1]), tensor.randn(n, k):to(dtypes[2]), tensor.randn(n)
			local exact = x:to 'bfloat16':to 'float64':matmul(w:t():to 'bfloat16':to 'float64')
			local sizes = x:to 'bfloat16':to 'float64':abs():matmul(w:t():to 'bfloat16':to 'float64':abs())
			local first
			for _, level in ipairs(levels) do
				local y, z, t = under(level, function()
					local r = x:matmul(w:t())
					assert(r:origin().path == 'bfloat16' and r:origin().kernel:find '^gemm_bf16_', r:origin().kernel)
					return r, x:linear(w, b, {act = 'relu'}), x:matmul(w:t():contiguous())
				end)
				first = first or {y, z}
				assert(same(y, first[1]) and same(z, first[2]) and same(y, t), level)
			end
			local unit = first[1]:dtype() == 'bfloat16' and 2 ^ -8 or 0
			assert(((first[1]:to 'float64' - exact):abs() - sizes * ((k + 2) * 2 ^ -24 + unit)):max():item() <= 0)
			assert(first[2]:dtype() == dtypes[1])
		end
	end
end

it('gives products of rounded operands, with the same bits at each level', function()
	check(LEVELS)
	check(TILES)
end)

it('is never taken unasked, nor for codes', function()
	local x, w = tensor.randn(4, 64), tensor.randn(8, 64)
	local float = x:linear(w)
	assert(float:origin().path == 'float32' and float:origin().kernel:find '^gemm_f32')
	assert(x:to 'bfloat16':matmul(w:t():to 'bfloat16'):origin().path == 'float32')
	local forced = under('avx2 bf16', function()
		local q = x:linear(w:quantize 'int8')
		assert(q:origin().kernel:find '^gemm_coded', q:origin().kernel)
		assert(x:to 'float64':linear(w:to 'float64'):origin().path == 'float64')
		return x:linear(w)
	end)
	assert(not same(forced, float) and same(x:linear(w), float))
end)

it('makes gradients by the products that are in force when they are computed', function()
	local x, w = tensor.randn(6, 20), tensor.randn(5, 20):requires_grad_()
	local g = tensor.randn(6, 5)
	local y = x:linear(w)
	y:backward(g)
	local float = w:grad()
	w:zero_grad()
	local forced, product = under('avx2 bf16', function()
		x:linear(w):backward(g)
		return w:grad(), g:t():matmul(x)
	end)
	assert(same(forced, product) and not same(forced, float))
end)

it('does not copy weights of 16 bits', function()
	local x, w = tensor.randn(2, 512), tensor.randn(1024, 512)
	local tall = tensor.randn(40, 512)
	for _, dtype in ipairs {'float16', 'bfloat16'} do
		local half = w:to(dtype)
		for _, level in ipairs {before, 'avx2 bf16'} do
			under(level, function()
				local f = function() return x:linear(half), tall:linear(half), x:matmul(half:t()) end
				f()
				collectgarbage()
				tensor.memory 'reset'
				local now = tensor.memory().now
				f()
				collectgarbage()
				assert(tensor.memory().now <= now and tensor.memory().peak - now < 600 << 10, tensor.memory().peak - now)
			end)
		end
		local y, z = x:linear(half), x:linear(half:to 'float32')
		assert(same(y, z) and y:origin().kernel:find '^gemm_f32' and y:origin().path == 'float32')
		assert(same(x:to(dtype):linear(half), x:to(dtype):to 'float32':linear(half:to 'float32'):to(dtype)))
	end
end)
