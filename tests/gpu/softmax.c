/* SPDX-License-Identifier: MIT
 * The kernel softmax against the ops of the core, and its gradients against their formulas with sums by tensor/loops/lanes.h.
 */
#include "tensor/loops/lanes.h"
#include "tensor/vmath/vmath.h"
#include "tests/tools/gpu_views.h"

static struct gpu g;

static bool run(const char *op, const struct ql_gpu_tensor *in, int n_in, int axis, struct ql_gpu_tensor *out)
{
	struct ql_gpu_option option = {.name = "axis", .i = axis};
	struct ql_gpu_call call = gpu_call(op, in, n_in, out, 1);

	call.options = &option;
	call.n_options = 1;
	return gpu_run(&g, call) || CHECK(false, "%s refused: %s", op, g.why);
}

static struct ql_tensor *core(struct ql_ctx *ctx, const char *op, struct ql_tensor *x, int axis)
{
	struct ql_value attr[4] = {{.set = true, .i = axis + 1}};
	struct ql_call call = {.op = ql_op_by_name(ql_ops, op), .in = &x, .n_in = 1, .attr = attr};

	return ql_op_apply(ctx, &call) ? NULL : call.out[0];
}

/* ---- views and dtypes ---- */

static const struct view views[] = {
	{"rows", 2, {9, 130}, {130, 1}, 0, 1},
	{"columns", 2, {130, 7}, {7, 1}, 0, 0},
	{"the middle", 3, {5, 33, 6}, {198, 6, 1}, 1, 1},
	{"transposed", 2, {40, 30}, {1, 40}, 0, 1},
	{"reversed and narrowed", 2, {9, 70}, {100, -1}, 99, 1},
	{"expanded", 2, {5, 50}, {1, 0}, 3, 1},
	{"the first of three", 3, {4, 5, 60}, {300, 60, 1}, 0, 0},
	{"lines of one", 2, {5, 1}, {7, 1}, 0, 1},
	{"one long row", 1, {2100}, {1}, 0, 0},
	{"no lines", 2, {0, 5}, {5, 1}, 0, 1},
};

static void try_view(struct ql_ctx *ctx, const char *op, const struct view *v, const char *dtype, bool special)
{
	static int64_t data[VIEW_BUFFER], got[VIEW_BUFFER];
	struct ql_gpu_tensor in, out;
	struct ql_tensor *x, *want;

	view_fill(dtype, data, special);
	x = view_core(ctx, v, dtype, data);
	want = x ? core(ctx, op, x, (int)v->axes) : NULL;
	if (!CHECK(want, "%s of %s: %s", op, dtype, ctx->err))
		return;
	in = view_gpu(&g, v, dtype, data);
	out = gpu_tensor(&g, dtype, want->rank, want->shape, NULL, 0);
	if (run(op, &in, 1, (int)v->axes, &out)) {
		gpu_get(&g, &out, got);
		for (int64_t i = 0; i < ql_tensor_nelem(want); i++)
			if (!CHECK(view_same(dtype, got, ql_tensor_data(want), i), "%s of %s, %s: element %d", op,
				    dtype, v->what, (int)i))
				break;
	}
	gpu_free(&g, &in);
	gpu_free(&g, &out);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, want);
}

static void try_views(struct ql_ctx *ctx)
{
	static const char *const ops[] = {"softmax", "logsoftmax"}, *const dtypes[] = {
									    "float32", "float16", "bfloat16"};

	for (int o = 0; o < 2; o++)
		for (int d = 0; d < 3; d++)
			for (size_t v = 0; v < sizeof(views) / sizeof(views[0]); v++)
				for (int special = 0; special < 2; special++)
					try_view(ctx, ops[o], &views[v], dtypes[d], special);
}

/* ---- lines of all lengths ---- */

#define ROWS 3
#define LONGEST 66000

static float x[ROWS * LONGEST], y[ROWS * LONGEST], got[ROWS * LONGEST], want[ROWS * LONGEST];

static void slope_of(const char *op, const float *gradient, const float *result, int64_t n, float *dx)
{
	double sum;

	if (strcmp(op, "softmax_slope")) {
		sum = ql_sum_f32(0, gradient, n);
		for (int64_t i = 0; i < n; i++)
			dx[i] = gradient[i] - ql_exp(result[i]) * (float)sum;
		return;
	}
	for (int64_t i = 0; i < n; i++)
		dx[i] = gradient[i] * result[i];
	sum = ql_sum_f32(0, dx, n);
	for (int64_t i = 0; i < n; i++)
		dx[i] = result[i] * (gradient[i] - (float)sum);
}

