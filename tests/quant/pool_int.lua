-- SPDX-License-Identifier: MIT
-- maxpool2d and pad of codes stay integers: what they give decodes to what the op gives on the decoded operand, bit for bit.
tensor.seed(21)
for _, spec in ipairs {'uint8', 'int8', 'int16', {dtype='int8', scheme='asymmetric'}} do
	it(tostring(quant.spec(spec)), function()
		local q = (tensor.randn(2, 3, 6, 5) - 0.3):quantize(spec)
		local d = q:dequantize()
		for _, run in ipairs {function(x) return x:maxpool2d(2) end, function(x) return x:maxpool2d(3, {stride=2, pad=1}) end,
			function(x) return x:pad {1, 2, 0, 1, 2, 2} end, function(x) return x:pad {1, 1} end} do
			local got = run(q)
			assert(got:quantized() and got:origin().path == 'integer' and got:dtype() == q:dtype())
			assert(got:qparams().scale:item() == q:qparams().scale:item())
			assert(got:dequantize():ne(run(d)):any():item() == false)
		end
	end)
end
local q = tensor.randn(1, 2, 4, 4):quantize 'uint8'
print(q:pad({1, 1}, {value=2}):origin().reason)  --> a border that is not 0 may have no code
print(tensor.randn(2, 2, 4, 4):quantize('int8/1'):maxpool2d(2):origin().path)  --> fallback

it('sums of 8-bit codes in vectors: the bits of the general way', function()
	for _, pair in ipairs {{'uint8', 'uint8'}, {'int8', 'uint8'}, {'int8', 'int8'}, {'uint8', {dtype='int8', scheme='asymmetric'}}} do
		for _, out in ipairs {{dtype='uint8', scale=0.03, zero_point=120}, {dtype='int8', scale=0.011}} do
			local a, b = tensor.randn(40, 77):quantize(pair[1]), (tensor.randn(40, 77) * 2):quantize(pair[2])
			local fast = a:add(b, {out=out})
			local slow = a:t():add(b:t(), {out=out}):t() -- not dense: element by element
			assert(fast:codes():ne(slow:codes()):any():item() == false)
		end
	end
end)
