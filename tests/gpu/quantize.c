/* SPDX-License-Identifier: MIT
 * The kernels quantize and dequantize against the formulas, written out here for one scale, and against the core for every
 * granularity and format, packed or not: scales, zero points, codes and counts have equal bits.
 */
#include "tests/tools/gpu_codes.h"

extern const struct ql_scheme ql_scheme_symmetric;

static struct gpu g;
static char kernel[64]; /* that quantized last */

static const struct view views[] = {
	{"rows", 2, {7, 130}, {130, 1}, 0, 0},
	{"transposed", 2, {30, 40}, {1, 30}, 3, 0},
	{"three axes", 3, {5, 6, 33}, {198, 33, 1}, 1, 0},
	{"narrowed", 3, {4, 9, 17}, {500, 20, 1}, 7, 0},
	{"one row", 2, {1, 2500}, {2500, 1}, 0, 0},
	{"one column", 2, {300, 1}, {3, 1}, 0, 0},
	{"expanded", 2, {6, 70}, {0, 1}, 9, 0},
	{"empty", 2, {0, 4}, {4, 1}, 0, 0},
};
#define VIEWS (sizeof(views) / sizeof(views[0]))

static const char *const specs[] = {"int8", "uint8", "int16", "uint16", "int8/1", "uint8/1", "int8/2", "uint8/2",
	"int16/2", "int8:16", "uint8:7", "int8/1:4", "uint8/1:3", "int16:32", "uint16/1:2", "int4/1", "uint4:32",
	"int6", "int3/2", "uint5", "int2:8", "int4:64", "uint3:9", "int4/1:3", "uint4", "nf4:16", "nf4/1:5", "af4:8",
	"fp8_e4m3", "fp8_e5m2/1", "fp8_e4m3:32", "fp6_e3m2/2", "fp6_e2m3:4", "fp4_e2m1:8", "fp4_e2m1", "dynamic8:32",
	"fp8_e5m2 saturate=false"};
#define SPECS (sizeof(specs) / sizeof(specs[0]))

enum data { SMALL, SPECIAL, HUGE_VALUES, TINY, ZEROS, KINDS };

static void fill(float *x, enum data kind)
{
	view_fill("float32", x, kind == SPECIAL);
	for (int i = 0; i < VIEW_BUFFER; i++)
		x[i] *= kind == HUGE_VALUES ? 4.2e37f : kind == TINY ? 1e-38f : kind == ZEROS ? 0.0f : 1.0f;
}

static void expect_counts(const struct gpu_codes *c, const struct ql_tensor *want)
{
	int64_t counts[2];

	g.v->to_host(g.s, counts, c->counts, sizeof(counts));
	CHECK(counts[0] == want->q->nan_count && counts[1] == want->q->inf_count,
		"%d NaN, %d infinite; wanted %d and %d", (int)counts[0], (int)counts[1], (int)want->q->nan_count,
		(int)want->q->inf_count);
}

static void expect_half(const struct ql_gpu_tensor *in, const struct gpu_codes *c, const struct ql_tensor *want)
{
	struct ql_gpu_tensor answer = gpu_tensor(&g, "int32", 0, NULL, NULL, 0);
	struct ql_gpu_codes codes = c->codes;
	int32_t half = -1;

	codes.scale = codes.zero_point = NULL;
	answer.codes = &codes;
	if (!gpu_run(&g, gpu_call("blocks_fit_half", in, 1, &answer, 1)))
		CHECK(false, "%s", g.why);
	gpu_get(&g, &answer, &half);
	CHECK(half == (ql_dtypes[want->q->scale->dtype].bits == 16), "blocks_fit_half is %d", (int)half);
	gpu_free(&g, &answer);
}

static void try_find(const struct ql_gpu_tensor *in, const struct ql_tensor *want)
{
	struct gpu_codes c;

	gpu_codes_of(&g, &c, want, true);
	if (gpu_run(&g, gpu_call("quantize", in, 1, &c.t, 1))) {
		snprintf(kernel, sizeof(kernel), "%s", g.name);
		gpu_expect(&g, &c.scale, want->q->scale, "scale");
		if (want->q->zero_point)
			gpu_expect(&g, &c.zero, want->q->zero_point, "zero point");
		gpu_expect(&g, &c.t, want, "code");
		expect_counts(&c, want);
	} else {
		CHECK(false, "refused: %s", g.why);
	}
	if (want->q->block && ql_dtypes[want->dtype].bits <= 8 && !(want->q->format && want->q->format->scale))
		expect_half(in, &c, want);
	gpu_codes_free(&g, &c);
}

