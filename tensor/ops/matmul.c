/* SPDX-License-Identifier: MIT
 * Matrix product of plain tensors: float32 through the gemm_f32 kernel, float64 in order of k by ql_gemm_f64 or, if small, a plain loop,
 * integers exactly: 8-bit operands give int32, 16-bit ones int64, 32- and 64-bit ones int64 with overflow checks.
 * Quantized operands have a path in quant/.
 */
#include "tensor/gemm/matmul.h"

#include <stdatomic.h>

#include "tensor/kernels/kernels.h"
#include "tensor/ops/ops.h"
#include "tensor/parallel.h"

static bool plain_integer(const struct ql_tensor *t)
{
	return !t->q && ql_dtype_is_integer(t->dtype);
}

static bool is_short(unsigned dtype)
{
	return ql_dtype_is_float(dtype) && ql_dtypes[dtype].bits < 32;
}

static unsigned result_dtype(const struct ql_call *call)
{
	const struct ql_tensor *a = call->in[0], *b = call->in[1];
	int bits = ql_dtypes[a->dtype].bits > ql_dtypes[b->dtype].bits ? ql_dtypes[a->dtype].bits
								       : ql_dtypes[b->dtype].bits;
	unsigned dtype;

	if (plain_integer(a) && plain_integer(b))
		return (unsigned)ql_call_int(call, "dtype", bits <= 8 ? QL_int32 : QL_int64);
	dtype = ql_dtype_promote(ql_operand_dtype(a), ql_operand_dtype(b));
	if (is_short(dtype) && !a->q && !b->q)
		return dtype;
	return dtype == QL_float64 ? QL_float64 : QL_float32;
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_matmul plan;
	unsigned dtype = result_dtype(call);
	bool integers = plain_integer(call->in[0]) && plain_integer(call->in[1]);
	enum ql_status status = ql_matmul_plan(ctx, "matmul", call->in[0], call->in[1], &plan);

	if (status)
		return status;
	if (integers && dtype != QL_int32 && dtype != QL_int64)
		return ql_fail(ctx, QL_ERR_DTYPE,
			"matmul: dtype: wanted int32 or int64 for a product of integers, got %s", ql_dtype_name(dtype));
	if (!integers && ql_call_attr(call, "dtype"))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"matmul: dtype: wanted only with plain integer operands, got %s x %s",
			ql_dtype_name(call->in[0]->dtype), ql_dtype_name(call->in[1]->dtype));
	ql_result_set(call, 0, dtype, plan.rank, plan.shape);
	return QL_OK;
}

/* ---- floats ---- */

/* Gives t itself when it has `dtype` or is quantized, else a contiguous cast. */
static enum ql_status as_dtype(struct ql_ctx *ctx, struct ql_tensor *t, unsigned dtype, struct ql_tensor **out)
{
	if (t->dtype == dtype || t->q) {
		*out = ql_tensor_keep(t);
		return QL_OK;
	}
	return ql_tensor_cast(ctx, t, dtype, out);
}

#define F64_FEW 4096 /* products that a plain loop, which packs nothing, computes as fast; so it does with a vector */

struct f64_job {
	const struct ql_matmul *p;
	const double *a, *b;
	double *c;
};

static void f64_rows(void *arg, int64_t begin, int64_t end)
{
	const struct f64_job *j = arg;
	const struct ql_matmul *p = j->p;

	for (int64_t i = begin; i < end; i++)
		for (int64_t col = 0; col < p->n; col++) {
			double sum = 0;

			for (int64_t k = 0; k < p->k; k++)
				sum += j->a[i * p->a_row + k * p->a_col] * j->b[k * p->b_row + col * p->b_col];
			j->c[i * p->n + col] = sum;
		}
}

static enum ql_status f64_batches(struct ql_ctx *ctx, const struct ql_tensor *a, const struct ql_tensor *b, double *c)
{
	struct ql_matmul p;
	enum ql_status status = ql_matmul_plan(ctx, "matmul", a, b, &p);
	int64_t ao, bo;

	for (int64_t i = 0; i < p.batches && !status; i++) {
		struct f64_job j = {.p = &p, .c = c + i * p.m * p.n};

		ql_matmul_batch(&p, a, b, i, &ao, &bo);
		j.a = (const double *)a->storage->data + ao;
		j.b = (const double *)b->storage->data + bo;
		if (p.n > 1 && ql_mul64(ql_mul64(p.m, p.n), p.k) >= F64_FEW)
			status = ql_gemm_f64(ctx, p.m, p.n, p.k, &(struct ql_matrix_f64){j.a, p.a_row, p.a_col},
				&(struct ql_matrix_f64){j.b, p.b_row, p.b_col}, j.c, p.n, 0);
		else
			status = ql_parallel_for(ctx, p.m, 1, p.m * p.n * p.k, f64_rows, &j);
	}
	return status;
}

