/* SPDX-License-Identifier: MIT
 * Scales of a matrix whose columns are rounded one after the other. See columns.h.
 */
#include "quant/ranges/columns.h"

#include <string.h>

#include "quant/ranges/quantize.h"
#include "tensor/codec.h"
#include "tensor/scratch.h"
#include "tensor/view.h"

/* Reads the numbers of t (n of them) into scratch memory. */
static enum ql_status numbers(struct ql_ctx *ctx, const struct ql_tensor *t, int64_t n, float **out)
{
	*out = ql_scratch_array(ctx, n, sizeof(**out));
	return *out ? ql_qparams_scales(ctx, t, *out) : QL_ERR_MEMORY;
}

static enum ql_status take_zeros(struct ql_ctx *ctx, struct ql_columns *c, int64_t n)
{
	if (!c->codes->q->zero_point)
		return QL_OK;
	c->zero = ql_scratch_array(ctx, n, sizeof(*c->zero));
	if (!c->zero)
		return QL_ERR_MEMORY;
	ql_qparams_zeros(c->codes->q->zero_point, c->zero);
	return QL_OK;
}

/* Ranges of rows that differ in bits. */
static enum ql_status take_ranges(struct ql_ctx *ctx, struct ql_columns *c, int64_t n)
{
	const struct ql_qparams *q = c->codes->q;

	if (!q->bits)
		return QL_OK;
	c->lo = ql_scratch_array(ctx, n, 2 * sizeof(*c->lo));
	if (!c->lo)
		return QL_ERR_MEMORY;
	c->hi = c->lo + n;
	for (int64_t i = 0; i < n; i++) {
		struct ql_codes codes = ql_qparams_codes(q, c->codes->dtype, i);

		c->lo[i] = codes.lo;
		c->hi[i] = codes.hi;
	}
	return QL_OK;
}

static enum ql_status take(struct ql_ctx *ctx, struct ql_columns *c)
{
	const struct ql_qparams *q = c->codes->q;
	int64_t n = ql_tensor_nelem(q->scale);
	enum ql_status status = numbers(ctx, q->scale, n, &c->scale);

	c->grain = ql_grain_of(2, c->codes->shape, QL_float32, q->axis, q->block_axis, q->block);
	c->range = q->codes;
	if (!status && q->shift)
		status = numbers(ctx, q->shift, n, &c->shift);
	if (!status)
		status = take_zeros(ctx, c, n);
	if (!status)
		status = take_ranges(ctx, c, n);
	return status ? status : ql_codes_table(ctx, q->scheme, &c->range);
}

/* Columns whose scales, with those that scale them, follow from these columns alone; 0: there are none. */
static int64_t group_of(const struct ql_spec *spec, const struct ql_qparams *q)
{
	const struct ql_qparams *outer = q->scale->q;

	if (q->block_axis != 1 || spec->outer || spec->has_scale || q->values || ql_dtypes[q->scale->dtype].bits < 8)
		return 0;
	if (!outer)
		return q->block;
	return outer->block_axis == 1 && !outer->scale->q && !outer->zero_point && !outer->shift
		       ? (int64_t)q->block * outer->block
		       : 0;
}

enum ql_status ql_columns_open(
	struct ql_ctx *ctx, struct ql_columns *c, const struct ql_spec *spec, struct ql_tensor *w, bool dynamic)
{
	enum ql_status status;

	*c = (struct ql_columns){.spec = spec, .rows = w->shape[0], .columns = w->shape[1]};
	if (!spec->scheme || spec->scheme->host)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"gptq: to: wanted a format whose columns can be rounded one by one, got '%s'",
			spec->scheme ? spec->scheme->doc.name : ql_dtype_name(spec->dtype));
	status = ql_quantize(ctx, w, spec, &c->codes);
	if (!status)
		status = take(ctx, c);
	if (!status && dynamic)
		c->group = group_of(spec, c->codes->q);
	if (status)
		ql_tensor_release(ctx, c->codes);
	return status;
}

/* ---- fitting blocks of columns ---- */

/* Copies the matrix `from`, of whole bytes, into columns of `to` from `at` on. */
static void put(struct ql_tensor *to, const struct ql_tensor *from, int64_t at)
{
	size_t each = ql_dtypes[to->dtype].bits / 8u, width = (size_t)from->shape[1] * each;
	char *out = ql_tensor_data(to);
	const char *in = ql_tensor_data(from);

	for (int64_t r = 0; r < from->shape[0]; r++)
		memcpy(out + ((size_t)r * (size_t)to->shape[1] + (size_t)at) * each, in + (size_t)r * width, width);
}

