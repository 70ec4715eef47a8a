/* SPDX-License-Identifier: MIT
 * The kernel crossentropy: losses against the op of the core, gradients against their formula with the row functions of
 * tensor/loops, classes out of range as faults.
 */
#include "tensor/loops/exponentials.h"
#include "tensor/loops/lanes.h"
#include "tests/tools/gpu_views.h"

extern const struct ql_op ql_op_crossentropy;

#define MOST 40000

static struct gpu g;
static float x[MOST], got[MOST], row[MOST];
static int64_t class_[MOST];

struct problem {
	const char *what;
	int64_t rows, c;
	bool ignore, turned; /* class 3 does not count; the classes are the first axis */
	double smoothing;
};

static const struct problem problems[] = {
	{"few classes", 1100, 3, false, false, 0},
	{"classes of a warp", 7, 300, true, false, 0},
	{"smoothing", 5, 40, true, false, 0.1},
	{"along the first axis", 9, 33, false, true, 0.25},
	{"classes of a block", 3, 1300, true, false, 0},
	{"classes read again", 2, 8300, false, false, 0.125},
	{"one class", 4, 1, false, false, 0},
	{"all are ignored", 1, 5, true, false, 0},
};

static int options_of(const struct problem *p, struct ql_gpu_option *o)
{
	int n = 0;

	if (p->turned)
		o[n++] = (struct ql_gpu_option){.name = "axis", .i = 0};
	if (p->ignore)
		o[n++] = (struct ql_gpu_option){.name = "ignore", .i = 3};
	if (p->smoothing > 0)
		o[n++] = (struct ql_gpu_option){.name = "smoothing", .type = QL_GPU_OPTION_NUMBER, .f = p->smoothing};
	return n;
}

static double core_loss(struct ql_ctx *ctx, const struct problem *p, const char *dtype, const void *data)
{
	struct ql_value attr[4] = {
		{.set = p->turned, .i = 1}, {.set = p->ignore, .i = 3}, {.set = p->smoothing > 0, .f = p->smoothing}};
	int64_t shape[] = {p->turned ? p->c : p->rows, p->turned ? p->rows : p->c};
	struct ql_tensor *in[2] = {NULL, NULL};
	struct ql_call call = {.op = &ql_op_crossentropy, .in = in, .n_in = 2, .attr = attr};
	unsigned type = (unsigned)ql_dtype_by_name(dtype);
	double loss = 0;

	if (!CHECK(!ql_tensor_new(ctx, type, 2, shape, &in[0]) && !ql_tensor_new(ctx, QL_int64, 1, &p->rows, &in[1]),
		    "%s", ctx->err))
		exit(check_end());
	memcpy(ql_tensor_data(in[0]), data, (size_t)(p->rows * p->c) * ql_dtypes[type].bits / 8);
	memcpy(ql_tensor_data(in[1]), class_, (size_t)p->rows * sizeof(*class_));
	if (CHECK(!ql_op_apply(ctx, &call), "%s", ctx->err)) {
		loss = ql_tensor_at_f64(call.out[0], 0);
		ql_tensor_release(ctx, call.out[0]);
	}
	ql_tensor_release(ctx, in[0]);
	ql_tensor_release(ctx, in[1]);
	return loss;
}

static int64_t count_of(const struct problem *p)
{
	int64_t n = 0;

	for (int64_t r = 0; r < p->rows; r++)
		n += !p->ignore || class_[r] != 3;
	return n;
}

/* The gradient of row r, whose logits are `row`. */
static void slope_of(const struct problem *p, int64_t r, double grad, float *dx)
{
	double g_one = grad / (double)count_of(p);
	float by, less;

	if (p->ignore && class_[r] == 3) {
		memset(dx, 0, (size_t)p->c * sizeof(*dx));
		return;
	}
	ql_row_exp(0, p->c, dx, row, ql_row_largest(0, row, p->c));
	by = (float)(g_one / ql_sum_f32(0, dx, p->c));
	less = (float)(g_one * p->smoothing / (double)p->c);
	for (int64_t i = 0; i < p->c; i++)
		dx[i] = dx[i] * by - less;
	dx[class_[r] - 1] -= (float)(g_one * (1 - p->smoothing));
}

static void check_slopes(const struct problem *p, double grad)
{
	static float want[MOST];
	int64_t step = p->turned ? p->rows : 1;

	for (int64_t r = 0; r < p->rows; r++) {
		int64_t at = p->turned ? r : r * p->c;

		for (int64_t i = 0; i < p->c; i++)
			row[i] = x[at + i * step];
		slope_of(p, r, grad, want);
		for (int64_t i = 0; i < p->c; i++)
			if (!CHECK(gpu_same_f32(got[at + i * step], want[i]), "%s: row %d, class %d: %.9g, wanted %.9g",
				    p->what, (int)r, (int)i, (double)got[at + i * step], (double)want[i]))
				return;
	}
}

