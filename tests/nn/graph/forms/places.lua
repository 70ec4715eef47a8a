-- SPDX-License-Identifier: MIT
-- labels: quick host
-- argmax and argmin in quantized graphs: of codes where the range is known, the same place as of the values, ties too; exported.
local exported = dofile 'tests/tools/exported.lua'
tensor.seed(41)
local m = nn.module(function(self, x) return self.b(self.a(x):relu()):argmax(-1), self.b(x):argmin{axis=2, keep=true} end,
	{a=nn.Linear(6, 6), b=nn.Linear(6, 5)})
local x = tensor.randn(64, 6)

local function only(f) return nn.module(f, {a=nn.Linear(6, 5)}) end

it('takes codes where g:calibrate has seen the range; the place is that of the decoded values', function()
	local g = graph.trace(m, x):calibrate({{x, x}}, {log=false})
	local q, r = g:quantize{mode='static'}
	print(#r:where{op='argmax', mode='static'}, #r:where{op='argmin', mode='static'}, q:node('argmax1').dtype)  --> 1 1 int64
	print(q:node('argmax1').inputs[1], q:node('b').attrs.out.name, q:node('b').dtype)  --> b uint8 uint8
	quant.log 'reset'
	local most, least, inner = q:run(x, {check=true, keep={'b', 'b_2'}})
	print(#quant.log():where{path='fallback'}, #quant.log():where{op='argmax', path='integer'})  --> 0 1
	assert(most:eq(inner.b:dequantize():argmax(-1)):all():item())
	assert(least:eq(inner.b_2:dequantize():argmin{axis=2, keep=true}):all():item())
	assert(inner.b:dequantize():max{axis=2, keep=true}:eq(inner.b:dequantize()):to 'int32':sum():item() > 64, 'no tie to be tested')
	assert(tostring(q:quantize{mode='static'}) == tostring(q))
end)
it('stays a float op where nothing has seen the range, in other modes, and where a rule says so', function()
	m:calibrate({{x, x}}, {log=false})
	local g = graph.trace(m, x)
	local _, r = g:quantize{mode='static'}
	print(r:where{op='argmax'}.mode, r:where{op='argmax'}.why)  --> float its operands are not codes, or their range was not observed
	g:calibrate({{x, x}}, {log=false})
	print(select(2, g:quantize{mode='dynamic'}):where{op='argmax'}.mode)  --> float
	local q, s = g:quantize{mode='static', rules={{'argmax.*', false}}}
	print(s:where{op='argmax'}.why, q:node('b').dtype)  --> a rule says so float32
end)
it('a rule with input= gives the scale', function()
	local g = graph.trace(only(function(self, v) return self.a(v):argmax(2) end), x)
	local q = g:quantize{mode='static', input={dtype='int8', scale=0.03}, rules={{'argmax.*', mode='static', input={dtype='int8', scale=0.02}}, {'a', 'int8'}}}
	print(q:node('a').attrs.out.scale, q:node('argmax1').mode)  --> 0.02 static
end)
it('is exported, bit for bit', function()
	exported.skip()
	for _, input in ipairs {'uint8', 'int8', 'int16'} do
		for _, f in ipairs {function(self, v) return self.a(v):argmax(-1) end, function(self, v) return self.a(v):argmin{axis=2, keep=true} end} do
			local g = graph.trace(only(f), x[{{1, 1}}])
			g:calibrate({{x, x}}, {log=false, input=input})
			local q = g:quantize{mode='static', input=input, weight=input == 'int16' and 'int16/1' or nil}
			exported.check('argmax of ' .. input, q, x, {flags={'cc -O0'}})
		end
	end
end)
