/* SPDX-License-Identifier: MIT
 * The kernels attention and attention_back: ordered against nn/attention_f32.c with ordered products, equal bits, NaN and
 * infinities included; else against nn/attention_f64.c.
 */
#include "nn/attention.h"
#include "tensor/kernels/kernels.h"
#include "tests/tools/gpu_device.h"

static struct gpu g;
static struct ql_ctx *ctx;

static const struct shape {
	int64_t batches, heads, shared, queries, keys, d, e;
	bool causal, joined;
} shapes[] = {
	{1, 1, 1, 1, 1, 1, 1, false, false},
	{2, 2, 1, 37, 37, 16, 16, true, true},
	{1, 2, 1, 5, 70, 33, 20, true, false},
	{1, 2, 2, 1, 300, 64, 64, true, false},
	{1, 3, 1, 50, 40, 40, 70, false, true},
	{1, 1, 1, 34, 65, 100, 128, true, true},
	{1, 1, 1, 3, 33, 200, 256, true, false},
	{1, 4, 1, 3, 5, 8, 3, false, false},
	{1, 2, 2, 0, 5, 8, 8, true, false},
	{1, 1, 1, 7, 5500, 4, 4, true, false},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))
#define FEW 5 /* in the other orders */

/* One operand, dense: on the device, as floats and as doubles. */
struct side {
	int64_t heads, rows, width, n;
	struct ql_gpu_tensor t;
	float *f;
	double *wide;
};

static struct side side_of(const struct shape *s, int64_t heads, int64_t rows, int64_t width, bool data)
{
	struct side a = {.heads = heads, .rows = rows, .width = width, .n = s->batches * heads * rows * width};
	int64_t split[4] = {s->batches, heads, rows, width}, joined[3] = {s->batches, rows, heads * width};

	a.f = check_alloc((size_t)a.n * sizeof(*a.f) + 8);
	a.wide = check_alloc((size_t)a.n * sizeof(*a.wide) + 8);
	for (int64_t i = 0; data && i < a.n; i++)
		a.wide[i] = (double)(a.f[i] = gpu_draw_float() / 4);
	a.t = gpu_tensor(&g, "float32", s->joined ? 3 : 4, s->joined ? joined : split, data ? a.f : NULL, 0);
	return a;
}

static void release(struct side *a)
{
	gpu_free(&g, &a->t);
	free(a->f);
	free(a->wide);
}

static struct ql_heads heads_at(const struct shape *s, const struct side *a, bool wide)
{
	void *data = wide ? (void *)a->wide : (void *)a->f;
	int64_t each = a->heads * a->rows * a->width;

	return s->joined ? (struct ql_heads){data, each, a->width, a->heads * a->width}
			 : (struct ql_heads){data, each, a->rows * a->width, a->width};
}

enum { Q, K, V, G, O, DQ, DK, DV, SIDES };

static struct ql_attention call_of(const struct shape *s, const struct side *a, bool wide)
{
	return (struct ql_attention){.batches = s->batches,
		.heads = s->heads,
		.shared = s->shared,
		.queries = s->queries,
		.keys = s->keys,
		.d = s->d,
		.e = s->e,
		.scale = 0.3,
		.causal = s->causal,
		.q = heads_at(s, &a[Q], wide),
		.k = heads_at(s, &a[K], wide),
		.v = heads_at(s, &a[V], wide),
		.g = heads_at(s, &a[G], wide),
		.o = heads_at(s, &a[O], wide),
		.dq = heads_at(s, &a[DQ], wide),
		.dk = heads_at(s, &a[DK], wide),
		.dv = heads_at(s, &a[DV], wide)};
}

static void compare(const char *what, size_t shape, const struct side *a, bool ordered)
{
	float *got = check_alloc((size_t)a->n * sizeof(*got) + 8);

	gpu_get(&g, &a->t, got);
	for (int64_t i = 0; i < a->n; i++)
		if (!CHECK(ordered ? gpu_same_f32(got[i], a->f[i])
				   : fabs((double)got[i] - a->wide[i]) <= 2e-5 + 2e-5 * fabs(a->wide[i]),
			    "%s of shape %d, element %d: %.9g, wanted %.9g", what, (int)shape, (int)i, (double)got[i],
			    ordered ? (double)a->f[i] : a->wide[i]))
			break;
	free(got);
}

