-- SPDX-License-Identifier: MIT
-- Attention of floats, one query at a time, with causal mask and grouped heads, bit-equal to nn/attention_f32.c; rotary positions with a
-- table of angles.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local parts = internal.import 'nn/export/parts'
internal.import 'nn/export/sums'
local of_codes = internal.import 'nn/export/ops/attention_codes'

parts.add('attention', {needs = {{'largest'}, {'exp_below'}, {'sum'}}, text = [[
struct q_heads { /* strides of heads and rows: of q and the result, of k, of v */
	int32_t batches, heads, shared, queries, keys, width, result_width, causal;
	int32_t q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, y_batch, y_head, y_row;
	float scale;
};

/* One query: scores of the visible keys, softmax, weighted mean of the values. */
static void q_attend(const float *q, const float *k, const float *v, const struct q_heads *s, int32_t seen, float *score, float *y)
{
	float most, by;
	int32_t i, j;

	for (i = 0; i < seen; i++) {
		score[i] = 0.0f;
		for (j = 0; j < s->width; j++)
			score[i] += q[j] * (k[i * s->k_row + j] * s->scale);
	}
	most = q_largest(score, seen, 1);
	for (i = 0; i < seen; i++)
		score[i] = q_exp_below(score[i], most);
	by = (float)(1 / q_sum(score, seen, 1));
	for (j = 0; j < s->result_width; j++)
		y[j] = 0.0f;
	for (i = 0; i < seen; i++)
		for (j = 0; j < s->result_width; j++)
			y[j] += score[i] * v[i * s->v_row + j];
	for (j = 0; j < s->result_width; j++)
		y[j] *= by;
}

static void q_attention(const float *q, const float *k, const float *v, const struct q_heads *s, float *score, float *y)
{
	int32_t b, h, i;

	for (b = 0; b < s->batches; b++)
		for (h = 0; h < s->heads; h++)
			for (i = 0; i < s->queries; i++) {
				int32_t shared = h / (s->heads / s->shared);

				q_attend(q + b * s->q_batch + h * s->q_head + i * s->q_row, k + b * s->k_batch + shared * s->k_head,
					v + b * s->v_batch + shared * s->v_head, s, s->causal ? i + s->keys - s->queries + 1 : s->keys, score,
					y + b * s->y_batch + h * s->y_head + i * s->y_row);
			}
}
]]})

-- Batch, head and row strides of (b, h, n, width), or (b, n, h * width) where heads= is given.
local function strides(joined, heads, n, width)
	if joined then return ('%d, %d, %d'):format(n * heads * width, width, heads * width) end
	return ('%d, %d, %d'):format(heads * n * width, n * width, width)
end

local function attention(e, node)
	local q, qf = e:input(node, 1, 'plain')
	local k, kf = e:input(node, 2, 'plain')
	local v, vf = e:input(node, 3, 'plain')
	local y = e:output(node)
	for _, f in ipairs {qf, kf, vf} do
		if f.ctype ~= 'float' then base.fail("export: node '%s': wanted floats for attention, got %s", node.name, f.dtype) end
	end
	local joined, heads, shared, t, s, d, w = node.attrs.heads, qf.shape[2], kf.shape[2], qf.shape[3], kf.shape[3], qf.shape[4], vf.shape[4]
	if joined then
		heads, t, s = joined, qf.shape[2], kf.shape[2]
		d = qf.shape[3] // heads
		shared = kf.shape[3] // d
		w = vf.shape[3] // shared
	end
	e:part 'attention'
	local how = e:struct('q_heads', node.name .. '_heads', ('{%d, %d, %d, %d, %d, %d, %d, %d, %s, %s, %s, %s, %s}'):format(qf.shape[1], heads,
		shared, t, s, d, w, node.attrs.causal and 1 or 0, strides(joined, heads, t, d), strides(joined, shared, s, d),
		strides(joined, shared, s, w), strides(joined, heads, t, w), e.float(e.single(node.attrs.scale or 1 / math.sqrt(d)))), true)
	e:call('q_attention(%s, %s, %s, &%s, %s, %s);', q, k, v, how, e:scratch(4 * s), y)
end

