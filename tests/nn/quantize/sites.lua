-- SPDX-License-Identifier: MIT
-- labels: once
-- m:quantize and g:quantize are one: the same bits and the same coverage after one m:calibrate, for layers, relu6 chains, pooling, norms,
-- attention, recurrent layers.
tensor.seed(51)

local function depthwise(c, d) return nn.Conv2d(c, c, 3, {pad=1, groups=c}), nn.BatchNorm2d(c), nn.ReLU6(), nn.Conv2d(c, d, 1), nn.BatchNorm2d(d), nn.ReLU6() end
local function mobile()
	local list = {nn.Conv2d(3, 8, 3, {pad=1, bias=false}), nn.BatchNorm2d(8), nn.ReLU6()}
	for _, layer in ipairs {depthwise(8, 16)} do list[#list + 1] = layer end
	for _, layer in ipairs {depthwise(16, 16)} do list[#list + 1] = layer end
	for _, layer in ipairs {nn.AvgPool2d(), nn.Flatten(), nn.Linear(16, 5)} do list[#list + 1] = layer end
	return nn.Sequential(list)
end
local function encoder()
	return nn.Sequential {nn.Linear(6, 8),
		nn.Residual {nn.LayerNorm(8), nn.Attention(8, 2)}, nn.Residual {nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)},
		nn.LayerNorm(8), nn.Linear(8, 4)}
end
local image, rows, steps = tensor.randn(16, 3, 8, 8), tensor.randn(32, 12), tensor.randn(16, 5, 6)
local function ids() return tensor.rand(16, 7):mul_(9):floor():to 'int32' + 1 end
local models = {
	{'MLP', nn.Sequential {nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 8), nn.GELU(), nn.Linear(8, 4), nn.Softmax()}, rows},
	{'LeNet', nn.Sequential {nn.Conv2d(3, 6, 3, {pad=1}), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 8, 3), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(),
		nn.Linear(8, 5), nn.Sigmoid(), nn.Linear(5, 3)}, image},
	{'ResNet', nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.BatchNorm2d(8), nn.ReLU(), nn.Residual {nn.Conv2d(8, 8, 3, {pad=1}), nn.ReLU(),
		nn.Conv2d(8, 8, 3, {pad=1})}, nn.ReLU(), nn.Residual {nn.Conv2d(8, 16, 3, {pad=1, stride=2}), nn.ReLU(), nn.Conv2d(16, 16, 3, {pad=1}),
		shortcut=nn.Conv2d(8, 16, 1, {stride=2})}, nn.ReLU(), nn.AvgPool2d(), nn.Flatten(), nn.Linear(16, 5)}, image},
	{'shortcut in Lua', nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.Residual {nn.Conv2d(8, 8, 3, {pad=1, stride=2}),
		shortcut=nn.module(function(_, x) return x:maxpool2d(1, {stride=2}) end, {})}, nn.ReLU(), nn.AvgPool2d(), nn.Flatten(), nn.Linear(8, 5)},
		image},
	{'MobileNet', mobile(), image},
	{'LSTM', nn.Sequential {nn.Linear(6, 6), nn.LSTM(6, 8), nn.Linear(8, 3)}, steps},
	{'encoder', encoder(), steps},
	{'Transformer', nn.Transformer {vocab=10, d=8, heads=2, layers=2, ff=16, causal=false, tie=false}, ids()},
	{'Llama', nn.Transformer {vocab=10, d=8, heads=2, kvheads=1, layers=2, ff=16, norm='rmsnorm', act='swiglu', position='rope', bias=false}, ids()},
}
for _, name in ipairs {'resnet8', 'resnet9', 'resnet20'} do
	models[#models + 1] = {name, (dofile(('tutorials/models/%s.lua'):format(name))), tensor.randn(2, 3, 32, 32)}
end

-- name -> mode of the nodes of a report.
local function modes(report, key)
	local list = {}
	for i = 1, #report do list[report[i][key]] = report[i].mode end
	return list
end

it("output=false and 'float32' of a rule or of the call give floats, in modules and graphs", function()
	local m, x = nn.Sequential {nn.Linear(4, 6), nn.ReLU(), nn.Residual {nn.Linear(6, 6)}, nn.Linear(6, 3)}, tensor.randn(16, 4)
	m:calibrate({{x, x}}, {log=false})
	for _, o in ipairs {{rules={{'linear1', output=false}}}, {rules={{'linear1', output='float32'}}}, {rules={function(name)
		return (type(name) == 'table' and name.name or name) == 'linear1' and {output=false} or nil
	end}}, {output=false}, {output='float32'}} do
		o.mode = 'static'
		local q, mine = m:quantize(o)
		local g, theirs = graph.trace(m, x):quantize(o)
		assert(mine[1].mode == 'static' and mine[1].output == 'float' and g:node('linear1').dtype == 'float32' and theirs[1].output == '-')
		assert(q(x):error(g:run(x, {check=true})).max == 0 and q(x):error(m(x)).sqnr > 25)
		assert(g:node('residual1.linear1').dtype == 'float32' or not o.output and o.rules)
		assert(q(x):error(m:quantize {mode='static'}(x)).max > 0)
	end
	for field, value in pairs {mode='static', weight='int8', input='uint8', output={dtype='int8', scale=1}} do
		for _, model in ipairs {m, graph.trace(m, x)} do
			local good, why = pcall(model.quantize, model, {rules={{'linear1', false, [field]=value}}})
			assert(not good and why:find(('rules: item 1: %s: wanted none beside false'):format(field), 1, true), why)
		end
	end
end)
for _, case in ipairs(models) do
	local name, m, x = table.unpack(case)
	m:eval()
	m:calibrate({{x, x}}, {log=false})
	for _, mode in ipairs {'static', 'dynamic'} do
		it(('%s, %s'):format(name, mode), function()
			local q, coverage = m:quantize {mode=mode}
			local g, report = graph.trace(m, x):quantize {mode=mode}
			local y, wanted = q(x), g:run(x)
			assert(y:quantized() == wanted:quantized() and y:error(wanted).max == 0, ('off by %g'):format(y:error(wanted).max))
			if mode == 'dynamic' then return end
			local mine, theirs, n = modes(coverage, 'name'), modes(report, 'node'), 0
			for node, is in next, theirs do
				if mine[node] then
					assert(mine[node] == is, ('%s: %s and %s'):format(node, mine[node], is))
					n = n + 1
				end
			end
			assert(n >= #report - 1, ('%d of %d'):format(n, #report))
			assert(q:clone()(x):error(y).max == 0)
			local traced = graph.trace(q, x)
			assert(traced:run(x):error(y).max == 0)
		end)
	end
end
