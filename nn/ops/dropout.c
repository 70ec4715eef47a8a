/* SPDX-License-Identifier: MIT
 * dropout: every element is 0 with probability p, else x / (1 - p), so that the mean is unchanged (Srivastava et
 * al., "Dropout", JMLR 15, 2014). Element i is dropped when its word of the counter-based generator is below p
 * 2^32. No mask is saved: the backward reads the same words again (struct ql_random).
 */
#include <math.h>

#include "tensor/autograd/back.h"
#include "tensor/loops/dense.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ops/ops.h"
#include "tensor/parallel.h"
#include "tensor/rng.h"

#define PIECE 1024 /* elements; their words are whole counters */
#define CHUNK 16   /* pieces claimed at a time */
#define HALF 0.5   /* default of p */

QL_SIMD(void, drop_f32,
	(int64_t n, const uint32_t *restrict words, uint32_t least, float by, const float *restrict x,
		float *restrict out),
	{
		for (int64_t i = 0; i < n; i++)
			out[i] = words[i] >= least ? x[i] * by : 0;
	})
QL_SIMD(void, drop_f64,
	(int64_t n, const uint32_t *restrict words, uint32_t least, double by, const double *restrict x,
		double *restrict out),
	{
		for (int64_t i = 0; i < n; i++)
			out[i] = words[i] >= least ? x[i] * by : 0;
	})

struct job {
	int variant;
	bool wide;
	int64_t n;
	uint64_t seed, first; /* counter of element 0 */
	uint32_t least;       /* smaller words drop their element */
	double by;
	const void *x;
	void *out;
};

static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	uint32_t words[PIECE];

	for (int64_t p = begin; p < end; p++) {
		int64_t at = p * PIECE, n = ql_min64(PIECE, j->n - at);

		ql_rng_words(j->variant, j->seed, j->first + (uint64_t)p * (PIECE / 4), ql_ceil_div(n, 4), words);
		if (j->wide)
			drop_f64[j->variant](
				n, words, j->least, j->by, (const double *)j->x + at, (double *)j->out + at);
		else
			drop_f32[j->variant](
				n, words, j->least, (float)j->by, (const float *)j->x + at, (float *)j->out + at);
	}
}

static enum ql_status drop(struct ql_ctx *ctx, const struct ql_call *call)
{
	struct ql_tensor *x = call->in[0], *out = call->out[0];
	double p = ql_call_float(call, "p", HALF);
	struct ql_tensor *from = NULL, *to = NULL;
	unsigned dtype = ql_dense_dtype(out->dtype);
	struct job j = {.variant = ctx->kernels->simd->variant,
		.wide = dtype == QL_float64,
		.n = ql_tensor_nelem(out),
		.seed = call->random.seed,
		.first = call->random.first,
		.least = (uint32_t)fmin(rint(p * 0x1p32), 0x1p32 - 1),
		.by = 1 / (1 - p)};
	enum ql_status status = ql_dense_of(ctx, x, dtype, &from);

	if (!status)
		status = ql_dense_result(ctx, out, dtype, &to);
	if (!status) {
		j.x = ql_tensor_data(from);
		j.out = ql_tensor_data(to);
		status = ql_parallel_for(ctx, ql_ceil_div(j.n, PIECE), CHUNK, j.n, body, &j);
	}
	ql_tensor_release(ctx, from);
	return ql_dense_finish(ctx, out, to, status);
}

static bool is_active(const struct ql_call *call)
{
	return ql_call_bool(call, "training", true) && ql_call_float(call, "p", HALF) > 0;
}

static bool is_same(const struct ql_call *call)
{
	return !is_active(call);
}

static int64_t draws(const struct ql_call *call)
{
	return is_active(call) ? ql_tensor_nelem(call->in[0]) : 0;
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	double p = ql_call_float(call, "p", HALF);
	char text[QL_SHAPE_TEXT];

	if (!(p >= 0 && p < 1))
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "dropout: p: wanted a probability from 0 up to but not 1, got %g", p);
	if (!is_active(call))
		return ql_infer_same(ctx, call);
	if (x->q || !ql_dtype_is_float(x->dtype))
		return ql_fail(ctx, QL_ERR_DTYPE, "dropout: wanted floats while training, got %s%s",
			ql_tensor_text(x, text), x->q ? "; use :dequantize()" : "");
	return ql_infer_same(ctx, call);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x = call->in[0];
	enum ql_status status;

	if (!is_active(call)) {
		call->out[0] = ql_tensor_keep(x);
		return QL_OK;
	}
	call->path = ql_dtype_name(ql_dense_dtype(x->dtype));
	call->kernel = ctx->kernels->simd->name;
	status = ql_tensor_new(ctx, x->dtype, x->rank, x->shape, &call->out[0]);
	return status ? status : drop(ctx, call);
}

static const struct ql_attr attrs[] = {
	{"p", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "probability that an element becomes 0 (default 0.5)"},
	{"training", QL_ATTR_BOOL, 0, NULL, "false: x itself (default true)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* The gradient as an op in no table: the same elements of that of the result are dropped. */
static enum ql_status back_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	call->path = ql_dtype_name(ql_dense_dtype(call->out[0]->dtype));
	call->kernel = ctx->kernels->simd->name;
	return drop(ctx, call);
}

static const struct ql_op dropout_back = {
	.doc = {.name = "dropout_back", .attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = ql_infer_same,
	.eval = back_eval,
};

static enum ql_status backward(struct ql_back *b)
{
	ql_back_give(b, 0, ql_back_again(b, &dropout_back, ql_back_grad(b, 0), NULL));
	return b->status;
}

extern const struct ql_op ql_op_dropout;
const struct ql_op ql_op_dropout = {
	.doc = {.name = "dropout",
		.usage = "nn.dropout(x)  nn.dropout(x, p)  nn.dropout(x, {p=, training=})",
		.text = "Each element of x becomes 0 with probability p, the others are divided by 1 - p; which ones, tensor.seed decides, "
			"whatever the number of threads. With training=false, or p=0, it gives x itself. Has a gradient.",
		.example =
			"y = nn.dropout(tensor.ones(1000), 0.2)\nprint(y:max():item(), nn.dropout(y, {training=false}) == y)  --> 1.25 "
			"true",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_FUNCTION | QL_NATIVE,
	.infer = infer,
	.eval = eval,
	.allocates = true,
	.backward = backward,
	.draws = draws,
	.same = is_same,
};
