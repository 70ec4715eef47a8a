-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Quantized forms of add, sub, mul, cat and stack: integer ops where codes come in and are wanted, float ops elsewhere.
tensor.seed(24)
local x = tensor.randn(16, 8)

local function quantized(run)
	local m = nn.module(run, {a=nn.Linear(8, 8), b=nn.Linear(8, 8), c=nn.Linear(8, 8), d=nn.Linear(16, 4)})
	local g = graph.trace(m, x):calibrate({{x, x}}, {log=false})
	local q, r = g:quantize{mode='static'}
	return m, q, r
end

it('sums, products and joins of codes for a layer stay integer', function()
	for op, run in pairs {
		add = function(self, v) return self.c(self.a(v) + self.b(v)) end,
		sub = function(self, v) return self.c(self.a(v) - self.b(v)) end,
		mul = function(self, v) return self.c(self.a(v) * self.b(v)) end,
		stack = function(self, v) return self.d(tensor.stack({self.a(v), self.b(v)}, {axis=2}):view(v:size(1), 16)) end,
		cat = function(self, v) return self.d(tensor.cat({self.a(v), self.b(v)}, {axis=2})) end,
	} do
		local m, q, r = quantized(run)
		assert(r:where{op=op}.mode == 'static' and q:node(op .. '1').attrs.out, op)
		quant.log 'reset'
		local y = q:run(x, {check=true})
		assert(quant.log():where{op=op}[1].path == 'integer' and #quant.log():where{path='fallback'} == 0, op)
		assert(y:error(m(x)).sqnr > 25, op)
		assert(q:run(x, {arena=true}):error(y).max == 0)
	end
end)

it('a sum that is wanted as floats, or with an operand that no layer gave, is a float op', function()
	local _, q, r = quantized(function(self, v) return self.a(v) + self.b(v) end)
	print(r:where{op='add'}.mode, q:node('add1').inputs[1], r:where{op='add'}.why)  --> float a.dequantize its result or an operand is needed as floats
	_, q, r = quantized(function(self, v) return self.c(v:exp() + v:sin()) end)
	print(r:where{op='add'}.mode, r:where{op='add'}.why, q:node('add1').inputs[1])  --> float its operands are not codes, or their range was not observed exp1
end)

it('with a number, or a constant', function()
	for _, f in ipairs {function(v) return v * 2 end, function(v) return 1 - v end, function(v) return v / 3 end, function(v) return v:maximum(0.1) end} do
		local m, q, r = quantized(function(self, v) return self.c(f(self.a(v))) end)
		quant.log 'reset'
		local y = q:run(x, {check=true})
		assert(#quant.log():where{path='fallback'} == 0 and quant.log():where{kernel='table'}.count == 1 and r[2].mode == 'static')
		assert(y:error(m(x)).sqnr > 25)
	end
	local shift = tensor.randn(4, 8)
	local m, q = quantized(function(self, v) return self.c(self.a(v) + shift:narrow(1, 2, 1)) end)
	quant.log 'reset'
	local y = q:run(x, {check=true})
	print(#quant.log():where{path='fallback'}, quant.log():where{op='add'}.path, q:node('narrow1').op, q:node('narrow1').dtype)  --> 0 integer const uint8
	assert(y:error(m(x)).sqnr > 25)
end)
it('joins of 4-bit codes of odd widths', function()
	local x = tensor.randn(20, 9)
	for _, input in ipairs {'uint4', 'int4'} do
		local m = nn.module(function(q, v) return q.last(tensor.cat({q.a(v), q.b(v)}, {axis=-1})) end,
			{a=nn.Linear(9, 5), b=nn.Linear(9, 4), last=nn.Linear(9, 3)})
		local g = graph.trace(m, x):calibrate({{x, x}}, {log=false, input=input})
		local q, r = g:quantize {mode='static', input=input}
		local want = g:run(x)
		quant.log 'reset'
		assert(q:run(x):error(want).sqnr > 8)
		assert(r:where{op='cat'}[1].mode == 'static' and q:node('cat1').attrs.out.bits == 4 and quant.log():where{op='cat'}[1].path == 'integer')
	end
end)
