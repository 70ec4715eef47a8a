-- SPDX-License-Identifier: MIT
-- Elements that share bytes in exported C, for every packed dtype: rows are streams of bits, element i at bit i * bits, low bits
-- first, each row padded to whole bytes.
--   packed.ctype(dtype)   the C type of one element (one byte for an unpacked element of a packed dtype); nil if C has none
--   packed.of[dtype]      dtype (its properties), pitch (bytes of a row of k), at (how templates read one), text (the function for that)
--   packed.names          those dtypes
local packed = {of = {}, names = {}}

function packed.ctype(dtype)
	local d = quant.dtype(dtype)
	if d.float then return d.bits == 32 and 'float' or nil end
	return ((d.signed and 'int%d_t' or 'uint%d_t'):format(math.max(8, d.bits)))
end

-- Whether templates read elements of type `w` as packed unsigned codes, whose zero points are stored separately.
function packed.keeps_zeros(w) return packed.of[w] and packed.of[w].dtype.kind == 'uint' end

local IN_EACH_BYTE = {[1] = 'eight in each byte', [2] = 'four in each byte', [4] = 'two in each byte'}

-- The layout of a row, for comments.
function packed.layout(d) return IN_EACH_BYTE[d.bits] or d.bits .. ' bits each' end

-- The C expression of field i.
local function field_of(d)
	local mask, shift = (1 << d.bits) - 1, ({[1] = 3, [2] = 2, [4] = 1})[d.bits]
	if shift then return ('w[i >> %d] >> (i & %d)%s & %d'):format(shift, (1 << shift) - 1, d.bits > 1 and ' * ' .. d.bits or '', mask) end
	return ('(w[i * %d >> 3] | w[(i * %d + %d) >> 3] << 8) >> (i * %d & 7) & %d'):format(d.bits, d.bits, d.bits - 1, d.bits, mask)
end

local function value_of(d)
	local half = 1 << (d.bits - 1)
	if d.kind == 'binary' then return ('(%s) * 2 - 1'):format(field_of(d)) end
	return d.signed and ('((%s) ^ %d) - %d'):format(field_of(d), half, half) or field_of(d)
end

local TEXT = [[
/* Number i%s of a row with %s, the first in the low bits. */
static int32_t q_%s(const uint8_t *w, int32_t i)
{
	return %s;
}
]]

for _, name in ipairs(quant.dtype()) do
	local d = quant.dtype(name)
	if d.bits < 8 then
		local per = 8 // d.bits
		packed.names[#packed.names + 1] = name
		packed.of[name] = {dtype = d, at = 'q_' .. name .. '(%s, %s)',
			pitch = 8 % d.bits == 0 and ('((k + %d) / %d)'):format(per - 1, per) or ('((k * %d + 7) / 8)'):format(d.bits),
			text = TEXT:format(d.kind == 'binary' and ', -1 or 1,' or '', packed.layout(d), name, value_of(d))}
	end
end

-- Rows of k numbers as a list of bytes.
function packed.rows(values, k, d)
	local list, mask = {}, (1 << d.bits) - 1
	for row = 0, #values // k - 1 do
		local held, n = 0, 0 -- bits of an incomplete byte
		for i = row * k + 1, row * k + k do
			local code = values[i]
			if d.kind == 'binary' then code = code > 0 and 1 or 0 end
			held, n = held | (code & mask) << n, n + d.bits
			if n >= 8 then
				list[#list + 1] = held & 255
				held, n = held >> 8, n - 8
			end
		end
		if n > 0 then list[#list + 1] = held end
	end
	return list
end

return packed
