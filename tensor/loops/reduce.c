/* SPDX-License-Identifier: MIT
 * The reduction engine. Two traversals give the same bits: rows (one result at a time, its elements dense or
 * gathered into a block) and columns (a tile of neighbouring results whose first elements are adjacent, for
 * reductions over outer axes). A result of more than QL_REDUCE_PART elements is reduced in parts of that size, on
 * any threads.
 */
#include "tensor/loops/reduce.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/loops/lanes.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/walk.h"

#define TILE 128             /* results per tile: 512 bytes of a row of floats */
#define CHUNK QL_REDUCE_PART /* elements claimed at a time */
#define MIN_COLUMNS 8        /* with fewer neighbours a tile does not pay */
#define SHORT 64             /* up to this many elements per result, columns are faster */
#define AHEAD 8              /* rows to prefetch: too far apart for the hardware prefetcher */

enum domain { F32, F64, I64 };

struct reduce_job {
	const struct ql_reduce *r;
	double p;
	enum domain domain;
	int variant;
	bool columns; /* tiles of neighbouring results */
	bool direct;  /* elements may be used in place: of the domain's type, and neighbours adjacent */
	const struct ql_dtype_info *dtype;
	const void *base;
	struct ql_tensor *out, *other; /* NULL: one result */
	struct ql_walk kept;           /* over results: operand 0 the result, 1 its first input element */
	struct ql_walk along;          /* over the elements of one result: offsets from the first */
	int64_t neighbour;             /* column mode: distance of the first elements of neighbouring results */
	int64_t count;                 /* elements of one result */
	int64_t tiles;                 /* per row of `kept` */
	int64_t parts;                 /* per result */
	struct ql_part *part;          /* (results, parts) if there are several parts, else NULL */
};

static void join(const struct ql_reduce *r, struct ql_part *into, const struct ql_part *from)
{
	if (from->n == 0)
		return;
	if (into->n == 0) {
		*into = *from;
		return;
	}
	r->merge(into, from);
	into->n += from->n;
}

/* Offsets of consecutive elements along the reduction. */
struct row_walk {
	const struct ql_walk *along;
	int64_t i, row, column, start, offset;
};

static void row_start(struct row_walk *w, const struct reduce_job *j, int64_t p)
{
	w->along = &j->along;
	w->i = 0;
	w->row = p / j->along.row;
	w->column = p % j->along.row;
	ql_walk_row(w->along, w->row, &w->start);
	w->offset = w->start + w->column * ql_walk_stride(w->along, 0);
}

static inline void row_next(struct row_walk *w)
{
	w->i++;
	w->offset += ql_walk_stride(w->along, 0);
	if (++w->column < w->along->row)
		return;
	w->column = 0;
	ql_walk_row(w->along, ++w->row, &w->start);
	w->offset = w->start;
}

/* ---- one block, in each domain ---- */

static inline bool prepare_f32(
	const struct reduce_job *j, const float *x, int64_t n, int64_t step, const double *shift, float *out)
{
	(void)j, (void)x, (void)n, (void)step, (void)shift, (void)out;
	return false;
}

/* shift[step ? 0 : i] belongs to element i */
static bool prepare_f64(
	const struct reduce_job *j, const double *x, int64_t n, int64_t step, const double *shift, double *out)
{
	if (!j->r->shift && !j->r->map)
		return false;
	for (int64_t i = 0; i < n; i++)
		out[i] = x[i] - shift[step ? 0 : i];
	if (j->r->map)
		j->r->map(out, n, j->p);
	return true;
}

static inline bool prepare_i64(
	const struct reduce_job *j, const int64_t *x, int64_t n, int64_t step, const double *shift, int64_t *out)
{
	(void)j, (void)x, (void)n, (void)step, (void)shift, (void)out;
	return false;
}

/* Folds whole rows of lanes of both accumulators at once, if the reduction can. */
static inline bool fold_both_f32(
	const struct reduce_job *j, float acc[2][QL_REDUCE_LANES * TILE], const float *x, int64_t rows)
{
	if (j->r->both_f32)
		j->r->both_f32[j->variant](acc[0], acc[1], x, QL_REDUCE_LANES, rows, QL_REDUCE_LANES);
	return j->r->both_f32 != NULL;
}

