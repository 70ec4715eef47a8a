/* SPDX-License-Identifier: MIT
 * Masks and capped scores of attention in float32, a row at a time (nn/attention_f32.c).
 */
#include <math.h>

#include "nn/attention_mask.h"
#include "tensor/loops/exponentials.h"
#include "tensor/vmath/act.h"

QL_SIMD(void, add_mask, (int64_t n, const float *restrict mask, int64_t step, float *restrict x), {
	if (step == 1)
		for (int64_t i = 0; i < n; i++)
			x[i] += mask[i];
	else
		for (int64_t i = 0; i < n; i++)
			x[i] += mask[i * step];
})

QL_SIMD(void, keep_seen, (int64_t n, const uint8_t *restrict seen, int64_t step, float otherwise, float *restrict x), {
	for (int64_t i = 0; i < n; i++)
		x[i] = seen[i * step] ? x[i] : otherwise;
})

QL_SIMD(void, zero_hidden, (int64_t n, const float *restrict mask, int64_t step, float *restrict x), {
	for (int64_t i = 0; i < n; i++)
		x[i] = mask[i * step] > -INFINITY || x[i] != x[i] ? x[i] : 0.0f;
})

QL_SIMD(void, cap_scores, (int64_t n, float cap, float *restrict x),
	{ QL_INDEPENDENT for (int64_t i = 0; i < n; i++) x[i] = cap * ql_tanh(x[i] / cap); })

QL_SIMD(void, cap_slopes, (int64_t n, float cap, float *restrict x, float *restrict slope), {
	QL_INDEPENDENT for (int64_t i = 0; i < n; i++)
	{
		float t = ql_tanh(x[i] / cap);

		x[i] = cap * t;
		slope[i] = (1.0f - t) * (1.0f + t);
	}
})

QL_SIMD(void, multiply, (int64_t n, const float *restrict by, float *restrict x), {
	for (int64_t i = 0; i < n; i++)
		x[i] *= by[i];
})

struct ql_masked_row ql_masked_row_of(
	const struct ql_attention *a, int64_t batch, int64_t head, int64_t i, int64_t from, int64_t n)
{
	const struct ql_attention_mask *mask = &a->mask;
	struct ql_masked_row m = {.kind = mask->kind, .step = mask->key, .n = n};
	int64_t at = ql_attention_mask_at(a, batch, head, i) + from * mask->key;

	if (m.kind == QL_MASK_ADDED)
		m.added = (const float *)mask->data + at;
	if (m.kind == QL_MASK_SEEN)
		m.seen = (const uint8_t *)mask->data + at;
	return m;
}

void ql_attention_mask(int variant, const struct ql_masked_row *m, float *score)
{
	if (m->kind == QL_MASK_ADDED)
		add_mask[variant](m->n, m->added, m->step, score);
	if (m->kind == QL_MASK_SEEN)
		keep_seen[variant](m->n, m->seen, m->step, -INFINITY, score);
}

void ql_attention_hide(int variant, const struct ql_masked_row *m, float *p)
{
	if (m->kind == QL_MASK_ADDED)
		zero_hidden[variant](m->n, m->added, m->step, p);
	if (m->kind == QL_MASK_SEEN)
		keep_seen[variant](m->n, m->seen, m->step, 0, p);
}

float ql_attention_largest(int variant, const float *score, int64_t n)
{
	float most = ql_row_largest(variant, score, n);

	return most == -INFINITY ? 0 : most;
}

void ql_attention_cap(int variant, int64_t n, float cap, float *score, float *slope)
{
	if (slope)
		cap_slopes[variant](n, cap, score, slope);
	else
		cap_scores[variant](n, cap, score);
}

void ql_attention_times(int variant, int64_t n, const float *by, float *x)
{
	multiply[variant](n, by, x);
}
