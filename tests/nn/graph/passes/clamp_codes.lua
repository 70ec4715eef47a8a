-- SPDX-License-Identifier: MIT
-- Pass clamp_codes: relu6 of layers whose codes end at 6 becomes relu, and gives the codes of the clamp; elsewhere it stays.
tensor.seed(8)
local x = tensor.randn(64, 6) * 4

it('layers between quantized ones run in integers', function()
	for _, input in ipairs {'uint8', 'int8', 'int16'} do
		local m = nn.Sequential{nn.Linear(6, 8), nn.ReLU6(), nn.Linear(8, 3)}
		local g = graph.trace(m, x):calibrate({{x, x}}, {input=input, log=false})
		local q = g:quantize{mode='static'}
		assert(q:node('linear1').attrs.act == 'relu')
		local _, inner = q:run(x, {keep={'linear1', 'linear1.quantize'}, check=true})
		-- the same codes as of the sums, clamped
		local codes = inner['linear1.quantize']:linear(q:node('linear1.weight').value, m[1].bias:detach())
		local want = codes:relu6():quantize(q:node('linear1').attrs.out)
		local off = (inner.linear1:codes():to 'int64' - want:codes():to 'int64'):abs():max():item()
		assert(off <= 1 and inner.linear1:dequantize():max():item() <= 6 + 1e-5, off)
		assert(q:run(x):error(m(x)).sqnr > 25)
		assert(#select(2, q:pass 'clamp_codes') == 0)
	end
end)

it('stays where the codes go beyond 6', function()
	local m = nn.Sequential{nn.Linear(6, 8), nn.ReLU6(), nn.Linear(8, 3)}
	local g = graph.trace(m, x)
	local q = g:quantize{mode='static', rules={{'linear1', input={dtype='int8', scale=0.1}, output={dtype='uint8', scale=0.03}},
		{'linear2', input={dtype='uint8', scale=0.03}}}}
	print(q:node('linear1').attrs.act)  --> relu6
	print(q:run(x, {keep='linear1', check=true}):size())  --> 64 3
	local _, inner = q:run(x, {keep='linear1'})
	print(inner.linear1:codes():max():item())  --> 200
end)

describe('relu after a sum', function()
	local function layers() return nn.Sequential {nn.Linear(6, 8), nn.Residual {nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)}, nn.ReLU(), nn.Linear(8, 3)} end
	it('is the saturation of the sum', function()
		local m = layers()
		m:calibrate({{x, x}}, {log=false})
		local g = graph.trace(m, x):quantize {mode='static'}
		local kept = graph.trace(m, x):quantize {mode='static', rules={{'residual1.add1', output={dtype='uint8', scale=0.05, zero_point=10}}}}
		local function relus(made)
			local n = 0
			for _, name in ipairs(made.order) do n = n + (made:node(name).op == 'relu' and 1 or 0) end
			return n
		end
		print(relus(g), relus(kept), kept:node('residual1.add1').attrs.act, g:node('residual1.add1').attrs.out.zero_point)  --> 0 0 relu 0
		local _, inner = g:run(x, {keep={'residual1.add1', 'linear2'}})
		print(inner['residual1.add1']:codes():min():item(), inner['residual1.add1']:relu():error(inner['residual1.add1']).max)  --> 0 0.0
		assert(inner['residual1.add1']:codes():max():item() > 240) -- all codes are for values of the sum after the relu
		local q = m:quantize {mode='static'}
		assert(q(x):error(g:run(x)).max == 0)
		quant.log 'reset'
		q(x)
		local ops = {}
		for _, row in ipairs(quant.log()) do ops[#ops + 1] = row.op end
		print(table.concat(ops, ' '))  --> quantize linear add
	end)
	it('is the act= of a sum whose codes stand for negative values, too', function()
		local m = layers()
		for _, input in ipairs {'int8', 'int16', {dtype='int8', scheme='asymmetric'}} do
			m:calibrate({{x, x}}, {input=input, log=false})
			local q, g = m:quantize {mode='static'}, graph.trace(m, x):quantize {mode='static'}
			local sum = g:node 'residual1.add1'
			assert(sum.attrs.act == 'relu' or sum.attrs.out.zero_point == -128)
			assert(q(x):error(g:run(x, {check=true})).max == 0 and q(x):error(m(x)).sqnr > 20)
		end
		m:calibrate({{x, x}}, {input='int8', log=false})
		for _, rule in ipairs {'float', 'single', 'double'} do
			local g = graph.trace(m, x):quantize {mode='static', rounding=rule}
			local a = g:node 'residual1.add1'
			local _, inner = g:run(x, {keep={a.name, a.inputs[1], a.inputs[2]}})
			local sum = inner[a.name]
			assert(a.attrs.act == 'relu' and sum:codes():min():item() == 0 and sum:codes():max():item() > 100)
			-- as without act=, then relu
			local plain = inner[a.inputs[1]]:add(inner[a.inputs[2]], {out=a.attrs.out}):relu()
			assert(sum:codes():eq(plain:codes()):all():item(), rule)
		end
	end)
	it('stays where somebody else takes the sum', function()
		local m = nn.module(function(self, v)
			local s = self.a(v) + self.b(v)
			return self.c(s:relu()) + self.d(s)
		end, {a=nn.Linear(6, 8), b=nn.Linear(6, 8), c=nn.Linear(8, 3), d=nn.Linear(8, 3)})
		local g = graph.trace(m, x):calibrate({{x, x}}, {input='int8', log=false})
		print(g:quantize {mode='static'}:node('relu1').op)  --> relu
	end)
end)
