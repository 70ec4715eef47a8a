-- SPDX-License-Identifier: MIT
-- labels: quick host
-- pad of codes stays integer: what it gives decodes to what the op gives on the decoded operand, bit for bit.
tensor.seed(21)
for _, spec in ipairs {'uint8', 'int8', 'int16', {dtype='int8', scheme='asymmetric'}} do
	it(tostring(quant.spec(spec)), function()
		local q = (tensor.randn(2, 3, 6, 5) - 0.3):quantize(spec)
		local d = q:dequantize()
		for _, run in ipairs {function(x) return x:pad {1, 2, 0, 1, 2, 2} end, function(x) return x:pad {1, 1} end} do
			local got = run(q)
			assert(got:quantized() and got:origin().path == 'integer' and got:dtype() == q:dtype())
			assert(got:qparams().scale:item() == q:qparams().scale:item())
			assert(got:dequantize():ne(run(d)):any():item() == false)
		end
	end)
end
it('other values have their nearest code', function()
	for _, spec in ipairs {{dtype='uint8', scale=0.05, zero_point=100}, {dtype='int8', scale=0.05}, {dtype='int16', scale=0.002}} do
		local q = tensor.randn(1, 2, 4, 4):quantize(spec)
		for _, value in ipairs {2, 0.07, -0.025, 0.125, 1e30, -math.huge} do
			local y = q:pad({1, 1}, {value=value})
			local code = tensor {value}:quantize(spec):codes():item()
			assert(y:origin().path == 'integer' and y:codes()[1][1][1][1]:item() == code and y:codes()[1][2][4][6]:item() == code, value)
			assert(y:codes():narrow(4, 2, 4):eq(q:codes()):all():item())
		end
	end
end)
local q = tensor.randn(1, 2, 4, 4):quantize 'uint8'
print(q:pad({1, 1}, {value=0 / 0}):origin().reason)  --> a border of elements, or of nan
