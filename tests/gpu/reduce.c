/* SPDX-License-Identifier: MIT
 * The kernel reduce against the order that tensor/loops/reduce.h describes, written out here for one result, and against
 * the ops of the core on views.
 */
#include "tests/tools/gpu_views.h"

static struct gpu g;

static bool reduce(const char *op, const struct ql_gpu_tensor *in, uint32_t axes, struct ql_gpu_tensor *out)
{
	struct ql_gpu_option axis = {.name = "axis", .type = QL_GPU_OPTION_AXES, .i = axes};
	struct ql_gpu_call call = gpu_call(op, in, 1, out, 1);

	call.options = &axis;
	call.n_options = 1;
	return gpu_run(&g, call) || CHECK(false, "%s refused: %s", op, g.why);
}

/* ---- one long row of floats ---- */

static double join_lanes(const double *lane)
{
	double s[4] = {0};

	for (int l = 0; l < 32; l++)
		s[l % 4] += lane[l];
	return (s[0] + s[1]) + (s[2] + s[3]);
}

static double sum_f32(const float *x, int64_t n)
{
	double total = 0;

	for (int64_t p = 0; p < n; p += 65536) {
		double wide[32] = {0};

		for (int64_t r = p; r < p + 65536 && r < n; r += 256) {
			float lane[32] = {0};

			for (int64_t i = r; i < r + 256 && i < n && i < p + 65536; i++)
				lane[(i - r) % 32] += x[i];
			for (int l = 0; l < 32; l++)
				wide[l] += (double)lane[l];
		}
		total += join_lanes(wide);
	}
	return total;
}

static double sum_f64(const double *x, int64_t n)
{
	double total = 0;

	for (int64_t p = 0; p < n; p += 65536) {
		double part = 0;

		for (int64_t b = p; b < p + 65536 && b < n; b += 1024) {
			double lane[32] = {0};

			for (int64_t i = b; i < b + 1024 && i < n; i++)
				lane[(i - b) % 32] += x[i];
			part += join_lanes(lane);
		}
		total += part;
	}
	return total;
}

static void rows_f32(const char *op, const float *x, int64_t n, int64_t rows)
{
	struct ql_gpu_tensor in = gpu_tensor(&g, "float32", 2, (const int64_t[]){rows, n}, x, 4);
	struct ql_gpu_tensor out = gpu_tensor(&g, "float32", 1, &rows, NULL, 0);
	float got[16];

	if (reduce(op, &in, 2, &out)) {
		gpu_get(&g, &out, got);
		for (int64_t r = 0; r < rows; r++) {
			double sum = sum_f32(x + r * n, n);
			float want = (float)(strcmp(op, "mean") ? sum : sum / (double)n);

			CHECK(gpu_same_f32(got[r], want), "%s of %d floats, row %d: %.9g, wanted %.9g", op, (int)n,
				(int)r, (double)got[r], (double)want);
		}
	}
	gpu_free(&g, &in);
	gpu_free(&g, &out);
}

static void row_f64(const double *x, int64_t n)
{
	struct ql_gpu_tensor in = gpu_tensor(&g, "float64", 1, &n, x, 8),
			     out = gpu_tensor(&g, "float64", 0, NULL, NULL, 0);
	double got = 0, want = sum_f64(x, n);

	if (reduce("sum", &in, ~0u, &out)) {
		gpu_get(&g, &out, &got);
		CHECK(got == want && signbit(got) == signbit(want), "%d doubles: %.17g, wanted %.17g", (int)n, got,
			want);
	}
	gpu_free(&g, &in);
	gpu_free(&g, &out);
}

static void long_rows(void)
{
	static const int64_t sizes[] = {
		1, 3, 31, 32, 33, 255, 256, 257, 1023, 1025, 2047, 2048, 2049, 4100, 65535, 65536, 65537, 140001};
	enum { MOST = 3 * 140001 };
	float *x = check_alloc(MOST * sizeof(*x));
	double *wide = check_alloc(MOST * sizeof(*wide));

	for (int i = 0; i < MOST; i++) {
		x[i] = gpu_draw_float();
		wide[i] = (double)gpu_draw_float() * 1e-3 + (double)x[i];
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		rows_f32("sum", x, sizes[i], 3);
		rows_f32("mean", x, sizes[i], 1);
		row_f64(wide, sizes[i]);
	}
	free(x);
	free(wide);
}

/* ---- views and dtypes against the core ---- */

#define VIEWS (sizeof(views) / sizeof(views[0]))

