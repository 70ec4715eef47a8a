/* SPDX-License-Identifier: MIT
 * The kernel attention_codes against the op of the core: equal codes for 8-bit operands with and without zero points, fewer heads
 * of keys than of queries, caches, and scales that spread the scores little or much.
 */
#include "nn/nn.h"
#include "tests/tools/gpu_codes.h"

static struct gpu g;
static struct ql_ctx *ctx;

static const struct shape {
	int64_t batches, heads, shared, queries, keys, d, e;
	bool causal, joined;
} shapes[] = {
	{1, 1, 1, 1, 1, 1, 1, false, false},
	{2, 4, 2, 37, 37, 16, 8, true, true},
	{1, 2, 1, 5, 70, 33, 40, true, false},
	{1, 2, 2, 1, 130, 64, 64, true, false},
	{1, 1, 1, 33, 20, 100, 70, false, true},
	{1, 1, 1, 2, 33, 256, 140, false, false},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static struct ql_tensor *codes_of(const struct shape *s, int64_t heads, int64_t rows, int64_t width, const char *text)
{
	int64_t split[4] = {s->batches, heads, rows, width}, joined[3] = {s->batches, rows, heads * width};
	struct ql_spec spec;
	struct ql_tensor *x, *q = NULL;

	if (ql_tensor_new(ctx, QL_float32, s->joined ? 3 : 4, s->joined ? joined : split, &x))
		return NULL;
	for (int64_t i = 0; i < ql_tensor_nelem(x); i++)
		((float *)ql_tensor_data(x))[i] = gpu_draw_float();
	CHECK(!ql_spec_parse(ctx, text, &spec) && !ql_quantize(ctx, x, &spec, &q), "%s: %s", text, ctx->err);
	ql_tensor_release(ctx, x);
	return q;
}

/* The op of the core with attributes by name. */
static struct ql_tensor *core(struct ql_tensor **in, const struct shape *s, double scale, const struct ql_spec *out)
{
	struct ql_call call = {.op = ql_op_by_name(ql_nn_ops, "attention"), .in = in, .n_in = 3};
	struct ql_value attr[16] = {{.set = false}};
	const struct ql_attr *a = call.op->doc.attrs;

	for (int i = 0; a[i].type != QL_ATTR_END; i++) {
		if (!strcmp(a[i].name, "causal"))
			attr[i] = (struct ql_value){.set = true, .b = s->causal};
		else if (!strcmp(a[i].name, "scale"))
			attr[i] = (struct ql_value){.set = true, .f = scale};
		else if (!strcmp(a[i].name, "heads"))
			attr[i] = (struct ql_value){.set = s->joined, .i = s->heads};
		else if (!strcmp(a[i].name, "out"))
			attr[i] = (struct ql_value){.set = true, .spec = out};
	}
	call.attr = attr;
	return ql_op_apply(ctx, &call) ? NULL : call.out[0];
}

static void run(const struct shape *s, const struct gpu_codes c[3], double scale, const struct ql_tensor *want)
{
	struct ql_gpu_option o[] = {{.name = "causal", .i = s->causal},
		{.name = "scale", .type = QL_GPU_OPTION_NUMBER, .f = scale}, {.name = "heads", .i = s->heads}};
	struct ql_gpu_tensor in[3] = {c[0].t, c[1].t, c[2].t};
	struct gpu_codes out;
	struct ql_gpu_call call;

	for (int i = 0; i < 3; i++)
		in[i].codes = &c[i].codes;
	gpu_codes_of(&g, &out, want, false);
	g.v->fill(g.s, out.t.at, 0x55, out.t.bytes);
	call = gpu_call("attention", in, 3, &out.t, 1);
	call.options = o;
	call.n_options = s->joined ? 3 : 2;
	if ((gpu_run(&g, call) || CHECK(false, "refused: %s", g.why)) &&
		CHECK(!strcmp(g.name, "attention_codes"), "by %s", g.name))
		gpu_expect(&g, &out.t, want, "code");
	gpu_codes_free(&g, &out);
}

static void attend(size_t i, const char *operand, const char *result, double scale)
{
	const struct shape *s = &shapes[i];
	struct ql_tensor *in[3] = {codes_of(s, s->heads, s->queries, s->d, operand),
		codes_of(s, s->shared, s->keys, s->d, operand), codes_of(s, s->shared, s->keys, s->e, operand)},
			 *want;
	struct gpu_codes c[3];
	struct ql_spec out;

	if (!in[0] || !in[1] || !in[2] || !CHECK(!ql_spec_parse(ctx, result, &out), "%s: %s", result, ctx->err))
		return;
	want = core(in, s, scale, &out);
	if (!CHECK(want && want->q, "shape %d: %s", (int)i, ctx->err))
		return;
	for (int k = 0; k < 3; k++)
		gpu_codes_of(&g, &c[k], in[k], false);
	run(s, c, scale, want);
	for (int k = 0; k < 3; k++) {
		gpu_codes_free(&g, &c[k]);
		ql_tensor_release(ctx, in[k]);
	}
	ql_tensor_release(ctx, want);
}

static void refusals(void)
{
	const struct shape *s = &shapes[0];
	struct ql_tensor *q = codes_of(s, 1, 1, 1, "int16");
	struct gpu_codes c;
	struct ql_gpu_tensor in[3];

	if (!q)
		return;
	gpu_codes_of(&g, &c, q, false);
	in[0] = in[1] = in[2] = c.t;
	CHECK(!gpu_run(&g, gpu_call("attention", in, 3, &c.t, 1)) && strstr(g.why, "8 bits"), "%s", g.why);
	gpu_codes_free(&g, &c);
	ql_tensor_release(ctx, q);
}

int main(void)
{
	ctx = ql_ctx_new(1);
	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	ctx->quant = &ql_quant_default;
	for (int o = 0; o < ORDERS; o++) {
		CASE("codes, threads %s", gpu_order(o));
		for (size_t i = 0; i < SHAPES; i++) {
			attend(i, "int8", "int8 scale=0.03", 0.25);
			attend(i, "uint8", "uint8 scale=0.05 zero_point=100", 0.002);
			attend(i, "uint8", "int8 scale=0.06", -0.01);
			attend(i, "int8", "int16 scale=0.0004", 0);
			attend(i, "int8", "int8 scale=0.06", 1e9);
		}
	}
	CASE("refusals");
	refusals();
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
