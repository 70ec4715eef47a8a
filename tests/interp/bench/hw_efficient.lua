-- SPDX-License-Identifier: MIT
-- hw.efficient: what it says is what the ledger says of larger operands, on every level of kernels.
local vectors = hw.features().level ~= 'ref'

it('agrees with the path and kernel of larger products', function()
	tensor.seed(3)
	local x, w = tensor.randn(32, 256), tensor.randn(64, 256)
	for _, case in ipairs {{'int8', 'uint8'}, {'int8/1', 'uint8'}, {'uint8', 'uint8'}, {'int4/1', 'uint8'}, {'int4:32', 'uint8'},
		{'int16', 'int16'}, {'int8 log', 'uint8'}, {'binary/1', 'binary'}} do
		local o = x:quantize(case[2]):linear(w:quantize(case[1])):origin()
		local yes, why = hw.efficient(case[1])
		assert(yes == (o.path ~= 'fallback' and (o.kernel ~= 'ref' or not vectors)), case[1] .. ': ' .. why)
		assert(why:find(o.path == 'fallback' and 'falls back to float32: ' .. o.reason or 'path ' .. o.path .. ', kernel ' .. o.kernel, 1, true), why)
	end
end)
it('knows codes that share a byte, floats and portable code', function()
	print(hw.efficient('int4', 'relu'))  --> false relu of int4 works on 2 codes in a byte one by one: path integer
	print(hw.efficient('int8', 'relu'))  --> true relu of int8 runs on codes: path integer, kernel relu_int
	print(hw.efficient('int8', 'sort'))  --> false sort of int8 falls back to float32: ...
	print((hw.efficient('float32')), (hw.efficient('int8', 'conv2d')), (hw.efficient('int8', 'matmul')))  --> true true true
	if vectors then
		print(hw.efficient('int4', 'quantize'))  --> true quantize of int4 runs on codes: path int4, kernel quantize_...
		assert(hw.efficient('int8', 'quantize') and hw.efficient('int8', 'dequantize') and not hw.efficient('binary', 'dequantize'))
	end
end)
it('measures beside float32 when asked, and leaves random numbers alone', function()
	tensor.seed(4)
	local wanted = tensor.randn(3):totable()
	tensor.seed(4)
	local yes, why, ratio = hw.efficient('int8', 'relu', {measure=true})
	assert(math.type(ratio) == 'float' and ratio > 0 and why:find 'x the speed of float32$' and yes == (ratio >= 1))
	assert(select(3, hw.efficient('int4:32', {measure=true})) > 0 and select(3, hw.efficient('int8', 'dequantize', {measure=true})) > 0)
	assert(tensor.randn(3):eq(tensor(wanted)):all():item())
end)
it('refuses what is no op and no spec', function()
	print(pcall(hw.efficient, 'int9'))  --> false ...dtype: wanted a dtype like...
	print(pcall(hw.efficient, 'int8', 'matmull'))  --> false ...efficient: op: wanted...got 'matmull'; did you mean 'matmul'?
	print(pcall(hw.efficient, 'int8', 'relu', {mesure=true}))  --> false ...unknown option 'mesure'; did you mean 'measure'?...
end)