static inline bool fold_both_f64(
	const struct reduce_job *j, double acc[2][QL_REDUCE_LANES * TILE], const double *x, int64_t rows)
{
	(void)j, (void)acc, (void)x, (void)rows;
	return false;
}

static inline bool fold_both_i64(
	const struct reduce_job *j, int64_t acc[2][QL_REDUCE_LANES * TILE], const int64_t *x, int64_t rows)
{
	(void)j, (void)acc, (void)x, (void)rows;
	return false;
}

/* Whether the elements of each result are used where they are, however many. */
static bool dense_row(const struct reduce_job *j)
{
	return !j->columns && j->direct && j->along.rows == 1 && ql_walk_stride(&j->along, 0) == 1;
}

#define T float
#define D f32
#define SAME(v, a) ((v) == (a) || ((v) != (v) && (a) != (a)))
#define START(r, k) (float)(r)->start[k]
#define FOLD(j, k) ((j)->r->f32[k] ? (j)->r->f32[k][(j)->variant] : (ql_fold_f32_fn *)NULL)
#define VALUE(part) (float)(part)->a
#include "tensor/loops/reduce_rows.h"

#define T double
#define D f64
#define SAME(v, a) ((v) == (a) || ((v) != (v) && (a) != (a)))
#define START(r, k) (r)->start[k]
#define FOLD(j, k) (j)->r->f64[k]
#define VALUE(part) (part)->a
#include "tensor/loops/reduce_rows.h"

#define T int64_t
#define D i64
#define SAME(v, a) ((v) == (a))
#define START(r, k) (r)->start_i[k]
#define FOLD(j, k) (j)->r->i64[k]
#define VALUE(part) (int64_t)(part)->i
#include "tensor/loops/reduce_rows.h"

/* ---- float32 sums ---- */

static void sum_columns(const struct reduce_job *j, int64_t at, int64_t begin, int64_t end, int64_t width, double *wide)
{
	struct tile_f32 tile;

	for (int64_t p = begin; p < end; p += QL_SUM_RUN) {
		int64_t n = ql_min64(QL_SUM_RUN, end - p), used = ql_min64(n, QL_REDUCE_LANES) * width;

		memset(tile.acc[0], 0, (size_t)used * sizeof(tile.acc[0][0]));
		fold_columns_f32(j, &tile, at, p, n, width);
		ql_widen(j->variant, wide, tile.acc[0], used);
	}
}

static void sum_row(const struct reduce_job *j, int64_t at, int64_t begin, int64_t end, double *wide)
{
	int64_t step = dense_row(j) ? QL_REDUCE_PART : QL_REDUCE_BLOCK;
	float buffer[QL_REDUCE_BLOCK];

	for (int64_t p = begin; p < end; p += step) {
		int64_t n = ql_min64(step, end - p);

		ql_sum_runs(j->variant, wide, dense_f32(j, at, p, n, buffer), n);
	}
}

/* Sums of elements begin .. end - 1 of `width` neighbouring results. */
static void add_range_wide(
	const struct reduce_job *j, int64_t at, int64_t begin, int64_t end, int64_t width, struct ql_part *part)
{
	double wide[QL_REDUCE_LANES * TILE];
	int64_t lanes = ql_min64(end - begin, QL_REDUCE_LANES);

	memset(wide, 0, (size_t)(QL_REDUCE_LANES * width) * sizeof(wide[0]));
	if (j->columns)
		sum_columns(j, at, begin, end, width, wide);
	else
		sum_row(j, at, begin, end, wide);
	for (int64_t c = 0; c < width; c++) {
		part[c].a = ql_join_lanes(wide + c, lanes, width);
		part[c].n = end - begin;
	}
}

/* ---- results ---- */

/* Writes one result of n parts to elements at, at + stride, … */
static void store_one(const struct reduce_job *j, double (*real_of)(const struct ql_part *, double),
	int64_t (*whole_of)(const struct ql_part *), const struct ql_part *part, int64_t at, int64_t stride, int64_t n,
	struct ql_tensor *out)
{
	const struct ql_dtype_info *to = &ql_dtypes[out->dtype];
	bool integer = !real_of || (j->domain == I64 && whole_of);
	int64_t whole[TILE];
	double real[TILE];

