-- SPDX-License-Identifier: MIT
-- Binary cross-entropy on probabilities and on logits; literals from PyTorch in float64.
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

local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end

local t = {0, 1, 0.3, 1, 0.5}
local function of(list, dtype) return tensor {dtype = dtype, table.unpack(list)} end
for dtype, bound in pairs {float32 = 2e-6, float64 = 1e-9} do
	it('values and gradients in ' .. dtype, function()
		local p, target = of({0.1, 0.9, 0.5, 1, 0}, dtype), of(t, dtype)
		p:requires_grad_()
		local loss = nn.bce(p, target)
		near(loss:view(1), {10.18077364}, bound)
		loss:backward()
		near(p:grad()[{ {1, 4} }], {0.2222222222, -0.2222222222, 0.16, 0}, bound)
		near(p:grad()[{ {5, 5} }], {-1e11}, 1e-5)
		local x = of({-3, 0, 2.5, 100, -200}, dtype):requires_grad_()
		target:requires_grad_()
		loss = nn.bcelogits(x, target)
		near(loss:view(1), {20.51412485}, bound)
		loss:backward()
		near(x:grad(), {0.009485174636, -0.1, 0.124828364, 0, -0.1}, bound)
		near(target:grad(), {0.6, 0, -0.5, -20, 40}, bound)
	end)
end

it('gradients against finite differences', function()
	check_gradient(function(p, target) return nn.bce(p, target) end, tensor.rand(3, 4):to 'float64' * 0.8 + 0.1,
		tensor.rand(3, 4):to 'float64')
	check_gradient(function(x, target) return nn.bcelogits(x, target) end, wide(3, 4), tensor.rand(3, 4):to 'float64')
end)

it('dtypes of targets, nan, far logits', function()
	local x = tensor{0, 2}
	print(nn.bcelogits(x, tensor{1, 0, dtype = 'int64'}), nn.bcelogits(x, tensor{true, false}), nn.bcelogits(x, tensor{1, 0}))  --> 1.4100 1.4100 1.4100
	print(nn.bcelogits(tensor{1e30, -1e30}, tensor{1, 0}), nn.bcelogits(tensor{0/0}, tensor{1}), nn.bce(tensor{0/0}, tensor{1}))  --> 0 nan nan
	print(nn.bce(tensor{0, 1}, tensor{1, 0}), nn.bce(tensor{0, 1}, tensor{0, 1}))  --> 100 0
	print(nn.bcelogits(x:to 'float16', tensor{1, 0, dtype = 'int8'}):dtype())  --> float16
end)

refused('bce: y: wanted probabilities from 0 to 1, got 1.5 at position (2, 1)', nn.bce, tensor{{0.5}, {1.5}}, tensor{{1}, {1}})
refused('bce: y: wanted probabilities from 0 to 1, got -0.25 at position (2)', nn.bce, tensor{0.5, -0.25}, tensor{1, 1})
refused('bce: wanted operands of the same shape, got (2) and (2, 1)', nn.bce, tensor{0.5, 0.5}, tensor{{1}, {1}})
refused('bcelogits: wanted at least one element, got shape (0)', nn.bcelogits, tensor.zeros(0), tensor.zeros(0))
