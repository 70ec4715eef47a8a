/* SPDX-License-Identifier: MIT
 * Gathers the elements of each scale into rows for functions of the host. All rows have the same length except the short
 * blocks at the end of an axis, which are converted by a second call.
 */
#include "tensor/codec_functions.h"

#include <math.h>
#include <string.h>

#include "tensor/scratch.h"
#include "tensor/view.h"

#define BUFFER 512

/* The positions of each scale's elements among the gathered ones: whole rows first, then short ones. */
struct places {
	const struct ql_grain *g;
	int64_t total;
	int64_t rows[2], n[2]; /* of whole and of short rows: their number and length */
	int64_t *row, *next;   /* per scale: its row, and the position of its next element */
};

/* For n elements of row r from `first` on: stores the count of the element's scale in `before`, then adds 1 to it. */
static void count(const struct ql_grain *g, int64_t r, int64_t first, int64_t n, int64_t *counts, int64_t *before)
{
	bool each = g->kind >= QL_GRAIN_COLUMN;

	for (int64_t i = 0, run; i < n; i += run) {
		int64_t s = ql_grain_scale(g, r, first + i, &run);

		run = ql_min64(run, n - i);
		for (int64_t j = 0; j < run; j++) {
			int64_t *at = counts + (each ? s + j : s);

			before[i + j] = (*at)++;
		}
	}
}

static void restart(struct places *p)
{
	for (int64_t s = 0; s < p->g->scales; s++) {
		int64_t row = p->row[s];

		p->next[s] = row < p->rows[0] ? row * p->n[0] : p->rows[0] * p->n[0] + (row - p->rows[0]) * p->n[1];
	}
}

/* Assigns rows to the scales, whole rows first, from the counts in p->next. */
static void number(struct places *p)
{
	int64_t at[2] = {0, 0};

	for (int64_t s = 0; s < p->g->scales; s++)
		p->n[0] = ql_max64(p->n[0], p->next[s]);
	for (int64_t s = 0; s < p->g->scales; s++) {
		bool is_short = p->next[s] < p->n[0];

		p->rows[is_short]++;
		if (is_short)
			p->n[1] = p->next[s];
	}
	at[1] = p->rows[0];
	for (int64_t s = 0; s < p->g->scales; s++)
		p->row[s] = at[p->next[s] < p->n[0]]++;
}

static enum ql_status places_of(struct ql_ctx *ctx, const struct ql_grain *g, struct places *p)
{
	int64_t unused[BUFFER];

	*p = (struct places){.g = g, .total = g->rows * g->row}; /* size: elements of a tensor */
	p->row = ql_scratch_array(ctx, g->scales, 2 * sizeof(*p->row));
	if (!p->row)
		return QL_ERR_MEMORY;
	p->next = p->row + g->scales;
	memset(p->next, 0, (size_t)g->scales * sizeof(*p->next));
	for (int64_t r = 0; r < g->rows; r++)
		for (int64_t c = 0; c < g->row; c += BUFFER)
			count(g, r, c, ql_min64(BUFFER, g->row - c), p->next, unused);
	number(p);
	restart(p);
	return QL_OK;
}

/* ---- moving elements ---- */

static void gather(struct places *p, const float *x, float *to)
{
	int64_t place[BUFFER] = {0};

	restart(p);
	for (int64_t r = 0; r < p->g->rows; r++)
		for (int64_t c = 0; c < p->g->row; c += BUFFER) {
			int64_t n = ql_min64(BUFFER, p->g->row - c);

			count(p->g, r, c, n, p->next, place);
			for (int64_t i = 0; i < n; i++)
				to[place[i]] = x[r * p->g->row + c + i];
		}
}

static void scatter(struct places *p, const float *from, float *out)
{
	int64_t place[BUFFER] = {0};

	restart(p);
	for (int64_t r = 0; r < p->g->rows; r++)
		for (int64_t c = 0; c < p->g->row; c += BUFFER) {
			int64_t n = ql_min64(BUFFER, p->g->row - c);

			count(p->g, r, c, n, p->next, place);
			for (int64_t i = 0; i < n; i++)
				out[r * p->g->row + c + i] = from[place[i]];
		}
}

static void gather_codes(struct places *p, unsigned dtype, const void *codes, int32_t *to)
{
	int64_t place[BUFFER] = {0}, wide[BUFFER];

	restart(p);
	for (int64_t r = 0; r < p->g->rows; r++)
		for (int64_t c = 0; c < p->g->row; c += BUFFER) {
			int64_t n = ql_min64(BUFFER, p->g->row - c);

			count(p->g, r, c, n, p->next, place);
			ql_dtypes[dtype].to_i64(codes, r * p->g->pitch + c, 1, n, wide);
			for (int64_t i = 0; i < n; i++)
				to[place[i]] = (int32_t)wide[i];
		}
}

