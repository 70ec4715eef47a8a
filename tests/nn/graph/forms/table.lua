-- SPDX-License-Identifier: MIT
-- Quantized form of elementwise functions: between two integer layers each of them is a table, off by no code from the rounded
-- function of the codes that come in; where its result is wanted as floats it stays with the layer before it.
tensor.seed(28)
-- Devices compute the function of the values, which gives the codes of the table.
local function by_table(kernel) return kernel == 'table' or tensor.zeros(1):device() ~= 'cpu' and kernel == 'rows' end
local x = tensor.randn(32, 8)
local internal = debug.getregistry()['quoll.internal']

local function quantized(op, input)
	local m = nn.module(function(self, v)
		v = self.a(v) -- behind another op: a clamp would go into the layer
		v = v:view(v:size(1), 2, 4)
		return self.c(v[op](v):view(v:size(1), 8))
	end, {a=nn.Linear(8, 8), c=nn.Linear(8, 4)})
	local g = graph.trace(m, x):calibrate({{x, x}}, {input=input, log=false})
	local q, r = g:quantize{mode='static'}
	return m, q, r
end

it('every function of the form, by table', function()
	local count, form, mine = 0, internal.import('nn/graph/forms/table')[1], {}
	for _, op in ipairs(form.ops) do
		if internal.import 'nn/graph/ops'.form(op) == form then mine[#mine + 1] = op end -- relu has another
	end
	for _, op in ipairs(mine) do
		for _, input in ipairs {'uint8', 'int8'} do
			local _, q, r = quantized(op, input)
			assert(r:where{op=op}.mode == 'static', op)
			quant.log 'reset'
			local _, inner = q:run(x, {keep={'a', op .. '1'}, check=true})
			assert(by_table(quant.log():where{op=op}.kernel) and #quant.log():where{path='fallback'} == 0, op)
			local codes, want = inner[op .. '1']:view(32, 8), inner.a:dequantize()[op](inner.a:dequantize())
			assert(codes:codes():eq(want:quantize(q:node(op .. '1').attrs.out):codes()):all():item(), op)
			count = count + 1
		end
	end
	assert(count >= 68)
end)

it('16 bits', function()
	local m, q = quantized('gelu', 'int16')
	quant.log 'reset'
	local y = q:run(x)
	print(#quant.log():where{path='fallback'}, q:node('gelu1').attrs.out.dtype, y:error(m(x)).sqnr > 35)  --> 0 int16 true
end)

it('an activation whose result is wanted as floats is fused again', function()
	local m = nn.Sequential{nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 4), nn.Sigmoid()}
	local g = graph.trace(m, x):calibrate({{x, x}}, {log=false})
	local q, r = g:quantize{mode='static'}
	print(q:node('gelu1').op, q:node('linear1').attrs.out.name, q:node('linear2').attrs.act, r:where{op='sigmoid'}.why)  --> gelu uint8 sigmoid its result or an operand is needed as floats
	assert(q:run(x, {check=true}):error(m(x)).sqnr > 25)
	-- as codes when asked for: the params of TFLite
	q = g:quantize{mode='static', rules={{'sigmoid1', output={dtype='int8', scale=1 / 256, zero_point=-128}}}}
	quant.log 'reset'
	local y = q:run(x, {check=true})
	print(y:dtype(), by_table(quant.log():where{op='sigmoid'}.kernel), #quant.log():where{path='fallback'})  --> int8 true 0
	assert(y:error(m(x)).max < 0.03)
end)

it('clamps go into the layer; mode dynamic has no tables', function()
	local m = nn.Sequential{nn.Linear(8, 8), nn.ReLU6(), nn.Linear(8, 4)}
	local g = graph.trace(m, x):calibrate({{x, x}}, {log=false})
	print(g:quantize{mode='static'}:node('linear1').attrs.act, g:node('relu61') ~= nil)  --> relu true
	m = nn.Sequential{nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 4)}
	g = graph.trace(m, x):calibrate({{x, x}}, {log=false})
	print(g:quantize{mode='dynamic'}:node('linear1').attrs.act, g:quantize{mode='weight_only'}:node('linear1').attrs.act)  --> gelu nil
end)
