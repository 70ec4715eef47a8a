-- SPDX-License-Identifier: MIT
-- labels: quick host
-- nn.Conv1d, nn.MaxPool1d and nn.AvgPool1d: values of PyTorch, images of one row, quantization in modules and graphs, exported C.
tensor.seed(9)
local function sequence(k, ...)
	local n = 1
	for _, size in ipairs {...} do n = n * size end
	return (tensor.arange(1, n):to 'float64' * k):sin():view(...):to('float32'):detach()
end

it('PyTorch', function()
	local m = nn.Conv1d(2, 3, 3, 2, 1)
	m.weight:detach():copy_(sequence(0.37, 3, 2, 3))
	m.bias:detach():copy_(sequence(0.9, 3))
	local y = m(sequence(0.53, 1, 2, 7))
	local want = {0.254326, 0.393897, 1.467639, 1.846547, 2.576271, 3.068827, 1.134572, -0.172073, -0.981117, -1.716240, -0.451265, 0.749697}
	assert((y:view(12) - tensor(want)):abs():max():item() < 2e-5)
end)

print(nn.Conv1d(3, 8, 5, {stride=2, pad='same', groups=1}))  --> Conv1d(3, 8, 5, stride=2, autopad=same, groups=1)  128 parameters
print(nn.Conv1d(4, 8, 3, 1, {2, 0}, 1, 2, false)(tensor.ones(1, 4, 6)):size())  --> 1 8 6
print(nn.MaxPool1d(3, 2, 1)(tensor.ones(1, 1, 7)):size())  --> 1 1 4
print(nn.AvgPool1d(2, {ceilmode=true}))  --> AvgPool1d(2, ceilmode=true)  0 parameters
print(nn.AvgPool1d())  --> AvgPool1d(all)  0 parameters

local function net()
	return nn.Sequential {nn.Conv1d(3, 8, 5, {pad=2}), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(8, 8, 3, 1, 'same'), nn.AvgPool1d(3, {stride=2, pad={1, 0}}),
		nn.Conv1d(8, 4, 3, {groups=2}), nn.AvgPool1d()}
end
local x = tensor.randn(16, 3, 32)

it('the same as images of one row', function()
	local m = net()
	local p = nn.Sequential {nn.Conv2d(3, 8, {1, 5}, {pad={0, 2}}), nn.ReLU(), nn.MaxPool2d {1, 2}, nn.Conv2d(8, 8, {1, 3}, 1, 'same'),
		nn.AvgPool2d({1, 3}, {stride={1, 2}, pad={0, 0, 1, 0}}), nn.Conv2d(8, 4, {1, 3}, {groups=2}), nn.AvgPool2d()}
	for _, name in ipairs {'conv1', 'conv2', 'conv3'} do
		p[name].weight:detach():copy_(m[name].weight:detach():unsqueeze(3))
		p[name].bias:detach():copy_(m[name].bias:detach())
	end
	assert(m(x):eq(p(x:unsqueeze(3)):squeeze(3)):all():item())
	for _, mode in ipairs {{mode='weight_only', weight='int4:32'}, {mode='weight_only', weight='int8/1'}, {mode='dynamic', weight='int8/1'}} do
		assert(m:quantize(mode)(x):eq(p:quantize(mode)(x:unsqueeze(3)):squeeze(3)):all():item())
	end
	m:calibrate {{x, x}}
	p:calibrate {{x:unsqueeze(3), x}}
	local o = {mode='static', weight='int8/1', input='uint8'}
	local q, r = m:quantize(o), p:quantize(o)
	quant.log 'reset'
	local y = q(x)
	for _, row in ipairs(quant.log()) do
		assert(row.path ~= 'fallback' and (row.op ~= 'conv2d' or row.path == 'int8') and (row.op ~= 'maxpool2d' or row.path == 'integer'))
	end
	assert(y:eq(r(x:unsqueeze(3)):squeeze(3)):all():item())
	assert(graph.trace(m, x):quantize(o):run(x):eq(q(x)):all():item()) -- by the observers of m:calibrate
	local g = graph.trace(m, x):calibrate {{x, x}}:quantize(o)
	assert(g:run(x):eq(y):all():item())
end)

local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('Conv1d: groups: wanted a divisor of 3 inputs and 4 outputs, got 2', nn.Conv1d, 3, 4, 3, {groups=2})
refused('Conv1d: kernel: wanted an integer of at least 1, got', nn.Conv1d, 3, 4, {3, 3})
