/* SPDX-License-Identifier: MIT
 * relu and relu6: integers stay integer. Backward reads one bit per element, which marks where the gradient passes,
 * instead of the result: a layer that saves its input as codes (mode train) would otherwise save the floats as
 * well.
 */
#include "tensor/loops/dense.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ops/ops.h"
#include "tensor/parallel.h"

#define PIECE 4096 /* elements */
#define CHUNK 8    /* pieces claimed at a time */

/* -0 and nan are unchanged, as in PyTorch */
QL_MAP_F32_1(relu_f32, a < 0 ? 0 : a)
QL_MAP_F64_1(relu_f64, a < 0 ? 0 : a)
QL_MAP_I64_1(relu_i64, a > 0 ? a : 0)
static const struct ql_map relu_map = {.result = QL_MAP_PROMOTE, .f32 = relu_f32, .f64 = relu_f64, .i64 = relu_i64};

QL_MAP_F32_1(relu6_f32, a > 6 ? 6 : a < 0 ? 0 : a)
QL_MAP_F64_1(relu6_f64, a > 6 ? 6 : a < 0 ? 0 : a)
QL_MAP_I64_1(relu6_i64, a > 6 ? 6 : a > 0 ? a : 0)
static const struct ql_map relu6_map = {.result = QL_MAP_PROMOTE, .f32 = relu6_f32, .f64 = relu6_f64, .i64 = relu6_i64};

/* ---- where the gradient passes ---- */

/* Element j B + k of a piece of n has bit j of byte k, where B = ceil(n / 8): whole vectors at a time. `row` runs over
 * the k of one j. */
#define BY_BITS(row) \
	int64_t stride = (n + 7) / 8; \
\
	for (int j = 0; j < 8; j++) { \
		int64_t from = j * stride; \
		int64_t count = n - from < stride ? n - from : stride; \
\
		for (int64_t k = 0; k < count; k++) \
			row; \
	}
/* From a result; for nan the gradient passes, as in PyTorch. */
#define PASSES(name, type, ...) \
	static bool name##_of(type b) \
	{ \
		return __VA_ARGS__; \
	} \
	QL_SIMD(void, name, (int64_t n, const type *restrict out, uint8_t *restrict bits), \
		{BY_BITS(bits[k] = (uint8_t)((j ? bits[k] : 0) | name##_of(out[from + k]) << j))})
PASSES(relu_f32_passes, float, !(b <= 0))
PASSES(relu_f64_passes, double, !(b <= 0))
PASSES(relu6_f32_passes, float, (b > 0) & (b < 6))
PASSES(relu6_f64_passes, double, (b > 0) & (b < 6))
QL_SIMD(void, pass_f32, (int64_t n, const uint8_t *restrict bits, const float *restrict g, float *restrict out),
	{BY_BITS(out[from + k] = bits[k] >> j & 1 ? g[from + k] : 0)})
QL_SIMD(void, pass_f64, (int64_t n, const uint8_t *restrict bits, const double *restrict g, double *restrict out),
	{BY_BITS(out[from + k] = bits[k] >> j & 1 ? g[from + k] : 0)})

typedef void passes_f32_fn(int64_t n, const float *restrict out, uint8_t *restrict bits);
typedef void passes_f64_fn(int64_t n, const double *restrict out, uint8_t *restrict bits);

struct job {
	int variant;
	bool wide;
	int64_t n;
	const void *from; /* the result; backward: its gradient */
	uint8_t *bits;
	void *to;              /* backward: the operand's gradient */
	passes_f32_fn *of_f32; /* forward only */
	passes_f64_fn *of_f64;
};

static void gather(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t p = begin; p < end; p++) {
		int64_t at = p * PIECE, n = ql_min64(PIECE, j->n - at);

		if (j->wide)
			j->of_f64(n, (const double *)j->from + at, j->bits + at / 8);
		else
			j->of_f32(n, (const float *)j->from + at, j->bits + at / 8);
	}
}

static void apply(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t p = begin; p < end; p++) {
		int64_t at = p * PIECE, n = ql_min64(PIECE, j->n - at);

		if (j->wide)
			pass_f64[j->variant](n, j->bits + at / 8, (const double *)j->from + at, (double *)j->to + at);
		else
			pass_f32[j->variant](n, j->bits + at / 8, (const float *)j->from + at, (float *)j->to + at);
	}
}

static enum ql_status run(struct ql_ctx *ctx, struct job *j, ql_parallel_fn *body)
{
	return ql_parallel_for(ctx, ql_ceil_div(j->n, PIECE), CHUNK, j->n / 4, body, j);
}

/* ---- the ops ---- */

/* If backward will run, result 1 is the bits. */
static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	enum ql_status status = ql_map_infer(ctx, call);
	const struct ql_result *r = &call->result[0];
	int64_t n = 1;

	if (status || call->in[0]->q || !ql_dtype_is_float(r->dtype) || !ql_tape_wanted(ctx, call))
		return status;
	for (int i = 0; i < r->rank; i++)
		n *= r->shape[i];
	n = ql_ceil_div(n, 8);
	ql_result_set(call, 1, QL_uint8, 1, &n);
	call->n_out = 2;
	return QL_OK;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call, passes_f32_fn *of_f32, passes_f64_fn *of_f64)
{
	enum ql_status status = ql_map_eval(ctx, call);
	unsigned dtype = ql_dense_dtype(call->out[0]->dtype);
	struct ql_tensor *from = NULL;
	struct job j = {.variant = ctx->kernels->simd->variant,
		.wide = dtype == QL_float64,
		.of_f32 = of_f32,
		.of_f64 = of_f64};

	if (status || call->n_out < 2)
		return status;
	status = ql_dense_of(ctx, call->out[0], dtype, &from);
	if (!status) {
		j.n = ql_tensor_nelem(from);
		j.from = ql_tensor_data(from);
		j.bits = ql_tensor_data(call->out[1]);
		status = run(ctx, &j, gather);
	}
	ql_tensor_release(ctx, from);
	return status;
}

static enum ql_status relu_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	int variant = ctx->kernels->simd->variant;

	return eval(ctx, call, relu_f32_passes[variant], relu_f64_passes[variant]);
}

