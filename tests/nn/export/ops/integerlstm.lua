-- SPDX-License-Identifier: MIT
-- labels: full
-- Steps of an LSTM of codes in exported C: the same codes.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(23)
local x = tensor.randn(6, 5, 12) * 4000
local n = 3
local tables = tensor.stack {tensor.arange(-32768, 32767):idiv(2) + 16384, tensor.arange(-32768, 32767), tensor.arange(-32768, 32767)}:clamp(-32767, 32767):to 'int16'
local function parts(gates)
	local multipliers, shifts = {}, {}
	for i = 1, gates * n do multipliers[i], shifts[i] = (1 << 30) + 1234567 * i, i % 4 - 7 end
	return {w = (tensor.randn(gates * n, n) * 60):to 'int8', factors = tensor {multipliers, shifts}:to 'int64', tables = tables}
end
local function cell(gates, options)
	return function(self, a)
		local z = a:narrow(3, 1, gates * n):to 'int16'
		local h, c = (a:select(2, 1):narrow(2, 1, n) / 100):to 'int16', a:select(2, 2):narrow(2, 1, n):to 'int16'
		local y, last, state = nn.integerlstm(z, h, c, self.w, self.factors, self.tables, options)
		return (y + last:unsqueeze(2) * 300 + state:unsqueeze(2)):to 'float32'
	end
end
local cases = {}
for name, case in pairs {four = {4, {multiplier = 1 << 30, shift = -21, zero = 3}}, three = {3, {multiplier = 1500000000, shift = -22, exponent = -9, clip = 900, statezero = -5}}} do
	local p = parts(case[1])
	cases[#cases + 1] = {name = name, x = x, single = true, graph = exported.of(cell(case[1], case[2]), x, p)}
end
exported.together(cases, {compilers = {'cc -O2'}, alone = true})
