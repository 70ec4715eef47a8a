-- SPDX-License-Identifier: MIT
-- Quantized weights with float arithmetic (mode weight_only): a row of codes is decoded to a scratch row, (float)(q -
-- z) * s as in quant/schemes, and multiplied as floats, so the sums are those of decoded weights.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local packed = internal.import 'nn/export/packed'
local parts = internal.import 'nn/export/parts'
local decode = {}

parts.add('decode', {fields = {'w', 'z'}, text = [[
/* n codes with scales (and zero points, or 0) for each `block` of them. */
static void ${name}(const ${w} *w, int32_t n, const float *scale, const ${z} *zero, int32_t block, float *y)
{
	int32_t from, to, i, b;

	for (from = 0, b = 0; from < n; from = to, b++) {
		int32_t z = zero ? zero[b] : 0;

		to = n - from < block ? n : from + block;
		for (i = from; i < to; i++)
			y[i] = (float)((int32_t)$at(w, (i)) - z) * scale[b];
	}
}
]]})
-- Codes of logarithms: magnitudes from a table.
local LOG = [[
/* n codes with scales for each `block` of them: 0, or the sign and the number of a power of 2. */
static void ${name}(const ${w} *w, int32_t n, const float *scale, const ${z} *zero, int32_t block, float *y)
{
	static const float power[%d] = {
%s
	};
	int32_t from, to, i, b;

	for (from = 0, b = 0; from < n; from = to, b++) {
		to = n - from < block ? n : from + block;
		for (i = from; i < to; i++) {
			int32_t q = $at(w, (i)), m = q < 0 ? -q : q;
			float v = m ? power[(m > %d ? %d : m) - 1] * scale[b] : 0.0f;

			y[i] = q < 0 ? -v : v;
		}
	}
	(void)zero;
}
]]

-- The part that decodes, for the fields of those that need it. log: the suffix with bits and octaves.
function decode.part(f)
	if f.log then return {'decode' .. f.log, {w = f.w, z = f.z}} end
	return {'decode', {w = f.w, z = f.z}}
end

-- The word for codes of logarithms, whose part it makes; nil for others.
local function log_word(spec)
	if spec.affine then return end
	local unsigned = not quant.dtype(spec.dtype).signed
	local top, values = (1 << (unsigned and spec.bits or spec.bits - 1)) - 1, {}
	local step = top > 1 and spec.octaves / (top - 1) or 0
	for m = 1, top do values[m] = 2.0 ^ (-(top - m) * step) end
	local word = ('log_%s%d_%s'):format(unsigned and 'u' or '', spec.bits, (('%.9g'):format(spec.octaves):gsub('[^%w]', '_')))
	parts.add('decode' .. word, {fields = {'w', 'z'}, text = LOG:format(top, parts.values('float', values), top, top)})
	return word
end

parts.add('weights', {fields = {'z'}, text = [[
struct ${name} { /* how rows of codes are decoded: scales (and zero points, or 0) of a row are `step` apart */
	const float *scale;
	const ${z} *zero;
	int32_t step, block;
};
]]})
parts.add('linearw', {fields = {'w', 'z', 'log'}, needs = function(f)
	return {decode.part(f), {'weights', {z = f.z}}, {'dot1', {x = 'float', w = 'float', sum = 'float'}}, {'storeff'}}
end, text = [[
/* x (m, k) by w (n, k), whose rows are decoded into `row` (k). */
static void ${name}(const float *x, int32_t m, const ${w} *w, int32_t n, int32_t k, const struct ${weights} *g,
	const struct q_codes *c, float *row, float *y)
{
	int32_t i, j;

	for (j = 0; j < n; j++) {
		${decode}(w + j * ${pitch}, k, g->scale + j * g->step, g->zero ? g->zero + j * g->step : 0, g->block, row);
		for (i = 0; i < m; i++)
			${store}(${dot1}(x + i * k, row, k), 0, 0, j, c, y + i * n + j);
	}
}
]]})
local function flat(t, dtype) return t:to(dtype):contiguous():view(t:nelem()):totable() end

-- An array of codes in rows of k; packed where their dtype is. Gives its name and what templates call its type.
function decode.array(e, name, values, k, dtype, text)
	local d, ctype = quant.dtype(dtype), packed.ctype(dtype)
	if d.bits >= 8 then return e:array(name, ctype, values, text), ctype end
	return e:array(name, 'uint8_t', packed.rows(values, k, d), ('%s, %s'):format(text, packed.layout(d))), dtype
end

-- Scales along an axis after the rows: the numbers that one of them covers, and spread(list), which repeats them for
-- a whole row.
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

-- A quantized tensor (rows, …) whose codes are decoded in rows: fields w (the array), kind, z, groups (a struct), n, k.
function decode.weight(e, node, t, name)
	local p, rows = t:qparams(), t:size(1)
	local k, dtype = t:nelem() // rows, t:dtype()
	local scales = flat(p.scale, 'float64')
	local blocks = p.block and #scales // rows or 1
	if p.block and (t:dim() > 2 or p.axis and p.axis ~= t:dim()) then
		base.fail("export: node '%s': weight: wanted codes with scales per tensor, along one axis or in blocks of rows, got '%s'", node.name,
			tostring(t:spec()))
	end
	local along = not p.block and p.axis and p.axis > 1 and along_row(t, p.axis)
	if along then scales = along.spread(scales) end
	local codes, kind = decode.array(e, name, flat(t:codes(), 'int64'), k, dtype, 'codes')
	local z, zero = 'int8_t', '0'
	if p.zero_point then
		z = packed.ctype(dtype)
		local zeros = flat(p.zero_point, 'int64')
		zero = e:array(name .. '_zero', z, along and along.spread(zeros) or zeros, 'zero points')
	end
	e:part('weights', {z = z})
	local groups = e:struct('q_weights_' .. parts.short(z), name .. '_groups', ('{%s, %s, %d, %d}'):format(
		e:array(name .. '_scale', 'float', scales, 'scales'), zero, #scales > 1 and not along and blocks or 0, along and along.block or p.block or k), true)
	return {w = codes, kind = kind, z = z, log = log_word(t:spec()), groups = '&' .. groups, n = rows, k = k}
end

return decode
