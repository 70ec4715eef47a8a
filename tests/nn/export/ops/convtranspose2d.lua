-- SPDX-License-Identifier: MIT
-- labels: full
-- Transposed convolutions in exported C: floats, codes with every rule of rounding, groups, decoded weights.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(5)
local x = tensor.randn(6, 4, 5, 6)
local m = nn.Sequential {nn.Conv2d(4, 6, 3, 1, 1), nn.ReLU(), nn.ConvTranspose2d(6, 8, 4, 2, 1), nn.ReLU(),
	nn.ConvTranspose2d(8, 4, {3, 2}, {stride={2, 3}, pad={1, 0}, outputpad={1, 2}, groups=2, dilation={1, 2}}), nn.Conv2d(4, 3, 1)}
local cases = {}
local function add(name, given, graph, single) cases[#cases + 1] = {name=name, x=given, graph=graph, single=single} end
local function quantized(name, options)
	add(name, x, function() return exported.quantized(m, x, options) end, options.mode == 'dynamic')
end
add('floats', x, function() return graph.trace(m:fuse(), x:narrow(1, 1, 1)) end)
for _, c in ipairs {{'int8/1', 'uint8'}, {'int4/1', 'int8', 'single'}, {'int16/1', 'int16', 'double'}, {'int16/1', 'int16', 'exact'}, {'int8/1', 'int16'}, {'int8', 'uint8', 'double'}} do
	quantized(table.concat(c, ' '), {mode='static', weight=c[1], input=c[2], rounding=c[3]})
end
quantized('dynamic', {mode='dynamic', weight='int8/1', input='uint8'})
for _, spec in ipairs {'int8/1', 'int4:8'} do quantized('decoded ' .. spec, {mode='weight_only', weight=spec}) end
exported.together(cases, {compilers={'cc -O2'}, alone=true})

local w = tensor.randn(4, 3, 3, 3)
exported.functions({
	['autopad'] = function(self, a) return a:convtranspose2d(self.w, {stride=2, autopad='same'}) end,
	['autopad, first'] = function(self, a) return a:convtranspose2d(self.w, self.b, {stride={2, 4}, autopad='same_lower', act='relu'}) end,
	['a step longer than the kernel'] = function(self, a) return a:convtranspose2d(self.w, {stride=4, pad={0, 1, 2, 0}, outputpad=3}) end,
	['a weight that is computed'] = function(self, a) return a:convtranspose2d(self.w * 2, {stride=2}) end,
	['volumes'] = function(self, a)
		return a:view(a:size(1), 2, 2, 5, 6):conv3d(self.k, {pad=1, stride={1, 2, 1}}):maxpool3d {1, 2, 2}:avgpool3d {2, 1, 1}
	end,
	['along one axis'] = function(self, a)
		return a:select(3, 1):convtranspose1d(self.w:select(3, 1), self.b, {stride=2, pad=1}):conv1d(self.v, {pad=1}):maxpool1d(2)
	end,
}, x, {w=w, b=tensor.randn(3), v=tensor.randn(2, 3, 3), k=tensor.randn(3, 2, 2, 3, 3)})

local volume, nets = tensor.randn(4, 2, 4, 5, 5), {}
local net = nn.Sequential {nn.Conv3d(2, 4, 3, {pad={0, 1, 1, 1, 1, 0}}), nn.ReLU(), nn.MaxPool3d {1, 2, 2}, nn.Conv3d(4, 2, {2, 1, 2}, {groups=2})}
for _, o in ipairs {{mode='static'}, {mode='static', weight='int4/1', input='int8'}, {mode='weight_only', weight='int8/1'}} do
	nets[#nets + 1] = {name='volumes, ' .. o.mode .. ' ' .. (o.weight or ''), x=volume, graph=function() return exported.quantized(net, volume, o) end}
end
exported.together(nets, {compilers={'cc -O2'}, alone=true})