parts.add('rope', {text = [[
/* Rotates pairs of x (outer, positions, inner, d) by the angles of table: cosines (positions, d / 2), then sines. */
static void ${name}(const float *x, int32_t outer, int32_t positions, int32_t inner, int32_t d, const float *table, float *y)
{
	int32_t o, p, i, j;

	for (o = 0; o < outer; o++)
		for (p = 0; p < positions; p++)
			for (i = 0; i < inner; i++, x += d, y += d)
				for (j = 0; j < d / 2; j++) {
					float c = table[p * (d / 2) + j], s = table[(positions + p) * (d / 2) + j];

					y[2 * j] = x[2 * j] * c + x[2 * j + 1] * -s;
					y[2 * j + 1] = x[2 * j + 1] * c + x[2 * j] * s;
				}
}
]]})

parts.add('ropecodes', {fields = {'x', 'sum', 'y'}, needs = {{'round'}}, text = [[
/* Codes (outer, positions, inner, d); table: 2^22 times cosine and sine of each pair (quant/paths/rope_int.c). */
static void ${name}(const ${x} *x, int32_t outer, int32_t positions, int32_t inner, int32_t d, ${sum} from, const int32_t *table,
	float factor, float lo, float hi, int32_t zero, ${y} *y)
{
	int32_t o, p, i, j;

	for (o = 0; o < outer; o++)
		for (p = 0; p < positions; p++)
			for (i = 0; i < inner; i++, x += d, y += d)
				for (j = 0; j < d; j += 2) {
					${sum} a = x[j] - from, b = x[j + 1] - from, c = table[p * d + j], s = table[p * d + j + 1];

					y[j] = (${y})q_round((float)(a * c - b * s) * factor, lo, hi, zero);
					y[j + 1] = (${y})q_round((float)(a * s + b * c) * factor, lo, hi, zero);
				}
}
]]})

local function rope_codes(e, x, f, y, g, name, outer, positions, inner, d, angle)
	local turns = {}
	for p = 0, positions - 1 do
		for j = 0, d // 2 - 1 do
			turns[p * d + 2 * j + 1] = math.tointeger(e.rint(math.cos(angle(p, j)) * 2.0 ^ 22))
			turns[p * d + 2 * j + 2] = math.tointeger(e.rint(math.sin(angle(p, j)) * 2.0 ^ 22))
		end
	end
	e:call('%s(%s, %d, %d, %d, %d, %d, %s, %s, %s, %s, %d, %s);', e:part('ropecodes', {x = f.ctype, sum = f.bytes > f.count and 'int64_t' or 'int32_t',
		y = g.ctype}), x, outer, positions, inner, d, f.zero, e:array(name .. '_turns', 'int32_t', turns, 'cosines and sines'),
		e.float(e.single(f.scale / (2.0 ^ 22 * g.scale))), e.float(g.lo - g.zero), e.float(g.hi - g.zero), g.zero, y)
end

local function rope(e, node)
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node)
	local rank, axis = #f.shape, node.attrs.axis or -2
	if axis < 0 then axis = rank + 1 + axis end
	local positions, d, inner, table_of = f.shape[axis], f.shape[rank], 1, {}
	for i = axis + 1, rank - 1 do inner = inner * f.shape[i] end
	local outer = f.count // (positions * inner * d)
	local function angle(p, j) -- nn/ops/rope.c
		return (p + (node.attrs.start or 1) - 1.0) * (node.attrs.base or 10000.0) ^ (-(2.0 * j) / d)
	end
	if g.scale then return rope_codes(e, x, f, y, g, node.name, outer, positions, inner, d, angle) end
	for p = 0, positions - 1 do
		for j = 0, d // 2 - 1 do
			table_of[p * (d // 2) + j + 1] = e.single(math.cos(angle(p, j)))
			table_of[(positions + p) * (d // 2) + j + 1] = e.single(math.sin(angle(p, j)))
		end
	end
	e:call('%s(%s, %d, %d, %d, %d, %s, %s);', e:part 'rope', x, outer, positions, inner, d,
		e:array(node.name .. '_angles', 'float', table_of, 'cosines and sines'), y)
end

return {ops = {'attention', 'rope'}, emit = function(e, node)
	if node.op == 'rope' then return rope(e, node) end
	if e.graph:result_of(node.name).spec then return of_codes.emit(e, node) end
	return attention(e, node)
end}
