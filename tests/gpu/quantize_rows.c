/* SPDX-License-Identifier: MIT
 * The kernel quantize_rows against the core: scales, zero points, codes and counts of rows have equal bits, for float32, float16
 * and bfloat16, rows of one and of several vectors for a thread, values halfway between two codes, infinite ones and NaN, all
 * ranges of scales; and what it leaves to quantize.
 */
#include "tests/tools/gpu_codes.h"

static struct gpu g;

enum data { PLAIN, HALFWAY, SPECIAL, LARGE, TINY, NOTHING, KINDS };

/* Element j of row i. */
static float value(enum data kind, int64_t i, int64_t j)
{
	float scale = 1 / (float)(3 + 2 * i);

	switch (kind) {
	case HALFWAY: return j == 0 ? 127 * scale : ((float)(j % 253) - 126.5f) * scale;
	case SPECIAL:
		return gpu_draw() % 7 ? gpu_draw_float() : gpu_draw() % 2 ? NAN : gpu_draw() % 2 ? INFINITY : -INFINITY;
	case LARGE: return gpu_draw_float() * 4.2e37f;
	case TINY: return gpu_draw_float() * 1e-38f;
	case NOTHING: return i ? 0.0f : NAN;
	default: return gpu_draw_float() + (float)i;
	}
}

static struct ql_tensor *made(struct ql_ctx *ctx, enum ql_dtype dtype, int64_t rows, int64_t length, enum data kind)
{
	struct ql_tensor *x = NULL, *y = NULL;

	if (ql_tensor_new(ctx, QL_float32, 2, (const int64_t[]){rows, length}, &x))
		return NULL;
	for (int64_t i = 0; i < rows * length; i++)
		((float *)ql_tensor_data(x))[i] = value(kind, i / length, i % length);
	if (ql_tensor_cast(ctx, x, dtype, &y))
		y = NULL;
	ql_tensor_release(ctx, x);
	return y;
}

static void expect(const struct gpu_codes *c, const struct ql_tensor *want)
{
	int64_t counts[2];

	gpu_expect(&g, &c->scale, want->q->scale, "scale");
	if (want->q->zero_point)
		gpu_expect(&g, &c->zero, want->q->zero_point, "zero point");
	gpu_expect(&g, &c->t, want, "code");
	g.v->to_host(g.s, counts, c->counts, sizeof(counts));
	CHECK(counts[0] == want->q->nan_count && counts[1] == want->q->inf_count, "%d NaN, %d infinite", (int)counts[0],
		(int)counts[1]);
}

static void try_rows(
	struct ql_ctx *ctx, enum ql_dtype dtype, const char *text, int64_t rows, int64_t length, enum data kind)
{
	struct ql_tensor *x = made(ctx, dtype, rows, length, kind), *want = NULL;
	struct ql_spec spec;
	struct ql_gpu_tensor in;
	struct gpu_codes c;

	if (!CHECK(x && !ql_spec_parse(ctx, text, &spec) && !ql_quantize(ctx, x, &spec, &want), "%s", ctx->err))
		return;
	in = gpu_of_core(&g, x, true);
	gpu_codes_of(&g, &c, want, true);
	if (CHECK(gpu_run(&g, gpu_call("quantize", &in, 1, &c.t, 1)), "refused: %s", g.why) &&
		CHECK(!strcmp(g.name, "quantize_rows"), "%s ran", g.name))
		expect(&c, want);
	gpu_codes_free(&g, &c);
	gpu_free(&g, &in);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, want);
}

/* Rows that begin anywhere or are longer than the registers of a block go to quantize, with the same results. */
static void others(struct ql_ctx *ctx)
{
	static const int64_t lengths[] = {7, 12, 8200};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct ql_tensor *x = made(ctx, QL_float32, 2, lengths[i], PLAIN), *want = NULL;
		struct ql_spec spec;
		struct ql_gpu_tensor in;
		struct gpu_codes c;

		if (!CHECK(x && !ql_spec_parse(ctx, "int8/1", &spec) && !ql_quantize(ctx, x, &spec, &want), "%s",
			    ctx->err))
			return;
		in = gpu_of_core(&g, x, true);
		gpu_codes_of(&g, &c, want, true);
		if (CHECK(gpu_run(&g, gpu_call("quantize", &in, 1, &c.t, 1)), "refused: %s", g.why) &&
			CHECK(!strcmp(g.name, "quantize"), "%s ran", g.name))
			expect(&c, want);
		gpu_codes_free(&g, &c);
		gpu_free(&g, &in);
		ql_tensor_release(ctx, x);
		ql_tensor_release(ctx, want);
	}
}

int main(void)
{
	static const enum ql_dtype dtypes[] = {QL_float16, QL_bfloat16, QL_float32};
	static const int64_t shapes[][2] = {{3, 8}, {37, 200}, {2, 2056}, {5, 8192}};
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	ctx->quant = &ql_quant_default;
	for (int o = 0; o < ORDERS; o++)
		for (int d = 0; d < 3; d++) {
			CASE("%s, threads %s", ql_dtype_name(dtypes[d]), gpu_order(o));
			for (int s = 0; s < 4; s++)
				for (int k = 0; k < (s == 1 ? KINDS : 1); k++)
					try_rows(ctx, dtypes[d], (s + k + o) % 2 ? "uint8/1" : "int8/1", shapes[s][0],
						shapes[s][1], s == 1 ? (enum data)k : (enum data)(o % 2));
		}
	CASE("a row of 16384");
	try_rows(ctx, QL_float16, "int8/1", 1, 16384, PLAIN);
	CASE("other rows");
	others(ctx);
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
