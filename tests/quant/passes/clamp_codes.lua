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
