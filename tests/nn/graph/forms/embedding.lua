-- SPDX-License-Identifier: MIT
-- Quantized form of embedding: codes are decoded row by row, in every mode; a weight that a head shares is quantized once.
tensor.seed(22)
local m = nn.module(function(self, ids) return self.e(ids):linear(self.e.weight) end, {e=nn.Embedding(12, 16)})
local ids = tensor.randint{3, 5, low=1, high=12, dtype='int32'}
local g = graph.trace(m, ids)

it('keeps codes, decodes what is wanted', function()
	for _, mode in ipairs {'dynamic', 'weight_only'} do
		local q, r = g:quantize{mode=mode, rules={{'linear1', false}}}
		print(r[1].node, r[1].mode, q:node('e').mode, q:node(q:node('e').inputs[1]).dtype)  --> e weight_only weight_only int8
		--> e weight_only weight_only int8
		quant.log 'reset'
		local y = q:run(ids, {check=true})
		assert(#quant.log():where{path='fallback'} == 0)
		local rows = m.e.weight:detach():quantize('int8/1'):embedding(ids)
		assert(y:error(rows:linear(m.e.weight:detach())).max == 0)
	end
end)

it('the codes of a shared weight are shared', function()
	local q = g:quantize{mode='dynamic'}
	print(q:node('e').inputs[1] == q:node('linear1').inputs[2], #q:node(q:node('e').inputs[1]).users)  --> true 2
	local other = g:quantize{mode='dynamic', rules={{'linear1', 'int4/1'}}}
	print(other:node('linear1').inputs[2] ~= other:node('e').inputs[1], other:run(ids):size())  --> true 3 5 12
end)
