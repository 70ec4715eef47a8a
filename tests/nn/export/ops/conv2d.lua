-- SPDX-License-Identifier: MIT
-- labels: full
-- Convolutions of codes in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x = tensor.randn(12, 3, 10, 10)
exported.integers {
	{'plain', nn.Sequential {nn.Conv2d(3, 8, 3)}, x},
	{'pad', nn.Sequential {nn.Conv2d(3, 5, 3, {pad=1}), nn.ReLU(), nn.Conv2d(5, 4, 2, {pad={0, 1, 1, 0}})}, x},
	{'stride and dilation', nn.Sequential {nn.Conv2d(3, 8, 3, {stride={2, 1}, dilation=2})}, x},
	{'each channel by itself', nn.Sequential {nn.Conv2d(3, 6, 3, {groups=3, pad=1}), nn.ReLU(), nn.Conv2d(6, 6, 3, {groups=6})}, x},
}
it('floats', function()
	local m = nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.Conv2d(8, 8, 3, {groups=8})}:fuse()
	exported.check('floats', graph.trace(m, x:narrow(1, 1, 1)), x, {flags=exported.FLAGS})
end)
local m = nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.Conv2d(8, 8, 3, {groups=8, stride=2}), nn.ReLU(), nn.Conv2d(8, 5, 2, {dilation=2})}
for _, rule in ipairs {'single', 'double'} do
	for _, specs in ipairs {{'int8/1', 'uint8'}, {'int4/1', 'int8'}, {'int16/1', 'int16'}, {'int8/1', 'int16'}} do
		it(('%s, weights %s, inputs %s'):format(rule, specs[1], specs[2]), function()
			exported.check(rule, exported.quantized(m, x, {mode='static', weight=specs[1], input=specs[2], rounding=rule}), x)
		end)
	end
end
for _, specs in ipairs {{'int8/1', 'uint8'}, {'int4/1', 'int8'}, {'int16', 'uint16'}, {'binary/1', 'uint8'}} do
	it(('dynamic, weights %s, inputs %s'):format(specs[1], specs[2]), function()
		exported.check('dynamic', exported.quantized(m, x, {mode='dynamic', weight=specs[1], input=specs[2]}), x)
	end)
end
it('codes of 4 bits between', function()
	exported.check('int4', exported.quantized(m, x, {mode='static', weight='int4/1', input='uint4'}), x)
end)
it('codes of 8 bits to codes of 16', function()
	local wide = {dtype='int16', scale=0.001}
	local y = exported.quantized(m, x, {mode='static', rules={{'conv2', 'int8/1', input=wide}, {'conv3', 'int8/1', input={dtype='int8', scale=0.02}}}})
	exported.check('widened', y, x)
end)
for _, spec in ipairs {'int8/1', 'int4:5', 'uint4:32', 'int16', 'binary/1'} do
	it('decoded weights ' .. spec, function()
		exported.check(spec, exported.quantized(m, x, {mode='weight_only', weight=spec}), x)
	end)
end
it('groups', function()
	local grouped, a = nn.Sequential {nn.Conv2d(4, 6, 3, {groups=2, pad=1}), nn.ReLU(), nn.Conv2d(6, 9, 2, {groups=3, stride=2})}, tensor.randn(6, 4, 7, 7)
	exported.check('float', graph.trace(grouped:fuse(), a:narrow(1, 1, 1)), a)
	for _, specs in ipairs {{'int8/1', 'uint8'}, {'uint4/1', 'uint8'}, {'int4/1', 'int8'}, {'int16/1', 'int16'}, {'binary/1', 'int4'}} do
		exported.check(specs[1], exported.quantized(grouped, a, {mode='static', weight=specs[1], input=specs[2], rounding='single'}), a)
		exported.check(specs[1], exported.quantized(grouped, a, {mode='dynamic', weight=specs[1], input=specs[2]}), a)
	end
	exported.check('decoded', exported.quantized(grouped, a, {mode='weight_only', weight='int4:5'}), a)
end)

local plain, weight = tensor.randn(5, 4, 7, 6), tensor.randn(6, 4, 3, 3)
exported.functions({
	['a weight that is computed'] = function(self, a) return a:conv2d(self.w * 2) end,
	['a computed weight in groups'] = function(self, a) return a:conv2d(self.g:tanh(), self.b, {groups=2}) end,
	['floats by codes'] = function(self, a) return a:conv2d(self.q, {pad=1}) end, ['floats by 4 bits'] = function(self, a) return a:conv2d(self.p) end,
}, plain, {w=weight, g=tensor.randn(6, 2, 3, 3), b=tensor.randn(6), q=weight:quantize 'int8/1', p=weight:quantize 'int4/1'})
