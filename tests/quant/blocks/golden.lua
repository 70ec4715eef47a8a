-- SPDX-License-Identifier: MIT
-- labels: quick noproducts
-- GGUF's formats against the codes, scales, minimums and values of ggml's reference encoders (tests/quant/golden), bit for bit.
local FOLDER = 'tests/quant/golden/'
local inputs = tensor.load(FOLDER .. 'inputs.npz')
local STORED = {q4_0 = 8, q5_0 = 16, q3_k = 4, q6_k = 32, tq1_0 = 1, tq2_0 = 1} -- the bit field of the value 0
local count = 0

-- Minus zero equals zero here: ggml and gguf-py differ in the sign of the scale of a block of zeros.
local function same(a, b, what)
	local difference = (a:to('float64'):reshape(-1) - b:to('float64'):reshape(-1)):abs():max():item()
	count = count + 1
	assert(difference == 0, ('%s differ by up to %g'):format(what, difference))
end

local function compare(name, golden, prefix, input, q)
	local p, what = q:qparams(), name .. ' ' .. prefix .. input
	local function field(key) return golden[prefix .. input .. '_' .. key] end
	same(q:codes():to 'int16' + (STORED[name] or 0), field 'codes', what .. ': codes')
	local wanted = field 'y'
	same(q:dequantize():narrow(1, 1, wanted:size(1)), wanted, what .. ': values')
	if field 'minimum_codes' then
		same(p.minimum:codes(), field 'minimum_codes', what .. ': codes of the minimums')
		same(p.minimum:qparams().scale, -field 'dmin', what .. ': scales of the minimums')
	end
	if field 'minimum' then same(p.minimum, field 'minimum', what .. ': minimums') end
	if field 'd' and field 'scale_codes' then
		same(p.scale:codes(), field 'scale_codes', what .. ': codes of the scales')
		same(p.scale:qparams().scale, field 'd', what .. ': scales of the scales')
	elseif field 'd' then
		same(p.scale, field 'd', what .. ': scales')
	else
		same(p.scale:to('float32'):log2() + 127, field 'scale_codes', what .. ': exponents')
	end
	q:check()
end

for name in ('q8_0 q4_0 q4_1 q5_0 q5_1 q2_k q3_k q4_k q5_k q6_k iq4_nl tq1_0 tq2_0 gguf.mxfp4'):gmatch '%S+' do
	local golden = tensor.load(FOLDER .. name:gsub('%.', '_') .. '.npz')
	local function rows(input, prefix)
		local codes = golden[prefix .. input .. '_codes']
		return codes and inputs[input]:narrow(1, 1, codes:size(1))
	end
	it(name, function()
		local before = count
		for _, input in ipairs {'x', 'w', 'v'} do
			local x = rows(input, '')
			if x then compare(name, golden, '', input, x:quantize(name)) end
		end
		assert(count > before)
	end)
	if golden.importance_x_codes then
		it(name .. ' with importance', function()
			for _, input in ipairs {'x', 'w', 'v'} do
				local x = rows(input, 'importance_')
				if x then compare(name, golden, 'importance_', input, x:quantize {dtype = name, importance = inputs.importance}) end
			end
		end)
	end
end