static const struct view views[] = {
	{"rows", 2, {7, 130}, {130, 1}, 0, 2},
	{"columns", 2, {130, 7}, {7, 1}, 0, 1},
	{"the middle", 3, {5, 33, 6}, {198, 6, 1}, 1, 2},
	{"both ends", 3, {13, 5, 11}, {55, 11, 1}, 0, 5},
	{"transposed", 2, {40, 30}, {1, 40}, 0, 2},
	{"reversed and narrowed", 2, {9, 70}, {100, -1}, 99, 2},
	{"expanded", 2, {5, 50}, {1, 0}, 3, 2},
	{"all", 3, {4, 5, 60}, {300, 60, 1}, 0, ~0u},
	{"no axis left over", 1, {2100}, {1}, 0, 1},
	{"a single element", 0, {0}, {0}, 5, ~0u},
	{"long rows of a matrix", 2, {1, 4000}, {0, 1}, 7, 2},
	{"no results", 2, {0, 5}, {5, 1}, 0, 2},
};

static struct ql_tensor *core(struct ql_ctx *ctx, const char *op, struct ql_tensor *x, uint32_t axes)
{
	int64_t list[4];
	struct ql_value attr[4] = {{.set = false}};
	struct ql_call call = {.op = ql_op_by_name(ql_ops, op), .in = &x, .n_in = 1, .attr = attr};

	attr[0] = (struct ql_value){.set = axes != ~0u, .ints = {.at = list}};
	for (int d = 0; d < x->rank; d++)
		if (axes >> d & 1)
			list[attr[0].ints.n++] = d + 1;
	return ql_op_apply(ctx, &call) ? NULL : call.out[0];
}

static void try_view(struct ql_ctx *ctx, const char *op, const struct view *v, const char *dtype, bool special)
{
	static int64_t data[VIEW_BUFFER], got[VIEW_BUFFER];
	struct ql_gpu_tensor in, out;
	struct ql_tensor *x, *want;

	view_fill(dtype, data, special);
	x = view_core(ctx, v, dtype, data);
	want = x ? core(ctx, op, x, v->axes) : NULL;
	if (!CHECK(want, "%s of %s: %s", op, dtype, ctx->err))
		return;
	in = view_gpu(&g, v, dtype, data);
	out = gpu_tensor(&g, ql_dtype_name(want->dtype), want->rank, want->shape, NULL, 0);
	if (reduce(op, &in, v->axes, &out)) {
		gpu_get(&g, &out, got);
		for (int64_t i = 0; i < ql_tensor_nelem(want); i++)
			CHECK(view_same(ql_dtype_name(want->dtype), got, ql_tensor_data(want), i),
				"%s of %s, %s: result %d", op, dtype, v->what, (int)i);
	}
	gpu_free(&g, &in);
	gpu_free(&g, &out);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, want);
}

static void try_views(struct ql_ctx *ctx)
{
	static const char *const ops[] = {"sum", "mean", "max", "min", "argmax", "argmin", "any", "all"};
	static const char *const dtypes[] = {
		"float32", "float64", "float16", "bfloat16", "int8", "uint8", "int64", "bool"};

	for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++)
		for (int d = 0; d < 8; d++)
			for (size_t v = 0; v < VIEWS; v++)
				for (int special = 0; special < (d < 4 ? 2 : 1); special++)
					try_view(ctx, ops[o], &views[v], dtypes[d], special);
}

static void refusals(void)
{
	struct ql_gpu_option axis = {.name = "axis", .type = QL_GPU_OPTION_AXES, .i = 1};
	struct ql_gpu_tensor in = gpu_tensor(&g, "float32", 2, (const int64_t[]){0, 3}, NULL, 0);
	struct ql_gpu_tensor out = gpu_tensor(&g, "float32", 1, (const int64_t[]){3}, NULL, 0);
	struct ql_gpu_call call = gpu_call("max", &in, 1, &out, 1);
	float got[3];

	call.options = &axis;
	call.n_options = 1;
	CHECK(!gpu_run(&g, call) && strstr(g.why, "no elements"), "%s", g.why);
	call.op = "argmin";
	CHECK(!gpu_run(&g, call) && strstr(g.why, "no elements"), "%s", g.why);
	if (reduce("mean", &in, 1, &out)) {
		gpu_get(&g, &out, got);
		CHECK(isnan(got[0]) && isnan(got[2]), "the mean of nothing is %g", (double)got[0]);
	}
	out.dtype = "bool";
	for (int all = 0; all < 2; all++)
		if (reduce(all ? "all" : "any", &in, 1, &out)) {
			gpu_get(&g, &out, got);
			CHECK(((char *)got)[0] == all && ((char *)got)[2] == all, "%s of nothing", all ? "all" : "any");
		}
	gpu_free(&g, &in);
	gpu_free(&g, &out);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	for (int o = 0; o < ORDERS; o++) {
		CASE("long rows, threads %s", gpu_order(o));
		long_rows();
		CASE("views of all dtypes, threads %s", gpu_order(o));
		try_views(ctx);
	}
	CASE("nothing to reduce");
	refusals();
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
