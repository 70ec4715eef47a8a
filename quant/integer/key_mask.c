/* SPDX-License-Identifier: MIT
 * Masks of attention of codes; key_mask.h has the formula. The same in exported C: nn/export/ops/attention_codes.lua.
 */
#include "quant/integer/key_mask.h"

#include <math.h>

#define MOST 0x1p50

static bool is_mask(const struct ql_tensor *t)
{
	return ql_dtype_is_float(t->dtype) || ql_dtype_is_bool(t->dtype);
}

static enum ql_status take_mask(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_key_mask *m)
{
	int64_t *stride[4] = {&m->batch, &m->head, &m->row, &m->key};
	enum ql_status status = ql_dtype_is_bool(t->dtype) ? ql_tensor_contiguous(ctx, t, &m->mask)
							   : ql_tensor_cast(ctx, t, QL_float32, &m->mask);

	for (int i = 1; !status && i <= t->rank; i++)
		*stride[4 - i] = t->shape[t->rank - i] == 1 ? 0 : m->mask->stride[t->rank - i];
	return status;
}

static enum ql_status take_lengths(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_key_mask *m)
{
	enum ql_status status = ql_tensor_cast(ctx, t, QL_int64, &m->lengths);
	const int64_t *length;

	if (status)
		return status;
	length = ql_tensor_data(m->lengths);
	for (int64_t i = 0; i < ql_tensor_nelem(t); i++)
		if (length[i] < 0 || length[i] > m->keys)
			return ql_fail(ctx, QL_ERR_ARGUMENT, "attention: lengths: wanted 0 to %lld keys, got %lld",
				(long long)m->keys, (long long)length[i]);
	return QL_OK;
}

enum ql_status ql_key_mask_start(struct ql_ctx *ctx, const struct ql_call *call, int64_t queries, int64_t keys,
	double unit, struct ql_key_mask *m)
{
	enum ql_status status = QL_OK;

	*m = (struct ql_key_mask){.window = ql_call_int(call, "window", 0),
		.behind = keys - queries,
		.causal = ql_call_bool(call, "causal", false),
		.keys = keys,
		.inverse = 1 / unit};
	for (int i = 3; i < call->n_in && !status; i++)
		status = is_mask(call->in[i]) ? take_mask(ctx, call->in[i], m) : take_lengths(ctx, call->in[i], m);
	return status;
}

void ql_key_mask_release(struct ql_ctx *ctx, struct ql_key_mask *m)
{
	ql_tensor_release(ctx, m->mask);
	ql_tensor_release(ctx, m->lengths);
}

struct ql_key_range ql_key_mask_range(const struct ql_key_mask *m, int64_t batch, int64_t query)
{
	int64_t own = query + m->behind;
	struct ql_key_range r = {0, m->causal ? own + 1 : m->keys};

	if (m->window) {
		r.last = ql_min64(r.last, m->window < m->keys - own ? own + m->window : m->keys);
		r.first = m->window <= own ? own - m->window + 1 : 0;
	}
	if (m->lengths)
		r.last = ql_min64(r.last, ((const int64_t *)ql_tensor_data(m->lengths))[batch]);
	r.last = ql_max64(0, r.last);
	r.first = ql_min64(r.first, r.last);
	return r;
}

/* Half to even, of less than 2^51. */
static int64_t units_of(float v, double inverse)
{
	double x = (double)v * inverse;

	if (!(v > -INFINITY))
		return QL_KEY_HIDDEN;
	x = x < -MOST ? -MOST : x > MOST ? MOST : x;
	return (int64_t)((x + 0x1.8p52) - 0x1.8p52);
}

void ql_key_mask_add(const struct ql_key_mask *m, int64_t batch, int64_t head, int64_t query, struct ql_key_range range,
	int64_t *score)
{
	int64_t at = batch * m->batch + head * m->head + query * m->row;
	const uint8_t *seen;
	const float *added;

	if (!m->mask)
		return;
	seen = (const uint8_t *)ql_tensor_data(m->mask) + at;
	added = (const float *)ql_tensor_data(m->mask) + at;
	for (int64_t n = range.first; n < range.last && ql_dtype_is_bool(m->mask->dtype); n++)
		score[n] = seen[n * m->key] ? score[n] : QL_KEY_HIDDEN;
	for (int64_t n = range.first; n < range.last && !ql_dtype_is_bool(m->mask->dtype); n++) {
		int64_t units = units_of(added[n * m->key], m->inverse);

		score[n] = units == QL_KEY_HIDDEN ? units : score[n] + units;
	}
}
