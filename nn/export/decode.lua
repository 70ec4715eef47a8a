-- SPDX-License-Identifier: MIT
-- Quantized weights with float arithmetic (mode weight_only): each row of codes is decoded to a scratch row as in tensor/codec.c and
-- multiplied as floats, so the sums equal those of decoded weights.
--
-- A code is a bit field. Its value is (q - zero point) times the scale, or a table entry times the scale (grids and the scheme log),
-- plus the minimum if there is one. Scales are stored as float16, float8_e8m0, or codes of a table under one outer scale if this needs
-- less memory than floats; other scales become floats.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local packed = internal.import 'nn/export/packed'
local parts = internal.import 'nn/export/parts'
local decode = {}

local function flat(t, dtype) return t:to(dtype):contiguous():view(t:nelem()):totable() end

---------------------------------------------------------------- scales

local SCALE = [[
/* Scale or minimum i. */
static float ${name}(const struct ${weights} *g, const ${stored} *scale, int32_t i)
{
%s
}
]]
local function add_scale(form, text)
	parts.add('scale' .. form, {fields = {'s', 'z', 'how'}, needs = function(f) return {{'weights', f}} end, text = SCALE:format(text)})
end
add_scale('float', '\t(void)g;\n\treturn scale[i];')
add_scale('table', '\treturn g->scales[scale[i]] * g->outer;')
-- float16: only the exponent bias differs.
local BITS = '%s\n\tfloat value;\n\n\t(void)g;\n\tmemcpy(&value, &bits, sizeof(value));\n\treturn %s;'
add_scale('float16', BITS:format('\tuint32_t bits = (uint32_t)(scale[i] & 0x7fff) << 13;', 'scale[i] >> 15 ? -(value * 0x1p112f) : value * 0x1p112f'))
-- A power of two; 2^-127 is subnormal.
add_scale('e8m0', BITS:format('\tuint32_t bits = scale[i] == 255 ? 0x7fc00000u : scale[i] ? (uint32_t)scale[i] << 23 : 0x400000u;', 'value'))

local function single_bits(x) return (string.unpack('<I4', string.pack('<f', x))) end

-- The bits of a float16 number.
local function half_bits(x)
	local bits = single_bits(x)
	local sign, exponent, mantissa = bits >> 31 << 15, (bits >> 23 & 255) - 112, bits & 0x7fffff
	if exponent == 143 then return sign | 0x7c00 | mantissa >> 13 end -- infinity, NaN
	if exponent > 0 then return sign | exponent << 10 | mantissa >> 13 end
	return sign | math.tointeger(math.abs(x) * 2.0 ^ 24)
end

-- Storage forms of scales; the first that accepts them is used: takes(scale, minimum), the C type, and the numbers.
local FORMS = {
	{form = 'float16', stored = 'uint16_t', takes = function(scale, minimum)
		return scale:dtype() == 'float16' and (not minimum or minimum:dtype() == 'float16')
	end, number = half_bits},
	{form = 'e8m0', stored = 'uint8_t', takes = function(scale, minimum) return scale:dtype() == 'float8_e8m0' and not minimum end,
		number = function(x) return single_bits(x) >> 23 & 255 end},
	{form = 'table', stored = 'uint8_t', takes = function(scale, minimum)
		local values = not minimum and scale:quantized() and scale:spec().values
		return values and #values <= 256 and scale:qparams().scale:nelem() == 1 and not scale:qparams().minimum
			and scale:nelem() + 4 * #values < 4 * scale:nelem()
	end},
	{form = 'float', stored = 'float', takes = function() return true end},
}

-- The stored numbers of scales or minimums.
local function stored(entry, t)
	if entry.form == 'table' then return flat(t:codes(), 'int64') end
	local list = flat(t:quantized() and t:dequantize() or t, 'float64')
	for i, x in ipairs(entry.number and list or {}) do list[i] = entry.number(x) end
	return list
end

---------------------------------------------------------------- rows

