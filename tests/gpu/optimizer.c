/* SPDX-License-Identifier: MIT
 * The kernel optimizer against nn/optimizer.c: values, states and norms have equal bits for every dtype, sizes around the
 * chunks of both, tensors that are not aligned, and lists of several dtypes.
 */
#include "nn/optimizer.h"
#include "tests/tools/gpu_device.h"

static struct gpu g;
static struct ql_ctx *ctx;

#define MOST 16
#define NUMBERS 11 /* scale limit lr momentum decay keep1 keep2 root eps shrink nesterov */
#define CHUNK 8192 /* of nn/optimizer.c: elements under one sum of squares */

/* A tensor of the core and the same one of the device. */
struct pair {
	struct ql_tensor *core;
	struct ql_gpu_tensor gpu;
};

/* n elements around 0, or squares where they must not be negative. */
static struct pair make(const char *dtype, int64_t n, bool positive, int64_t before)
{
	unsigned type = (unsigned)ql_dtype_by_name(dtype);
	struct pair p = {0};

	if (!CHECK(!ql_tensor_new(ctx, type, 1, &n, &p.core), "%s", ctx->err))
		exit(check_end());
	for (int64_t i = 0; i < n; i++) {
		double x = (double)gpu_draw_float();

		x = positive ? x * x : x;
		ql_dtypes[type].from_f64(ql_tensor_data(p.core), i, 1, 1, &x);
	}
	p.gpu = gpu_tensor(&g, dtype, 1, &n, ql_tensor_data(p.core), before);
	return p;
}

static void compare(struct pair *p, const char *what)
{
	size_t bytes = (size_t)ql_tensor_nelem(p->core) * ql_dtypes[p->core->dtype].bits / 8;
	unsigned char *got = check_alloc(bytes + 1);
	const unsigned char *want = ql_tensor_data(p->core);

	if (bytes)
		gpu_get(&g, &p->gpu, got);
	for (size_t i = 0; i < bytes; i++)
		if (!CHECK(got[i] == want[i], "%s: byte %d of %d", what, (int)i, (int)bytes))
			break;
	free(got);
}

static void drop(struct pair *p)
{
	ql_tensor_release(ctx, p->core);
	gpu_free(&g, &p->gpu);
}

/* ---- steps ---- */

struct shape {
	const char *dtype;
	int64_t n, before; /* bytes before the first element */
};

static const struct shape shapes[] = {
	{"float32", 5000, 0},
	{"float64", 2050, 0},
	{"float16", 2047, 0},
	{"bfloat16", 4096, 0},
	{"float32", 1, 4},
	{"float32", 2049, 4},
	{"float16", 33, 2},
	{"float64", 3, 8},
	{"float32", 0, 0},
	{"bfloat16", 2048, 6},
	{"float32", 2048, 0},
};
#define SHAPES ((int)(sizeof(shapes) / sizeof(shapes[0])))

enum rule { SGD, MOMENTUM, NESTEROV, ADAM, ADAMW, CLIP, RULES };
static const char *const names[RULES] = {"sgd_step", "sgd_step", "sgd_step", "adam_step", "adam_step", "gradient_clip"};

static const struct ql_clip clip = {.scale = 0.7, .limit = 3.5};
static const struct ql_sgd sgd = {.clip = {0.7, 3.5}, .lr = 0.01, .decay = 0.1};
static const struct ql_adam adam = {
	.clip = {0.7, 3.5}, .lr = 0.01, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = 0.05};

static void numbers_of(enum rule rule, int64_t step, double *k)
{
	const double none[NUMBERS] = {0.7, 3.5, 0.01, 0, 0.1, 0, 0, 0, 0, 1, 0};

	memcpy(k, none, sizeof(none));
	if (rule == MOMENTUM || rule == NESTEROV)
		k[3] = 0.9;
	k[10] = rule == NESTEROV;
	if (rule == CLIP)
		k[2] = k[4] = 0;
	if (rule != ADAM && rule != ADAMW)
		return;
	k[2] = 0.01 / (1 - pow(0.9, (double)step));
	k[3] = 0.999;
	k[4] = rule == ADAMW ? 0 : 0.05;
	k[5] = 1 - 0.9;
	k[6] = 1 - 0.999;
	k[7] = sqrt(1 - pow(0.999, (double)step));
	k[8] = 1e-8;
	k[9] = rule == ADAMW ? 1 - 0.01 * 0.05 : 1;
}