static enum ql_status relu6_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	int variant = ctx->kernels->simd->variant;

	return eval(ctx, call, relu6_f32_passes[variant], relu6_f64_passes[variant]);
}

/* Operands: the gradient of the result, the bits. */
static enum ql_status back_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *out = call->out[0], *from = NULL, *to = NULL;
	unsigned dtype = ql_dense_dtype(out->dtype);
	struct job j = {.variant = ctx->kernels->simd->variant, .wide = dtype == QL_float64, .n = ql_tensor_nelem(out)};
	enum ql_status status = ql_dense_of(ctx, call->in[0], dtype, &from);

	call->path = ql_dtype_name(dtype);
	call->kernel = ctx->kernels->simd->name;
	if (!status)
		status = ql_dense_result(ctx, out, dtype, &to);
	if (!status) {
		j.from = ql_tensor_data(from);
		j.bits = ql_tensor_data(call->in[1]);
		j.to = ql_tensor_data(to);
		status = run(ctx, &j, apply);
	}
	ql_tensor_release(ctx, from);
	return ql_dense_finish(ctx, out, to, status);
}

/* The gradient of both ops, in no table of ops. */
static const struct ql_op relu_back = {
	.doc = {.name = "relu_back"}, .arity_min = 2, .arity_max = 2, .infer = ql_infer_same, .eval = back_eval};

/* The gradient for codes, whose result is saved as codes. */
static enum ql_status backward_codes(struct ql_back *b)
{
	struct ql_tensor *g = ql_back_grad(b, 0), *zero = ql_back_number(b, 0, g), *y = NULL;

	if (b->status)
		return b->status;
	b->status = ql_dense_of(b->ctx, ql_back_out(b, 0), QL_float32, &y);
	y = ql_back_own(b, y, b->status);
	g = ql_back_run3(b, &ql_op_where, ql_back_run(b, &ql_op_le, y, zero), zero, g);
	if (b->call.op == &ql_op_relu6)
		g = ql_back_run3(b, &ql_op_where, ql_back_run(b, &ql_op_lt, y, ql_back_number(b, 6, y)), g, zero);
	ql_back_give(b, 0, g);
	return b->status;
}

static enum ql_status backward(struct ql_back *b)
{
	if (b->node->n_out < 2)
		return backward_codes(b);
	ql_back_give(b, 0, ql_back_run(b, &relu_back, ql_back_grad(b, 0), ql_back_out(b, 1)));
	return b->status;
}

static uint32_t saves(const struct ql_call *call)
{
	return call->in[0]->q ? QL_SAVE_RESULT : 0;
}

#define RELU(op_name, op_text, op_example) \
	const struct ql_op ql_op_##op_name = { \
		.doc = {.name = #op_name, \
			.usage = "x:" #op_name "()  x:" #op_name "{out=spec}", \
			.text = op_text, \
			.example = op_example, \
			.attrs = ql_out_attrs}, \
		.arity_min = 1, \
		.arity_max = 1, \
		.flags = QL_INPLACE | QL_ELEMENTWISE | QL_MAPPED, \
		.infer = infer, \
		.eval = op_name##_eval, \
		.defer = ql_map_defer, \
		.impl = &op_name##_map, \
		.backward = backward, \
		.saves_for = saves, \
	}

RELU(relu, "max(x, 0). A quantized operand stays quantized: its codes are raised to the zero point.",
	"print(tensor{-1,2}:relu())  --> float32(2)  0  2");
RELU(relu6, "min(max(x, 0), 6).", "print(tensor{-1,2,9}:relu6())  --> float32(3)  0  2  6");