parts.add('weights', {fields = {'s', 'z', 'how'}, text = [[
struct ${name} { /* how rows of codes are decoded: scales of a row are `step` apart, one for each `block` of codes */
${members}
	int32_t step, block;
};
]]})

-- Weights that are floats of 16 bits, under a scale of 1: the function that reads one.
parts.add('widehalf', {text = [[
/* The value of a float16 number: only the bias of the exponent differs, except for infinity and NaN. */
static float ${name}(uint16_t half)
{
	uint32_t bits = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)(half & 0x8000) << 16;
	float value;

	memcpy(&value, &bits, sizeof(value));
	value = value * 0x1p112f;
	memcpy(&bits, &value, sizeof(bits));
	bits = ((half & 0x7c00) == 0x7c00 ? 0x7f800000u | (uint32_t)(half & 0x3ff) << 13 : bits) | sign;
	memcpy(&value, &bits, sizeof(value));
	return value;
}
]]})
parts.add('wideupper', {text = [[
/* The value of a bfloat16 number: the upper half of a float. */
static float ${name}(uint16_t half)
{
	uint32_t bits = (uint32_t)half << 16;
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}
]]})
local WIDE = {half = half_bits, upper = function(x) return single_bits(x) >> 16 end}

-- How floats of 16 bits are read: bfloat16 has the exponent of a float. nil: other floats.
local function wide_of(dtype)
	local d = quant.dtype(dtype)
	return d.bits == 16 and (d.digits == 8 and 'upper' or 'half') or nil
end

-- Templates by the components of a value: z: a zero point; t: a table; m: a minimum; half, upper: floats of 16 bits.
local VALUES = {[''] = '(float)$at(w, (i)) * scale', z = '(float)((int32_t)$at(w, (i)) - z) * scale', t = 'g->value[$at(w, (i))] * scale'}
for form in next, WIDE do VALUES[form] = ('${wide%s}(w[i]) * scale'):format(form) end
local function needs_of(f, how)
	local list = {{'scale' .. f.s, f}, {'weights', f}}
	if WIDE[how] then list[3] = {'wide' .. how} end
	return list
end
for how, value in next, VALUES do
	for _, m in ipairs {'', 'm'} do
		parts.add('decode' .. how .. m, {fields = {'w', 's', 'z'}, needs = function(f) return needs_of(f, how) end, text = ([[
/* Row j of n codes. */
static void ${name}(const ${w} *w, int32_t n, const struct ${weights} *g, int32_t j, float *y)
{
	int32_t from, to, i, b = j * g->step;

	for (from = 0; from < n; from = to, b++) {
		float scale = ${scale}(g, g->scale, b);@BEFORE@

		to = n - from < g->block ? n : from + g->block;
		for (i = from; i < to; i++)
			y[i] = @VALUE@;@AFTER@
	}
}
]]):gsub('@(%u+)@', {VALUE = value, BEFORE = (how == 'z' and '\n\t\tint32_t z = g->zero[b];' or '') ..
				(m == 'm' and '\n\t\tfloat minimum = ${scale}(g, g->minimum, b);' or ''),
			AFTER = m == 'm' and '\n\t\tfor (i = from; i < to; i++)\n\t\t\ty[i] = y[i] + minimum;' or ''})})
	end
end

-- The part that decodes rows, for the fields of parts that need it.
function decode.part(f) return {'decode' .. (f.how or ''), f} end
-- The fields in the names of templates that decode.
decode.fields = {'w', 's', 'z', 'how'}

parts.add('linearw', {fields = decode.fields, needs = function(f)
	return {decode.part(f), {'weights', f}, {'dot1', {x = 'float', w = 'float', sum = 'float'}}, {'storeff'}}
end, text = [[
/* x (m, k) by w (n, k), whose rows are decoded into `row` (k). */
static void ${name}(const float *x, int32_t m, const ${w} *w, int32_t n, int32_t k, const struct ${weights} *g,
	const struct q_codes *c, float *row, float *y)
{
	int32_t i, j;

	for (j = 0; j < n; j++) {
		${decode}(w + j * ${pitch}, k, g, j, row);
		for (i = 0; i < m; i++)
			${store}(${dot1}(x + i * k, row, k), 0, 0, j, c, y + i * n + j);
	}
}
]]})

