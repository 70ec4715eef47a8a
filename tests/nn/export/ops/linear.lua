-- SPDX-License-Identifier: MIT
-- labels: full
-- Linear layers in exported C: specs of weights and inputs, float.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x = tensor.randn(12, 16)
local m = nn.Sequential {nn.Linear(16, 9), nn.ReLU(), nn.Linear(9, 5), nn.ReLU(), nn.Linear(5, 2, {bias=false})}
exported.integers {{'plain', m, x}}
for _, spec in ipairs {'int4/1', 'uint8/1', 'int8', 'uint4/1'} do
	it('weights ' .. spec, function()
		exported.check(spec, exported.static(m, x, {weight=spec, input=spec == 'int8' and 'int8' or 'uint8'}), x, {flags=exported.FLAGS})
	end)
end
it('floats', function() exported.check('floats', graph.trace(m:fuse(), x:narrow(1, 1, 1)), x, {flags=exported.FLAGS}) end)
for _, rule in ipairs {'single', 'double'} do
	for _, specs in ipairs {{'int8/1', 'uint8'}, {'int4/1', 'int8'}, {'int16/1', 'int16'}, {'int8/1', 'int16'}, {'int8', 'uint16'}} do
		it(('%s, weights %s, inputs %s'):format(rule, specs[1], specs[2]), function()
			exported.check(rule, exported.quantized(m, x, {mode='static', weight=specs[1], input=specs[2], rounding=rule}), x)
		end)
	end
end
for _, specs in ipairs {{'int8/1', 'uint8'}, {'int4/1', 'int8'}, {'uint4/1', 'int4'}, {'int16', 'uint16'}, {'binary/1', 'uint8'}} do
	it(('dynamic, weights %s, inputs %s'):format(specs[1], specs[2]), function()
		exported.check('dynamic', exported.quantized(m, x, {mode='dynamic', weight=specs[1], input=specs[2]}), x)
	end)
end
it('dynamic: infinities, nan and zeros', function()
	local odd = tensor.zeros(6, 16)
	odd[2]:copy_(x[2] / 0)
	odd[3][4] = 0 / 0
	odd[4]:copy_(x[4] * 1e-44)
	odd[5]:copy_(x[5] * 1e38)
	odd[6]:copy_(x[6]:abs())
	local one = nn.Sequential {nn.Linear(16, 9)}
	for _, input in ipairs {'uint8', 'int8', {dtype='uint8', scheme='symmetric'}, {dtype='int8', scheme='asymmetric'}, {bits=5}} do
		exported.check('odd', exported.quantized(one, odd, {mode='dynamic', input=input}), odd, {flags=exported.FLAGS})
	end
end)
it('uint4 two in a byte, with zero points', function()
	local folder = os.tmpname()
	os.remove(folder)
	for _, mode in ipairs {'static', 'dynamic'} do
		for _, spec in ipairs {'uint4/1', 'uint4'} do
			local g = exported.quantized(m, x + 1, {mode=mode, weight=spec})
			exported.check(mode, g, x, {flags=exported.FLAGS})
			g:export {dir=folder, name='net', samples=x}
			assert(io.open(folder .. '/net_weights.h'):read 'a':find 'uint8_t linear1_weight%[72%]')
		end
	end
	os.execute('rm -r ' .. folder)
end)
it('long sums and large biases', function()
	local long, a = nn.Sequential {nn.Linear(17000, 3), nn.Linear(3, 2)}, tensor.rand(3, 17000)
	exported.check('long', exported.quantized(long, a, {mode='static', rounding='double'}), a)
	exported.check('found', exported.quantized(long, a, {mode='dynamic', weight='uint4/1'}), a)
	local large, b = nn.Sequential {nn.Linear(4, 3), nn.Linear(3, 2)}, tensor.randn(5, 4)
	tensor.nograd(function() large.linear1.bias:mul_(1e7) end)
	for _, rule in ipairs {'float', 'single'} do exported.check('large', exported.quantized(large, b, {mode='static', rounding=rule}), b) end
end)
it('binary inputs', function()
	exported.check('binary', exported.quantized(m, x, {mode='static', weight='binary/1', input='binary'}), x)
end)
it('other activations, floats and codes', function()
	local acts = nn.Sequential {nn.Linear(16, 9), nn.GELU(), nn.Linear(9, 5), nn.SiLU(), nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2), nn.Sigmoid()}
	exported.check('static', exported.quantized(acts, x, {mode='static', rounding='single'}), x)
	exported.check('dynamic', exported.quantized(acts, x, {mode='dynamic'}), x)
end)
for _, spec in ipairs {'int8/1', 'uint8', 'int4/1', 'int4:5', 'uint4:4@mse', 'int8:3', 'int16/1', 'uint16', 'binary/1'} do
	it('decoded weights ' .. spec, function()
		exported.check(spec, exported.quantized(m, x, {mode='weight_only', weight=spec}), x)
	end)
end
for _, spec in ipairs {'int8/2', 'uint8/2', {dtype='int8', scheme='log'}, {dtype='int4', scheme='log', axis=1}, {dtype='int8', scheme='log', axis=2, octaves=8}, 'uint8 log', 'uint4/1 log'} do
	it('decoded weights ' .. tostring(quant.spec(spec)), function()
		exported.check('decoded', exported.quantized(m, x, {mode='weight_only', weight=spec}), x)
		local one = nn.module(function(self, v) return v:linear(self.w) end, {w=tensor.eye(16)})
		exported.check('each number', exported.quantized(one, x, {mode='weight_only', weight=spec}), x)
	end)
end
it('a layer in two places: one array of weights', function()
	local layer = nn.Linear(16, 16)
	local twice = nn.Sequential {layer, nn.ReLU(), layer}
	for _, mode in ipairs {'static', 'dynamic', 'weight_only'} do
		local g = exported.quantized(twice, x, {mode=mode})
		exported.check(mode, g, x)
		local folder = os.tmpname()
		os.remove(folder)
		g:export {dir=folder, name='net', samples=x}
		local f = io.open(folder .. '/net_weights.h')
		assert(select(2, f:read 'a':gsub('int8_t [%w_]*weight%[%d+%]', '')) == 1, mode)
		f:close()
		os.execute('rm -r ' .. folder)
	end
end)
-- gcc 12 at -O3 -march=native fused v * factor + bias into vfmaddsub where the signs of the biases alternate, in spite of -ffp-contract=off
it('biases of alternating signs', function()
	for _, n in ipairs {10, 12} do
		local one, a = nn.Sequential {nn.Linear(64, n)}, tensor.randn(50, 64)
		tensor.nograd(function() for i = 1, n do one.linear1.bias[i] = (i % 2 == 0 and 1 or -1) * (0.3 + 0.01 * i) end end)
		for _, mode in ipairs {'static', 'dynamic'} do
			exported.check(mode, exported.quantized(one, a, {mode=mode}), a, {flags=exported.FLAGS})
		end
	end
end)
exported.functions({['a weight that is computed'] = function(_, a) return a:linear(a:select(1, 1):tanh()) end}, tensor.randn(20, 3, 4))

exported.functions({
	['floats by codes'] = function(self, a) return a:linear(self.q) end, ['floats by blocks of 4 bits'] = function(self, a) return a:linear(self.p) end,
	['no inputs'] = function(self, a) return a:narrow(2, 1, 0):linear(self.z, self.b) end,
}, tensor.randn(5, 9), {q=tensor.randn(3, 9):quantize 'int8/1', p=tensor.randn(3, 9):quantize 'int4:4', z=tensor.zeros(3, 0), b=tensor.randn(3)})