static void try_given(struct ql_ctx *ctx, const struct ql_gpu_tensor *in, struct ql_tensor *want)
{
	struct gpu_codes c;
	struct ql_tensor *real = NULL;
	struct ql_gpu_tensor out = gpu_tensor(&g, "float32", want->rank, want->shape, NULL, 0);

	gpu_codes_of(&g, &c, want, false);
	g.v->fill(g.s, c.t.at, 0x55, c.t.bytes);
	if (gpu_run(&g, gpu_call("encode", in, 1, &c.t, 1)))
		gpu_expect(&g, &c.t, want, "code under a given scale");
	else
		CHECK(false, "refused: %s", g.why);
	if (CHECK(gpu_run(&g, gpu_call("dequantize", &c.t, 1, &out, 1)), "refused: %s", g.why) &&
		!ql_decode(ctx, want, &real))
		gpu_expect(&g, &out, real, "value");
	ql_tensor_release(ctx, real);
	gpu_free(&g, &out);
	gpu_codes_free(&g, &c);
}

static void try_spec(struct ql_ctx *ctx, const struct view *v, const char *text, bool symmetric, enum data kind)
{
	static float data[VIEW_BUFFER];
	struct ql_spec spec;
	struct ql_gpu_tensor in;
	struct ql_tensor *x, *want = NULL;

	fill(data, kind);
	x = view_core(ctx, v, "float32", data);
	if (!CHECK(x && !ql_spec_parse(ctx, text, &spec), "%s: %s", text, ctx->err))
		return;
	if (symmetric)
		spec.scheme = &ql_scheme_symmetric;
	if (CHECK(!ql_quantize(ctx, x, &spec, &want), "%s of %s: %s", text, v->what, ctx->err)) {
		in = view_gpu(&g, v, "float32", data);
		CASE("%s%s of %s, data %d", text, symmetric ? " symmetric" : "", v->what, (int)kind);
		try_find(&in, want);
		try_given(ctx, &in, want);
		gpu_free(&g, &in);
	}
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, want);
}

static void try_specs(struct ql_ctx *ctx, bool all)
{
	for (size_t v = 0; v < VIEWS; v++)
		for (size_t s = 0; s < SPECS; s++)
			for (int kind = 0; kind < (all && v < 2 ? KINDS : 2); kind++) {
				try_spec(ctx, &views[v], specs[s], false, (enum data)kind);
				if (specs[s][0] == 'u' && all)
					try_spec(ctx, &views[v], specs[s], true, (enum data)kind);
			}
}

/* ---- blocks that fill rows: one pass ---- */

static void try_blocks(struct ql_ctx *ctx, const char *dtype, const char *text, enum data kind)
{
	static const struct view rows = {"whole blocks", 2, {9, 256}, {256, 1}, 0, 0};
	static float data[VIEW_BUFFER];
	static char stored[VIEW_BUFFER * sizeof(float)];
	struct ql_spec spec;
	struct ql_gpu_tensor in;
	struct ql_tensor *x, *want = NULL;
	double wide[VIEW_BUFFER];

	fill(data, kind);
	for (int i = 0; i < VIEW_BUFFER; i++)
		wide[i] = (double)data[i];
	ql_dtypes[ql_dtype_by_name(dtype)].from_f64(stored, 0, 1, VIEW_BUFFER, wide);
	x = view_core(ctx, &rows, dtype, stored);
	CASE("%s of %s in whole blocks, data %d", text, dtype, (int)kind);
	if (!CHECK(x && !ql_spec_parse(ctx, text, &spec) && !ql_quantize(ctx, x, &spec, &want), "%s", ctx->err))
		return;
	in = view_gpu(&g, &rows, dtype, stored);
	try_find(&in, want);
	CHECK(!strcmp(kernel, "quantize_blocks"), "by %s", kernel);
	gpu_free(&g, &in);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, want);
}

static void whole_blocks(struct ql_ctx *ctx)
{
	static const char *const dtypes[] = {"float32", "float16", "bfloat16"};
	static const char *const texts[] = {
		"int8:16", "int8:32", "uint8:64", "int4:128", "uint4:32", "int4:16", "int8:256"};

	for (size_t d = 0; d < 3; d++)
		for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
			for (int kind = 0; kind < KINDS; kind++)
				try_blocks(ctx, dtypes[d], texts[i], (enum data)kind);
}

/* ---- rounding at random ---- */

static void try_random(struct ql_ctx *ctx, const struct view *v, const char *text)
{
	static float data[VIEW_BUFFER];
	struct ql_spec spec;
	struct ql_gpu_tensor in;
	struct ql_tensor *x, *want = NULL;
	struct gpu_codes c;
	struct ql_gpu_call call;
	uint64_t first = ctx->rng_position;

	fill(data, SPECIAL);
	x = view_core(ctx, v, "float32", data);
	CASE("%s of %s", text, v->what);
	if (!CHECK(x && !ql_spec_parse(ctx, text, &spec) && !ql_quantize(ctx, x, &spec, &want), "%s", ctx->err))
		return;
	in = view_gpu(&g, v, "float32", data);
	gpu_codes_of(&g, &c, want, true);
	c.codes.flags |= QL_GPU_STOCHASTIC;
	call = gpu_call("quantize", &in, 1, &c.t, 1);
	call.seed = ctx->seed;
	call.first = first;
	if (CHECK(gpu_run(&g, call), "refused: %s", g.why)) {
		gpu_expect(&g, &c.t, want, "code");
		expect_counts(&c, want);
	}
	gpu_codes_free(&g, &c);
	gpu_free(&g, &in);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, want);
}

