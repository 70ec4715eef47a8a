-- SPDX-License-Identifier: MIT
-- Attention of floats, one query at a time, with causal mask and grouped heads, bit-equal to nn/attention_f32.c; rotary positions with a
-- table of angles.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local parts = internal.import 'nn/export/parts'
internal.import 'nn/export/sums'
local vmath = internal.import 'nn/export/vmath'
local of_codes = internal.import 'nn/export/ops/attention_codes'

parts.add('heads', {text = [[
struct q_heads { /* strides of heads and rows: of q and the result, of k, of v */
	int32_t batches, heads, shared, queries, keys, width, result_width, causal;
	int32_t q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, y_batch, y_head, y_row;
	float scale;
};
]]})

parts.add('attention', {needs = {{'heads'}, {'largest'}, {'exp_below'}, {'sum'}}, text = [[
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

-- What a mask does to a score, and which exponentials are 0 because of it.
local MASKS = {
	none = {'', ''},
	added = {'score[j] += mask[at + j * m->key];', 'if (mask[at + j * m->key] == q_of_bits(0xff800000u) && !(score[j] != score[j])) score[j] = 0.0f;'},
	seen = {'if (!mask[at + j * m->key]) score[j] = q_of_bits(0xff800000u);', 'if (!mask[at + j * m->key]) score[j] = 0.0f;'},
}

parts.add('mask_sizes', {text = [[
struct q_mask { /* strides of a mask; keys that a query sees to its left and right, 0: all; of scores, 0: none */
	int32_t batch, head, row, key, window;
	float softcap;
};
]]})

for kind, code in pairs(MASKS) do
	parts.add('attention_' .. kind, {fields = {'mask', 'lengths'}, needs = {{'heads'}, {'mask_sizes'}, {'largest'}, {'exp_below'}, {'sum'}, {vmath.part 'ql_tanh'},
		{vmath.part 'ql_of_bits'}}, text = ([[
/* Attention with keys hidden by a mask, lengths (batches) or a window. */
static void ${name}(const float *q, const float *k, const float *v, const struct q_heads *s, const struct q_mask *m, const ${mask} *mask,
	const ${lengths} *lengths, float *score, float *y)
{
	int32_t b, h, i, j, l;

	for (b = 0; b < s->batches; b++)
		for (h = 0; h < s->heads; h++)
			for (i = 0; i < s->queries; i++) {
				int32_t shared = h / (s->heads / s->shared), own = i + s->keys - s->queries, seen = s->causal ? own + 1 : s->keys;
				int32_t from, at = b * m->batch + h * m->head + i * m->row;
				const float *qi = q + b * s->q_batch + h * s->q_head + i * s->q_row;
				const float *ki = k + b * s->k_batch + shared * s->k_head, *vi = v + b * s->v_batch + shared * s->v_head;
				float *yi = y + b * s->y_batch + h * s->y_head + i * s->y_row, most, by;
				double sum;

				(void)at;
				if (m->window && own + m->window < seen)
					seen = own + m->window;
				if (lengths && (int32_t)lengths[b] < seen)
					seen = (int32_t)lengths[b];
				seen = seen < 0 ? 0 : seen;
				from = m->window && own - m->window + 1 > 0 ? own - m->window + 1 : 0;
				from = from < seen ? from : seen;
				for (j = from; j < seen; j++) {
					score[j] = 0.0f;
					for (l = 0; l < s->width; l++)
						score[j] += qi[l] * (ki[j * s->k_row + l] * s->scale);
					if (m->softcap > 0.0f)
						score[j] = m->softcap * q_tanh(score[j] / m->softcap);
					%s
				}
				most = q_largest(score + from, seen - from, 1);
				most = most == q_of_bits(0xff800000u) ? 0.0f : most;
				for (j = from; j < seen; j++) {
					score[j] = q_exp_below(score[j], most);
					%s
				}
				sum = q_sum(score + from, seen - from, 1);
				by = sum == 0 ? 0.0f : (float)(1 / sum);
				for (l = 0; l < s->result_width; l++)
					yi[l] = 0.0f;
				for (j = from; j < seen; j++)
					for (l = 0; l < s->result_width; l++)
						yi[l] += score[j] * vi[j * s->v_row + l];
				for (l = 0; l < s->result_width; l++)
					yi[l] *= by;
			}
	(void)mask;
}
]]):format(code[1], code[2])})
end

-- Batch, head and row strides of (b, h, n, width), or (b, n, h * width) where heads= is given.
local function strides(joined, heads, n, width)
	if joined then return ('%d, %d, %d'):format(n * heads * width, width, heads * width) end
	return ('%d, %d, %d'):format(heads * n * width, n * width, width)
end

-- Strides of a mask that is broadcast to the scores.
local function mask_strides(shape)
	local list, step = {0, 0, 0, 0}, 1
	for i = #shape, 1, -1 do
		list[4 - #shape + i] = shape[i] == 1 and 0 or step
		step = step * shape[i]
	end
	return table.concat(list, ', ')
end

local function masked(e, node, q, k, v, how, scores, y)
	local kind, mask, mask_type, lengths, lengths_type, strides_of = 'none', '0', 'float', '0', 'int32_t', '0, 0, 0, 0'
	for i = 4, #node.inputs do
		local x, f = e:input(node, i, 'plain')
		local d = quant.dtype(f.dtype)
		if d.kind == 'bool' or f.ctype == 'float' then
			kind, mask, mask_type, strides_of = d.kind == 'bool' and 'seen' or 'added', x, f.ctype, mask_strides(f.shape)
		elseif d.kind == 'int' or d.kind == 'uint' then
			lengths, lengths_type = x, f.ctype
		else
			base.fail("export: node '%s': wanted a mask of float32 or bool, got %s", node.name, f.dtype)
		end
	end
	local window = math.min(node.attrs.window or 0, scores[3] + scores[4])
	local sizes = e:struct('q_mask', node.name .. '_mask', ('{%s, %d, %s}'):format(strides_of, window,
		e.float(e.single(node.attrs.softcap or 0))), true)
	e:call('%s(%s, %s, %s, &%s, &%s, %s, %s, %s, %s);', e:part('attention_' .. kind, {mask = mask_type, lengths = lengths_type}), q, k, v, how,
		sizes, mask, lengths, e:scratch(4 * scores[4]), y)
end

local function attention(e, node)
	local q, qf = e:input(node, 1, 'plain')
	local k, kf = e:input(node, 2, 'plain')
	local v, vf = e:input(node, 3, 'plain')
	local y = e:output(node)
	e:part 'heads'
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
	local how = e:struct('q_heads', node.name .. '_heads', ('{%d, %d, %d, %d, %d, %d, %d, %d, %s, %s, %s, %s, %s}'):format(qf.shape[1], heads,
		shared, t, s, d, w, node.attrs.causal and 1 or 0, strides(joined, heads, t, d), strides(joined, shared, s, d),
		strides(joined, shared, s, w), strides(joined, heads, t, w), e.float(e.single(node.attrs.scale or 1 / math.sqrt(d)))), true)
	if #node.inputs > 3 or node.attrs.window or node.attrs.softcap then
		return masked(e, node, q, k, v, how, {qf.shape[1], heads, t, s}, y)
	end
	e:part 'attention'
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

parts.add('ropepart', {text = [[
/* Rotates pairs of the first n of each d numbers; tables (tables, positions, width) of cosines and sines have a number for each pair, or
 * each of its numbers. `share` of the outer rows have a table. */
static void ${name}(const float *x, int32_t outer, int32_t positions, int32_t inner, int32_t d, int32_t n, int32_t halves, const float *c,
	const float *s, int32_t width, int32_t share, float *y)
{
	int32_t o, p, i, j;

	for (o = 0; o < outer; o++)
		for (p = 0; p < positions; p++)
			for (i = 0; i < inner; i++, x += d, y += d) {
				int32_t row = (o / share * positions + p) * width;

				for (j = 0; j < n / 2; j++) {
					int32_t a = halves ? j : 2 * j, b = halves ? j + n / 2 : 2 * j + 1;
					int32_t ta = row + (width == n ? a : j), tb = row + (width == n ? b : j);

					y[a] = x[a] * c[ta] + x[b] * -s[ta];
					y[b] = x[b] * c[tb] + x[a] * s[tb];
				}
				for (j = n; j < d; j++)
					y[j] = x[j];
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

parts.add('rope_turn', {text = [[
/* 2^22 v, half to even; at most 2^30. */
static int64_t q_rope_turn(float v)
{
	double x = (double)(v == v ? v : 0.0f);

	x = x < -256.0 ? -256.0 : x > 256.0 ? 256.0 : x;
	return (int64_t)((x * 4194304.0 + 0x1.8p52) - 0x1.8p52);
}
]]})
-- Of codes: with tables of floats, or of integers, 2^22 times those.
local PART = [[
/* ropepart of codes */
static void ${name}(const ${x} *x, int32_t outer, int32_t positions, int32_t inner, int32_t d, int32_t n, int32_t halves, const @TYPE@ *c,
	const @TYPE@ *s, int32_t width, int32_t share, int64_t from, float factor, float lo, float hi, int32_t zero, ${y} *y)
{
	int32_t o, p, i, j;

	for (o = 0; o < outer; o++)
		for (p = 0; p < positions; p++)
			for (i = 0; i < inner; i++, x += d, y += d) {
				int32_t row = (o / share * positions + p) * width;

				for (j = 0; j < n / 2; j++) {
					int32_t a = halves ? j : 2 * j, b = halves ? j + n / 2 : 2 * j + 1;
					int32_t ta = row + (width == n ? a : j), tb = row + (width == n ? b : j);
					int64_t u = x[a] - from, v = x[b] - from;

					y[a] = (${y})q_round((float)(u * @TURN@c[ta]@END@ - v * @TURN@s[ta]@END@) * factor, lo, hi, zero);
					y[b] = (${y})q_round((float)(u * @TURN@s[tb]@END@ + v * @TURN@c[tb]@END@) * factor, lo, hi, zero);
				}
				for (j = n; j < d; j++)
					y[j] = (${y})q_round((float)((x[j] - from) * 4194304) * factor, lo, hi, zero);
			}
}
]]
parts.add('ropepartcodes', {fields = {'x', 'y'}, needs = {{'round'}, {'rope_turn'}},
	text = (PART:gsub('@(%u+)@', {TYPE = 'float', TURN = 'q_rope_turn(', END = ')'}))})
parts.add('ropepartturns', {fields = {'x', 'y'}, needs = {{'round'}}, text = (PART:gsub('@(%u+)@', {TYPE = 'int32_t', TURN = '', END = ''}))})

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

-- Cosines and sines (positions, n / 2) of the angles, one after the other.
local function table_of_angles(e, positions, n, angle)
	local list, pairs_of = {}, n // 2
	for p = 0, positions - 1 do
		for j = 0, pairs_of - 1 do
			list[p * pairs_of + j + 1] = e.single(math.cos(angle(p, j)))
			list[(positions + p) * pairs_of + j + 1] = e.single(math.sin(angle(p, j)))
		end
	end
	return list
end

-- The same as integers, 2^22 times.
local function table_of_turns(e, positions, n, angle)
	local list, pairs_of = {}, n // 2
	for p = 0, positions - 1 do
		for j = 0, pairs_of - 1 do
			list[p * pairs_of + j + 1] = math.tointeger(e.rint(math.cos(angle(p, j)) * 2.0 ^ 22))
			list[(positions + p) * pairs_of + j + 1] = math.tointeger(e.rint(math.sin(angle(p, j)) * 2.0 ^ 22))
		end
	end
	return list
end

-- With style, dims or tables; g: of the result.
local function rope_part(e, node, x, f, y, g, sizes, angle)
	local n, share = node.attrs.dims or sizes.d, sizes.outer
	local width, c, s
	local part = g.scale and 'ropepartcodes' or 'ropepart'
	if #node.inputs > 1 then
		local cf, sf
		c, cf = e:input(node, 2, 'plain')
		s, sf = e:input(node, 3, 'plain')
		if cf.ctype ~= 'float' or sf.ctype ~= 'float' then
			base.fail("export: node '%s': wanted tables of float32, got %s and %s", node.name, cf.dtype, sf.dtype)
		end
		width = cf.shape[#cf.shape]
		if #cf.shape == 3 and cf.shape[1] > 1 then share = sizes.outer // f.shape[1] end
	else
		width = n // 2
		c = g.scale and e:array(node.name .. '_turns', 'int32_t', table_of_turns(e, sizes.positions, n, angle), 'cosines and sines') or
			e:array(node.name .. '_angles', 'float', table_of_angles(e, sizes.positions, n, angle), 'cosines and sines')
		s = ('%s + %d'):format(c, sizes.positions * width)
		part = g.scale and 'ropepartturns' or part
	end
	local halves = node.attrs.style == 'half' and 1 or 0
	if g.scale then
		return e:call('%s(%s, %d, %d, %d, %d, %d, %d, %s, %s, %d, %d, %d, %s, %s, %s, %d, %s);', e:part(part, {x = f.ctype, y = g.ctype}), x, sizes.outer,
			sizes.positions, sizes.inner, sizes.d, n, halves, c, s, width, share, f.zero, e.float(e.single(f.scale / (2.0 ^ 22 * g.scale))),
			e.float(g.lo - g.zero), e.float(g.hi - g.zero), g.zero, y)
	end
	e:call('%s(%s, %d, %d, %d, %d, %d, %d, %s, %s, %d, %d, %s);', e:part(part), x, sizes.outer, sizes.positions, sizes.inner, sizes.d, n,
		halves, c, s, width, share, y)
end

local function rope(e, node)
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node)
	local rank, axis = #f.shape, node.attrs.axis or -2
	if axis < 0 then axis = rank + 1 + axis end
	local positions, d, inner = f.shape[axis], f.shape[rank], 1
	for i = axis + 1, rank - 1 do inner = inner * f.shape[i] end
	local outer = f.count // (positions * inner * d)
	local function angle(p, j) -- nn/ops/rope.c
		return (p + (node.attrs.start or 1) - 1.0) * (node.attrs.base or 10000.0) ^ (-(2.0 * j) / (node.attrs.dims or d))
	end
	if #node.inputs > 1 or node.attrs.style or node.attrs.dims then
		return rope_part(e, node, x, f, y, g, {outer = outer, positions = positions, inner = inner, d = d}, angle)
	end
	if g.scale then return rope_codes(e, x, f, y, g, node.name, outer, positions, inner, d, angle) end
	e:call('%s(%s, %d, %d, %d, %d, %s, %s);', e:part 'rope', x, outer, positions, inner, d,
		e:array(node.name .. '_angles', 'float', table_of_angles(e, positions, d, angle), 'cosines and sines'), y)
end

return {ops = {'attention', 'rope'}, emit = function(e, node)
	if node.op == 'rope' then return rope(e, node) end
	if e.graph:result_of(node.name).spec then return of_codes.emit(e, node, mask_strides) end
	return attention(e, node)
end}