-- Codes by codes whose scales change along k (quant/paths/linear_blocks.c, tensor/gemm/blocks.h). A row of w is unpacked once. `per`:
-- of a table, by which values become integers.
for _, how in ipairs {'', 'z', 't'} do
	for _, m in ipairs(how == 't' and {''} or {'', 'm'}) do
		parts.add('linearb' .. how .. m, {fields = {'x', 'per', table.unpack(decode.fields)}, needs = function(f)
			return {{'scale' .. f.s, f}, {'weights', f}, {'storeff'}}
		end, text = ([[
/* Codes x (m, k), less their zero point and times `factor`, by w (n, k): exact sums of each block, scaled in the order of the blocks. */
static void ${name}(const ${x} *x, int32_t m, int32_t zero, float factor, const ${w} *w, int32_t n, int32_t k,
	const struct ${weights} *g, const struct q_codes *c, int16_t *row, float *y)
{
	int32_t i, j, l, b, from, to;

	for (j = 0; j < n; j++, w += ${pitch}) {
		for (l = 0; l < k; l++)
			row[l] = (int16_t)(@VALUE@);
		for (i = 0; i < m; i++) {
			const ${x} *a = x + i * k;
			float sum = 0.0f;

			for (from = 0, b = j * g->step; from < k; from = to, b++) {
				int32_t s = 0@START@;

				to = k - from < g->block ? k : from + g->block;
				for (l = from; l < to; l++)@SUMS@
				sum = sum + (float)s * ${scale}(g, g->scale, b);@MINIMUM@
			}
			${store}(sum * factor, 0, 0, j, c, y + i * n + j);
		}
	}
}
]]):gsub('@(%u+)@', {VALUE = how == 't' and 'g->value[$at(w, (l))] * ${per}' or
				'(int32_t)$at(w, (l))' .. (how == 'z' and ' - g->zero[j * g->step + l / g->block]' or ''), START = m == 'm' and ', t = 0' or '',
			SUMS = m == 'm' and ' {\n\t\t\t\t\ts += (a[l] - zero) * row[l];\n\t\t\t\t\tt += a[l] - zero;\n\t\t\t\t}' or
				'\n\t\t\t\t\ts += (a[l] - zero) * row[l];',
			MINIMUM = m == 'm' and '\n\t\t\t\tsum = sum + (float)t * ${scale}(g, g->minimum, b);' or ''})})
	end
end

---------------------------------------------------------------- arrays

-- An array of codes in rows of k, packed if their dtype is. Returns its name and the type name used by templates.
function decode.array(e, name, values, k, dtype, text)
	local d, ctype = quant.dtype(dtype), packed.ctype(dtype)
	if d.bits >= 8 then return e:array(name, ctype, values, text), ctype end
	return e:array(name, 'uint8_t', packed.rows(values, k, d), ('%s, %s'):format(text, packed.layout(d))), dtype
end

-- Scales along an axis after the rows: the number of elements per scale, and spread(list), which repeats them for a whole row.
local function along_row(t, axis)
	local block, times = 1, 1
	for i = axis + 1, t:dim() do block = block * t:size(i) end
	for i = 2, axis - 1 do times = times * t:size(i) end
	return {block = block, spread = function(list)
		local made = {}
		for i = 0, times * #list - 1 do made[i + 1] = list[i % #list + 1] end
		return made
	end}
end

-- The array of codes: its name and the type name used by templates. With a table the codes are unsigned bit fields.
local function codes_of(e, name, t, k, by_table)
	local dtype, list = t:dtype(), flat(t:codes(), 'int64')
	local bits = quant.dtype(dtype).bits
	if by_table then
		dtype = 'uint' .. bits
		for i, q in ipairs(list) do list[i] = q & (1 << bits) - 1 end
	end
	return decode.array(e, name, list, k, dtype, 'codes')
end