static enum ql_status eval_f64(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *a = NULL, *b = NULL;
	enum ql_status status = as_dtype(ctx, call->in[0], QL_float64, &a);

	call->path = ql_dtype_name(QL_float64);
	call->kernel = ctx->kernels->simd->name;
	if (!status)
		status = as_dtype(ctx, call->in[1], QL_float64, &b);
	if (!status)
		status = f64_batches(ctx, a, b, ql_tensor_data(call->out[0]));
	ql_tensor_release(ctx, a);
	ql_tensor_release(ctx, b);
	return status;
}

/* Short floats are rounded once, from sums in float32. */
static enum ql_status eval_float(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *out = call->out[0], *wide = NULL;
	enum ql_status status = QL_OK;

	ql_matmul_name(ctx, call);
	if (is_short(out->dtype))
		status = ql_tensor_new(ctx, QL_float32, out->rank, out->shape, &wide);
	if (!status)
		status = ql_matmul_float(ctx, "matmul", call->in[0], call->in[1], ql_tensor_data(wide ? wide : out));
	if (!status && wide)
		status = ql_tensor_copy(ctx, out, wide);
	ql_tensor_release(ctx, wide);
	return status;
}

/* ---- integers ---- */

struct int_job {
	const struct ql_matmul *p;
	int32_t *c32;
	int64_t *c64;
	atomic_bool overflow;
};

static void store(void *arg, int64_t i, int64_t j, int64_t n, const int32_t *sum32, const int64_t *sum64)
{
	struct int_job *job = arg;

	for (int64_t l = 0; l < n; l++) {
		int64_t sum = sum32 ? sum32[l] : sum64[l], at = i * job->p->n + j + l;

		if (job->c64) {
			job->c64[at] = sum;
			continue;
		}
		job->c32[at] = (int32_t)sum;
		if (sum != (int32_t)sum)
			job->overflow = true;
	}
}

/* 32- and 64-bit operands: sum by sum, each step checked for overflow. */
struct wide_job {
	struct int_job *job;
	const int64_t *a, *b;
};

static void wide_rows(void *arg, int64_t begin, int64_t end)
{
	struct wide_job *w = arg;
	const struct ql_matmul *p = w->job->p;

	for (int64_t i = begin; i < end; i++)
		for (int64_t j = 0; j < p->n; j++) {
			__int128 sum = 0;
			int64_t narrow;

			for (int64_t k = 0; k < p->k; k++)
				sum += (__int128)w->a[i * p->a_row + k * p->a_col] * w->b[k * p->b_row + j * p->b_col];
			narrow = (int64_t)sum;
			if (sum != narrow)
				w->job->overflow = true;
			store(w->job, i, j, 1, NULL, &narrow);
		}
}

static unsigned class_of(const struct ql_tensor *a, const struct ql_tensor *b)
{
	int bits = ql_dtypes[a->dtype].bits > ql_dtypes[b->dtype].bits ? ql_dtypes[a->dtype].bits
								       : ql_dtypes[b->dtype].bits;

	return bits <= 8 ? QL_int8 : bits <= 16 ? QL_int16 : QL_int64;
}

/* The dtype of an operand in the kernel: bool counts as uint8, packed types are unpacked. */
static unsigned operand_dtype(const struct ql_tensor *t, unsigned class)
{
	if (class == QL_int64)
		return QL_int64;
	if (ql_dtype_is_bool(t->dtype))
		return QL_uint8;
	return ql_dtype_is_packed(t->dtype) ? QL_int8 : t->dtype;
}

static enum ql_status int_batch(struct ql_ctx *ctx, const struct ql_tensor *a, const struct ql_tensor *b, int64_t ao,
	int64_t bo, struct int_job *job, unsigned class)
{
	const struct ql_matmul *p = job->p;
	struct wide_job w = {job, (const int64_t *)a->storage->data + ao, (const int64_t *)b->storage->data + bo};
	struct ql_matrix_int ma = {.dtype = a->dtype, .row = p->a_row, .column = p->a_col};
	struct ql_matrix_int mb = {.dtype = b->dtype, .row = p->b_row, .column = p->b_col};

	if (class == QL_int64)
		return ql_parallel_for(ctx, p->m, 1, p->m * p->n * p->k * 4, wide_rows, &w);
	ma.data = (const char *)a->storage->data + ao * ql_dtypes[a->dtype].bits / 8;
	mb.data = (const char *)b->storage->data + bo * ql_dtypes[b->dtype].bits / 8;
	if (class == QL_int8)
		return ql_gemm_i8_to(ctx, p->m, p->n, p->k, &ma, &mb,
			&(struct ql_gemm_i8_out){.store = store, .arg = job, .s32 = job->c32, .ld = p->n});
	return ql_gemm_i16(ctx, p->m, p->n, p->k, &ma, &mb, store, job);
}

static enum ql_status int_batches(struct ql_ctx *ctx, const struct ql_tensor *a, const struct ql_tensor *b,
	struct ql_tensor *out, unsigned class, bool *overflow)
{
	struct ql_matmul p;
	enum ql_status status = ql_matmul_plan(ctx, "matmul", a, b, &p);
	struct int_job job = {.p = &p};
	int64_t ao, bo;