	for (int64_t i = 0; i < n; i++) {
		if (integer)
			whole[i] = whole_of(&part[i]);
		else
			real[i] = real_of(&part[i], j->p);
		if (!integer && isnan(real[i]))
			real[i] = NAN; /* the sign of 0 / 0 depends on the processor */
	}
	if (integer)
		to->from_i64(out->storage->data, at, stride, n, whole);
	else
		to->from_f64(out->storage->data, at, stride, n, real);
}

static void store(const struct reduce_job *j, const struct ql_part *part, int64_t at, int64_t stride, int64_t n)
{
	const struct ql_reduce *r = j->r;

	store_one(j, r->real, r->integer, part, at, stride, n, j->out);
	if (j->other)
		store_one(j, r->real_other, r->integer_other, part, at, stride, n, j->other);
}

static void reduce_item(const struct reduce_job *j, int64_t item)
{
	struct ql_part part[TILE];
	int64_t tile = item / j->parts, k = item % j->parts, offset[2], width = 1, column;
	int64_t begin = k * QL_REDUCE_PART, end = ql_min64(begin + QL_REDUCE_PART, j->count);
	int64_t step = ql_walk_stride(&j->kept, 0);

	column = tile % j->tiles * (j->columns ? TILE : 1);
	if (j->columns)
		width = ql_min64(TILE, j->kept.row - column);
	memset(part, 0, (size_t)width * sizeof(part[0]));
	ql_walk_row(&j->kept, tile / j->tiles, offset);
	offset[0] += column * step;
	offset[1] += column * ql_walk_stride(&j->kept, 1);
	if (j->domain == F32 && j->r->widen)
		add_range_wide(j, offset[1], begin, end, width, part);
	else if (j->domain == F32)
		add_range_f32(j, offset[1], begin, end, width, part);
	else if (j->domain == F64)
		add_range_f64(j, offset[1], begin, end, width, part);
	else
		add_range_i64(j, offset[1], begin, end, width, part);
	if (!j->part) {
		store(j, part, offset[0], step, width);
		return;
	}
	for (int64_t c = 0; c < width; c++)
		j->part[(offset[0] + c * step) * j->parts + k] = part[c];
}

static void reduce_body(void *arg, int64_t begin, int64_t end)
{
	for (int64_t i = begin; i < end; i++)
		reduce_item(arg, i);
}

static void join_parts(const struct reduce_job *j, int64_t results)
{
	for (int64_t i = 0; i < results; i++) {
		struct ql_part sum = {0};

		for (int64_t k = 0; k < j->parts; k++)
			join(j->r, &sum, &j->part[i * j->parts + k]);
		store(j, &sum, i, 1, 1);
	}
}

static void store_empty(const struct reduce_job *j, int64_t results)
{
	struct ql_part none = {0};

	for (int64_t i = 0; i < results; i++)
		store(j, &none, i, 1, 1);
}

/* ---- geometry ---- */

static void add_axis(struct ql_walk *w, int64_t shape, int64_t first, int64_t second)
{
	w->shape[w->rank] = shape;
	w->stride[0][w->rank] = first;
	w->stride[1][w->rank++] = second;
}

/* The kept axis to use as columns: the one adjacent in memory unless a reduced axis is; for few elements the one of
 * smallest stride; -1 when rows are faster. */
static int column_axis(const struct ql_tensor *in, unsigned mask)
{
	int64_t count = 1;
	int found = -1;

	for (int d = 0; d < in->rank; d++)
		if (mask >> d & 1)
			count *= in->shape[d];
	for (int d = 0; d < in->rank; d++) {
		bool kept = !(mask >> d & 1);

		if (!kept && in->stride[d] == 1 && in->shape[d] > 1 && count > SHORT)
			return -1;
		if (!kept || in->shape[d] < MIN_COLUMNS || (in->stride[d] != 1 && count > SHORT))
			continue;
		if (found < 0 || in->stride[d] < in->stride[found])
			found = d;
	}
	return found;
}

