/* SPDX-License-Identifier: MIT
 * Operands of an integer product: codes for the kernels, scales and zero points as arrays.
 *
 * From the second product with it on, the panels of a matrix b replace its codes (tensor/gemm/i8_stored.c) where they need about as
 * many bytes, until it is written to. Whoever else needs the codes unpacks them each time.
 *
 * Codes below 8 bits are replaced by strips (tensor/gemm/strips.h), of which the tasks of a product make the panels that they use. The
 * sums of columns are kept.
 *
 * Another b is read in place where few rows are multiplied and its columns are contiguous; else its panels are made for each product.
 * Panels beside the codes would be a second copy of a weight.
 */
#include "quant/integer/product.h"

#include "tensor/kernels/kernels.h"
#include "tensor/closed.h"
#include "tensor/encode_later.h"
#include "tensor/gemm/strips.h"
#include "tensor/scratch.h"
#include "tensor/view.h"

#define FEW_ROWS 64   /* packing takes longer than their products */
#define SUMS_SHARE 24 /* the part of b's bytes that kept sums may need */

static bool both_binary(const struct ql_tensor *a, const struct ql_tensor *b)
{
	return ql_dtype_is_binary(a->dtype) && ql_dtype_is_binary(b->dtype);
}

/* The dtype in which the kernels read the codes: packed types are unpacked to int8. */
static unsigned byte_codes(unsigned dtype)
{
	return ql_dtype_is_packed(dtype) ? QL_int8 : dtype;
}

/* Gives the codes as a plain tensor. */
static enum ql_status codes_of(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_tensor **out)
{
	enum ql_status status;

	if (ql_dtype_is_packed(t->dtype) || ql_is_closed(t))
		return ql_tensor_cast(ctx, t, byte_codes(t->dtype), out);
	status = ql_tensor_alias(ctx, t, out);
	if (!status) {
		ql_qparams_release(ctx, (*out)->q);
		(*out)->q = NULL;
	}
	return status;
}

/* Codes of a that wait are encoded while its rows are packed, if the product packs them, and all of them once. */
static enum ql_status codes_of_a(
	struct ql_ctx *ctx, struct ql_tensor *a, const struct ql_tensor *b, struct ql_product *p)
{
	struct ql_encode_source from;
	enum ql_status status;

	if (!ql_encode_waits(a))
		return codes_of(ctx, a, &p->a.codes);
	if (p->wide || a->rank != 2 || b->rank != 2 || p->plan.m <= QL_GEMM_I8_FEW || a->stride[1] != 1 || a->offset ||
		!ql_encode_take(a, &from)) {
		status = ql_closed_open(ctx, a->storage);
		if (!status)
			ql_closed_close(ctx, a->storage);
		return status ? status : codes_of(ctx, a, &p->a.codes);
	}
	p->a.floats = (struct ql_gemm_floats){ctx->kernels->quantize, from.x, from.scale, from.zero, from.lo, from.hi};
	return ql_tensor_alias(ctx, a, &p->a.codes);
}

/* Gives the bits with the summed axis packed: (…, lines, k). */
static enum ql_status bits_of(struct ql_ctx *ctx, struct ql_tensor *t, bool columns, struct ql_tensor **out)
{
	struct ql_tensor *lines = NULL;
	int order[QL_MAX_RANK];
	enum ql_status status;

	for (int d = 0; d < t->rank; d++)
		order[d] = d;
	if (columns && t->rank > 1) {
		order[t->rank - 1] = t->rank - 2;
		order[t->rank - 2] = t->rank - 1;
	}
	status = ql_view_permute(ctx, "matmul", t, order, &lines);
	if (!status)
		status = ql_tensor_cast(ctx, lines, QL_binary, out);
	ql_tensor_release(ctx, lines);
	return status;
}

/* The elements of t, of the given dtype, if they can be read where they are; else NULL. */
static const void *elements_of(const struct ql_tensor *t, unsigned dtype)
{
	bool plain = t->dtype == dtype && !t->q && t->storage->data && ql_tensor_is_contiguous(t);

	return plain ? ql_tensor_data(t) : NULL;
}

static enum ql_status read_scales(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_factor *f)
{
	int64_t n = ql_tensor_nelem(t);
	float *scale;

