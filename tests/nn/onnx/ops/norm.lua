-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

local x = tensor {{{1, 2}, {3, 5}}}

it('normalizes by given and by own moments', function()
	local y = run('BatchNormalization', {x, tensor {2, 1}, tensor {0, 1}, tensor {1, 4}, tensor {4, 1}}, {epsilon = 0.0}, {fixed = {2, 3, 4, 5}})
	assert(equal(y, {{{0, 1}, {0, 2}}}))
	assert(equal(run('InstanceNormalization', {x, tensor {1, 2}, tensor {0, 1}}, {epsilon = 0.0}, {fixed = {2, 3}}), {{{-1, 1}, {-1, 3}}}))
	y = run('LayerNormalization', {x, tensor {1, 2}, tensor {0, 1}}, {epsilon = 0.0}, {fixed = {2, 3}})
	assert(equal(y, {{{-1, 3}, {-1, 3}}}))
	local z, mean, factor = run('LayerNormalization', {x, tensor {{1, 1}, {1, 1}}}, {axis = 1, epsilon = 0.0}, {fixed = {2}, outputs = 3})
	local deviation = math.sqrt((1 + 4 + 9 + 25) / 4 - 2.75 ^ 2)
	assert(equal(mean, {{{2.75}}}) and equal(factor, {{{1 / deviation}}}) and equal(z, (x - 2.75) / deviation))
	assert(equal(run('RMSNormalization', {x, tensor {1, 1}}, {epsilon = 0.0}, {fixed = {2}, opset = 23}),
		{{{1 / math.sqrt(2.5), 2 / math.sqrt(2.5)}, {3 / math.sqrt(17), 5 / math.sqrt(17)}}}))
	y = run('GroupNormalization', {x, tensor {1, 2}, tensor {0, 1}}, {num_groups = 1, epsilon = 0.0}, {fixed = {2, 3}, opset = 21})
	assert(equal(y, {{{-1.75 / deviation, -0.75 / deviation}, {0.5 / deviation + 1, 4.5 / deviation + 1}}}))
end)

it('normalizes by lengths and by neighbours', function()
	assert(equal(run('LpNormalization', {tensor {{3, 4}, {0, 0}}}), {{0.6, 0.8}, {0, 0}}) and equal(run('LpNormalization', {tensor {{3, -1}}}, {p = 1}), {{0.75, -0.25}}))
	local y = run('LRN', {tensor {1, 2, 3}:view(1, 3, 1, 1)}, {size = 3, alpha = 3.0, beta = 1.0, bias = 1.0})
	assert(equal(y:view(3), {1 / 6, 2 / 15, 3 / 14}))
	y = run('LRN', {tensor {1, 2, 3}:view(1, 3, 1, 1)}, {size = 2, alpha = 2.0, beta = 1.0, bias = 1.0})
	assert(equal(y:view(3), {1 / 6, 2 / 14, 3 / 10}))
	y = run('MeanVarianceNormalization', {tensor {1, 3}:view(2, 1, 1, 1)})
	assert(equal(y:view(2), {-1, 1}))
end)