static void scatter_codes(struct places *p, unsigned dtype, const int32_t *from, void *codes)
{
	int64_t place[BUFFER] = {0}, wide[BUFFER];

	restart(p);
	for (int64_t r = 0; r < p->g->rows; r++)
		for (int64_t c = 0; c < p->g->row; c += BUFFER) {
			int64_t n = ql_min64(BUFFER, p->g->row - c);

			count(p->g, r, c, n, p->next, place);
			for (int64_t i = 0; i < n; i++)
				wide[i] = from[place[i]];
			ql_dtypes[dtype].from_i64(codes, r * p->g->pitch + c, 1, n, wide);
		}
}

/* Replaces and counts the values of a row that are not finite. */
static void repair(float *x, int64_t n, int64_t *nan, int64_t *inf)
{
	float most = 0;

	for (int64_t i = 0; i < n; i++)
		most = isfinite(x[i]) && fabsf(x[i]) > most ? fabsf(x[i]) : most;
	for (int64_t i = 0; i < n; i++) {
		*nan += isnan(x[i]) != 0;
		*inf += isinf(x[i]) != 0;
		x[i] = isnan(x[i]) ? 0 : isinf(x[i]) ? copysignf(most, x[i]) : x[i];
	}
}

static enum ql_status gather_finite(
	struct ql_ctx *ctx, struct places *p, const float *x, struct ql_tensor **out, int64_t *nan, int64_t *inf)
{
	enum ql_status status = ql_tensor_new(ctx, QL_float32, 1, &p->total, out);
	float *to;

	if (status)
		return status;
	to = ql_tensor_data(*out);
	gather(p, x, to);
	for (int k = 0; k < 2; k++)
		for (int64_t r = 0; r < p->rows[k]; r++, to += p->n[k])
			repair(to, p->n[k], nan, inf);
	return QL_OK;
}

static enum ql_status scales_of(struct ql_ctx *ctx, const struct places *p, const float *scale, struct ql_tensor **out)
{
	enum ql_status status = ql_tensor_new(ctx, QL_float32, 1, &p->g->scales, out);

	for (int64_t s = 0; s < p->g->scales && !status; s++)
		((float *)ql_tensor_data(*out))[p->row[s]] = scale[s];
	return status;
}

/* Gives the rows of kind k (0: whole, 1: short) as a matrix: of gathered elements, or of one number per row. `all` may be
 * NULL; then *out is. */
static enum ql_status matrix(
	struct ql_ctx *ctx, const struct places *p, int k, bool elements, struct ql_tensor *all, struct ql_tensor **out)
{
	int64_t shape[2] = {p->rows[k], elements ? p->n[k] : 1}, before = k ? p->rows[0] : 0;
	struct ql_tensor *part = NULL;
	enum ql_status status;

	*out = NULL;
	if (!all)
		return QL_OK;
	before *= elements ? p->n[0] : 1;
	status = ql_view_narrow(ctx, "quantize", all, 0, before, ql_mul64(shape[0], shape[1]), &part);
	if (!status)
		status = ql_view_reshape(ctx, "quantize", part, 2, shape, out);
	ql_tensor_release(ctx, part);
	return status;
}

/* ---- calls ---- */

static enum ql_status wrong_shape(struct ql_ctx *ctx, const struct ql_codec_functions *f, const char *function,
	const char *what, const struct ql_tensor *wanted, const struct ql_tensor *got)
{
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];

	return ql_fail(ctx, QL_ERR_SHAPE, "scheme %s: %s: wanted %s of shape %s, got %s", f->name, function, what,
		ql_shape_text(wanted->rank, wanted->shape, a), ql_shape_text(got->rank, got->shape, b));
}

/* Casts the result of a function to contiguous float64; it must have the shape of `like`. With `column`, a list of
 * like->shape[0] numbers, or a single number for one row, is accepted too. */
static enum ql_status take(struct ql_ctx *ctx, const struct ql_codec_functions *f, const char *function,
	const char *what, const struct ql_tensor *like, bool column, struct ql_tensor **t)
{
	struct ql_tensor *got = *t;
	bool flat = got->rank == 1 && got->shape[0] == like->shape[0];
	bool one = got->rank == 0 && like->shape[0] == 1;
	enum ql_status status;

	if (got->q)
		return ql_fail(ctx, QL_ERR_DTYPE, "scheme %s: %s: wanted plain %s, got a quantized tensor", f->name,
			function, what);
	if (!ql_tensor_same_shape(got, like) && !(column && (flat || one)))
		return wrong_shape(ctx, f, function, what, like, got);
	status = ql_tensor_cast(ctx, got, QL_float64, t);
	ql_tensor_release(ctx, got);
	if (status)
		*t = NULL;
	return status;
}