	f->scale = elements_of(t, QL_float32);
	if (f->scale)
		return QL_OK;
	f->scale = scale = ql_scratch_array(ctx, n, sizeof(*scale));
	for (int64_t i = 0; scale && i < n; i++)
		scale[i] = (float)ql_tensor_at_f64(t, i);
	return scale ? QL_OK : QL_ERR_MEMORY;
}

static enum ql_status read_zeros(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_factor *f)
{
	int64_t n = ql_tensor_nelem(t);
	int32_t *zero;

	f->zero = elements_of(t, QL_int32);
	if (f->zero)
		return QL_OK;
	f->zero = zero = ql_scratch_array(ctx, n, sizeof(*zero));
	for (int64_t i = 0; zero && i < n; i++)
		zero[i] = (int32_t)ql_tensor_at_f64(t, i);
	return zero ? QL_OK : QL_ERR_MEMORY;
}

static enum ql_status read_params(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_factor *f)
{
	enum ql_status status = read_scales(ctx, t->q->scale, f);

	f->dtype = byte_codes(t->dtype);
	return status || !t->q->zero_point ? status : read_zeros(ctx, t->q->zero_point, f);
}

/* Determines along which axis of the product the scale of t varies; `line` is the axis of rows (a) or columns (b),
 * -1: none. */
static void place_scales(const struct ql_matmul *plan, const struct ql_tensor *t, int line, struct ql_factor *f)
{
	int batches = t->rank > 2 ? t->rank - 2 : 0;

	f->per = t->q->axis < 0 ? QL_PER_TENSOR : t->q->axis == line ? QL_PER_LINE : QL_PER_BATCH;
	f->batch_axis = t->q->axis + plan->batch_rank - batches;
}

/* ---- what is kept of b ---- */

static struct ql_matrix_int matrix_of(const struct ql_tensor *b, const void *data)
{
	return (struct ql_matrix_int){.data = data, .dtype = b->dtype, .row = b->stride[0], .column = b->stride[1]};
}

static const char of_sums = 's';  /* sums do not depend on the kernel */
static const char of_codes = 'c'; /* counts products */

/* Returns the cache slot for data derived from b; `maker` identifies the kind of data. */
static struct ql_derived *place_of(struct ql_ctx *ctx, struct ql_tensor *b, const void *maker)
{
	struct ql_derived_key key = {.maker = maker,
		.offset = b->offset,
		.dtype = b->dtype,
		.stride = {b->stride[0], b->stride[1]},
		.size = {b->shape[0], b->shape[1]}};

	return ql_storage_derived(ctx, b->storage, &key);
}

/* Whether the sums of columns are a small part of what b takes: others are found in each product. */
static bool keeps_sums(const struct ql_tensor *b)
{
	return ql_mul64(b->shape[1], 8 * (int64_t)sizeof(int32_t) * SUMS_SHARE) <
	       ql_mul64(ql_tensor_nelem(b), ql_dtypes[b->dtype].bits);
}

/* The codes of b, with the sums of their columns if they are read in place. */
static enum ql_status codes_with_sums(struct ql_ctx *ctx, struct ql_tensor *b, struct ql_product *p)
{
	struct ql_matrix_int matrix = matrix_of(b, NULL);
	bool in_place = !ql_is_closed(b) && ql_gemm_i8_reads_b(p->plan.m, p->plan.k, &matrix);
	enum ql_status status = codes_of(ctx, b, &p->b.codes);

	if (status || !in_place || !keeps_sums(b))
		return status;
	matrix = matrix_of(p->b.codes, ql_tensor_data(p->b.codes));
	return ql_gemm_i8_keep_sums(ctx, p->plan.n, p->plan.k, &matrix, place_of(ctx, b, &of_sums), &p->b.sums);
}

/* The strips of b, from the second product on, if its columns are rows of codes below 8 bits, or strips hold it already. */
static enum ql_status strips_of_b(struct ql_ctx *ctx, struct ql_tensor *b, struct ql_product *p)
{
	struct ql_matrix_int matrix = matrix_of(b, NULL);
	struct ql_strips *strips = ql_scratch_take(ctx, sizeof(*strips));
	struct ql_tensor *lines = NULL;
	enum ql_status status = strips ? ql_view_permute(ctx, "matmul", b, (const int[]){1, 0}, &lines) : QL_ERR_MEMORY;

