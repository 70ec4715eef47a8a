-- SPDX-License-Identifier: MIT
-- Binary cross-entropy on probabilities and on logits; literals from PyTorch in float64.
local checks = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checks.lua')
local near, check_gradient, wide, refused = checks.near, checks.gradient, checks.wide, checks.refused
tensor.seed(1)

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

it('weights of positive targets and reductions, as torch.nn.functional 2 in float64', function()
	for dtype, bound in pairs {float32 = 1e-6, float64 = 1e-9} do
		local x = tensor{{1, -2, 0.5}, {3, 0.25, -1}}:to(dtype):requires_grad_()
		local target = tensor{dtype = 'float64', {1, 0, 0.3}, {0, 1, 1}}:to(dtype)
		local w = tensor{0.5, 2, 3}:to(dtype)
		near(nn.bcelogits(x, target, w, {reduction = 'none'}), {0.1566308438, 0.126928011, 1.108523175, 3.048587352, 1.15187884, 3.939785063}, bound)
		near(nn.bcelogits(x, target, w, {reduction = 'sum'}):view(1), {9.532333283}, bound)
		local loss = nn.bcelogits(x, target, w)
		near(loss:view(1), {1.588722214}, bound)
		loss:backward()
		near(x:grad(), {-0.02241178511, 0.01986715367, 0.01598915499, 0.1587623545, -0.1459411664, -0.3655292893}, bound)
		near(nn.bcelogits(x, target, tensor{1}:to(dtype), {reduction = 'none'}), nn.bcelogits(x, target, {reduction = 'none'}):detach():reshape(-1):totable(), bound)
		local p = x:detach():sigmoid()
		near(nn.bce(p, target, {reduction = 'none'}), nn.bcelogits(x, target, {reduction = 'none'}):detach():reshape(-1):totable(), 10 * bound)
		near(nn.bce(p, target, {reduction = 'sum'}):view(1) / 6, {nn.bce(p, target):item()}, bound)
	end
end)
refused('bcelogits: operand 3: wanted a shape that broadcasts to (2, 3), got (2)', nn.bcelogits, tensor.ones(2, 3), tensor.ones(2, 3), tensor{1, 2})
