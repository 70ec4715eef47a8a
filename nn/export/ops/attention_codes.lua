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

return {ops = {}, emit = function(e, node)
	local q, f = e:input(node, 1, 'plain')
	local k, g = e:input(node, 2, 'plain')
	local v, h = e:input(node, 3, 'plain')
	local y, r = e:output(node)
	local s = sizes(node, f.shape, g.shape, h.shape, r.shape)
	local a = e:struct('q_codeheads', node.name .. '_heads', struct_text(node, s))
	local scale = node.attrs.scale or 1 / math.sqrt(s.d)
	if not f.scale or not g.scale or not h.scale then base.fail("export: node '%s': wanted operands of codes", node.name) end
	local unit = f.scale * g.scale * scale
	e:call('%s(%s, %s, %s, &%s, %d, %d, %d, %d, &%s, %a, %a, %s, %s, %d, %s, %s);', e:part('attentioncodes', {q = f.ctype, k = g.ctype, v = h.ctype,
		y = r.ctype}), q, k, v, a, f.zero, g.zero, h.zero, unit < 0 and 1 or 0, codes.exp_int(e, node, math.abs(unit)), h.scale, r.scale,
		e.float(r.lo - r.zero), e.float(r.hi - r.zero), r.zero, e:scratch(s.keys * 8), y)
end}