	for (int64_t i = 0; i < p.batches && !status; i++) {
		if (out->dtype == QL_int32)
			job.c32 = (int32_t *)ql_tensor_data(out) + i * p.m * p.n;
		else
			job.c64 = (int64_t *)ql_tensor_data(out) + i * p.m * p.n;
		ql_matmul_batch(&p, a, b, i, &ao, &bo);
		status = int_batch(ctx, a, b, ao, bo, &job, class);
	}
	*overflow = job.overflow;
	return status;
}

static enum ql_status eval_int(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *a = NULL, *b = NULL;
	unsigned class = class_of(call->in[0], call->in[1]);
	bool overflow = false;
	enum ql_status status = as_dtype(ctx, call->in[0], operand_dtype(call->in[0], class), &a);

	if (!status)
		status = as_dtype(ctx, call->in[1], operand_dtype(call->in[1], class), &b);
	call->path = ql_dtype_name(class);
	call->kernel = class == QL_int8    ? ctx->kernels->gemm_i8->name
		       : class == QL_int16 ? ctx->kernels->gemm_i16->name
					   : "ref";
	if (!status)
		status = int_batches(ctx, a, b, call->out[0], class, &overflow);
	ql_tensor_release(ctx, a);
	ql_tensor_release(ctx, b);
	if (!status && overflow)
		return ql_fail(ctx, QL_ERR_OVERFLOW, "matmul: wanted sums that fit %s, got a larger one%s",
			ql_dtype_name(call->out[0]->dtype),
			call->out[0]->dtype == QL_int32 ? "; ask for {dtype='int64'}" : "");
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	unsigned dtype = call->out[0]->dtype;

	return ql_dtype_is_integer(dtype) ? eval_int(ctx, call)
	       : dtype == QL_float64      ? eval_f64(ctx, call)
					  : eval_float(ctx, call);
}

/* ---- gradients ---- */

/* t as (…, rows, columns): a vector gets the axis that matmul adds at `at` and removes from the result. */
static struct ql_tensor *with_axis(struct ql_back *b, struct ql_tensor *t, bool vector, int from_end)
{
	int64_t shape[QL_MAX_RANK];
	int at;

	if (!t || !vector)
		return t;
	at = t->rank - from_end;
	for (int d = 0; d <= t->rank; d++)
		shape[d] = d < at ? t->shape[d] : d == at ? 1 : t->shape[d - 1];
	return ql_back_reshape(b, t, t->rank + 1, shape);
}

static struct ql_tensor *transposed(struct ql_back *b, struct ql_tensor *t)
{
	return t ? ql_back_transpose(b, t, t->rank - 2, t->rank - 1) : NULL;
}

/* Adds the matrix t to the gradient of operand i; the added axis of a vector is removed. */
static void give(struct ql_back *b, int i, struct ql_tensor *t)
{
	int64_t shape[QL_MAX_RANK];
	int at = 0;

	if (!t || ql_back_shape(b, i)->rank > 1) {
		ql_back_give(b, i, t);
		return;
	}
	for (int d = 0; d < t->rank; d++)
		if (d != t->rank - (i == 0 ? 2 : 1))
			shape[at++] = t->shape[d];
	ql_back_give(b, i, ql_back_reshape(b, t, at, shape));
}

/* dA = G Bᵀ, dB = Aᵀ G, summed over the batch axes that were broadcast */
static enum ql_status backward(struct ql_back *b)
{
	bool row = ql_back_shape(b, 0)->rank == 1, column = ql_back_shape(b, 1)->rank == 1;
	struct ql_tensor *g = with_axis(b, with_axis(b, ql_back_grad(b, 0), column, 0), row, 1);

	if (ql_back_wants(b, 0))
		give(b, 0, ql_back_run(b, &ql_op_matmul, g, transposed(b, with_axis(b, ql_back_in(b, 1), column, 0))));
	if (ql_back_wants(b, 1))
		give(b, 1, ql_back_run(b, &ql_op_matmul, transposed(b, with_axis(b, ql_back_in(b, 0), row, 1)), g));
	return b->status;
}

static const struct ql_attr attrs[] = {
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result (default: float32)"},
	{"dtype", QL_ATTR_DTYPE, 0, NULL,
		"int32 or int64 for a product of plain integers (default: int32 for 8-bit ones)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

const struct ql_op ql_op_matmul = {
	.doc = {.name = "matmul",
		.usage = "a:matmul(b, {out=spec})",
		.text = "Matrix product (…, m, k) x (…, k, n); batch axes broadcast, an operand with one axis is a vector. Two quantized "
			"operands whose scales do not vary along k are multiplied in integers, with exact sums, and give float32 (or "
			"the spec out=); anything else quantized falls back to float32 and the ledger says why. The codes of a quantized "
			"matrix b beside floats are decoded in parts, never as a matrix (path weight_only). Plain 8-bit integers "
			"give exact int32, 16-bit ones int64.",
		.example = "a = tensor{{1,2},{3,4}}\nprint(a:matmul(tensor{1,1}))  --> float32(2)  3  7",
		.attrs = attrs},
	.arity_min = 2,
	.arity_max = 2,
	.infer = infer,
	.eval = eval,
	.backward = backward,
	.saves_for = ql_saves_other,
	.decodes = ql_matmul_decodes,
};
