-- SPDX-License-Identifier: MIT
-- labels: quick
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(2)
local x = tensor.randn(3, 4, 5) * 3
local parts = {b = tensor.randn(5), n = tensor {-7, 3, -1, 2, 5, dtype = 'int32'}}

it('writes floats with broadcasting and numbers', function()
	for _, op in ipairs {'add', 'sub', 'mul', 'div', 'maximum', 'minimum', 'mod', 'idiv'} do
		back(function(self, a) return a[op](a, self.b) end, x, {parts = parts})
		back(function(_, a) return a[op](a, 1.5) end, x)
		back(function(_, a) return a[op](a, a:narrow(2, 1, 1)) end, x)
	end
	back(function(_, a) return 2 - a end, x)
	back(function(_, a) return a:abs():pow(a) end, x, {tolerance = 2e-6})
	back(function(_, a) return a ^ 2 end, x)
end)

it('writes integers, which wrap, and divisions rounded down', function()
	for _, op in ipairs {'add', 'sub', 'mul', 'maximum', 'minimum', 'mod', 'idiv'} do
		back(function(self, a) local y = (a * 5):to 'int32' return y[op](y, self.n) end, x, {parts = parts})
	end
	for _, op in ipairs {'add', 'mul', 'sub'} do back(function(_, a) local y = (a * 40):to 'int8' return y[op](y, y) end, x) end
	for _, op in ipairs {'mod', 'idiv'} do back(function(_, a) return (a * 40):to 'int8'[op]((a * 40):to 'int8', 7) end, x) end
	back(function(self, a) return a:to 'int32' / self.n end, x, {parts = parts})
	back(function(_, a) return a:to 'int64':shl(3) + a:to 'int64':shr(1) end, x)
	out.refused('shl (', function(_, a) return a:to 'int32':shl(a:to 'int32') end, x)
end)

it('writes bits and comparisons', function()
	for _, op in ipairs {'band', 'bor', 'bxor'} do
		back(function(_, a) return a:gt(0)[op](a:gt(0), a:lt(1)) end, x)
		back(function(self, a) return a:to 'int32'[op](a:to 'int32', self.n) end, x, {parts = parts})
	end
	for _, op in ipairs {'eq', 'ne', 'lt', 'le', 'gt', 'ge'} do
		back(function(_, a) return a:round()[op](a:round(), 1) end, x)
		back(function(_, a) return a:to 'int8'[op](a:to 'int8', 1) end, x)
		back(function(_, a) return a:to 'int32'[op](a:to 'int32', 0.5) end, x)
		back(function(_, a) return a:to 'int32'[op](a:to 'int32', a) end, x)
	end
	back(function(self, a) return tensor.where(a:gt(self.b), a, 0.5) end, x, {parts = parts})
	back(function(_, a) return tensor.where(a:gt(0), a:to 'int32', 7) end, x)
end)

it('rounds quotients, and has remainders with the sign of the first operand', function()
	back(function(self, a) return (a * 3):div(self.b, {round = 'trunc'}) + a:div(0.3, {round = 'floor'}) end, x, {parts = parts})
	back(function(self, a) return (a * 3):fmod(self.b) end, x, {parts = parts})
	back(function(_, a) return (a * 30):to 'int32':fmod(7) end, x)
end)