static void find_geometry(struct reduce_job *j, const struct ql_tensor *in, unsigned mask)
{
	int64_t to[QL_MAX_RANK], next = 1;
	int column = column_axis(in, mask);

	for (int d = in->rank - 1; d >= 0; d--) {
		to[d] = next;
		if (!(mask >> d & 1))
			next *= in->shape[d];
	}
	j->kept = (struct ql_walk){.operands = 2, .offset = {0, in->offset}};
	j->along = (struct ql_walk){.operands = 1};
	for (int d = 0; d < in->rank; d++) {
		if (mask >> d & 1)
			add_axis(&j->along, in->shape[d], in->stride[d], 0);
		else if (d != column)
			add_axis(&j->kept, in->shape[d], to[d], in->stride[d]);
	}
	if (column >= 0)
		add_axis(&j->kept, in->shape[column], to[column], in->stride[column]);
	ql_walk_finish(&j->kept, column >= 0);
	ql_walk_finish(&j->along, false);
	j->columns = column >= 0;
	j->neighbour = j->columns ? in->stride[column] : 1;
	j->direct = j->direct && j->neighbour == 1;
	j->tiles = j->columns ? ql_ceil_div(j->kept.row, TILE) : j->kept.row;
	j->count = j->along.rows * j->along.row;
	j->parts = ql_ceil_div(j->count, QL_REDUCE_PART);
}

/* ---- running ---- */

static enum domain domain_of(const struct ql_reduce *r, unsigned dtype)
{
	if (ql_dtype_is_integer(dtype))
		return r->i64[0] ? I64 : F64;
	return dtype == QL_float64 || !r->f32[0] ? F64 : F32;
}

static enum ql_status run_items(struct ql_ctx *ctx, struct reduce_job *j, int64_t results)
{
	int64_t items = j->kept.rows * j->tiles * j->parts, each = ql_min64(j->count, QL_REDUCE_PART);
	int64_t ns = (j->r->ns_per_16 ? j->r->ns_per_16 : 8) * (j->domain == F32 ? 1 : 3);
	enum ql_status status;

	if (j->parts > 1) {
		j->part = ql_scratch_array(ctx, ql_mul64(results, j->parts), sizeof(*j->part));
		if (!j->part)
			return QL_ERR_MEMORY;
	}
	status = ql_parallel_for(ctx, items, ql_max64(1, CHUNK / (j->columns ? TILE * each : each)),
		results * j->count / 16 * ns, reduce_body, j);
	if (!status && j->part)
		join_parts(j, results);
	return status;
}

static enum ql_status reduce_into(
	struct ql_ctx *ctx, struct ql_call *call, const struct ql_reduce *r, double p, struct ql_tensor **results_of)
{
	static const char *const paths[] = {"float32", "float64", "int64"};
	const struct ql_tensor *in = call->in[0];
	struct reduce_job j = {.r = r,
		.p = p,
		.variant = ctx->kernels->simd->variant,
		.base = in->storage->data,
		.out = results_of[0],
		.other = r->real_other ? results_of[1] : NULL};
	int64_t results = ql_tensor_nelem(j.out);
	unsigned mask;
	char text[QL_SHAPE_TEXT];
	enum ql_status status = ql_reduce_axes(ctx, call, &mask);

	if (status)
		return status;
	j.domain = domain_of(r, in->dtype);
	j.dtype = &ql_dtypes[in->dtype];
	j.direct = in->dtype == (j.domain == F32 ? QL_float32 : j.domain == F64 ? QL_float64 : QL_int64);
	call->path = paths[j.domain];
	call->kernel = j.domain == F32 ? ctx->kernels->simd->name : "ref";
	find_geometry(&j, in, mask);
	if (results == 0)
		return QL_OK;
	if (j.count > 0)
		return run_items(ctx, &j, results);
	if (r->nonempty)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted at least one element to reduce, got %s",
			call->op->doc.name, ql_tensor_text(in, text));
	store_empty(&j, results);
	return QL_OK;
}

