-- SPDX-License-Identifier: MIT
-- Attention of codes in integers, bit-equal to quant/paths/attention_int.c. Called by nn/export/ops/attention.lua,
-- which emits the op.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local codes = internal.import 'nn/export/ops/line_codes'
local parts = internal.import 'nn/export/parts'

parts.add('codeheads', {text = [[
struct q_codeheads { /* sizes; strides of q, k, v and y from batch to batch, head to head, row to row */
	int32_t batches, heads, shared, queries, keys, d, e, causal;
	int32_t q[3], k[3], v[3], y[3];
};
]]})

parts.add('attentioncodes', {fields = {'q', 'k', 'v', 'y'}, needs = {{'codeheads'}, {'exp_int'}, {'round'}}, text = [[
static void ${name}(const ${q} *q, const ${k} *k, const ${v} *v, const struct q_codeheads *a, int32_t zq, int32_t zk, int32_t zv, int turned,
	const struct q_exp_int *c, double scale, double out, float lo, float hi, int32_t zero, int64_t *score, ${y} *y)
{
	int32_t b, h, i, n, l, with, keys;

	for (b = 0; b < a->batches; b++)
		for (h = 0; h < a->heads; h++)
			for (with = h / (a->heads / a->shared), i = 0; i < a->queries; i++) {
				const ${q} *x = q + b * a->q[0] + h * a->q[1] + i * a->q[2];
				const ${k} *key = k + b * a->k[0] + with * a->k[1];
				const ${v} *value = v + b * a->v[0] + with * a->v[1];
				${y} *to = y + b * a->y[0] + h * a->y[1] + i * a->y[2];
				int64_t most = 0, sum = 0;
				float factor;

				keys = a->causal ? i + a->keys - a->queries + 1 : a->keys;
				for (n = 0; n < keys; n++) {
					score[n] = 0;
					for (l = 0; l < a->d; l++)
						score[n] += (int64_t)((int32_t)x[l] - zq) * ((int32_t)key[n * a->k[2] + l] - zk);
					score[n] = turned ? -score[n] : score[n];
					most = n == 0 || score[n] > most ? score[n] : most;
				}
				for (n = 0; n < keys; n++) {
					score[n] = q_exp_int(c, most - score[n]);
					sum += score[n];
				}
				factor = (float)(scale / ((double)sum * out));
				for (l = 0; l < a->e; l++) {
					int64_t mean = 0;

					for (n = 0; n < keys; n++)
						mean += score[n] * ((int32_t)value[n * a->v[2] + l] - zv);
					to[l] = (${y})q_round((float)mean * factor, lo, hi, zero);
				}
			}
}
]]})

-- What a mask does to the score of key n: hidden ones are the least number (quant/integer/key_mask.c).
local MASKS = {none = '', seen = '\n\t\t\t\t\tscore[n] = mask[at + n * m->key] ? score[n] : INT64_MIN;',
	added = '\n\t\t\t\t\tscore[n] = q_mask_units(score[n], mask[at + n * m->key], inverse);'}
parts.add('mask_units', {text = [[
/* The score and the added mask in its units, half to even; -inf and nan hide. */
static int64_t q_mask_units(int64_t score, float mask, double inverse)
{
	double x = (double)mask * inverse;

	if (!(mask >= -3.40282347e+38f))
		return INT64_MIN;
	x = x < -0x1p50 ? -0x1p50 : x > 0x1p50 ? 0x1p50 : x;
	return score + (int64_t)((x + 0x1.8p52) - 0x1.8p52);
}
]]})
for kind, hidden in pairs(MASKS) do
	parts.add('attentioncodes_' .. kind, {fields = {'q', 'k', 'v', 'y', 'mask', 'lengths'}, needs = {{'codeheads'}, {'mask_sizes'}, {'exp_int'}, {'round'},
		kind == 'added' and {'mask_units'} or nil}, text = ([[
/* The same with keys hidden by a mask, lengths (batches) or a window. */
static void ${name}(const ${q} *q, const ${k} *k, const ${v} *v, const struct q_codeheads *a, const struct q_mask *m, const ${mask} *mask,
	double inverse, const ${lengths} *lengths, int32_t zq, int32_t zk, int32_t zv, int turned, const struct q_exp_int *c, double scale, double out,
	float lo, float hi, int32_t zero, int64_t *score, ${y} *y)
{
	int32_t b, h, i, n, l, with;

	for (b = 0; b < a->batches; b++)
		for (h = 0; h < a->heads; h++)
			for (with = h / (a->heads / a->shared), i = 0; i < a->queries; i++) {
				const ${q} *x = q + b * a->q[0] + h * a->q[1] + i * a->q[2];
				const ${k} *key = k + b * a->k[0] + with * a->k[1];
				const ${v} *value = v + b * a->v[0] + with * a->v[1];
				${y} *to = y + b * a->y[0] + h * a->y[1] + i * a->y[2];
				int32_t own = i + a->keys - a->queries, keys = a->causal ? own + 1 : a->keys, from, at;
				int64_t most = INT64_MIN, sum = 0;
				float factor;

				at = b * m->batch + h * m->head + i * m->row;
				(void)at;
				if (m->window && own + m->window < keys)
					keys = own + m->window;
				if (lengths && (int32_t)lengths[b] < keys)
					keys = (int32_t)lengths[b];
				keys = keys < 0 ? 0 : keys;
				from = m->window && own - m->window + 1 > 0 ? own - m->window + 1 : 0;
				from = from < keys ? from : keys;
				for (n = from; n < keys; n++) {
					score[n] = 0;
					for (l = 0; l < a->d; l++)
						score[n] += (int64_t)((int32_t)x[l] - zq) * ((int32_t)key[n * a->k[2] + l] - zk);
					score[n] = turned ? -score[n] : score[n];%s
					most = score[n] > most ? score[n] : most;
				}
				for (n = from; n < keys; n++) {
					score[n] = score[n] == INT64_MIN ? 0 : q_exp_int(c, most - score[n]);
					sum += score[n];
				}
				factor = sum ? (float)(scale / ((double)sum * out)) : 0.0f;
				for (l = 0; l < a->e; l++) {
					int64_t mean = 0;

					for (n = from; n < keys; n++)
						mean += score[n] * ((int32_t)value[n * a->v[2] + l] - zv);
					to[l] = (${y})q_round((float)mean * factor, lo, hi, zero);
				}
			}
	(void)mask;
	(void)inverse;
}
]]):format(hidden)})
end

