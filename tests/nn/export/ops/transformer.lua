-- SPDX-License-Identifier: MIT
-- Whole networks without a float between their first and last op: a Transformer, one with shared heads and gates, an MLP with
-- gelu. No op falls back, and exported C gives the same bits.
-- labels: once
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(48)
local ids = tensor.randint{16, 7, low=1, high=20, dtype='int32'}
local cases = {}

local function check(name, m, x, o)
	local g = graph.trace(m, x:narrow(1, 1, 1)):calibrate({{x, x}}, {input=o.input, log=false})
	local q, r = g:quantize(o)
	assert(#r:where{mode='float'} == 0, tostring(r))
	quant.log 'reset'
	local y = q:run(x, {check=true})
	assert(#quant.log():where{path='fallback'} == 0, tostring(quant.log()))
	-- devices compute the functions of tables by values
	assert(x:device() ~= 'cpu' or #quant.log():where{path='float32'} == 0, tostring(quant.log()))
	assert(y:error(m(x)).sqnr > 20, y:error(m(x)).sqnr)
	cases[#cases + 1] = {name=name .. ' in C', graph=q, x=x}
	return q
end

it('a Transformer', function()
	local m = nn.Transformer {vocab=20, d=16, heads=2, layers=2, context=8}
	check('transformer', m, ids, {mode='static'})
	check('transformer in int8', m, ids, {mode='static', input='int8'})
end)

it('one with shared heads, gates and rmsnorm; its logits as codes', function()
	local m = nn.Transformer {vocab=20, d=16, heads=4, kvheads=2, layers=1, norm='rmsnorm', act='swiglu', bias=false, context=8}
	local q = check('gated', m, ids, {mode='static', rules={{'head', output={dtype='int16', scale=1e-3}}}})
	print(q:run(ids):dtype())  --> int16
end)

it('a Llama: positions by rotation', function()
	local m = nn.Transformer {vocab=20, d=16, heads=4, kvheads=2, layers=1, norm='rmsnorm', act='swiglu', position='rope', bias=false}
	check('llama', m, ids, {mode='static'})
	check('llama in int16', m, ids, {mode='static', input='int16'})
end)

it('an MLP with gelu, softmax as codes', function()
	local x = tensor.randn(64, 12)
	local m = nn.Sequential {nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 24), nn.LayerNorm(24), nn.Linear(24, 5), nn.Softmax()}
	check('mlp', m, x, {mode='static', rules={{'softmax1', output={dtype='int8', scale=1 / 256, zero_point=-128}}}})
end)
exported.together(cases, {alone=true})
