/* SPDX-License-Identifier: MIT
 * The kernels "conv_i8_mma" and "conv_i8_dp4a" against the integer convolution of the core, equal bits: all pairs of signs,
 * zero points, scales per tensor and per output, strides, dilation, groups, k beyond a stage, more than a tile of pixels and
 * of outputs, bias and activations, and codes as results.
 */
#include "tensor/closed.h"
#include "tests/tools/gpu_codes.h"

static struct gpu g;

static const struct shape {
	const char *what;
	int64_t x[4], w[4], stride[2], pad[4], dilation[2], groups;
	const char *act;
} shapes[] = {
	{"3 x 3", {2, 3, 7, 6}, {5, 3, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, NULL},
	{"several stages", {1, 16, 5, 5}, {7, 16, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, "relu"},
	{"several tiles", {1, 4, 12, 13}, {66, 4, 2, 2}, {1, 1}, {0, 1, 1, 0}, {1, 1}, 1, NULL},
	{"everything uneven", {2, 6, 9, 11}, {4, 3, 3, 2}, {2, 3}, {1, 0, 2, 1}, {2, 1}, 2, "relu"},
	{"1 x 1", {3, 20, 4, 3}, {6, 20, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, "gelu"},
	{"depthwise", {2, 5, 6, 7}, {5, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 5, "relu"},
};
#define SHAPES ((int)(sizeof(shapes) / sizeof(shapes[0])))

static struct ql_tensor *drawn(struct ql_ctx *ctx, int rank, const int64_t *shape)
{
	struct ql_tensor *t = NULL;

	if (!CHECK(!ql_tensor_new(ctx, QL_float32, rank, shape, &t), "%s", ctx->err))
		return NULL;
	for (int64_t i = 0; i < ql_tensor_nelem(t); i++)
		((float *)ql_tensor_data(t))[i] = gpu_draw_float();
	return t;
}

static struct ql_tensor *quantized(struct ql_ctx *ctx, const int64_t *shape, const char *text)
{
	struct ql_tensor *t = drawn(ctx, 4, shape), *q = NULL;
	struct ql_spec spec;

	if (t)
		CHECK(!ql_spec_parse(ctx, text, &spec) && !ql_quantize(ctx, t, &spec, &q), "%s", ctx->err);
	ql_tensor_release(ctx, t);
	return q;
}

static struct ql_value *named(const struct ql_call *call, struct ql_value *attr, const char *name)
{
	int i = 0;

	while (strcmp(call->op->doc.attrs[i].name, name) != 0)
		i++;
	attr[i].set = true;
	return &attr[i];
}

static struct ql_tensor *core(
	struct ql_ctx *ctx, const struct shape *s, struct ql_tensor **in, int n, const struct ql_spec *out)
{
	struct ql_value attr[16] = {{.set = false}};
	struct ql_call call = {.op = ql_op_by_name(ql_ops, "conv2d"), .in = in, .n_in = n, .attr = attr};

	named(&call, attr, "stride")->ints = (struct ql_ints){2, (int64_t *)(uintptr_t)s->stride};
	named(&call, attr, "pad")->ints = (struct ql_ints){4, (int64_t *)(uintptr_t)s->pad};
	named(&call, attr, "dilation")->ints = (struct ql_ints){2, (int64_t *)(uintptr_t)s->dilation};
	named(&call, attr, "groups")->i = s->groups;
	if (s->act)
		named(&call, attr, "act")->s = s->act;
	if (out)
		named(&call, attr, "out")->spec = (struct ql_spec *)(uintptr_t)out;
	if (!CHECK(!ql_op_apply(ctx, &call), "%s: %s", s->what, ctx->err))
		return NULL;
	CHECK(!ql_closed_open(ctx, call.out[0]->storage), "%s", ctx->err); /* channels last */
	return call.out[0];
}

static void device(const struct shape *s, const struct ql_gpu_tensor *in, int n, struct ql_gpu_tensor *out)
{
	struct ql_gpu_option o[5] = {{"stride", QL_GPU_OPTION_INTEGERS, 2, .ints = s->stride},
		{"pad", QL_GPU_OPTION_INTEGERS, 4, .ints = s->pad},
		{"dilation", QL_GPU_OPTION_INTEGERS, 2, .ints = s->dilation},
		{"groups", QL_GPU_OPTION_INTEGER, .i = s->groups}, {"act", QL_GPU_OPTION_TEXT, .s = s->act}};
	struct ql_gpu_call call = gpu_call("conv2d", in, n, out, 1);

	call.options = o;
	call.n_options = s->act ? 5 : 4;
	CHECK(gpu_run(&g, call), "%s: refused: %s", s->what, g.why);
}

static void compare(const struct shape *s, const struct ql_gpu_tensor *in, int n, const struct ql_tensor *want)
{
	static const char *const families[] = {"mma", "dp4a"};
	struct gpu_codes codes;
	struct ql_gpu_tensor plain;

	for (int f = 0; f < 2; f++) {
		char name[32];

		g.v->force(g.d, families[f]);
		if (want->q)
			gpu_codes_of(&g, &codes, want, false);
		else
			plain = gpu_of_core(&g, want, false);
		struct ql_gpu_tensor *out = want->q ? &codes.t : &plain;
		g.v->fill(g.s, out->at, 0x5a, out->bytes);
		device(s, in, n, out);
		gpu_expect(&g, out, want, s->what);
		snprintf(name, sizeof(name), "conv_i8_%s", families[f]);
		CHECK(!strcmp(g.name, name), "%s ran, wanted %s", g.name, name);
		if (want->q)
			gpu_codes_free(&g, &codes);
		else
			gpu_free(&g, &plain);
	}
	g.v->force(g.d, NULL);
}

static void try_shape(struct ql_ctx *ctx, const struct shape *s, const char *x_spec, const char *w_spec,
	const char *out_spec, bool bias)
{
	struct ql_tensor *in[3] = {quantized(ctx, s->x, x_spec), quantized(ctx, s->w, w_spec), drawn(ctx, 1, s->w)};
	struct gpu_codes x, w;
	struct ql_gpu_tensor b;
	struct ql_spec spec;
	struct ql_tensor *want = NULL;

	if (!out_spec || CHECK(!ql_spec_parse(ctx, out_spec, &spec), "%s", ctx->err))
		want = in[0] && in[1] && in[2] ? core(ctx, s, in, bias ? 3 : 2, out_spec ? &spec : NULL) : NULL;
	if (want) {
		gpu_codes_of(&g, &x, in[0], false);
		gpu_codes_of(&g, &w, in[1], false);
		b = gpu_of_core(&g, in[2], true);
		compare(s, (struct ql_gpu_tensor[]){x.t, w.t, b}, bias ? 3 : 2, want);
		gpu_codes_free(&g, &x);
		gpu_codes_free(&g, &w);
		gpu_free(&g, &b);
	}
	for (int i = 0; i < 3; i++)
		ql_tensor_release(ctx, in[i]);
	ql_tensor_release(ctx, want);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	ctx->quant = &ql_quant_default;
	for (int o = 0; o < ORDERS; o++)
		for (int i = 0; i < SHAPES; i++) {
			CASE("%s, threads %s", shapes[i].what, gpu_order(o));
			try_shape(ctx, &shapes[i], "uint8", "int8/1", NULL, true);
			try_shape(ctx, &shapes[i], i % 2 ? "uint8" : "int8", "uint8", "uint8 scale=0.7 zero_point=3",
				true);
			try_shape(ctx, &shapes[i], "int8 asymmetric", i % 2 ? "uint8/1" : "int8", "int8 scale=2.5", o);
		}
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
