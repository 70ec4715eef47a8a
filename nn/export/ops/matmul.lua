-- SPDX-License-Identifier: MIT
-- matmul of two activations, or of one and a constant matrix, with batches by NumPy's rules: exact integer sums of
-- codes, or floats; other types are handled like einsum. The rules are those of quant/paths/matmul_int.c and
-- quant/integer/product_out.c.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local einsum = internal.import 'nn/export/ops/einsum'
local fixed = internal.import 'nn/export/fixed'
local parts = internal.import 'nn/export/parts'

local STORE = {
	codes = '(${y})q_round((float)sum * factor[j * step], lo, hi, zero)',
	fixed = '(${y})(q_clamp(q_${rule}(sum, factor[j * step]), lo, hi) + zero)',
	floats = '(float)sum * factor[j * step]',
	plain = 'sum',
}
for kind, value in pairs(STORE) do
	parts.add('matmul' .. kind, {fields = {'a', 'b', 'sum', 'y', 'rule'}, needs = function(f)
		return {f.rule and {f.rule} or kind == 'codes' and {'round'} or nil}
	end, text = ([[
/* For each batch: a (m, k) at offset[0] times b (k, n) at offset[1]. */
static void ${name}(const ${a} *a, ${sum} za, const ${b} *b, ${sum} zb, const int32_t *offset, int32_t batches, int32_t m, int32_t n,
	int32_t k, const ${factor} *factor, int32_t step, ${bound} lo, ${bound} hi, int32_t zero, ${y} *y)
{
	int32_t s, i, j, l;

	for (s = 0; s < batches; s++, offset += 2)
		for (i = 0; i < m; i++)
			for (j = 0; j < n; j++) {
				${sum} sum = 0;

				for (l = 0; l < k; l++)
					sum += (a[offset[0] + i * k + l] - za) * (b[offset[1] + l * n + j] - zb);
				*y++ = @VALUE@;
			}
	(void)factor;
	(void)step;
	(void)lo;
	(void)hi;
	(void)zero;
}
]]):gsub('@VALUE@', (value:gsub('%%', '%%%%')))})
end

parts.add('factors', {text = [[
/* Factors of sums, where a range is found at run time. */
static void q_factors(float a, const float *b, int32_t n, float *factor)
{
	int32_t j;

	for (j = 0; j < n; j++)
		factor[j] = a * b[j];
}
]]})
parts.add('factor', {text = [[
/* The same of two ranges that are found at run time. */
static void q_factor(float a, float b, float *factor)
{
	factor[0] = a * b;
}
]]})