	if (!status)
		status = ql_strips_keep_codes(ctx, lines, strips);
	ql_tensor_release(ctx, lines);
	if (status || !strips->codes || strips->nr)
		return status;
	p->b.strips = matrix.strips = strips;
	matrix.dtype = byte_codes(b->dtype);
	if (!keeps_sums(b))
		return QL_OK;
	return ql_gemm_i8_keep_strip_sums(ctx, p->plan.n, p->plan.k, &matrix, place_of(ctx, b, &of_sums), &p->b.sums);
}

/* Only the outermost op may move the codes of its operand, and not those of `a`, which are at hand. */
static bool may_store(struct ql_ctx *ctx, const struct ql_tensor *a, struct ql_tensor *b)
{
	struct ql_derived *place;

	if (!ql_closed_may_move(ctx) || a->storage == b->storage || !ql_gemm_i8_can_store(ctx, b))
		return false;
	place = place_of(ctx, b, &of_codes);
	return place && place->asked;
}

static enum ql_status codes_of_b(
	struct ql_ctx *ctx, const struct ql_tensor *a, struct ql_tensor *b, struct ql_product *p)
{
	enum ql_status status;
	bool stored;

	if (p->wide || b->rank != 2)
		return codes_of(ctx, b, &p->b.codes);
	status = may_store(ctx, a, b) ? ql_gemm_i8_store(ctx, b) : QL_OK;
	stored = ql_gemm_i8_stored(ctx, b, &p->b.panels);
	if (status || p->b.panels.kernel)
		return status;
	if (a->storage != b->storage && !stored && ctx->kernels->gemm_i8->nr % QL_STRIP == 0)
		status = strips_of_b(ctx, b, p);
	if (status || p->b.strips)
		return status;
	if (p->plan.batches == 1 && p->plan.m <= FEW_ROWS && !stored)
		return codes_with_sums(ctx, b, p);
	return codes_of(ctx, b, &p->b.codes);
}

enum ql_status ql_product_start(
	struct ql_ctx *ctx, const char *op, struct ql_tensor *a, struct ql_tensor *b, struct ql_product *p)
{
	enum ql_status status;

	*p = (struct ql_product){
		.bits = both_binary(a, b), .wide = ql_dtypes[a->dtype].bits > 8 || ql_dtypes[b->dtype].bits > 8};
	status = ql_matmul_plan(ctx, op, a, b, &p->plan);
	if (!status)
		status = p->bits ? bits_of(ctx, a, false, &p->a.codes) : codes_of_a(ctx, a, b, p);
	if (!status)
		status = p->bits ? bits_of(ctx, b, true, &p->b.codes) : codes_of_b(ctx, a, b, p);
	if (!status && !p->bits) /* unpacked codes have other strides; bits are (…, n, k) */
		status = ql_matmul_plan(ctx, op, p->a.codes, p->b.codes ? p->b.codes : b, &p->plan);
	if (!status)
		status = read_params(ctx, a, &p->a);
	if (!status)
		status = read_params(ctx, b, &p->b);
	if (status)
		return status;
	place_scales(&p->plan, a, a->rank > 1 ? a->rank - 2 : -1, &p->a);
	place_scales(&p->plan, b, b->rank > 1 ? b->rank - 1 : -1, &p->b);
	return QL_OK;
}

void ql_product_done(struct ql_ctx *ctx, struct ql_product *p)
{
	ql_tensor_release(ctx, p->a.codes);
	ql_tensor_release(ctx, p->b.codes);
}

/* Index along `axis` of batch i; 0 if the operand is broadcast there. */
static int64_t batch_index(const struct ql_matmul *plan, int axis, int64_t i, int64_t stride)
{
	for (int d = plan->batch_rank - 1; d > axis; d--)
		i /= plan->batch_shape[d];
	return stride ? i % plan->batch_shape[axis] : 0;
}

