-- SPDX-License-Identifier: MIT
-- labels: quick host
-- nn.rope of codes with out=, against float64: at most a code off; axes, views, rows that are longer than a piece.
tensor.seed(35)

local function off(y, want)
	return (y:codes():to 'int64' - want:codes():to 'int64'):abs():max():item()
end

it('is within a code of the exact result', function()
	for _, d in ipairs {2, 8, 258, 514} do
		local x = tensor.randn(2, 5, 3, d)
		for _, input in ipairs {'int8', 'uint8', 'int16', 'uint16'} do
			local q = x:quantize(input)
			for _, out in ipairs {{dtype='int8', scale=0.04, zero_point=3}, {dtype='uint8', scale=0.04, zero_point=128}, {dtype='int16', scale=2e-4}} do
				for _, o in ipairs {{}, {start=9, base=50}, {axis=2}} do
					local y = nn.rope(q, {start=o.start, base=o.base, axis=o.axis, out=out})
					assert(y:origin().kernel == 'rope_int')
					assert(off(y, nn.rope(q:dequantize():to 'float64', o):to 'float32':quantize(out)) <= 1)
				end
			end
		end
	end
end)

it('views, no rows, and where it falls back', function()
	local q, out = tensor.randn(4, 6, 8):quantize 'int8', {dtype='int8', scale=0.03}
	print(off(nn.rope(q:transpose(1, 2), {out=out}), nn.rope(q:transpose(1, 2):contiguous(), {out=out})))  --> 0
	print(nn.rope(q:narrow(1, 1, 0), {out=out}):size())  --> 0 6 8
	print((nn.rope(q, {out='int8'}):explain()))  --> ...fallback...one given scale
	print(nn.rope(q):dtype(), pcall(nn.rope, q:narrow(3, 1, 5), {out=out}))  --> float32 false ...an even d...
end)
