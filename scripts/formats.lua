-- SPDX-License-Identifier: MIT
-- Time and error of every number format, as ratios in one run:
--   quoll scripts/formats.lua [elements=67108864] [rounds=3] [format …]
-- Encode and decode beside int8:32 (and int4:32) on as many elements; the SQNR on normal values.
--   quoll scripts/formats.lua file=weights.safetensors [format …]
-- quant.compare on all weights of a file (tensors of two or more axes), as rows of 256.
local options, chosen = {elements = 1 << 26, rounds = 3}, {}
for _, word in ipairs(arg) do
	local key, value = word:match '^(%w+)=(.+)$'
	if key then options[key] = math.tointeger(value) or value else chosen[#chosen + 1] = word end
end
if #chosen == 0 then
	chosen = {'int2:32', 'uint2:32', 'int3:32', 'uint3:32', 'int4:32', 'int5:32', 'int6:32', 'uint8:32', 'int4:32+min', 'nf4:64:256'}
	for _, row in ipairs(quant.formats()) do chosen[#chosen + 1] = row.name end
end

-- All weights in the order of their names.
local function weights_of(file)
	local named, names, list = tensor.load(file), {}, {}
	for name, t in pairs(named) do if t:dim() > 1 then names[#names + 1] = name end end
	table.sort(names)
	for i, name in ipairs(names) do list[i] = named[name]:reshape(named[name]:nelem()) end
	local all = tensor.cat(list, 1)
	return all:narrow(1, 1, all:nelem() // 256 * 256):view(-1, 256)
end

if options.file then
	print(quant.compare(weights_of(options.file), chosen))
	return
end

local x = tensor.randn(options.elements // 4096, 4096)
local function best(f)
	local least = math.huge
	for _ = 1, options.rounds do
		local before = hw.clock()
		f()
		least = math.min(least, hw.clock() - before)
	end
	return least
end

local function times(spec)
	local q
	local encode = best(function() q = x:quantize(spec) end)
	local decode = best(function() q:dequantize() end)
	return encode, decode, x:error(q).sqnr, q:nbytes() * 8 / x:nelem()
end

times 'int8:32' -- the first memory of the process is slow
local e8, d8, e4, rows = math.huge, math.huge, math.huge, {}
for i, spec in ipairs(chosen) do
	local encode, decode = times 'int8:32'
	e8, d8, e4 = math.min(e8, encode), math.min(d8, decode), math.min(e4, (times 'int4:32'))
	rows[i] = {times(spec)}
end
print(('int8:32: encode %.0f ms, decode %.0f ms; int4:32: encode %.0f ms'):format(e8 * 1e3, d8 * 1e3, e4 * 1e3))
for i, spec in ipairs(chosen) do
	local encode, decode, sqnr, bits = table.unpack(rows[i])
	print(('%-14s encode %5.2f of int8:32, %5.2f of int4:32; decode %5.2f of int8:32; %6.2f dB, %.4f bits'):format(spec,
		encode / e8, encode / e4, decode / d8, sqnr, bits))
end
