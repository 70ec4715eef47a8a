-- SPDX-License-Identifier: MIT
-- labels: quick host
-- resize of codes: mode nearest gives the codes of the op on decoded codes, under the same params; what falls back.
tensor.seed(8)
it('nearest moves codes', function()
	for _, spec in ipairs {'uint8', 'int8/2', 'int16', 'int4', 'uint4/2', 'binary'} do
		local q = tensor.randn(2, 3, 4, 8):quantize(spec)
		local o = {size = {7, 6}, mode = 'nearest', coords = 'half_pixel'}
		local y = q:resize(o)
		assert(y:quantized() and y:dtype() == q:dtype() and y:origin().path == 'integer' and y:dequantize():eq(q:dequantize():resize(o)):all():item())
		assert(q:resize {size = 5}:origin().reason == 'only mode nearest moves codes')
	end
	assert(tensor.randn(2, 3, 4, 4):quantize 'int8/3':resize {size = 2, mode = 'nearest'}:origin().reason == 'scale varies within a plane')
end)
assert(tensor.zeros(0, 2, 3, 4):quantize({dtype='int8', scale=0.1}):resize{size=2, mode='nearest'}:size(1) == 0)
