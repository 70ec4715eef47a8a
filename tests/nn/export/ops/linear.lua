-- SPDX-License-Identifier: MIT
-- labels: full
-- Linear layers in exported C: specs of weights and inputs, float.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x = tensor.randn(12, 16)
local m = nn.Sequential {nn.Linear(16, 9), nn.ReLU(), nn.Linear(9, 5), nn.ReLU(), nn.Linear(5, 2, {bias=false})}
exported.integers {{'plain', m, x}}
local fast, cases = {}, {} -- by the Makefile's compiler; at a lower level
local function add(list, name, given, graph, single) list[#list + 1] = {name=name, x=given, graph=graph, single=single} end
local function quantized(name, given, options, model)
	add(cases, name, given, function() return exported.quantized(model or m, given, options) end, options.mode == 'dynamic')
end
for _, spec in ipairs {'int4/1', 'uint8/1', 'int8', 'uint4/1'} do
	add(fast, 'weights ' .. spec, x, function() return exported.static(m, x, {weight=spec, input=spec == 'int8' and 'int8' or 'uint8'}) end)
end
add(fast, 'floats', x, function() return graph.trace(m:fuse(), x:narrow(1, 1, 1)) end)
for _, rule in ipairs {'single', 'double', 'exact'} do
	for _, specs in ipairs {{'int8/1', 'uint8'}, {'int4/1', 'int8'}, {'int16/1', 'int16'}, {'int8/1', 'int16'}, {'int8', 'uint16'}} do
		quantized(('%s, weights %s, inputs %s'):format(rule, specs[1], specs[2]), x, {mode='static', weight=specs[1], input=specs[2], rounding=rule})
	end
end
for _, specs in ipairs {{'int8/1', 'uint8'}, {'int4/1', 'int8'}, {'uint4/1', 'int4'}, {'int16', 'uint16'}, {'binary/1', 'uint8'}} do
	quantized(('dynamic, weights %s, inputs %s'):format(specs[1], specs[2]), x, {mode='dynamic', weight=specs[1], input=specs[2]})
end
local odd = tensor.zeros(6, 16)
odd[2]:copy_(x[2] / 0)
odd[3][4] = 0 / 0
odd[4]:copy_(x[4] * 1e-44)
odd[5]:copy_(x[5] * 1e38)
odd[6]:copy_(x[6]:abs())
local one = nn.Sequential {nn.Linear(16, 9)}
for _, input in ipairs {'uint8', 'int8', {dtype='uint8', scheme='symmetric'}, {dtype='int8', scheme='asymmetric'}, {bits=5}} do
	add(fast, 'infinities, nan and zeros as ' .. tostring(quant.spec(input)), odd, function() return exported.quantized(one, odd, {mode='dynamic', input=input}) end, true)
end
for _, mode in ipairs {'static', 'dynamic'} do
	for _, spec in ipairs {'uint4/1', 'uint4'} do
		add(fast, ('two in a byte, with zero points, %s %s'):format(mode, spec), x, function()
			local g, folder = exported.quantized(m, x + 1, {mode=mode, weight=spec}), exported.new_folder()
			g:export {dir=folder, name='net', samples=x}
			assert(exported.text_of(folder .. '/net_weights.h'):find 'uint8_t linear1_weight%[72%]')
			os.execute('rm -r ' .. folder)
			return g
		end, mode == 'dynamic')
	end
end
local long, a = nn.Sequential {nn.Linear(17000, 3), nn.Linear(3, 2)}, tensor.rand(3, 17000)
quantized('long sums', a, {mode='static', rounding='double'}, long)
quantized('long sums, range found', a, {mode='dynamic', weight='uint4/1'}, long)
local large, b = nn.Sequential {nn.Linear(4, 3), nn.Linear(3, 2)}, tensor.randn(5, 4)
tensor.nograd(function() large.linear1.bias:mul_(1e7) end)
for _, rule in ipairs {'float', 'single'} do quantized('large biases, ' .. rule, b, {mode='static', rounding=rule}, large) end
quantized('binary inputs', x, {mode='static', weight='binary/1', input='binary'})
local acts = nn.Sequential {nn.Linear(16, 9), nn.GELU(), nn.Linear(9, 5), nn.SiLU(), nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2), nn.Sigmoid()}
quantized('other activations, static', x, {mode='static', rounding='single'}, acts)
quantized('other activations, dynamic', x, {mode='dynamic'}, acts)
for _, spec in ipairs {'int8/1', 'uint8', 'int4/1', 'int4:5', 'uint4:4@mse', 'int8:3', 'int16/1', 'uint16', 'binary/1'} do
	quantized('decoded weights ' .. spec, x, {mode='weight_only', weight=spec})
end
for _, spec in ipairs {'int8/2', 'uint8/2', {dtype='int8', scheme='log'}, {dtype='int4', scheme='log', axis=1}, {dtype='int8', scheme='log', axis=2, octaves=8}, 'uint8 log', 'uint4/1 log'} do
	local name = tostring(quant.spec(spec))
	quantized('decoded weights ' .. name, x, {mode='weight_only', weight=spec})
	quantized('each number of ' .. name, x, {mode='weight_only', weight=spec}, nn.module(function(self, v) return v:linear(self.w) end, {w=tensor.eye(16)}))
end
local layer = nn.Linear(16, 16)
local twice = nn.Sequential {layer, nn.ReLU(), layer}
for _, mode in ipairs {'static', 'dynamic', 'weight_only'} do
	quantized('a layer in two places: ' .. mode, x, {mode=mode}, twice)
	it('one array of weights: ' .. mode, function()
		local folder = exported.new_folder()
		exported.quantized(twice, x, {mode=mode}):export {dir=folder, name='net', samples=x}
		assert(select(2, exported.text_of(folder .. '/net_weights.h'):gsub('int8_t [%w_]*weight%[%d+%]', '')) == 1, mode)
		os.execute('rm -r ' .. folder)
	end)
end
-- gcc 12 at -O3 -march=native fused v * factor + bias into vfmaddsub where the signs of the biases alternate, in spite of -ffp-contract=off
for _, n in ipairs {10, 12} do
	local signs, rows = nn.Sequential {nn.Linear(64, n)}, tensor.randn(50, 64)
	tensor.nograd(function() for i = 1, n do signs.linear1.bias[i] = (i % 2 == 0 and 1 or -1) * (0.3 + 0.01 * i) end end)
	for _, mode in ipairs {'static', 'dynamic'} do
		add(fast, ('%d biases of alternating signs, %s'):format(n, mode), rows, function() return exported.quantized(signs, rows, {mode=mode}) end,
			mode == 'dynamic')
	end
end
exported.together(fast, {alone=true})
exported.together(cases, {compilers={'cc -O2'}, alone=true})
exported.functions({['a weight that is computed'] = function(_, a) return a:linear(a:select(1, 1):tanh()) end}, tensor.randn(20, 3, 4))

exported.functions({
	['floats by codes'] = function(self, a) return a:linear(self.q) end, ['floats by blocks of 4 bits'] = function(self, a) return a:linear(self.p) end,
	['no inputs'] = function(self, a) return a:narrow(2, 1, 0):linear(self.z, self.b) end,
}, tensor.randn(5, 9), {q=tensor.randn(3, 9):quantize 'int8/1', p=tensor.randn(3, 9):quantize 'int4:4', z=tensor.zeros(3, 0), b=tensor.randn(3)})