static enum ql_status check_codes(struct ql_ctx *ctx, const struct ql_codec_rows *rows, const double *v, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (!(v[i] >= rows->lo && v[i] <= rows->hi && v[i] == rint(v[i])))
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"scheme %s: encode: wanted whole numbers from %d to %d, got %g", rows->functions->name,
				rows->lo, rows->hi, v[i]);
	return QL_OK;
}

static enum ql_status check_scales(struct ql_ctx *ctx, const struct ql_codec_functions *f, const double *v, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (!isfinite((float)v[i]))
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"scheme %s: fit: wanted finite float32 scales, got %g for row %lld", f->name, v[i],
				(long long)i + 1);
	return QL_OK;
}

/* Makes the call of a function interruptible. Returns the previous state. */
static bool begin(struct ql_ctx *ctx)
{
	bool finishing = ctx->finishing;

	ctx->finishing = false;
	return finishing;
}

static enum ql_status encode_rows(
	struct ql_ctx *ctx, const void *how, struct ql_tensor *x, struct ql_tensor *scale, void *made)
{
	const struct ql_codec_rows *rows = how;
	int32_t *codes = made;
	const struct ql_codec_functions *f = rows->functions;
	struct ql_tensor *got = NULL;
	bool finishing = begin(ctx);
	enum ql_status status = f->encode(ctx, f, x, scale, &got);

	ctx->finishing = finishing;
	if (!status)
		status = take(ctx, f, "encode", "codes", x, false, &got);
	if (!status)
		status = check_codes(ctx, rows, ql_tensor_data(got), ql_tensor_nelem(got));
	for (int64_t i = 0; !status && i < ql_tensor_nelem(got); i++)
		codes[i] = (int32_t)((const double *)ql_tensor_data(got))[i];
	ql_tensor_release(ctx, got);
	return status;
}

static enum ql_status decode_rows(
	struct ql_ctx *ctx, const void *how, struct ql_tensor *codes, struct ql_tensor *scale, void *made)
{
	const struct ql_codec_rows *rows = how;
	float *x = made;
	const struct ql_codec_functions *f = rows->functions;
	struct ql_tensor *got = NULL;
	bool finishing = begin(ctx);
	enum ql_status status = f->decode(ctx, f, codes, scale, &got);

	ctx->finishing = finishing;
	if (!status)
		status = take(ctx, f, "decode", "values", codes, false, &got);
	for (int64_t i = 0; !status && i < ql_tensor_nelem(got); i++)
		x[i] = (float)((const double *)ql_tensor_data(got))[i];
	ql_tensor_release(ctx, got);
	return status;
}

static enum ql_status fit_rows(
	struct ql_ctx *ctx, const void *how, struct ql_tensor *x, struct ql_tensor *importance, void *made)
{
	const struct ql_codec_functions *f = how;
	double *scale = made;
	struct ql_tensor like = {.rank = 2, .shape = {x->shape[0], 1}}, *got = NULL;
	bool finishing = begin(ctx);
	enum ql_status status = f->fit(ctx, f, x, importance, &got);

	ctx->finishing = finishing;
	if (!status)
		status = take(ctx, f, "fit", "scales", &like, true, &got);
	if (!status)
		status = check_scales(ctx, f, ql_tensor_data(got), x->shape[0]);
	for (int64_t i = 0; !status && i < x->shape[0]; i++)
		scale[i] = ((const double *)ql_tensor_data(got))[i];
	ql_tensor_release(ctx, got);
	return status;
}

/* ---- whole tensors ---- */

/* Calls a function for the rows `part`. other: the scale of each row, or the weight of each element. made: where the
 * results of these rows begin. */
typedef enum ql_status rows_fn(
	struct ql_ctx *ctx, const void *how, struct ql_tensor *part, struct ql_tensor *other, void *made);

/* Calls fn for the whole rows and for the short ones. elements: `other` has one number per element, else one per row.
 * made: where the results of each kind begin. */
static enum ql_status each_kind(struct ql_ctx *ctx, const struct places *p, struct ql_tensor *all,
	struct ql_tensor *other, bool elements, rows_fn *fn, const void *how, void *made[2])
{
	enum ql_status status = QL_OK;