static void try_slope(const char *op, int64_t n)
{
	const int64_t shape[] = {ROWS, n};
	struct ql_gpu_tensor in[] = {
		gpu_tensor(&g, "float32", 2, shape, x, 0), gpu_tensor(&g, "float32", 2, shape, y, 0)};
	struct ql_gpu_tensor out = gpu_tensor(&g, "float32", 2, shape, NULL, 0);

	for (int r = 0; r < ROWS; r++)
		slope_of(op, x + r * n, y + r * n, n, want + r * n);
	if (run(op, in, 2, 1, &out)) {
		gpu_get(&g, &out, got);
		for (int64_t i = 0; i < ROWS * n; i++)
			if (!CHECK(gpu_same_f32(got[i], want[i]), "%s of %d: element %d: %.9g, wanted %.9g", op, (int)n,
				    (int)i, (double)got[i], (double)want[i]))
				break;
	}
	gpu_free(&g, &in[0]);
	gpu_free(&g, &in[1]);
	gpu_free(&g, &out);
}

static void try_length(struct ql_ctx *ctx, const char *op, int64_t n)
{
	const int64_t shape[] = {ROWS, n};
	struct ql_gpu_tensor in = gpu_tensor(&g, "float32", 2, shape, x, 0),
			     out = gpu_tensor(&g, "float32", 2, shape, NULL, 0);
	struct ql_tensor *t = NULL, *result = NULL;

	if (!ql_tensor_new(ctx, QL_float32, 2, shape, &t)) {
		memcpy(ql_tensor_data(t), x, (size_t)(ROWS * n) * sizeof(*x));
		result = core(ctx, op, t, 1);
	}
	if (CHECK(result, "%s: %s", op, ctx->err) && run(op, &in, 1, 1, &out)) {
		const float *wanted = ql_tensor_data(result);

		gpu_get(&g, &out, got);
		memcpy(y, got, (size_t)(ROWS * n) * sizeof(*got));
		for (int64_t i = 0; i < ROWS * n; i++)
			if (!CHECK(gpu_same_f32(got[i], wanted[i]), "%s of %d: element %d: %.9g, wanted %.9g", op,
				    (int)n, (int)i, (double)got[i], (double)wanted[i]))
				break;
	}
	ql_tensor_release(ctx, t);
	ql_tensor_release(ctx, result);
	gpu_free(&g, &in);
	gpu_free(&g, &out);
}

static void try_lengths(struct ql_ctx *ctx, bool all)
{
	static const int64_t sizes[] = {1, 5, 33, 256, 257, 1024, 1025, 2300, 4096, 4097, 8200, LONGEST};

	for (int i = 0; i < ROWS * LONGEST; i++)
		x[i] = gpu_draw_float();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) - !all; i++) {
		try_length(ctx, "softmax", sizes[i]);
		try_slope("softmax_slope", sizes[i]);
		try_length(ctx, "logsoftmax", sizes[i]);
		try_slope("logsoftmax_slope", sizes[i]);
	}
}

static void refusals(void)
{
	struct ql_gpu_tensor in = gpu_tensor(&g, "float64", 1, (const int64_t[]){3}, NULL, 0),
			     out = gpu_tensor(&g, "float64", 1, (const int64_t[]){3}, NULL, 0);

	CHECK(!gpu_run(&g, gpu_call("softmax", &in, 1, &out, 1)) && strstr(g.why, "float64"), "%s", g.why);
	in.dtype = out.dtype = "int8";
	CHECK(!gpu_run(&g, gpu_call("softmax", &in, 1, &out, 1)) && strstr(g.why, "no floats"), "%s", g.why);
	gpu_free(&g, &in);
	gpu_free(&g, &out);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	for (int o = 0; o < ORDERS; o++) {
		CASE("views and dtypes, threads %s", gpu_order(o));
		try_views(ctx);
		CASE("lines of all lengths, threads %s", gpu_order(o));
		try_lengths(ctx, o == 0);
	}
	CASE("refusals");
	refusals();
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