static enum ql_status step_core(enum rule rule, int n, struct ql_trained *list)
{
	struct ql_tensor *gradient[MOST];
	struct ql_sgd s = sgd;
	struct ql_adam a = adam;

	for (int i = 0; i < n; i++)
		gradient[i] = list[i].value;
	if (rule == CLIP)
		return ql_gradient_clip(ctx, n, gradient, &clip);
	a.decoupled = rule == ADAMW;
	if (rule == ADAM || rule == ADAMW)
		return ql_adam_step(ctx, n, list, &a);
	s.momentum = rule == SGD ? 0 : 0.9;
	s.nesterov = rule == NESTEROV;
	return ql_sgd_step(ctx, n, list, &s);
}

static void try_step(enum rule rule, int count, const struct shape *shape)
{
	int each = rule == CLIP ? 1 : rule == SGD ? 2 : rule < ADAM ? 3 : 4;
	struct pair p[MOST][4];
	struct ql_trained list[MOST] = {{0}};
	struct ql_gpu_tensor in[MOST * 4];
	double numbers[MOST * NUMBERS];
	struct ql_gpu_option option = {
		.name = "numbers", .type = QL_GPU_OPTION_NUMBERS, .n = count * NUMBERS, .numbers = numbers};
	struct ql_gpu_call call = gpu_call(names[rule], in, count * each, NULL, 0);

	call.options = &option;
	call.n_options = 1;
	for (int i = 0; i < count; i++) {
		const char *state = strcmp(shape[i].dtype, "float64") ? "float32" : "float64";

		for (int k = 0; k < each; k++) {
			p[i][k] = make(
				k < 2 ? shape[i].dtype : state, shape[i].n, k == 3, shape[i].before * (k < 2 ? 1 : 2));
			in[i * each + k] = p[i][k].gpu;
		}
		list[i] = (struct ql_trained){.value = p[i][0].core,
			.gradient = p[i][each > 1].core,
			.state = {each > 2 ? p[i][2].core : NULL, each > 3 ? p[i][3].core : NULL},
			.step = i + 1};
		numbers_of(rule, i + 1, numbers + i * NUMBERS);
	}
	CHECK(!step_core(rule, count, list), "%s", ctx->err);
	if (!CHECK(gpu_run(&g, call), "refused: %s", g.why))
		return;
	for (int i = 0; i < count; i++)
		for (int k = 0; k < each; k++) {
			CASE("%s, rule %d, %s of %d, operand %d", names[rule], (int)rule, shape[i].dtype,
				(int)shape[i].n, k);
			compare(&p[i][k], names[rule]);
			drop(&p[i][k]);
		}
}

/* ---- norms ---- */

static void try_norm(int count, const struct shape *shape, int64_t skip)
{
	struct pair p[MOST];
	struct ql_tensor *list[MOST];
	struct ql_gpu_tensor in[MOST + 1], out = gpu_tensor(&g, "float64", 0, NULL, NULL, 0);
	struct ql_gpu_option option = {.name = "first", .type = QL_GPU_OPTION_INTEGER, .i = skip};
	struct ql_gpu_call call = gpu_call("gradient_squares", in, count + 1, NULL, 0);
	int64_t chunks = skip;
	double want, got;

	call.options = &option;
	call.n_options = 1;
	for (int i = 0; i < count; i++) {
		p[i] = make(shape[i].dtype, shape[i].n, false, shape[i].before);
		in[i] = p[i].gpu;
		list[i] = p[i].core;
		chunks += (shape[i].n + CHUNK - 1) / CHUNK;
	}
	in[count] = gpu_tensor(&g, "float64", 1, &chunks, NULL, 0);
	g.v->fill(g.s, in[count].at, 0, in[count].bytes); /* the sums that are skipped */
	CHECK(!ql_gradient_norm(ctx, count, list, &want), "%s", ctx->err);
	CHECK(gpu_run(&g, call), "refused: %s", g.why);
	CHECK(gpu_run(&g, gpu_call("gradient_norm", &in[count], 1, &out, 1)), "refused: %s", g.why);
	gpu_get(&g, &out, &got);
	CASE("norm of %d tensors, the first %s of %d", count, shape[0].dtype, (int)shape[0].n);
	CHECK(got == want, "%.17g, wanted %.17g", got, want);
	for (int i = 0; i < count; i++)
		drop(&p[i]);
	gpu_free(&g, &in[count]);
	gpu_free(&g, &out);
}

