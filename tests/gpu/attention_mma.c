/* SPDX-License-Identifier: MIT
 * The kernels attention_mma and attention_few: 16-bit floats, and few queries to many keys, against nn/attention_f64.c. Weights are
 * rounded to the type of the values by attention_mma.
 */
#include "nn/attention.h"
#include "tests/tools/gpu_device.h"

static struct gpu g;
static struct ql_ctx *ctx;

static const struct shape {
	int64_t batches, heads, shared, queries, keys, d, e;
	bool causal, joined;
	int pad; /* unused numbers behind each row: lines that cannot be read 16 bytes at a time */
} shapes[] = {
	{1, 1, 1, 5, 3, 16, 16, false, false, 0},
	{2, 2, 1, 70, 150, 40, 24, true, false, 0},
	{1, 2, 2, 33, 33, 64, 64, true, true, 0},
	{1, 2, 1, 140, 200, 128, 128, true, false, 0},
	{1, 1, 1, 9, 70, 13, 7, true, false, 3},
	{1, 1, 1, 66, 130, 200, 256, false, false, 0},
	{1, 1, 1, 1, 1, 1, 1, false, false, 0},
	{2, 6, 2, 1, 700, 64, 64, true, false, 0},
	{1, 4, 1, 3, 300, 128, 40, true, true, 0},
	{1, 1, 1, 1, 1100, 256, 256, false, false, 0},
	{1, 2, 1, 2, 140, 33, 20, true, false, 5},
	{1, 1, 1, 4, 4, 16, 16, true, false, 0},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static const struct type {
	const char *name;
	double near;
} types[] = {{"float16", 2e-3}, {"bfloat16", 1.6e-2}, {"float32", 2e-5}};

/* One operand or result: dense numbers with the device's rounding, the rows on the device `pad` numbers longer. */
struct side {
	int64_t heads, rows, width, n;
	struct ql_gpu_tensor t;
	double *wide;
};

static float rounded(const char *type, float x, uint16_t *half)
{
	*half = type[0] == 'b' ? ql_f32_to_bf16(x) : ql_f32_to_f16(x);
	return !strcmp(type, "float32") ? x : type[0] == 'b' ? ql_bf16_to_f32(*half) : ql_f16_to_f32(*half);
}

static struct side side_of(
	const struct shape *s, const char *type, int64_t heads, int64_t rows, int64_t width, bool data)
{
	struct side a = {.heads = heads, .rows = rows, .width = width, .n = s->batches * heads * rows * width};
	int64_t line = (s->joined ? heads * width : width) + (data ? s->pad : 0),
		lines = a.n ? a.n / (line - (data ? s->pad : 0)) : 0;
	int64_t split[4] = {s->batches, heads, rows, line}, joined[3] = {s->batches, rows, line};
	float *f = check_alloc((size_t)(lines * line) * sizeof(*f) + 8);
	uint16_t *half = check_alloc((size_t)(lines * line) * sizeof(*half) + 8);

	a.wide = check_alloc((size_t)a.n * sizeof(*a.wide) + 8);
	for (int64_t i = 0; i < lines * line; i++) {
		f[i] = rounded(type, gpu_draw_float() / 4, &half[i]);
		if (i % line < line - (data ? s->pad : 0))
			a.wide[i / line * (line - (data ? s->pad : 0)) + i % line] = (double)f[i];
	}
	a.t = gpu_tensor(&g, type, s->joined ? 3 : 4, s->joined ? joined : split,
		!data                      ? NULL
		: !strcmp(type, "float32") ? (const void *)f
					   : (const void *)half,
		0);
	a.t.shape[s->joined ? 2 : 3] = line - (data ? s->pad : 0);
	free(f);
	free(half);
	return a;
}

static struct ql_heads heads_at(const struct shape *s, const struct side *a)
{
	int64_t each = a->heads * a->rows * a->width;

	return s->joined ? (struct ql_heads){a->wide, each, a->width, a->heads * a->width}
			 : (struct ql_heads){a->wide, each, a->rows * a->width, a->width};
}

static void compare(size_t shape, const struct type *type, const struct side *o)
{
	void *got = check_alloc((size_t)o->n * 4 + 8);

	gpu_get(&g, &o->t, got);
	for (int64_t i = 0; i < o->n; i++) {
		uint16_t half = ((uint16_t *)got)[i];
		double x = !strcmp(type->name, "float32")   ? (double)((float *)got)[i]
			   : !strcmp(type->name, "float16") ? (double)ql_f16_to_f32(half)
							    : (double)ql_bf16_to_f32(half);

		if (!CHECK(fabs(x - o->wide[i]) <= type->near * (1 + fabs(o->wide[i])),
			    "%s, shape %d, element %d: %.9g, wanted %.9g", type->name, (int)shape, (int)i, x,
			    o->wide[i]))
			break;
	}
	free(got);
}

static void attend(size_t i, const struct type *type)
{
	const struct shape *s = &shapes[i];
	struct side q = side_of(s, type->name, s->heads, s->queries, s->d, true),
		    k = side_of(s, type->name, s->shared, s->keys, s->d, true),
		    v = side_of(s, type->name, s->shared, s->keys, s->e, true),
		    o = side_of(s, type->name, s->heads, s->queries, s->e, false);
	struct ql_attention c = {.batches = s->batches,
		.heads = s->heads,
		.shared = s->shared,
		.queries = s->queries,
		.keys = s->keys,
		.d = s->d,
		.e = s->e,
		.scale = 0.3,
		.causal = s->causal,
		.q = heads_at(s, &q),
		.k = heads_at(s, &k),
		.v = heads_at(s, &v),
		.o = heads_at(s, &o)};
	struct ql_gpu_option options[] = {{.name = "causal", .i = s->causal},
		{.name = "scale", .type = QL_GPU_OPTION_NUMBER, .f = 0.3}, {.name = "heads", .i = s->heads}};
	struct ql_gpu_tensor in[3] = {q.t, k.t, v.t};
	struct ql_gpu_call call = gpu_call("attention", in, 3, &o.t, 1);

	call.options = options;
	call.n_options = s->joined ? 3 : 2;
	CHECK(!ql_attention_f64(ctx, &c), "%s", ctx->err);
	if (CHECK(gpu_run(&g, call), "refused: %s", g.why)) {
		const char *name = s->queries <= 4 ? "attention_few" : "attention_mma";

		CHECK(!strcmp(g.name, type->near > 1e-4 || s->queries <= 4 ? name : "attention"), "%s ran", g.name);
		compare(i, type, &o);
	}
	gpu_free(&g, &q.t);
	gpu_free(&g, &k.t);
	gpu_free(&g, &v.t);
	gpu_free(&g, &o.t);
	free(q.wide);
	free(k.wide);
	free(v.wide);
	free(o.wide);
}

int main(void)
{
	ctx = ql_ctx_new(1);
	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	for (int o = 0; o < ORDERS; o++) {
		gpu_order(o);
		for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
			CASE("%s, threads %s", types[t].name, gpu_order(o));
			for (size_t i = 0; i < SHAPES; i++)
				if (o == 0 || i % 3 == t)
					attend(i, &types[t]);
		}
	}
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
