-- SPDX-License-Identifier: MIT
-- labels: quick host
-- relu on codes equals relu of the values, bit for bit, and keeps dtype and params.
local x = tensor{{-3, -1, 0, 2}, {5, -5, 0.1, -0.1}}
for _, spec in ipairs{'int8', 'uint8', 'int8/1', 'uint8/2', 'int4:2', 'uint4/1:2', 'int16', {dtype = 'int8', scheme = 'log'},
	{dtype = 'uint8', scheme = 'symmetric'}} do
	local q = x:quantize(spec)
	local r = q:relu()
	assert(r:dtype() == q:dtype() and r:origin().path == 'integer', r:origin().path)
	assert(r:dequantize():metrics(q:dequantize():relu()).max == 0)
	assert(q:t():relu():dequantize():metrics(q:t():dequantize():relu()).max == 0)
end
print(x:quantize('binary'):relu():origin().path)  --> fallback