static int64_t first_of(const struct ql_product *p, const struct ql_factor *f, int64_t i, int64_t *step)
{
	const int64_t *strides = f == &p->a ? p->plan.a_batch : p->plan.b_batch;

	*step = f->per == QL_PER_LINE;
	return f->per == QL_PER_BATCH ? batch_index(&p->plan, f->batch_axis, i, strides[f->batch_axis]) : 0;
}

const float *ql_factor_scale(const struct ql_product *p, const struct ql_factor *f, int64_t i, int64_t *step)
{
	int64_t first = first_of(p, f, i, step);

	return f->scale + first;
}

static struct ql_matrix_int matrix(
	const struct ql_product *p, const struct ql_factor *f, int64_t i, int64_t offset, int64_t row, int64_t column)
{
	struct ql_matrix_int m = {.dtype = f->dtype, .row = row, .column = column, .sums = f->sums};
	int64_t first = first_of(p, f, i, &m.zero_step);

	if (f->panels.kernel)
		m.panels = &f->panels;
	else if (f->strips)
		m.strips = f->strips;
	else if (f->floats.data)
		m.floats = &f->floats;
	else
		m.data = (const char *)f->codes->storage->data + offset * (ql_dtypes[f->dtype].bits / 8);
	m.zero = f->zero ? f->zero + first : NULL;
	return m;
}

/* Bytes of one row of packed bits, and of one matrix of them. */
static struct ql_matrix_bits bit_matrix(
	const struct ql_tensor *t, const int64_t *batch_strides, const struct ql_matmul *plan, int64_t i, int64_t lines)
{
	int64_t row = ql_ceil_div(plan->k, 8), at = 0, matrices = 1;

	/* the copy is contiguous: batches of t in order, broadcast axes counted once */
	for (int d = plan->batch_rank - 1; d >= 0; d--) {
		int64_t index = i % plan->batch_shape[d];

		i /= plan->batch_shape[d];
		if (!batch_strides[d])
			continue;
		at += index * matrices;
		matrices *= plan->batch_shape[d];
	}
	return (struct ql_matrix_bits){(const char *)t->storage->data + at * lines * row, row};
}

enum ql_status ql_product_run_to(struct ql_ctx *ctx, struct ql_product *p, int64_t i, const struct ql_gemm_i8_out *out)
{
	const struct ql_matmul *plan = &p->plan;
	int64_t ao, bo;
	struct ql_matrix_int a, b;

	if (p->bits) {
		struct ql_matrix_bits x = bit_matrix(p->a.codes, plan->a_batch, plan, i, plan->m);
		struct ql_matrix_bits y = bit_matrix(p->b.codes, plan->b_batch, plan, i, plan->n);

		return ql_gemm_b1(ctx, plan->m, plan->n, plan->k, &x, &y, out->store, out->arg);
	}
	ql_matmul_batch(plan, p->a.codes, p->b.codes ? p->b.codes : p->a.codes, i, &ao, &bo);
	a = matrix(p, &p->a, i, ao, plan->a_row, plan->a_col);
	b = matrix(p, &p->b, i, bo, plan->b_row, plan->b_col);
	if (p->wide)
		return ql_gemm_i16(ctx, plan->m, plan->n, plan->k, &a, &b, out->store, out->arg);
	return ql_gemm_i8_to(ctx, plan->m, plan->n, plan->k, &a, &b, out);
}

enum ql_status ql_product_run(struct ql_ctx *ctx, struct ql_product *p, int64_t i, ql_gemm_store_fn *store, void *arg)
{
	return ql_product_run_to(ctx, p, i, &(struct ql_gemm_i8_out){.store = store, .arg = arg});
}

const char *ql_product_path(const struct ql_product *p)
{
	return p->bits ? "binary" : p->wide ? "int16" : "int8";
}

const char *ql_product_kernel(const struct ql_ctx *ctx, const struct ql_product *p)
{
	struct ql_matrix_int b = {.strips = p->b.strips};

	return p->bits                              ? ctx->kernels->gemm_b1->name
	       : ql_gemm_i8_row_fits(p->plan.m, &b) ? ctx->kernels->gemm_coded->name
	       : p->wide                            ? ctx->kernels->gemm_i16->name
						    : ctx->kernels->gemm_i8->name;
}