/* Makes *t, which nobody shares, a float32 tensor: scales of a block may leave the range of float16. */
static enum ql_status widen(struct ql_ctx *ctx, struct ql_tensor **t)
{
	struct ql_tensor *wide;
	enum ql_status status = ql_tensor_cast(ctx, *t, QL_float32, &wide);

	if (status)
		return status;
	ql_tensor_release(ctx, *t);
	*t = wide;
	return QL_OK;
}

/* Columns of scales or shifts, and of what scales them. */
static enum ql_status put_numbers(struct ql_ctx *ctx, struct ql_tensor **to, struct ql_tensor *from, int64_t at)
{
	struct ql_tensor *same = NULL;
	enum ql_status status = QL_OK;

	if ((*to)->dtype != from->dtype && from->dtype == QL_float32)
		status = widen(ctx, to);
	else if ((*to)->dtype != from->dtype)
		status = ql_tensor_cast(ctx, from, (*to)->dtype, &same);
	if (status)
		return status;
	put(*to, same ? same : from, at);
	ql_tensor_release(ctx, same);
	if ((*to)->q)
		return put_numbers(ctx, &(*to)->q->scale, from->q->scale, at / (*to)->q->block);
	return QL_OK;
}

/* The same numbers in the arrays of c. */
static enum ql_status read_again(struct ql_ctx *ctx, struct ql_columns *c, const struct ql_qparams *q, int64_t at)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	int64_t per = q->scale->shape[1], all = c->codes->q->scale->shape[1], n = c->rows * per;
	float *scale, *shift = NULL;
	enum ql_status status = numbers(ctx, q->scale, n, &scale);

	if (!status && q->shift)
		status = numbers(ctx, q->shift, n, &shift);
	for (int64_t i = 0; i < n && !status; i++) {
		int64_t to = i / per * all + at + i % per;

		c->scale[to] = scale[i];
		if (shift)
			c->shift[to] = shift[i];
		if (c->zero)
			c->zero[to] = (int32_t)ql_tensor_at_f64(q->zero_point, i);
	}
	ql_scratch_release(ctx, mark);
	return status;
}

/* Quantizes w, with the importance of its columns. */
static enum ql_status quantize_part(
	struct ql_ctx *ctx, const struct ql_spec *spec, int64_t first, struct ql_tensor *w, struct ql_tensor **out)
{
	struct ql_spec own = *spec;
	enum ql_status status;

	if (!spec->importance)
		return ql_quantize(ctx, w, spec, out);
	status = ql_view_narrow(ctx, "quantize", spec->importance, 0, first, w->shape[1], &own.importance);
	if (status)
		return status;
	status = ql_quantize(ctx, w, &own, out);
	ql_tensor_release(ctx, own.importance);
	return status;
}

enum ql_status ql_columns_fit(struct ql_ctx *ctx, struct ql_columns *c, int64_t first, struct ql_tensor *w)
{
	struct ql_qparams *q = c->codes->q;
	int64_t at = first / q->block;
	struct ql_tensor *part;
	enum ql_status status = quantize_part(ctx, c->spec, first, w, &part);

	if (status)
		return status;
	status = put_numbers(ctx, &q->scale, part->q->scale, at);
	if (!status && q->shift)
		status = put_numbers(ctx, &q->shift, part->q->shift, at);
	if (!status && q->zero_point)
		put(q->zero_point, part->q->zero_point, at);
	if (!status)
		status = read_again(ctx, c, part->q, at);
	ql_tensor_release(ctx, part);
	return status;
}

float ql_columns_round(const struct ql_columns *c, int64_t row, int64_t column, float x)
{
	int64_t run, s = ql_grain_scale(&c->grain, row, column, &run);
	float shift = c->shift ? c->shift[s] : 0, value;
	int32_t zero = c->zero ? c->zero[s] : 0, code;
	struct ql_codes range = c->range;
	const struct ql_scheme *scheme = c->spec->scheme;

	if (c->lo) {
		range.lo = c->lo[s];
		range.hi = c->hi[s];
	}
	if (c->shift)
		x -= shift;
	scheme->encode(&x, 1, c->scale[s], zero, &range, &code);
	scheme->decode(&code, 1, c->scale[s], zero, &range, &value);
	return c->shift ? value + shift : value;
}
