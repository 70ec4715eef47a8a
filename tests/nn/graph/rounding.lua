-- SPDX-License-Identifier: MIT
-- labels: quick host
-- g:quantize{rounding=}: every integer result of a graph under one rule.
tensor.seed(12)
local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end
local m = nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.Residual {nn.Conv2d(8, 8, 3, {pad=1}), nn.ReLU(), nn.Conv2d(8, 8, 1)},
	nn.ReLU(), nn.Conv2d(8, 8, 1), nn.ReLU(), nn.AvgPool2d(), nn.Flatten(), nn.Linear(8, 6), nn.GELU(), nn.Linear(6, 4)}
local x = tensor.randn(16, 3, 9, 9)
m:calibrate({{x, x}}, {log=false})
local g = graph.trace(m, x:narrow(1, 1, 1)):calibrate({{x, x}}, {log=false})

local function rules_of(q)
	local found = {}
	for _, name in ipairs(q.order) do
		local node = q:node(name)
		local spec = node.attrs.out or node.op == 'requantize' and node.attrs.spec
		if spec then found[name] = spec.rounding or 'float' end
	end
	return found
end

for _, rule in ipairs {'single', 'double', 'exact'} do
	it(rule, function()
		local q = g:quantize {mode='static', rounding=rule}
		local float = rules_of(g:quantize {mode='static'})
		local n = 0
		for name, was in pairs(rules_of(q)) do
			assert(was == (q:node(name).op == 'gelu' and 'float' or rule) and float[name] == 'float', name .. ' ' .. was)
			n = n + 1
		end
		assert(n >= 5, n)
		quant.log(true)
		local y = q:run(x)
		local paths = {}
		for _, row in ipairs(quant.log()) do
			local key = row.op .. ' ' .. tostring(row.path)
			paths[key] = (paths[key] or 0) + row.count
		end
		assert(paths['conv2d int8 ' .. rule] == 4 and paths['add integer ' .. rule] == 1 and paths['avgpool2d integer ' .. rule] == 1,
			tostring(quant.log()))
		assert(y:error(g:run(x)).sqnr > 15)
		assert(tostring(q:node 'conv1'.attrs.out):find('rounding=' .. rule, 1, true))
	end)
end

it('codes of 4 bits of a convolution are floats before', function()
	local two = nn.Sequential {nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 1), nn.Flatten(), nn.Linear(196, 3), nn.Linear(3, 2)}
	local q = graph.trace(two, x:narrow(1, 1, 1)):calibrate({{x, x}}, {log=false, input='uint4'}):quantize {mode='static', input='uint4', rounding='single'}
	print(q:node 'conv1'.attrs.out.rounding, q:node 'linear1'.attrs.out.rounding)  --> nil single
	q:run(x)
end)

it('float changes nothing', function()
	local a, b = g:quantize {mode='static'}, g:quantize {mode='static', rounding='float'}
	print(a:run(x):error(b:run(x)).max)  --> 0.0
end)

it('bad input', function()
	refused("quantize: rounding: wanted float, single, double or exact, got 'singel'", g.quantize, g, {rounding='singel'})
	refused("export: rounding: wanted float, single, double or exact, got 'half'", g.export, g, {dir='/nowhere', rounding='half'})
end)