/* Runs both ops; false: refused. */
static bool run(const struct shape *s, const struct side *a, bool ordered)
{
	struct ql_gpu_option o[] = {{.name = "causal", .i = s->causal},
		{.name = "scale", .type = QL_GPU_OPTION_NUMBER, .f = 0.3}, {.name = "heads", .i = s->heads}};
	struct ql_gpu_tensor in[4] = {a[G].t, a[Q].t, a[K].t, a[V].t}, out[3] = {a[DQ].t, a[DK].t, a[DV].t};
	struct ql_gpu_call forward = gpu_call("attention", in + 1, 3, &a[O].t, 1),
			   back = gpu_call("attention_back", in, 4, out, 3);

	forward.options = back.options = o;
	forward.n_options = back.n_options = s->joined ? 3 : 2;
	forward.flags = back.flags = ordered ? QL_GPU_ORDERED : 0;
	return (gpu_run(&g, forward) && gpu_run(&g, back)) || CHECK(false, "refused: %s", g.why);
}

/* A number that is none in the keys, and an infinite one among the values. */
static void spoil(struct side *a)
{
	a[K].f[a[K].n * 3 / 4] = NAN;
	a[V].f[a[V].n * 2 / 3] = INFINITY;
	g.v->to_device(g.s, a[K].t.at, a[K].f, a[K].t.bytes);
	g.v->to_device(g.s, a[V].t.at, a[V].f, a[V].t.bytes);
}

static void attend(size_t i, bool ordered, bool special)
{
	const struct shape *s = &shapes[i];
	struct side a[SIDES] = {side_of(s, s->heads, s->queries, s->d, true),
		side_of(s, s->shared, s->keys, s->d, true), side_of(s, s->shared, s->keys, s->e, true),
		side_of(s, s->heads, s->queries, s->e, true), side_of(s, s->heads, s->queries, s->e, false),
		side_of(s, s->heads, s->queries, s->d, false), side_of(s, s->shared, s->keys, s->d, false),
		side_of(s, s->shared, s->keys, s->e, false)};
	struct ql_attention c = call_of(s, a, !ordered);

	if (special)
		spoil(a);
	if (ordered)
		CHECK(!ql_attention_f32(ctx, &c) && !ql_attention_f32_backward(ctx, &c), "%s", ctx->err);
	else
		CHECK(!ql_attention_f64(ctx, &c) && !ql_attention_f64_backward(ctx, &c), "%s", ctx->err);
	if (run(s, a, ordered)) {
		compare("attention", i, &a[O], ordered);
		compare("dq", i, &a[DQ], ordered);
		compare("dk", i, &a[DK], ordered);
		compare("dv", i, &a[DV], ordered);
	}
	for (int k = 0; k < SIDES; k++)
		release(&a[k]);
}

static void refusals(void)
{
	const struct shape wide = {1, 1, 1, 2, 2, 257, 3, false, false};
	struct side a[3] = {
		side_of(&wide, 1, 2, 257, true), side_of(&wide, 1, 2, 257, true), side_of(&wide, 1, 2, 3, true)};
	struct side o = side_of(&wide, 1, 2, 3, false);
	struct ql_gpu_tensor in[3] = {a[0].t, a[1].t, a[2].t};

	CHECK(!gpu_run(&g, gpu_call("attention", in, 3, &o.t, 1)) && strstr(g.why, "256"), "%s", g.why);
	in[0].dtype = "float64";
	CHECK(!gpu_run(&g, gpu_call("attention", in, 3, &o.t, 1)) && strstr(g.why, "32 bits"), "%s", g.why);
	for (int i = 0; i < 3; i++)
		release(&a[i]);
	release(&o);
}

int main(void)
{
	ctx = ql_ctx_new(1);
	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	ctx->kernels = ql_kernels_ordered();
	for (int o = 0; o < ORDERS; o++) {
		CASE("ordered, threads %s", gpu_order(o));
		for (size_t i = 0; i < (o ? FEW : SHAPES); i++)
			attend(i, true, false);
		CASE("in order with NaN and infinity, threads %s", gpu_order(o));
		for (size_t i = 1; i < 4; i++)
			attend(i, true, true);
		CASE("fast, threads %s", gpu_order(o));
		for (size_t i = 0; i < (o ? FEW : SHAPES); i++)
			attend(i, false, false);
	}
	CASE("refusals");
	refusals();
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
