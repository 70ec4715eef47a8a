-- SPDX-License-Identifier: MIT
-- labels: full
-- Recurrent layers in exported C: in integers, floats and decoded weights, the same bits.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x = tensor.randn(6, 5, 7)
local MODES = {
	{'float'}, {'dynamic', {mode='dynamic', weight='int8/1', input='int8'}}, {'dynamic uint8', {mode='dynamic', weight='int8'}},
	{'dynamic int4', {mode='dynamic', weight='int4/1'}}, -- h stays float: its product is one of floats
	{'static', {mode='static'}}, {'weight_only', {mode='weight_only', weight='int8/1'}}, {'weight_only int4', {mode='weight_only', weight='int4:3'}},
}
local cases = {}
for _, kind in ipairs {'LSTM', 'GRU', 'RNN'} do
	local m = nn.Sequential {nn[kind](7, 9, {layers=2}), nn.Linear(9, 3)}
	for _, mode in ipairs(MODES) do
		cases[#cases + 1] = {name=kind .. ' ' .. mode[1], x=x, single=true, graph=function()
			return mode[2] and exported.quantized(m, x, mode[2]) or graph.trace(m, x:narrow(1, 1, 1))
		end}
	end
end
local early = nn.Sequential {nn.GRU(7, 9, {layers=2, resetafter=false, reverse=true}), nn.Linear(9, 3)}
for _, mode in ipairs(MODES) do
	cases[#cases + 1] = {name='GRU, reset before, ' .. mode[1], x=x, single=true, graph=function()
		return mode[2] and exported.quantized(early, x, mode[2]) or graph.trace(early, x:narrow(1, 1, 1))
	end}
end
exported.together(cases, {compilers={'cc -O2'}, alone=true})
local cells = {
	['time first, without biases'] = function(self, a)
		local h = tensor.zeros(5, 4)
		return (nn.gru(a, h, self.w, self.u, {batchfirst=false}))
	end,
	['states as results, relu'] = function(self, a)
		local h = tensor.ones(a:size(1), 4) * 0.5
		return select(2, nn.rnn(a, h, self.w1, self.u1, {act='relu'}))
	end,
	['from the last step'] = function(self, a)
		local h = tensor.ones(a:size(1), 3) * 0.5
		return (nn.lstm(a, h, h, self.w, self.v, {reverse=true}))
	end,
	['lengths'] = function(self, a)
		local h = tensor.ones(a:size(1), 4) * 0.5
		local y, last = nn.gru(a, h, self.w, self.u, {lengths=a:select(2, 1):narrow(2, 1, 5):argmax(2) - 1, resetafter=false})
		return y + last:unsqueeze(2)
	end,
	['lengths from the last step'] = function(self, a)
		local h = tensor.ones(a:size(1), 3) * 0.5
		local y, _, c = nn.lstm(a, h, h, self.w, self.v, {lengths=a:select(2, 1):narrow(2, 1, 5):argmax(2), reverse=true})
		return y + c:unsqueeze(2)
	end,
	['weights that are computed'] = function(self, a)
		local h = tensor.ones(a:size(1), 4) * 0.5
		return (nn.gru(a, h, self.w, self.u * a:max():clamp(0.5, 1), {resetafter=false}))
	end,
	['last cell state'] = function(self, a)
		local h = tensor.ones(a:size(1), 3) * 0.5
		return select(3, nn.lstm(a, h, h, self.w, self.v))
	end,
}
local parts = {w=tensor.randn(12, 7), u=tensor.randn(12, 4), v=tensor.randn(12, 3), w1=tensor.randn(4, 7), u1=tensor.randn(4, 4)}
exported.functions(cells, x, parts)
