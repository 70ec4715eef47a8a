-- SPDX-License-Identifier: MIT
-- labels: quick
local exported = dofile 'tests/tools/exported.lua'
local out = dofile 'tests/tools/onnx_out.lua'
tensor.seed(14)
local x = tensor.randn(3, 4, 5)

it('writes layers with their gates in the order of ONNX', function()
	for kind, option in pairs {LSTM = 'reverse', GRU = 'resetafter', RNN = 'bidirectional'} do
		local m = nn.Sequential {nn[kind](5, 6), nn[kind](6, 6, {[option] = option ~= 'resetafter'}), nn.Linear(option == 'bidirectional' and 12 or 6, 3)}
		out.back(graph.trace(m, x[{{1, 1}}]), x, {tolerance = 2e-6})
		out.back(exported.quantized(m, x, {mode = 'weight_only'}), x, {tolerance = 2e-6})
	end
end)

it('writes states, layouts and activations', function()
	local parts = {i = tensor.randn(24, 5), h = tensor.randn(24, 6)}
	out.back(function(self, a)
		local zero = tensor.full {4, 6, value = 0.2}
		local y, h, c = nn.lstm(a, zero, zero, self.i, self.h, {batchfirst = false})
		return y + h + c
	end, tensor.randn(1, 4, 5), {parts = parts, tolerance = 2e-6})
	out.back(function(self, a)
		local zero, lengths = tensor.full {a:size(1), 6, value = 0.2}, a:select(2, 1):narrow(2, 1, 4):argmax(2)
		local y, h = nn.lstm(a, zero, zero, self.i, self.h, {reverse = true, lengths = lengths})
		return y + h:unsqueeze(2)
	end, x, {parts = parts, tolerance = 2e-6})
	local function relu(self, a) return (nn.rnn(a, tensor.zeros(a:size(1), 24), self.w, self.v, {act = 'relu'})) end
	for _, n in ipairs(out.model(out.graph(relu, x, {parts = {w = parts.i, v = tensor.randn(24, 24)}})).graph.node) do
		if n.op_type == 'RNN' then print(n.attribute[1].name, n.attribute[1].strings[1]) end  --> activations Relu
	end
end)