	for (int k = 0; k < 2 && !status; k++) {
		struct ql_tensor *part = NULL, *beside = NULL;

		if (!p->rows[k])
			continue;
		status = matrix(ctx, p, k, true, all, &part);
		if (!status)
			status = matrix(ctx, p, k, elements, other, &beside);
		if (!status)
			status = fn(ctx, how, part, beside, made[k]);
		ql_tensor_release(ctx, part);
		ql_tensor_release(ctx, beside);
	}
	return status;
}

static enum ql_status encode_all(
	struct ql_ctx *ctx, const struct ql_codec_rows *rows, const float *x, void *codes, int64_t *nan, int64_t *inf)
{
	struct ql_tensor *all = NULL, *scales = NULL;
	struct places p;
	enum ql_status status = places_of(ctx, &rows->g, &p);
	int32_t *made = status ? NULL : ql_scratch_array(ctx, p.total, sizeof(*made));

	if (!made)
		return QL_ERR_MEMORY;
	status = gather_finite(ctx, &p, x, &all, nan, inf);
	if (!status)
		status = scales_of(ctx, &p, rows->scale, &scales);
	if (!status)
		status = each_kind(
			ctx, &p, all, scales, false, encode_rows, rows, (void *[]){made, made + p.rows[0] * p.n[0]});
	ql_tensor_release(ctx, all);
	ql_tensor_release(ctx, scales);
	if (!status)
		scatter_codes(&p, rows->dtype, made, codes);
	return status;
}

enum ql_status ql_codec_functions_encode(
	struct ql_ctx *ctx, const struct ql_codec_rows *rows, const float *x, void *codes, int64_t *nan, int64_t *inf)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	enum ql_status status = QL_OK;

	if (rows->g.rows && rows->g.row)
		status = encode_all(ctx, rows, x, codes, nan, inf);
	ql_scratch_release(ctx, mark);
	return status;
}

static enum ql_status decode_all(struct ql_ctx *ctx, const struct ql_codec_rows *rows, const void *codes, float *out)
{
	struct ql_tensor *all = NULL, *scales = NULL;
	struct places p;
	enum ql_status status = places_of(ctx, &rows->g, &p);
	float *made = status ? NULL : ql_scratch_array(ctx, p.total, sizeof(*made));

	if (!made)
		return QL_ERR_MEMORY;
	status = ql_tensor_new(ctx, QL_int32, 1, &p.total, &all);
	if (!status)
		gather_codes(&p, rows->dtype, codes, ql_tensor_data(all));
	if (!status)
		status = scales_of(ctx, &p, rows->scale, &scales);
	if (!status)
		status = each_kind(
			ctx, &p, all, scales, false, decode_rows, rows, (void *[]){made, made + p.rows[0] * p.n[0]});
	ql_tensor_release(ctx, all);
	ql_tensor_release(ctx, scales);
	if (!status)
		scatter(&p, made, out);
	return status;
}

enum ql_status ql_codec_functions_decode(
	struct ql_ctx *ctx, const struct ql_codec_rows *rows, const void *codes, float *out)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	enum ql_status status = QL_OK;

	if (rows->g.rows && rows->g.row)
		status = decode_all(ctx, rows, codes, out);
	ql_scratch_release(ctx, mark);
	return status;
}

static enum ql_status fit_all(struct ql_ctx *ctx, const struct ql_codec_functions *f, const struct ql_grain *g,
	const float *x, const float *importance, double *scale)
{
	struct ql_tensor *all = NULL, *weights = NULL;
	struct places p;
	int64_t unused = 0;
	enum ql_status status = places_of(ctx, g, &p);
	double *made = status ? NULL : ql_scratch_array(ctx, g->scales, sizeof(*made));

	if (!made)
		return QL_ERR_MEMORY;
	status = gather_finite(ctx, &p, x, &all, &unused, &unused);
	if (!status && importance)
		status = gather_finite(ctx, &p, importance, &weights, &unused, &unused);
	if (!status)
		status = each_kind(ctx, &p, all, weights, true, fit_rows, f, (void *[]){made, made + p.rows[0]});
	ql_tensor_release(ctx, all);
	ql_tensor_release(ctx, weights);
	for (int64_t s = 0; s < g->scales && !status; s++)
		scale[s] = made[p.row[s]];
	return status;
}

enum ql_status ql_codec_functions_fit(struct ql_ctx *ctx, const struct ql_codec_functions *f, const struct ql_grain *g,
	const float *x, const float *importance, double *scale)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	enum ql_status status = QL_OK;

	for (int64_t s = 0; s < g->scales; s++)
		scale[s] = 1; /* of an empty tensor */
	if (g->rows && g->row)
		status = fit_all(ctx, f, g, x, importance, scale);
	ql_scratch_release(ctx, mark);
	return status;
}