/* Neighbouring results of a packed dtype share bytes, so they are computed as int8 first. */
enum ql_status ql_reduce_run(struct ql_ctx *ctx, struct ql_call *call, const struct ql_reduce *r, double p)
{
	const struct ql_tensor *out = call->out[0];
	struct ql_tensor *wide[2] = {NULL, NULL};
	int n = r->real_other ? 2 : 1;
	enum ql_status status = QL_OK;

	if (!ql_dtype_is_packed(out->dtype))
		return reduce_into(ctx, call, r, p, call->out);
	for (int i = 0; i < n && !status; i++)
		status = ql_tensor_new(ctx, QL_int8, out->rank, out->shape, &wide[i]);
	if (!status)
		status = reduce_into(ctx, call, r, p, wide);
	for (int i = 0; i < n && !status; i++)
		status = ql_tensor_copy(ctx, call->out[i], wide[i]);
	for (int i = 0; i < n; i++)
		ql_tensor_release(ctx, wide[i]);
	return status;
}

enum ql_status ql_reduce_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	return ql_reduce_run(ctx, call, call->op->impl, 0);
}

/* ---- inference ---- */

const struct ql_attr ql_reduce_attrs[] = {QL_REDUCE_ATTRS};

enum ql_status ql_reduce_axes(struct ql_ctx *ctx, const struct ql_call *call, unsigned *mask)
{
	const struct ql_value *v = ql_call_attr(call, "axis");
	int rank = call->in[0]->rank, axis;
	char what[64];

	*mask = (1u << rank) - 1u;
	if (!v)
		return QL_OK;
	if (v->ints.n == 0)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: axis: wanted an axis or a list of axes, got an empty list",
			call->op->doc.name);
	*mask = 0;
	snprintf(what, sizeof(what), "%s: axis", call->op->doc.name);
	for (int i = 0; i < v->ints.n; i++) {
		enum ql_status status = ql_axis(ctx, what, v->ints.at[i], rank, &axis);

		if (status)
			return status;
		if (*mask >> axis & 1)
			return ql_fail(
				ctx, QL_ERR_ARGUMENT, "%s: wanted each axis once, got axis %d twice", what, axis + 1);
		*mask |= 1u << axis;
	}
	return QL_OK;
}

enum ql_status ql_reduce_shape(struct ql_ctx *ctx, struct ql_call *call, unsigned dtype)
{
	const struct ql_tensor *in = call->in[0];
	bool keep = ql_call_bool(call, "keep", false);
	int64_t shape[QL_MAX_RANK];
	unsigned mask;
	int rank = 0;
	enum ql_status status = ql_reduce_axes(ctx, call, &mask);

	if (status)
		return status;
	for (int d = 0; d < in->rank; d++) {
		if (!(mask >> d & 1))
			shape[rank++] = in->shape[d];
		else if (keep)
			shape[rank++] = 1;
	}
	ql_result_set(call, 0, dtype, rank, shape);
	return QL_OK;
}

enum ql_status ql_reduce_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_reduce *r = call->op->impl;
	unsigned dtype = ql_operand_dtype(call->in[0]);
	bool integer = ql_dtype_is_integer(dtype);

	if (r->result == QL_REDUCE_BOOL)
		dtype = QL_bool;
	else if (r->result == QL_REDUCE_INDEX || (r->result == QL_REDUCE_SUM && integer))
		dtype = QL_int64;
	else if (r->result == QL_REDUCE_FLOAT && integer)
		dtype = QL_float32;
	return ql_reduce_shape(ctx, call, dtype);
}

/* ---- shared steps ---- */

void ql_fold_sum_f64 QL_FOLD_ARGS(double) QL_FOLD_BODY(double, a + v)

	void ql_close_sum(const struct ql_block *block, struct ql_part *part)
{
	if (!block->integer) {
		part->a = ql_join_lanes(block->f[0], block->lanes, 1);
		return;
	}
	for (int64_t l = 0; l < block->lanes; l++)
		part->i += (ql_int128)block->i[1][l] * ((int64_t)1 << 32) + block->i[0][l];
}

void ql_merge_sum(struct ql_part *into, const struct ql_part *from)
{
	into->a += from->a;
	into->b += from->b;
	into->i += from->i;
}