-- Strides of (batch, heads, time, width) or (batch, time, heads * width).
local function strides(shape, width)
	if #shape == 4 then return {shape[2] * shape[3] * shape[4], shape[3] * shape[4], shape[4]} end
	return {shape[2] * shape[3], width, shape[3]}
end

local function sizes(node, q, k, v, y)
	local split = #q == 4
	local heads = split and q[2] or node.attrs.heads
	local s = {batches = q[1], heads = heads, d = split and q[4] or q[3] // heads, queries = split and q[3] or q[2], keys = split and k[3] or k[2]}
	s.shared = split and k[2] or k[3] // s.d
	s.e = split and v[4] or v[3] // s.shared
	s.strides = {strides(q, s.d), strides(k, s.d), strides(v, s.e), strides(y, s.e)}
	return s
end

local function struct_text(node, s)
	local list = {s.batches, s.heads, s.shared, s.queries, s.keys, s.d, s.e, node.attrs.causal and 1 or 0}
	for i, value in ipairs(list) do list[i] = tostring(value) end
	for _, three in ipairs(s.strides) do list[#list + 1] = ('{%d, %d, %d}'):format(three[1], three[2], three[3]) end
	return '{' .. table.concat(list, ', ') .. '}'
end

-- Kind, names and types of the mask and lengths of a node, and the struct of the mask: window, strides.
local function masks_of(e, node, s, strides_of)
	local m = {kind = 'none', mask = '0', mask_type = 'float', lengths = '0', lengths_type = 'int32_t', strides = '0, 0, 0, 0'}
	for i = 4, #node.inputs do
		local x, f = e:input(node, i, 'plain')
		local d = quant.dtype(f.dtype)
		if d.kind == 'bool' or f.ctype == 'float' then
			m.kind, m.mask, m.mask_type, m.strides = d.kind == 'bool' and 'seen' or 'added', x, f.ctype, strides_of(f.shape)
		elseif d.kind == 'int' or d.kind == 'uint' then
			m.lengths, m.lengths_type = x, f.ctype
		else
			base.fail("export: node '%s': wanted a mask of float32 or bool, got %s", node.name, f.dtype)
		end
	end
	m.sizes = e:struct('q_mask', node.name .. '_mask', ('{%s, %d, 0.0f}'):format(m.strides, math.min(node.attrs.window or 0, s.queries + s.keys)), true)
	return m
end

-- strides_of(shape): the text of strides of a mask.
return {ops = {}, emit = function(e, node, strides_of)
	local q, f = e:input(node, 1, 'plain')
	local k, g = e:input(node, 2, 'plain')
	local v, h = e:input(node, 3, 'plain')
	local y, r = e:output(node)
	local s = sizes(node, f.shape, g.shape, h.shape, r.shape)
	local a = e:struct('q_codeheads', node.name .. '_heads', struct_text(node, s))
	local scale = node.attrs.scale or 1 / math.sqrt(s.d)
	if not f.scale or not g.scale or not h.scale then base.fail("export: node '%s': wanted operands of codes", node.name) end
	local unit = f.scale * g.scale * scale
	if #node.inputs > 3 or node.attrs.window then
		local m = masks_of(e, node, s, strides_of)
		return e:call('%s(%s, %s, %s, &%s, &%s, %s, %a, %s, %d, %d, %d, %d, &%s, %a, %a, %s, %s, %d, %s, %s);', e:part('attentioncodes_' .. m.kind,
			{q = f.ctype, k = g.ctype, v = h.ctype, y = r.ctype, mask = m.mask_type, lengths = m.lengths_type}), q, k, v, a, m.sizes, m.mask,
			1 / math.abs(unit), m.lengths, f.zero, g.zero, h.zero, unit < 0 and 1 or 0, codes.exp_int(e, node, math.abs(unit)), h.scale, r.scale,
			e.float(r.lo - r.zero), e.float(r.hi - r.zero), r.zero, e:scratch(s.keys * 8), y)
	end
	e:call('%s(%s, %s, %s, &%s, %d, %d, %d, %d, &%s, %a, %a, %s, %s, %d, %s, %s);', e:part('attentioncodes', {q = f.ctype, k = g.ctype, v = h.ctype,
		y = r.ctype}), q, k, v, a, f.zero, g.zero, h.zero, unit < 0 and 1 or 0, codes.exp_int(e, node, math.abs(unit)), h.scale, r.scale,
		e.float(r.lo - r.zero), e.float(r.hi - r.zero), r.zero, e:scratch(s.keys * 8), y)
end}
