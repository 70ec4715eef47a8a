-- SPDX-License-Identifier: MIT
-- labels: full
-- Fake quantization in exported C: the bits of fake and lsq.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x, list = tensor.randn(20, 12), {}
x[{1, 3}], x[{2, 1}], x[{3, 12}] = 0 / 0, 1 / 0, -1 / 0
for _, spec in ipairs {'int8', 'uint8', 'int4', 'int16', {dtype='uint8', scale=0.02, zero_point=99}, {dtype='int4', scale=0.3}, {bits=3, scheme='asymmetric'}} do
	list[tostring(quant.spec(spec))] = function(_, a) return a:fake(spec) end
end
list['weights are rounded before'] = function(self, a) return a * self.w:fake 'int4/1' end
list['learned scale'] = function(self, a) return a:lsq(self.s, {bits=4}) end
list['learned scale of few bits'] = function(self, a) return a:lsq(self.s, {bits=2}) end
list['learned zero point'] = function(self, a) return a:lsq(self.s, self.z, {bits=8, signed=false}) end
list['learned scale of weights'] = function(self, a) return a * self.w:lsq(self.t, {bits=4, axis=1}) end
exported.functions(list, x, {w=tensor.randn(3, 12):narrow(1, 2, 1), s=tensor {0.07}, z=tensor {100.6}, t=tensor {0.2}})
it('a model of mode qat gives what it gives in use', function()
	local rows = tensor.randn(40, 6)
	for _, learn in ipairs {false, true} do
		local m = nn.Sequential {nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)}
		m:calibrate({{rows, rows}}, {log=false, input='uint8'})
		local q = m:quantize {mode='qat', weight={bits=4, axis=1, learn=learn}, input={dtype='uint8', learn=learn}}:eval()
		exported.check('qat', graph.trace(q, rows:narrow(1, 1, 1)), rows, {flags=exported.FLAGS})
	end
end)
it('one scale for each channel of values is refused', function()
	local g = exported.of(function(_, a) return a:fake 'int8/2' end, tensor.randn(2, 4))
	print(pcall(g.export, g, {dir='/proc/none/x'}))  --> false ...wanted affine codes under one scale by the observer minmax, or with a scale, got 'int8/2'
end)
