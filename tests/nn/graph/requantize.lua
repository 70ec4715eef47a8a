-- SPDX-License-Identifier: MIT
-- labels: quick
-- g:requantize: other rules for a graph that has codes.
local exported = dofile 'tests/tools/exported.lua'
tensor.seed(3)
local x = tensor.randn(64, 3, 8, 8)
local m = nn.Sequential {nn.Conv2d(3, 8, 3, {pad = 1}), nn.ReLU(), nn.Residual {nn.Conv2d(8, 8, 3, {pad = 1})}, nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3), nn.ReLU(),
	nn.Flatten(), nn.Linear(32, 5)}
m:calibrate({{x, x}}, {log = false})
local float = graph.trace(m, x[{{1, 1}}])
local function ops(g)
	local list = {}
	for _, name in ipairs(g.order) do
		local node = g:node(name)
		if node.op ~= 'const' then list[#list + 1] = node.op end
	end
	return table.concat(list, ' ')
end
local function error_of(y) return (y - m(x)):abs():max():item() / m(x):abs():max():item() end

it('gives the floats back, with decoded weights and the relus that codes had made needless', function()
	local q = float:quantize {mode = 'static'}
	local back = q:requantize {mode = 'none'}
	print(ops(back))  --> input conv2d conv2d add relu maxpool2d conv2d reshape linear
	print(back:node('conv1').attrs.act, back:node('conv1').mode)  --> relu nil
	assert(error_of(back:run(x)) < error_of(q:run(x)) and error_of(back:run(x)) < 0.02)
	assert(back:node('conv1.weight').value:eq(q:node('conv1.weight').value:dequantize()):all():item())
end)

it('quantizes again by the same rules with the same codes', function()
	local q = float:quantize {mode = 'static'}
	local again, r = q:requantize {mode = 'static'}
	assert(ops(again) == ops(q) and #r == #select(2, float:quantize {mode = 'static'}))
	local a, b = q:run(x), again:run(x)
	assert((a - b):abs():max():item() / a:abs():max():item() < 0.01)
end)

it('takes other rules, and ranges from data', function()
	local q = float:quantize {mode = 'static'}
	local four = q:requantize {mode = 'static', weight = 'int4/1', rules = {{'linear1', weight = 'int8/1'}}}
	print(tostring(four:node 'conv1'.spec.weight), tostring(four:node 'linear1'.spec.weight))  --> int4/1 int8/1
	assert(error_of(four:run(x)) < 0.3 and error_of(four:run(x)) > error_of(q:run(x)))
	local dynamic = q:requantize {mode = 'dynamic'}
	print(ops(dynamic):find 'quantize' ~= nil, dynamic:node('conv1').mode)  --> true dynamic
	local fresh = q:requantize {mode = 'none'}:calibrate({{x, x}}, {log = false}):quantize {mode = 'static', input = 'int8'}
	assert(error_of(fresh:run(x)) < 0.03)
end)

it('works on files with codes, in each form', function()
	local q = float:quantize {mode = 'static'}
	for _, form in ipairs {'qdq', 'qoperator'} do
		local path = os.tmpname()
		q:export {onnx = path, form = form}
		local g = graph.load(path)
		os.remove(path)
		local back, again = g:requantize {mode = 'none'}, g:requantize {mode = 'static', weight = 'int8'}
		assert(error_of(back:run(x)) < 0.02, form)
		assert(error_of(again:run(x)) < 0.05, form)
		assert(not ops(back):find 'quantize' and select(2, ops(back):gsub('relu', '')) >= 1, ops(back))
	end
end)

it('makes inputs that were codes floats, and leaves graphs without codes', function()
	local spec = {dtype = 'uint8', scale = 0.05, zero_point = 128}
	local g = graph.trace(nn.module(function(_, a) return a:dequantize() * 2 end, {}), x[{{1, 1}}]:quantize(spec))
	local back = g:requantize {mode = 'none'}
	assert(back:node('input').dtype == 'float32' and (back:run(x) - x * 2):abs():max():item() == 0)
	assert(ops(float:requantize {mode = 'none'}) == ops(float))
end)

it('refuses integers of codes and unknown options', function()
	local g = graph.trace(nn.module(function(_, a) return a:quantize {dtype = 'uint8', scale = 0.05}:codes() end, {}), x[{{1, 1}}])
	exported.refused("requantize: node 'codes1': wanted ops of values, got integers of codes", g.requantize, g, {mode = 'none'})
	exported.refused("requantize: unknown option 'weigth'", float.requantize, float, {weigth = 'int8'})
end)