-- Sizes of the matrices and offsets of both operands for each batch of the result.
local function plan(a, b)
	local m, k, n = #a > 1 and a[#a - 1] or 1, a[#a], #b > 1 and b[#b] or 1
	local rank = math.max(#a, #b) - 2
	local counts, steps = {}, {{}, {}}
	local sizes = {m * k, k * n}
	for which, shape in ipairs {a, b} do
		local step = sizes[which]
		for i = 1, math.max(0, #shape - 2) do
			local size = shape[#shape - 1 - i]
			steps[which][i] = size > 1 and step or 0
			counts[i] = math.max(counts[i] or 1, size)
			step = step * size
		end
	end
	local offsets, batches = {}, 1
	for i = 1, math.max(0, rank) do batches = batches * counts[i] end
	for s = 0, batches - 1 do
		local rest, at = s, {0, 0}
		for i = 1, math.max(0, rank) do
			local index = rest % counts[i]
			rest = rest // counts[i]
			for which = 1, 2 do at[which] = at[which] + index * (steps[which][i] or 0) end
		end
		table.insert(offsets, at[1])
		table.insert(offsets, at[2])
	end
	return m, n, k, batches, offsets
end

-- A constant matrix of codes, with one scale or one per column: name, properties with zero 0, and scales.
local function weight(e, node)
	local w = e:constant(node, 2)
	if not w or not w:quantized() then return end
	local p, codes = w:qparams(), w:codes():to 'int64'
	if p.block or p.axis and (p.axis ~= 2 or w:dim() ~= 2) or not w:spec().affine then
		base.fail("export: node '%s': weight: wanted affine codes with one scale for each column, got '%s'", node.name, tostring(w:spec()))
	end
	if p.zero_point then
		local zero = p.zero_point:to 'int64'
		codes = codes - (zero:nelem() > 1 and zero:view(1, zero:nelem()) or zero:item())
	end
	local ctype = codes:min():item() >= -128 and codes:max():item() <= 127 and 'int8_t' or 'int32_t'
	local name = e:array(node.name .. '_weight', ctype, codes:contiguous():view(w:nelem()):totable(), 'codes less their zero points')
	return name, {shape = {w:size()}, ctype = ctype, zero = 0, dtype = w:dtype()}, p.scale:to('float64'):view(p.scale:nelem()):totable()
end

-- Factors that are computed at run time from the ranges: the name of scratch memory.
local function found_factors(e, node, f, h, scales, g)
	if g.scale then base.fail("export: node '%s': wanted float results for codes whose range is found at run time, got codes", node.name) end
	local factor = e:scratch(4 * math.max(1, #scales))
	if h.params or #scales == 0 then
		e:call('%s(%s, %s, %s);', e:part 'factor', e:scale_of(f), e:scale_of(h), factor)
	else
		e:call('%s(%s, %s, %d, %s);', e:part 'factors', e:scale_of(f), e:array(node.name .. '_scale', 'float', scales, 'scales of the columns'),
			#scales, factor)
	end
	return factor
end

local function factors_of(e, f, scales, g, rule)
	local list = {}
	for i, sb in ipairs(scales) do
		list[i] = g.scale and f.scale * sb / g.scale or e.single(f.scale * sb)
		if not rule then list[i] = e.single(list[i]) end
	end
	return list
end

-- Plain floats or codes for both operands; other types are computed like einsum.
local function has_kernel(e, node)
	local kinds = {}
	for i = 1, 2 do
		local w = e:constant(node, i)
		local f = not (w and w:quantized()) and e:facts(node.inputs[i])
		kinds[i] = (not f or f.scale or f.params) and 'codes' or f.ctype
	end
	return kinds[1] == kinds[2] and (kinds[1] == 'codes' or kinds[1] == 'float')
end

local function by_letters(e, node)
	local ranks = {#e:facts(node.inputs[1]).shape, #e:facts(node.inputs[2]).shape}
	einsum.product(e, node, ('%s,%s->...%s%s'):format(ranks[1] > 1 and '...ik' or 'k', ranks[2] > 1 and '...kj' or 'k', ranks[1] > 1 and 'i' or '',
		ranks[2] > 1 and 'j' or ''))
end

return {ops = {'matmul'}, emit = function(e, node)
	if not node.attrs.out and not has_kernel(e, node) then return by_letters(e, node) end
	local a, f = e:input(node, 1, 'plain')
	local b, h, scales = weight(e, node)
	if not b then
		b, h = e:input(node, 2, 'plain')
		scales = {h.scale}
	end
	local y, g = e:output(node)
	local m, n, k, batches, offsets = plan(f.shape, h.shape)
	local at = e:array(node.name .. '_offsets', 'int32_t', offsets, 'where the matrices of each batch begin')
	local dynamic = f.params or h.params
	if not dynamic and (not f.scale or #scales == 0) then
		if f.ctype ~= 'float' or h.ctype ~= 'float' then base.fail("export: node '%s': wanted two operands of codes or of floats", node.name) end
		e:call('%s(%s, 0.0f, %s, 0.0f, %s, %d, %d, %d, %d, 0, 0, 0.0f, 0.0f, 0, %s);', e:part('matmulplain', {a = 'float', b = 'float', sum = 'float',
			y = 'float'}), a, b, at, batches, m, n, k, y)
		return
	end
	local wide = quant.dtype(f.dtype).bits > 8 or quant.dtype(h.dtype).bits > 8
	local rule = fixed.rule(node.attrs.out, wide)
	local factors = scales
	local name
	if dynamic then
		name = found_factors(e, node, f, h, scales, g)
	else
		factors = factors_of(e, f, scales, g, rule)
		name = rule and fixed.array(e, node.name .. '_factor', factors, rule) or e:array(node.name .. '_factor', 'float', factors, 'factors of the sums')
	end
	local fields = {a = f.ctype, b = h.ctype, sum = (wide or k >= 16512) and 'int64_t' or 'int32_t', y = g.ctype, rule = rule}
	e:call('%s(%s, %s, %s, %s, %s, %d, %d, %d, %d, %s, %d, %s, %s, %d, %s);', e:part('matmul' .. (rule and 'fixed' or g.scale and 'codes' or 'floats'),
		fields), a, e:zero_of(f), b, e:zero_of(h), at, batches, m, n, k, name, #factors > 1 and 1 or 0, fixed.bound(e, g.scale and g.lo - g.zero or 0, rule),
		fixed.bound(e, g.scale and g.hi - g.zero or 0, rule), g.scale and g.zero or 0, y)
end}
