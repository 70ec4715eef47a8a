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

it('halves, some of the numbers, given tables', function()
	local x = tensor.randn(2, 3, 5, 260)
	local function tables(batch, width) return tensor.rand(batch or 5, batch and 5 or width, batch and width or nil) * 2 - 1, tensor.rand(batch or 5, batch and 5 or width, batch and width or nil) end
	local c, s = tables(nil, 130)
	local c2, s2 = tables(2, 8)
	local c3, s3 = tables(2, 4)
	for _, input in ipairs {'int8', 'uint8', 'int16', 'uint16'} do
		local q = x:quantize(input)
		for _, out in ipairs {{dtype='int8', scale=0.04, zero_point=3}, {dtype='uint8', scale=0.05, zero_point=128}, {dtype='int16', scale=2e-4}} do
			for n, o in ipairs {{{}, style='half'}, {{}, style='half', dims=6, start=3}, {{}, dims=4, base=100}, {{c, s}}, {{c, s}, style='half'}, {{c2, s2}, dims=8},
				{{c2, s2}, dims=8, style='half'}, {{c3:to 'float64', s3:to 'float64'}, dims=8, style='half'}} do
				local a = {style=o.style, dims=o.dims, start=o.start, base=o.base}
				local want
				if #o[1] == 0 then want = nn.rope(q:dequantize():to 'float64', a) else want = nn.rope(q:dequantize():to 'float64', o[1][1]:to 'float64', o[1][2]:to 'float64', a) end
				a.out = out
				local y = #o[1] == 0 and nn.rope(q, a) or nn.rope(q, o[1][1], o[1][2], a)
				assert(y:origin().kernel == 'rope_int', n)
				assert(off(y, want:to 'float32':quantize(out)) <= 1, ('%s %d: %d'):format(input, n, off(y, want:to 'float32':quantize(out))))
			end
		end
	end
	local odd = tensor {0 / 0, 1e9}
	local y = nn.rope(tensor {{0.5, -0.25}}:quantize {dtype='int8', scale=0.01}, odd:view(1, 2), odd:view(1, 2), {out={dtype='int16', scale=0.01}})
	assert(y:codes():totable()[1][1] == 0 and y:codes():totable()[1][2] == 6400) -- nan is 0, 1e9 is 256
end)

it('views, no rows, and where it falls back', function()
	local q, out = tensor.randn(4, 6, 8):quantize 'int8', {dtype='int8', scale=0.03}
	print(off(nn.rope(q:transpose(1, 2), {out=out}), nn.rope(q:transpose(1, 2):contiguous(), {out=out})))  --> 0
	print(nn.rope(q:narrow(1, 1, 0), {out=out}):size())  --> 0 6 8
	print((nn.rope(q, {out='int8'}):explain()))  --> ...fallback...one given scale
	print(nn.rope(q):dtype(), pcall(nn.rope, q:narrow(3, 1, 5), {out=out}))  --> float32 false ...an even d...
end)
