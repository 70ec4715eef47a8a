-- SPDX-License-Identifier: MIT
-- Quantized forms of lstm, gru and rnn: x and h in integers where the spec allows, both weights, multiplications.
tensor.seed(23)
local x = tensor.randn(3, 7, 6)

it('int8 weights quantize h at each step, others x only', function()
	for _, kind in ipairs {'LSTM', 'GRU', 'RNN'} do
		local m = nn.Sequential{nn[kind](6, 10, {layers=2, name='r'})}
		m:calibrate({{x, x}}, {log=false})
		local g = graph.trace(nn.module(function(self, v) return (self.m(v)) end, {m=m}), x)
		local op = kind:lower()
		for _, mode in ipairs {'static', 'dynamic', 'weight_only'} do
			for _, weight in ipairs {'int8/1', 'int4/1', 'int8'} do
				local q = g:quantize{mode=mode, weight=weight, input='int8'}
				local node = q:node('m.r.' .. op .. '2')
				assert((node.attrs.states == 'int8') == (mode ~= 'weight_only' and weight ~= 'int4/1'))
				assert(q:node('m.r.weight_hh1').dtype == weight:match '%w+')
				local wanted = m:quantize{mode=mode, weight=weight, input='int8'}
				assert(q:run(x, {check=true}):error((wanted(x))).max == 0, kind .. mode .. weight)
			end
		end
	end
end)

it('counts multiplications of all steps', function()
	print(graph.trace(nn.LSTM(6, 10), x):node('lstm1').macs)  --> 4480
end)
