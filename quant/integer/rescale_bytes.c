/* SPDX-License-Identifier: MIT
 * Sums, differences and products of two dense tensors of 8-bit codes of the same shape, with one scale each: the
 * rules of quant/paths/add_mul_int.c, vectorized.
 *   y = sat(rint((float)(qa - za) * Ma + (float)(qb - zb) * Mb) + z)     Mb negated for a difference: same bits
 *   y = sat(rint((float)(qa - za) * (float)(qb - zb) * M) + z)           the first product is exact
 * In fixed point (sums) each of the 256 codes of an operand is rescaled once, in a table.
 */
#include "quant/integer/rescale.h"
#include "quant/integer/rounding.h"
#include "tensor/images.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"

#define PIECE 1024
#define CHUNK 65536 /* elements claimed at a time */

struct side {
	const void *codes;
	bool is_signed;
	int32_t zero;
	float factor;
};

struct job {
	struct side side[2];
	bool product;
	void *out;
	unsigned dtype;
	struct ql_rounding r;
	int variant;
	int32_t table[2][256]; /* fixed point: for each byte of a side the value it adds */
	struct ql_fixed last;  /* from sums of these to codes */
	enum ql_requant rule;
};

enum how { SET, ADD, TIMES };

/* out = (ADD: out +, TIMES: out *) (code - zero point) * factor, for the codes of one side */
#define WIDEN(name, type) \
	QL_SIMD(void, name, (int64_t n, const type *restrict in, int32_t zero, float factor, enum how how, float *restrict out), { \
		if (how == ADD) \
			for (int64_t i = 0; i < n; i++) \
				out[i] = out[i] + (float)((int32_t)in[i] - zero) * factor; \
		else if (how == TIMES) \
			for (int64_t i = 0; i < n; i++) \
				out[i] = out[i] * (float)((int32_t)in[i] - zero) * factor; \
		else \
			for (int64_t i = 0; i < n; i++) \
				out[i] = (float)((int32_t)in[i] - zero) * factor; \
	})
WIDEN(widen_u8, uint8_t)
WIDEN(widen_i8, int8_t)

static void widen(const struct job *j, int s, int64_t at, int64_t n, float *out)
{
	const struct side *side = &j->side[s];
	enum how how = s == 0 ? SET : j->product ? TIMES : ADD;

	if (side->is_signed)
		widen_i8[j->variant](n, (const int8_t *)side->codes + at, side->zero, side->factor, how, out);
	else
		widen_u8[j->variant](n, (const uint8_t *)side->codes + at, side->zero, side->factor, how, out);
}

static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	float v[PIECE];

	for (int64_t at = begin; at < end; at += PIECE) {
		int64_t n = ql_min64(PIECE, end - at);

		widen(j, 0, at, n, v);
		widen(j, 1, at, n, v);
		ql_round_row(j->variant, &j->r, j->dtype, n, v, (char *)j->out + at);
	}
}

static void fixed_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const uint8_t *a = j->side[0].codes, *b = j->side[1].codes;
	const int32_t none = 0;
	struct ql_sum_codes c = {.r = j->r,
		.bias = &none,
		.fixed = &j->last,
		.rule = j->rule,
		.least = INT32_MIN,
		.variant = j->variant};
	int32_t v[PIECE];

	for (int64_t at = begin; at < end; at += PIECE) {
		int64_t n = ql_min64(PIECE, end - at);

		for (int64_t i = 0; i < n; i++)
			v[i] = j->table[0][a[at + i]] + j->table[1][b[at + i]];
		ql_fixed_sums(&c, 0, n, v, (char *)j->out + at);
	}
}

/* Fills the tables from the multipliers of a sum. */
static void fill_tables(struct job *j, const struct ql_rescale *f, const struct ql_tensor *const in[2], double unit)
{
	struct ql_rescale_fixed m = {.rule = j->rule, .left = 20};

	for (int s = 0; s < 2; s++)
		m.scale[s] = (float)ql_tensor_at_f64(in[s]->q->scale, 0);
	f->multipliers(&m, unit);
	j->last = m.m[2];
	for (int s = 0; s < 2; s++)
		for (int byte = 0; byte < 256; byte++) {
			int64_t code = j->side[s].is_signed ? (int8_t)byte : byte;

			j->table[s][byte] =
				(int32_t)ql_fixed_times(j->rule, false, (code - j->side[s].zero) * (1 << 20), m.m[s]);
		}
}

static bool plain_bytes(const struct ql_tensor *t)
{
	return (t->dtype == QL_uint8 || t->dtype == QL_int8) && t->q->axis < 0 && !t->q->block &&
	       ql_tensor_is_contiguous(t);
}

bool ql_rescale_is_bytes(const struct ql_tensor *a, const struct ql_tensor *b, const struct ql_tensor *out)
{
	return plain_bytes(a) && plain_bytes(b) && plain_bytes(out) && ql_tensor_same_shape(a, b) &&
	       ql_tensor_same_shape(a, out);
}

static int32_t zero_of(const struct ql_tensor *t)
{
	return t->q->zero_point ? (int32_t)ql_tensor_at_f64(t->q->zero_point, 0) : 0;
}

static double scale_of(const struct ql_tensor *t)
{
	return (double)(float)ql_tensor_at_f64(t->q->scale, 0);
}

enum ql_status ql_rescale_bytes(struct ql_ctx *ctx, enum ql_rescale_op op, const struct ql_rescale *f,
	enum ql_requant rule, const struct ql_tensor *a, const struct ql_tensor *b, struct ql_tensor *out)
{
	struct job j = {.out = out->storage->data,
		.dtype = out->dtype,
		.r = ql_rescale_rounding(f, out),
		.product = op == QL_RESCALE_MUL,
		.variant = ctx->kernels->simd->variant,
		.rule = rule};
	const struct ql_tensor *in[2] = {a, b};
	double unit = ql_tensor_at_f64(out->q->scale, 0);

	for (int s = 0; s < 2; s++)
		j.side[s] = (struct side){ql_images_data(in[s]), in[s]->dtype == QL_int8, zero_of(in[s]),
			(float)(scale_of(in[s]) / unit)};
	if (op == QL_RESCALE_SUB)
		j.side[1].factor = -j.side[1].factor;
	if (op == QL_RESCALE_MUL) {
		j.side[0].factor = 1;
		j.side[1].factor = (float)(scale_of(a) * scale_of(b) / unit);
	}
	if (rule)
		fill_tables(&j, f, in, unit);
	out->storage->version++;
	return ql_parallel_for(
		ctx, ql_tensor_nelem(out), CHUNK, ql_tensor_nelem(out) / 4, rule ? fixed_body : body, &j);
}