static void random_rounding(struct ql_ctx *ctx)
{
	static const char *const texts[] = {"int8 rounding=stochastic", "uint8/1 rounding=stochastic",
		"int4:32 rounding=stochastic", "int3 rounding=stochastic", "int16 rounding=stochastic",
		"nf4:16 rounding=stochastic", "fp8_e4m3 rounding=stochastic"};

	for (size_t v = 0; v < VIEWS; v++)
		for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
			try_random(ctx, &views[v], texts[i]);
}

/* ---- formats that are only decoded ---- */

static void try_format(struct ql_ctx *ctx, const char *text)
{
	static float data[VIEW_BUFFER];
	static const struct view rows = {"rows", 2, {6, 512}, {512, 1}, 0, 0};
	struct ql_spec spec;
	struct ql_tensor *x, *codes = NULL, *real = NULL;
	struct ql_gpu_tensor out;
	struct gpu_codes c;

	fill(data, SMALL);
	x = view_core(ctx, &rows, "float32", data);
	CASE("%s", text);
	if (!CHECK(x && !ql_spec_parse(ctx, text, &spec) && !ql_quantize(ctx, x, &spec, &codes) &&
			    !ql_decode(ctx, codes, &real),
		    "%s", ctx->err))
		return;
	gpu_codes_of(&g, &c, codes, false);
	out = gpu_tensor(&g, "float32", 2, codes->shape, NULL, 0);
	if (CHECK(gpu_run(&g, gpu_call("dequantize", &c.t, 1, &out, 1)), "refused: %s", g.why))
		gpu_expect(&g, &out, real, "value");
	gpu_free(&g, &out);
	gpu_codes_free(&g, &c);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, codes);
	ql_tensor_release(ctx, real);
}

/* Scales that are powers of two, or codes under scales of their own; codes of bits, powers and learned values. */
static void formats(struct ql_ctx *ctx)
{
	static const char *const texts[] = {"mxfp8_e4m3", "mxfp4", "mxint8", "nvfp4", "nf4:64:256", "kmeans4",
		"ternary", "q8_0", "q4_0", "q4_1", "q5_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "tq1_0",
		"gguf.mxfp4", "binary", "binary/1", "int8 log", "uint8 log", "int4 log"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		try_format(ctx, texts[i]);
}

/* ---- one scale, by the formulas ---- */

static int32_t code_of(float x, float scale, int32_t zero, int32_t lo, int32_t hi)
{
	double steps = rint((double)(x / scale));

	if (isnan(x))
		return zero;
	return (int32_t)fmin(fmax(steps, (double)(lo - zero)), (double)(hi - zero)) + zero;
}

static void formulas(void)
{
	enum { N = 1000 };
	int64_t n = N;
	float x[N], scale = 0.037f, y[N];
	uint8_t zero = 100, q[N];
	struct ql_gpu_tensor in, s, z, out, back;
	struct ql_gpu_codes codes = {.size = sizeof(codes),
		.flags = QL_GPU_AFFINE,
		.bits = 8,
		.lo = 0,
		.hi = 255,
		.axis = -1,
		.block_axis = -1};

	for (int i = 0; i < N; i++)
		x[i] = i == 3 ? NAN : i == 4 ? INFINITY : i < 40 ? ((float)i + 0.5f) * scale : gpu_draw_float();
	in = gpu_tensor(&g, "float32", 1, &n, x, 12);
	s = gpu_tensor(&g, "float32", 0, NULL, &scale, 0);
	z = gpu_tensor(&g, "uint8", 0, NULL, &zero, 0);
	out = gpu_tensor(&g, "uint8", 1, &n, NULL, 1);
	back = gpu_tensor(&g, "float32", 1, &n, NULL, 0);
	codes.scale = &s;
	codes.zero_point = &z;
	out.codes = &codes;
	CHECK(gpu_run(&g, gpu_call("encode", &in, 1, &out, 1)), "%s", g.why);
	CHECK(gpu_run(&g, gpu_call("dequantize", &out, 1, &back, 1)), "%s", g.why);
	gpu_get(&g, &out, q);
	gpu_get(&g, &back, y);
	for (int i = 0; i < N; i++) {
		int32_t want = code_of(x[i], scale, zero, 0, 255);

		CHECK(q[i] == want, "code of %g is %d, wanted %d", (double)x[i], q[i], (int)want);
		CHECK(gpu_same_f32(y[i], (float)(want - zero) * scale), "value of code %d", (int)want);
	}
	gpu_free(&g, &in);
	gpu_free(&g, &s);
	gpu_free(&g, &z);
	gpu_free(&g, &out);
	gpu_free(&g, &back);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	ctx->quant = &ql_quant_default;
	for (int o = 0; o < ORDERS; o++) {
		CASE("formulas, threads %s", gpu_order(o));
		formulas();
		try_specs(ctx, o == 0);
		whole_blocks(ctx);
		random_rounding(ctx);
		formats(ctx);
	}
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
