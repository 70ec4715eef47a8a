/* SPDX-License-Identifier: MIT
 * embedding: rows of a table by number. The gradient of the table is a sum of rows: positions are first sorted by row
 * (counting sort, which keeps their order), then every row is summed by one thread, in order of the positions, so the
 * bits do not depend on the threads.
 */
#include <string.h>

#include "tensor/loops/dense.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ops/ops.h"
#include "tensor/parallel.h"
#include "tensor/loops/rows.h"
#include "tensor/scratch.h"
#include "tensor/view.h"

#define CHUNK 16384 /* elements of the table claimed at a time */

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *ids = NULL, *rows = NULL;
	enum ql_status status = ql_rows_numbers(ctx, "embedding", call->in[1], call->in[0]->shape[0], &ids);

	call->path = ql_dtype_name(call->in[0]->dtype);
	call->kernel = "rows";
	if (!status)
		status = ql_rows_take(ctx, call->in[0], ql_tensor_data(ids), ql_tensor_nelem(ids), 1, &rows);
	if (!status)
		status = ql_view_reshape(
			ctx, "embedding", rows, call->result[0].rank, call->result[0].shape, &call->out[0]);
	ql_tensor_release(ctx, ids);
	ql_tensor_release(ctx, rows);
	return status;
}

QL_SIMD(void, add_f32, (int64_t n, float *restrict to, const float *restrict x), {
	for (int64_t i = 0; i < n; i++)
		to[i] += x[i];
})
QL_SIMD(void, add_f64, (int64_t n, double *restrict to, const double *restrict x), {
	for (int64_t i = 0; i < n; i++)
		to[i] += x[i];
})

struct job {
	int variant;
	bool wide;
	int64_t d;
	const int64_t *first, *position; /* of row i: position[first[i]..first[i + 1] - 1] */
	const void *g;
	void *table;
};

static void sum_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int64_t size = j->wide ? sizeof(double) : sizeof(float);

	memset((char *)j->table + begin * j->d * size, 0, (size_t)((end - begin) * j->d * size));
	for (int64_t r = begin; r < end; r++)
		for (int64_t i = j->first[r]; i < j->first[r + 1]; i++) {
			void *to = (char *)j->table + r * j->d * size;
			const void *from = (const char *)j->g + j->position[i] * j->d * size;

			if (j->wide)
				add_f64[j->variant](j->d, to, from);
			else
				add_f32[j->variant](j->d, to, from);
		}
}

/* Sorts positions 0..n-1 by row; `first` receives the start of each of the `rows` rows. */
static enum ql_status sort(struct ql_ctx *ctx, const int64_t *number, int64_t n, int64_t rows, struct job *j)
{
	uint64_t bytes, more;
	int64_t *first, *position;

	if (!ql_size_mul((uint64_t)rows + 2, sizeof(*first), &bytes) ||
		!ql_size_mul((uint64_t)n, sizeof(*position), &more))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "embedding: wanted a table that fits in memory, got %lld rows",
			(long long)rows);
	first = ql_scratch_take(ctx, bytes);
	position = ql_scratch_take(ctx, more);
	if (!first || !position)
		return QL_ERR_MEMORY;
	memset(first, 0, bytes);
	for (int64_t i = 0; i < n; i++)
		first[number[i] + 1]++; /* placing the positions below advances each start by one row */
	for (int64_t r = 1; r <= rows + 1; r++)
		first[r] += first[r - 1];
	for (int64_t i = 0; i < n; i++)
		position[first[number[i]]++] = i;
	j->first = first;
	j->position = position;
	return QL_OK;
}

/* ---- gradient: an op in no table ---- */

/* Operands: the gradient of the result, ids. */
static enum ql_status back_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	(void)ctx;
	ql_result_set(call, 0, ql_dense_dtype(call->in[0]->dtype), 2, ql_call_attr(call, "size")->ints.at);
	return QL_OK;
}

static enum ql_status back_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *sum = call->out[0], *g = NULL, *ids = NULL;
	int64_t n = ql_tensor_nelem(call->in[1]), rows = sum->shape[0];
	struct job j = {.variant = ctx->kernels->simd->variant, .wide = sum->dtype == QL_float64, .d = sum->shape[1]};
	enum ql_status status = ql_rows_numbers(ctx, "embedding", call->in[1], rows, &ids);

	call->path = ql_dtype_name(sum->dtype);
	call->kernel = ctx->kernels->simd->name;
	if (!status)
		status = ql_dense_of(ctx, call->in[0], sum->dtype, &g);
	if (!status)
		status = sort(ctx, ql_tensor_data(ids), n, rows, &j);
	if (!status) {
		j.g = ql_tensor_data(g);
		j.table = ql_tensor_data(sum);
		status = ql_parallel_for(
			ctx, rows, ql_max64(1, CHUNK / ql_max64(1, j.d)), (rows + 2 * n) * j.d / 4, sum_body, &j);
	}
	ql_tensor_release(ctx, ids);
	ql_tensor_release(ctx, g);
	return status;
}

static const struct ql_attr back_attrs[] = {
	{"size", QL_ATTR_INTS, 0, NULL, "shape of the table"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static const struct ql_op embedding_back = {
	.doc = {.name = "embedding_back", .attrs = back_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.infer = back_infer,
	.eval = back_eval,
	.fault = ql_rows_fault,
};

static enum ql_status backward(struct ql_back *b)
{
	const struct ql_result *table = ql_back_shape(b, 0);
	struct ql_named size[] = {{"size", {.ints = {2, (int64_t *)(uintptr_t)table->shape}}}, {NULL, {.set = false}}};

	ql_back_give(b, 0, ql_back_with(b, &embedding_back, ql_back_grad(b, 0), ql_back_in(b, 1), size));
	return b->status;
}

const struct ql_op ql_op_embedding = {
	.doc = {.name = "embedding",
		.usage = "w:embedding(ids)  w:embedding(ids, {out=spec})",
		.text = "Rows of the table w (v, d) by their numbers, 1 to v: ids of any shape and integer dtype give (…, d). Any other "
			"number is an error. Of a quantized table only these rows are decoded; with out= they are quantized again. Has a gradient for w: the sum of the rows' "
			"gradients, 0 for rows that ids does not name.",
		.example = "w = tensor{{1, 2}, {3, 4}, {5, 6}}\n"
			   "print(w:embedding(tensor{3, 1, dtype='int64'}))  --> float32(2, 2)\n--> 5 6\n--> 1 2",
		.attrs = ql_out_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.infer = ql_rows_infer,
	.eval = eval,
	.fault = ql_rows_fault,
	.allocates = true,
	.backward = backward,
	.saves = QL_SAVE(1),
};