static void try_problem(struct ql_ctx *ctx, const struct problem *p, const char *dtype)
{
	static uint16_t half[MOST];
	const float grad = 0.75f;
	int64_t shape[] = {p->turned ? p->c : p->rows, p->turned ? p->rows : p->c};
	bool narrow = strcmp(dtype, "float32") != 0;
	struct ql_gpu_option options[3], negative[3];
	struct ql_gpu_tensor in[3], out[2];
	struct ql_gpu_call call;

	for (int64_t i = 0; i < p->rows * p->c; i++) {
		double value = (double)gpu_draw_float();
		const struct ql_dtype_info *d = &ql_dtypes[ql_dtype_by_name(dtype)];

		d->from_f64(narrow ? (void *)half : (void *)x, i, 1, 1, &value);
		if (narrow)
			d->to_f32(half, i, 1, 1, &x[i]);
	}
	for (int64_t r = 0; r < p->rows; r++)
		class_[r] = p->ignore && (r % 3 == 1 || p->rows == 1) ? 3 : 1 + (int64_t)(gpu_draw() % (uint64_t)p->c);
	in[0] = gpu_tensor(&g, "float32", 0, NULL, &grad, 0);
	in[1] = gpu_tensor(&g, dtype, 2, shape, narrow ? (void *)half : (void *)x, 0);
	in[2] = gpu_tensor(&g, "int64", 1, &p->rows, class_, 0);
	out[0] = gpu_tensor(&g, "float32", 0, NULL, NULL, 0);
	out[1] = gpu_tensor(&g, "float32", 2, shape, NULL, 0);
	call = gpu_call("crossentropy", in + 1, 2, out, 1);
	call.options = options;
	call.n_options = options_of(p, options);
	if (CHECK(gpu_run(&g, call), "%s: refused: %s", p->what, g.why)) {
		float want = (float)core_loss(ctx, p, dtype, narrow ? (void *)half : (void *)x);

		gpu_get(&g, &out[0], got);
		CHECK(gpu_same_f32(got[0], want), "%s of %s: %.9g, wanted %.9g", p->what, dtype, (double)got[0],
			(double)want);
	}
	call = gpu_call("crossentropy_back", in, 3, out + 1, 1);
	call.options = options;
	call.n_options = options_of(p, options);
	if (CHECK(gpu_run(&g, call), "%s: refused: %s", p->what, g.why)) {
		gpu_get(&g, &out[1], got);
		check_slopes(p, (double)grad);
	}
	if (p->turned) { /* from the end, as the caller describes it for the first operand, a number */
		memcpy(negative, options, sizeof(negative));
		negative[0].i = -2;
		call.options = negative;
		if (CHECK(gpu_run(&g, call), "%s: refused: %s", p->what, g.why)) {
			gpu_get(&g, &out[1], got);
			check_slopes(p, (double)grad);
		}
	}
	for (int i = 0; i < 3; i++)
		gpu_free(&g, &in[i]);
	gpu_free(&g, &out[0]);
	gpu_free(&g, &out[1]);
}

static void bad_classes(void)
{
	const int64_t classes[] = {2, 1, 7, 3}, shape[] = {4, 6}, rows = 4;
	struct ql_gpu_option ignore = {.name = "ignore", .i = 7};
	struct ql_gpu_tensor in[] = {
		gpu_tensor(&g, "float32", 2, shape, x, 0), gpu_tensor(&g, "int64", 1, &rows, classes, 0)};
	struct ql_gpu_tensor out = gpu_tensor(&g, "float32", 0, NULL, NULL, 0);
	struct ql_gpu_call call = gpu_call("crossentropy", in, 2, &out, 1);
	struct ql_gpu_fault fault = {0};

	call.serial = 41;
	CHECK(gpu_run(&g, call), "%s", g.why);
	CHECK(!g.v->fault(g.s, &fault) && fault.kind == QL_GPU_FAULT_CLASS && fault.position == 2 && fault.value == 7 &&
			fault.limit == 6 && fault.serial == 41,
		"kind %d, position %d, value %d", (int)fault.kind, (int)fault.position, (int)fault.value);
	call.options = &ignore;
	call.n_options = 1;
	CHECK(gpu_run(&g, call) && !g.v->fault(g.s, &fault) && fault.kind == QL_GPU_FAULT_NONE, "%d", (int)fault.kind);
	gpu_free(&g, &in[0]);
	gpu_free(&g, &in[1]);
	gpu_free(&g, &out);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	for (int o = 0; o < ORDERS; o++) {
		CASE("losses and gradients, threads %s", gpu_order(o));
		for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++)
			try_problem(ctx, &problems[i], i % 2 ? o == 1 ? "float16" : "bfloat16" : "float32");
	}
	CASE("bad classes");
	bad_classes();
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
