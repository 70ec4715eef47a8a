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
local cases = {}
local function add(name, given, graph, single) cases[#cases + 1] = {name=name, x=given, graph=graph, single=single} end
local function quantized(name, model, given, options)
	add(name, given, function() return exported.quantized(model, given, options) end, options.mode == 'dynamic')
end
exported.together({{name='floats', x=x, graph=function()
	return graph.trace(nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.Conv2d(8, 8, 3, {groups=8})}:fuse(), x:narrow(1, 1, 1))
end}})
local m = nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.Conv2d(8, 8, 3, {groups=8, stride=2}), nn.ReLU(), nn.Conv2d(8, 5, 2, {dilation=2})}
for _, rule in ipairs {'single', 'double', 'exact'} do
	for _, specs in ipairs {{'int8/1', 'uint8'}, {'int4/1', 'int8'}, {'int16/1', 'int16'}, {'int8/1', 'int16'}} do
		quantized(('%s, weights %s, inputs %s'):format(rule, specs[1], specs[2]), m, x, {mode='static', weight=specs[1], input=specs[2], rounding=rule})
	end
end
for _, specs in ipairs {{'int8/1', 'uint8'}, {'int4/1', 'int8'}, {'int16', 'uint16'}, {'binary/1', 'uint8'}} do
	quantized(('dynamic, weights %s, inputs %s'):format(specs[1], specs[2]), m, x, {mode='dynamic', weight=specs[1], input=specs[2]})
end
quantized('codes of 4 bits between', m, x, {mode='static', weight='int4/1', input='uint4'})
quantized('codes of 8 bits to codes of 16', m, x, {mode='static', rules={{'conv2', 'int8/1', input={dtype='int16', scale=0.001}},
	{'conv3', 'int8/1', input={dtype='int8', scale=0.02}}}})
for _, spec in ipairs {'int8/1', 'int4:5', 'uint4:32', 'int16', 'binary/1'} do
	quantized('decoded weights ' .. spec, m, x, {mode='weight_only', weight=spec})
end
local grouped, a = nn.Sequential {nn.Conv2d(4, 6, 3, {groups=2, pad=1}), nn.ReLU(), nn.Conv2d(6, 9, 2, {groups=3, stride=2})}, tensor.randn(6, 4, 7, 7)
add('groups of floats', a, function() return graph.trace(grouped:fuse(), a:narrow(1, 1, 1)) end)
for _, specs in ipairs {{'int8/1', 'uint8'}, {'uint4/1', 'uint8'}, {'int4/1', 'int8'}, {'int16/1', 'int16'}, {'binary/1', 'int4'}} do
	quantized('groups, single ' .. specs[1], grouped, a, {mode='static', weight=specs[1], input=specs[2], rounding='single'})
	quantized('groups, dynamic ' .. specs[1], grouped, a, {mode='dynamic', weight=specs[1], input=specs[2]})
end
quantized('groups, decoded', grouped, a, {mode='weight_only', weight='int4:5'})
local same = nn.Sequential {nn.Conv2d(3, 6, 3, 2, 'same'), nn.ReLU(), nn.Conv2d(6, 6, {2, 3}, {pad='same_lower', groups=6}), nn.Conv2d(6, 4, 1, 1, 'valid')}
quantized('autopad', same, x, {mode='static', weight='int8/1', input='uint8'})
add('autopad of floats', x, function() return graph.trace(same:fuse(), x:narrow(1, 1, 1)) end)
exported.together(cases, {compilers={'cc -O2'}, alone=true})

local plain, weight = tensor.randn(5, 4, 7, 6), tensor.randn(6, 4, 3, 3)
exported.functions({
	['a weight that is computed'] = function(self, a) return a:conv2d(self.w * 2) end,
	['a computed weight in groups'] = function(self, a) return a:conv2d(self.g:tanh(), self.b, {groups=2}) end,
	['floats by codes'] = function(self, a) return a:conv2d(self.q, {pad=1}) end, ['floats by 4 bits'] = function(self, a) return a:conv2d(self.p) end,
}, plain, {w=weight, g=tensor.randn(6, 2, 3, 3), b=tensor.randn(6), q=weight:quantize 'int8/1', p=weight:quantize 'int4/1'})

it('refuses plain integers', function()
	local g = exported.of(function(_, x) return x:to('int32'):conv2d(tensor.ones(2, 3, 3, 3):to 'int32') end, tensor.randn(2, 3, 5, 5))
	print(pcall(g.export, g, {dir='/proc/none/x'}))  --> false ...wanted floats or codes for conv2d, got int32
end)