/* The root of many sums, which differ so that their order is seen. */
static void try_root(int64_t n)
{
	double *sums = check_alloc((size_t)n * sizeof(*sums) + 1), want = 0, got;
	struct ql_gpu_tensor in, out = gpu_tensor(&g, "float64", 0, NULL, NULL, 0);

	for (int64_t i = 0; i < n; i++) {
		sums[i] = ldexp((double)gpu_draw() + 1, (int)(gpu_draw() % 40));
		want += sums[i];
	}
	in = gpu_tensor(&g, "float64", 1, &n, sums, 0);
	CHECK(gpu_run(&g, gpu_call("gradient_norm", &in, 1, &out, 1)), "refused: %s", g.why);
	gpu_get(&g, &out, &got);
	CHECK(got == sqrt(want), "root of %d sums: %.17g, wanted %.17g", (int)n, got, sqrt(want));
	gpu_free(&g, &in);
	gpu_free(&g, &out);
	free(sums);
}

static void norms(void)
{
	const struct shape large[] = {{"float32", 3 * CHUNK + 17, 4}, {"bfloat16", CHUNK + 1025, 0},
		{"float64", CHUNK + 5, 0}, {"float16", 1023, 2}, {"float32", CHUNK, 0}, {"bfloat16", 1, 0}};

	try_norm(SHAPES, shapes, 0);
	try_norm(6, large, 3);
	for (int i = 0; i < 6; i++)
		try_norm(1, &large[i], 0);
	for (int64_t n = 0; n < 70; n += n < 30 ? 15 : 1)
		try_root(n);
}

/* ---- refusals ---- */

static void refusals(void)
{
	const int64_t n = 8;
	double numbers[NUMBERS] = {1};
	struct ql_gpu_option option = {
		.name = "numbers", .type = QL_GPU_OPTION_NUMBERS, .n = NUMBERS, .numbers = numbers};
	struct ql_gpu_tensor in[4];
	struct ql_gpu_call call = gpu_call("adam_step", in, 4, NULL, 0);

	call.options = &option;
	call.n_options = 1;
	for (int i = 0; i < 4; i++)
		in[i] = gpu_tensor(&g, i == 3 ? "float16" : "float32", 1, &n, NULL, 0);
	CHECK(!gpu_run(&g, call) && strstr(g.why, "dtypes"), "%s", g.why);
	in[3].dtype = "float32";
	in[3].shape[0] = 4;
	CHECK(!gpu_run(&g, call) && strstr(g.why, "sizes"), "%s", g.why);
	call.n_in = 3;
	CHECK(!gpu_run(&g, call) && strstr(g.why, "at most"), "%s", g.why);
	call.n_options = 0;
	CHECK(!gpu_run(&g, call) && strstr(g.why, "numbers"), "%s", g.why);
	in[0].stride[0] = 0;
	call = gpu_call("gradient_clip", in, 1, NULL, 0);
	call.options = &option;
	call.n_options = 1;
	CHECK(!gpu_run(&g, call) && strstr(g.why, "dense"), "%s", g.why);
	for (int i = 0; i < 4; i++)
		gpu_free(&g, &in[i]);
}

int main(void)
{
	ctx = ql_ctx_new(1);
	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	for (int o = 0; o < ORDERS; o++) {
		CASE("threads %s", gpu_order(o));
		for (int rule = 0; rule < RULES; rule++) {
			try_step((enum rule)rule, SHAPES, shapes);
			try_step((enum rule)rule, 1, &shapes[o]);
		}
		norms();
	}
	refusals();
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
