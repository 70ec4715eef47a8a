/* SPDX-License-Identifier: MIT
 * The kernel observe against the observer of the core: after several tensors counts, window and moments have equal bits.
 */
#include "quant/ranges/observe.h"
#include "tests/tools/gpu_codes.h"

#define MOMENTS 8

static struct gpu g;

/* Batches of this many values, each `scale` times as large as the usual ones. */
struct batch {
	int64_t n;
	float scale;
	int special; /* one of so many is NaN or infinite; 0: none, 1: all */
};

static const struct batch growing[] = {
	{1, 1, 0}, {17, 0.001f, 0}, {1024, 1, 50}, {1040, 100, 7}, {5000, 1e-20f, 0}, {3000, 1e30f, 9}, {33, 1, 0}};
static const struct batch large[] = {{131072, 1, 0}, {70001, 3, 1000}, {600011, 0.5f, 300}};
static const struct batch odd[] = {{100, 1, 1}, {100, 0, 0}, {15, 1e-44f, 3}, {16, 2, 0}, {2047, 1, 0}};

static float *values_of(const struct batch *b)
{
	static const float bad[] = {NAN, INFINITY, -INFINITY};
	float *x = check_alloc((size_t)b->n * sizeof(*x));

	for (int64_t i = 0; i < b->n; i++) {
		x[i] = gpu_draw_float() * gpu_draw_float() * b->scale;
		if (b->special && gpu_draw() % (uint32_t)b->special == 0)
			x[i] = bad[gpu_draw() % 3];
	}
	return x;
}

static bool add(const struct ql_observer *o, const struct batch *b, const float *x, struct ql_gpu_tensor *counts,
	struct ql_gpu_tensor *moments)
{
	struct ql_gpu_tensor in[3] = {gpu_tensor(&g, "float32", 1, &b->n, x, 4), *counts, *moments};
	const struct ql_gpu_option options[] = {{.name = "parts", .i = ql_observe_parts(b->n)},
		{.name = "shift", .i = o->ruler.shift}, {.name = "per_octave", .i = o->ruler.per_octave},
		{.name = "octaves", .i = QL_HISTOGRAM_OCTAVES}};
	struct ql_gpu_call call = gpu_call("observe", in, 3, NULL, 0);
	bool good;

	call.options = options;
	call.n_options = 4;
	good = CHECK(gpu_run(&g, call), "refused: %s", g.why);
	gpu_free(&g, &in[0]);
	return good;
}

static void expect(const struct ql_observer *o, const struct ql_gpu_tensor *counts, const struct ql_gpu_tensor *moments)
{
	const struct ql_histogram *h = &o->seen[0].histogram;
	const double want[MOMENTS] = {(double)h->moments.count, (double)h->moments.nonfinite, h->moments.lo,
		h->moments.hi, h->moments.sum, h->moments.sumsq, h->moments.sumabs, h->low};
	int64_t cells = 2 * (int64_t)o->ruler.cells, *n = check_alloc((size_t)cells * sizeof(*n));
	double m[MOMENTS];

	gpu_get(&g, counts, n);
	gpu_get(&g, moments, m);
	for (int i = 0; i < MOMENTS; i++)
		CHECK(m[i] == want[i], "moment %d is %.17g, wanted %.17g", i, m[i], want[i]);
	for (int64_t i = 0; i < cells; i++)
		if (!CHECK((double)n[i] == h->weight[i], "cell %d has %d values, wanted %d", (int)i, (int)n[i],
			    (int)h->weight[i]))
			break;
	free(n);
}

static void try_batches(struct ql_ctx *ctx, const char *what, const char *text, const struct batch *b, int n)
{
	struct ql_spec spec;
	struct ql_observer *o = NULL;
	struct ql_gpu_tensor counts, moments;
	int64_t cells, eight = MOMENTS;
	void *zeros;

	if (!CHECK(!ql_spec_parse(ctx, text, &spec) && !ql_observer_new(ctx, &spec, &o), "%s", ctx->err))
		return;
	cells = 2 * (int64_t)o->ruler.cells;
	zeros = check_alloc((size_t)cells * 8);
	memset(zeros, 0, (size_t)cells * 8);
	counts = gpu_tensor(&g, "int64", 1, &cells, zeros, 0);
	moments = gpu_tensor(&g, "float64", 1, &eight, zeros, 0);
	for (int i = 0; i < n; i++) {
		float *x = values_of(&b[i]);
		struct ql_tensor *t = NULL;

		CASE("%s %s, batch %d", what, text, i + 1);
		if (!ql_tensor_new(ctx, QL_float32, 1, &b[i].n, &t) &&
			memcpy(ql_tensor_data(t), x, (size_t)b[i].n * sizeof(*x)) &&
			CHECK(!ql_observer_update(ctx, o, t), "%s", ctx->err) && add(o, &b[i], x, &counts, &moments))
			expect(o, &counts, &moments);
		ql_tensor_release(ctx, t);
		free(x);
	}
	gpu_free(&g, &counts);
	gpu_free(&g, &moments);
	free(zeros);
	ql_observer_free(ctx, o);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	ctx->quant = &ql_quant_default;
	for (int o = 0; o < ORDERS; o++) {
		gpu_order(o);
		try_batches(ctx, "growing", "int8", growing, 7);
		try_batches(ctx, "odd", "uint8@percentile", odd, 5);
		try_batches(ctx, "large", "int8", large, o ? 2 : 3);
	}
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