-- Whether a constant has elements that are decoded: codes, or floats of fewer than 32 bits.
function decode.takes(t)
	local d = quant.dtype(t:dtype())
	return t:quantized() or d.float and d.bits < 32
end

-- decode.weight of floats of 16 bits, and of floats of 8 bits, as a table of the values that occur.
local function narrow_floats(e, t, name)
	local list, rows, values, codes, of, how = flat(t, 'float64'), t:size(1), {}, {}, {}, wide_of(t:dtype())
	local bits = how and WIDE[how]
	for i, x in ipairs(list) do
		if bits then
			codes[i] = bits(x)
		else
			local key = string.pack('<f', x)
			if not of[key] then values[#values + 1], of[key] = x, #values end
			codes[i] = of[key]
		end
	end
	local k = t:nelem() // rows
	local w, kind = decode.array(e, name, codes, k, bits and 'uint16' or 'uint8', t:dtype() .. (bits and '' or ', as places in the table of values'))
	local members, fields = {'\tconst float *scale;'}, {e:array(name .. '_scale', 'float', {1}, 'no scale')}
	if not bits then members[2], fields[2] = '\tconst float *value;', e:array(name .. '_value', 'float', values, 'the values that occur') end
	local part = {w = kind, s = 'float', how = how or 't', stored = 'float', members = table.concat(members, '\n')}
	local groups = e:struct(e:part('weights', part), name .. '_groups', ('{%s, 0, %d}'):format(table.concat(fields, ', '), k), true)
	return {w = w, part = part, groups = '&' .. groups, n = rows, k = k}
end

-- A quantized tensor (rows, …) whose rows are decoded: fields w (the array), part (fields of templates), groups (a struct), n, k.
function decode.weight(e, node, t, name)
	if not t:quantized() then return narrow_floats(e, t, name) end
	local p, spec, rows = t:qparams(), t:spec(), t:size(1)
	local k = t:nelem() // rows
	if p.block and (t:dim() > 2 or p.axis and p.axis ~= t:dim()) then
		base.fail("export: node '%s': weight: wanted codes with scales per tensor, along one axis or in blocks of rows, got '%s'", node.name,
			tostring(spec))
	end
	local along = not p.block and p.axis and p.axis > 1 and along_row(t, p.axis)
	local spread = along and along.spread or function(list) return list end
	local values, form = p.values and flat(p.values, 'float64') or spec.values, nil
	for i = #FORMS, 1, -1 do form = FORMS[i].takes(p.scale, p.minimum) and FORMS[i] or form end
	local codes, kind = codes_of(e, name, t, k, values)
	local scales, members, fields = spread(stored(form, p.scale)), {}, {}
	local function member(ctype, label, value)
		members[#members + 1] = ('\t%s%s;'):format(ctype, label)
		fields[#fields + 1] = value
	end
	local function array(label, ctype, list, text) member(('const %s *'):format(ctype), label, e:array(name .. '_' .. label, ctype, list, text)) end
	array('scale', form.stored, scales, 'scales')
	if form.form == 'table' then
		array('scales', 'float', p.scale:spec().values, 'values of the codes of scales')
		member('float ', 'outer', e.float(p.scale:qparams().scale:item()))
	end
	if values then array('value', 'float', values, 'values of codes') end
	local z = p.zero_point and packed.ctype(t:dtype())
	if z then array('zero', z, spread(flat(p.zero_point, 'int64')), 'zero points') end
	if p.minimum then array('minimum', form.stored, spread(stored(form, p.minimum)), 'minimums') end
	local how = (values and 't' or z and 'z' or '') .. (p.minimum and 'm' or '')
	local part = {w = kind, s = form.form, z = z, how = how ~= '' and how or nil, stored = form.stored, members = table.concat(members, '\n')}
	local step = #scales > 1 and not along and (p.block and #scales // rows or 1) or 0
	local groups = e:struct(e:part('weights', part), name .. '_groups', ('{%s, %d, %d}'):format(table.concat(fields, ', '), step,
		along and along.block or p.block or k), true)
	return {w = codes, part = part, groups = '&' .. groups, n = rows, k = k}
end

return decode
