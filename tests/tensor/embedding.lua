-- SPDX-License-Identifier: MIT
-- Rows of a table by number, and the sums of their gradients.
tensor.seed(1)
local function near(got, want, bound)
	local a = got:contiguous():view(-1):totable()
	assert(#a == #want, #a)
	for i = 1, #want do
		assert(math.abs(a[i] - want[i]) <= bound * math.max(1, math.abs(want[i])), ('%d: %.10g, not %.10g'):format(i, a[i], want[i]))
	end
end

-- Gradients of sum(f(…) * seed) by every operand against central differences in float64.
local function check_gradient(f, ...)
	local operands, size = {...}, {f(...):size()}
	local seed = #size > 0 and tensor.randn(table.unpack(size)):to 'float64' or tensor(1):to 'float64'
	for _, x in ipairs(operands) do x:requires_grad_() end
	f(...):backward(seed)
	for k, x in ipairs(operands) do
		local got, flat = x:grad():contiguous():view(-1):totable(), x:detach():view(-1)
		for i = 1, x:nelem() do
			local old, h, value = flat[i]:item(), 1e-5, {}
			for side = -1, 1, 2 do
				flat[i] = old + side * h
				value[side] = (f(...):detach() * seed):sum():item()
			end
			flat[i] = old
			local want = (value[1] - value[-1]) / (2 * h)
			assert(math.abs(got[i] - want) < 1e-6 * math.max(1, math.abs(want)), ('operand %d: %d: %g, not %g'):format(k, i, got[i], want))
		end
	end
end
local function wide(...) return tensor.randn(...):to 'float64' end

-- f gives the same bits on 1 and 2 threads, and on every instruction set.
local function check_bits(f, levels)
	local threads, level, want = tensor.threads(), hw.features().level
	for _, forced in ipairs(levels or {level, 'avx2', 'ref'}) do
		for n = 1, 2 do
			hw.force(forced)
			tensor.threads(n)
			local got = {f()}
			hw.force(level)
			tensor.threads(threads)
			want = want or got
			for i = 1, #got do assert(got[i]:eq(want[i]):all():item(), ('%s, %d threads, result %d'):format(forced, n, i)) end
		end
	end
end

local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end

local w = tensor{{1, 2}, {3, 4}, {5, 6}}
print(w:embedding(tensor{3, 1, dtype = 'int64'}))  --> float32(2, 2)
                                                   --> 5 6
                                                   --> 1 2
print(w:embedding(tensor{{1, 2}, {3, 3}, dtype = 'uint8'}):size())  --> 2 2 2
print(w:embedding(tensor.zeros{0, 4, dtype = 'int32'}):size())  --> 0 4 2
print(w:embedding(tensor(2):to 'int16'))  --> float32(2)  3 4
local two = tensor(2):to 'int64'
print(w:to 'float16':embedding(two):dtype(), w:to 'int8':embedding(two))  --> float16 int8(2) 3 4
print(w:t():embedding(two), w[{ {2, 3} }]:embedding(two))  --> float32(3) 2 4 6 float32(2) 5 6

it('gradients against finite differences; rows that are named often, or never', function()
	local ids = tensor{{2, 5, 2}, {2, 1, 6}, dtype = 'int32'}
	check_gradient(function(t) return t:embedding(ids) end, wide(6, 3))
	local t = tensor.zeros(6, 2):requires_grad_()
	t:embedding(ids):backward(tensor.ones(2, 3, 2))
	near(t:grad(), {1, 1, 3, 3, 0, 0, 0, 0, 1, 1, 1, 1}, 0)
	local half = tensor.zeros{6, 2, dtype = 'float16'}:requires_grad_()
	half:embedding(ids):sum():backward()
	print(half:grad():dtype(), half:grad()[2])  --> float16 float16(2) 3 3
end)

it('gives the same bits everywhere', function()
	local t, ids = tensor.randn(500, 300):requires_grad_(), tensor.randint {4000, low = 1, high = 500}
	local seed = tensor.randn(4000, 300)
	check_bits(function()
		t:zero_grad()
		local y = t:embedding(ids)
		y:backward(seed)
		return y:detach(), t:grad()
	end)
	local sum = tensor.zeros(500, 300):scatter(1, ids:view(-1, 1):expand(4000, 300), seed, {add = true})
	assert(sum:metrics(t:grad()).max < 1e-5)
end)

for _, call in ipairs {
	{'ids: wanted 1 to 3, the rows of the table, got 4 at position (2)', w, tensor{1, 4, dtype = 'int64'}},
	{'ids: wanted 1 to 3, the rows of the table, got 0 at position (2, 1)', w, tensor{{1}, {0}, dtype = 'int64'}},
	{'ids: wanted 1 to 3, the rows of the table, got -1 at position ()', w, tensor(-1):to 'int64'},
	{'ids: wanted integers, got float32(1)', w, tensor{1}},
	{'ids: wanted integers, got bool', w, tensor{true}},
	{'wanted a table of shape (v, d), got (2)', tensor{1, 2}, tensor{1, dtype = 'int64'}},
	{'ids: wanted 1 to 0, the rows of the table, got 1', tensor.zeros(0, 3), tensor{1, dtype = 'int64'}},
} do
	refused('embedding: ' .. call[1], function() return call[2]:embedding(call[3]) end)
end
refused("ids: wanted 1 to 3, the rows of the table, got 4", function() return w:quantize 'int8/1':embedding(tensor{4, dtype = 'int64'}) end)
