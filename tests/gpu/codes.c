/* SPDX-License-Identifier: MIT
 * The kernel codes against the integer paths of the core: sums, differences, products and relu of codes have equal codes, for
 * operands that broadcast, views, one scale or one per index of an axis, and codes of 4, 8 and 16 bits.
 */
#include "tensor/view.h"
#include "tests/tools/gpu_codes.h"

static struct gpu g;
static struct ql_ctx *ctx;

extern const struct ql_op ql_op_add, ql_op_sub, ql_op_mul, ql_op_relu;
static const struct ql_op *const ops[] = {&ql_op_add, &ql_op_sub, &ql_op_mul};

struct pair {
	int rank[2];
	int64_t shape[2][3];
	const char *spec[2];
	int turned; /* operand 0 is transposed */
};

static const struct pair pairs[] = {
	{{2, 2}, {{37, 53}, {37, 53}}, {"uint8", "int8"}, 0},
	{{2, 2}, {{40, 16}, {40, 16}}, {"int8", "int8"}, 0},
	{{1, 1}, {{5000}, {5000}}, {"uint8", "uint8"}, 0},
	{{1, 1}, {{15}, {15}}, {"int8", "uint8"}, 0},
	{{2, 2}, {{12, 17}, {12, 17}}, {"uint8/2", "int8/1"}, 0},
	{{3, 2}, {{4, 9, 10}, {9, 1}}, {"uint8", "int8/1"}, 0},
	{{1, 3}, {{10}, {3, 4, 10}}, {"int8", "uint8/2"}, 0},
	{{2, 2}, {{30, 20}, {20, 30}}, {"uint8/1", "int8"}, 1},
	{{2, 2}, {{8, 40}, {8, 40}}, {"int16", "uint8"}, 0},
	{{2, 2}, {{8, 40}, {1, 40}}, {"uint16", "int16/2"}, 0},
	{{2, 2}, {{6, 32}, {6, 32}}, {"int4/1", "uint4"}, 0},
	{{2, 2}, {{0, 5}, {0, 5}}, {"int8", "int8"}, 0},
};
#define PAIRS ((int)(sizeof(pairs) / sizeof(pairs[0])))

static const char *const outs[] = {"uint8 scale=0.09 zero_point=101", "int8 scale=0.11", "int16 scale=0.0004"};
#define OUTS ((int)(sizeof(outs) / sizeof(outs[0])))

static struct ql_tensor *codes_of(const char *text, int rank, const int64_t *shape)
{
	struct ql_spec spec;
	struct ql_tensor *x = NULL, *q = NULL;

	if (ql_spec_parse(ctx, text, &spec) || ql_tensor_new(ctx, QL_float32, rank, shape, &x))
		CHECK(false, "%s", ctx->err);
	for (int64_t i = 0; i < ql_tensor_nelem(x); i++)
		((float *)ql_tensor_data(x))[i] = gpu_draw_float();
	if (ql_quantize(ctx, x, &spec, &q))
		CHECK(false, "%s", ctx->err);
	ql_tensor_release(ctx, x);
	return q;
}

/* Swaps both axes of a matrix, and that of its scales. */
static void turn(struct ql_tensor **t, struct gpu_codes *c)
{
	struct ql_tensor *view;
	int64_t size = c->t.shape[0], stride = c->t.stride[0];

	if (ql_view_permute(ctx, "test", *t, (const int[]){1, 0}, &view)) {
		CHECK(false, "%s", ctx->err);
		return;
	}
	ql_tensor_release(ctx, *t);
	*t = view;
	c->t.shape[0] = c->t.shape[1];
	c->t.stride[0] = c->t.stride[1];
	c->t.shape[1] = size;
	c->t.stride[1] = stride;
	c->codes.axis = c->codes.axis < 0 ? -1 : 1 - c->codes.axis;
}

static struct ql_tensor *want_of(const struct ql_op *op, struct ql_tensor **in, const char *out, bool relu)
{
	struct ql_value attr[8] = {{.set = false}};
	struct ql_call call = {.op = op, .in = in, .n_in = out ? 2 : 1, .attr = attr};
	struct ql_spec spec;
	const struct ql_attr *a = op->doc.attrs;

	if (out && ql_spec_parse(ctx, out, &spec))
		CHECK(false, "%s", ctx->err);
	for (int i = 0; a && a[i].type != QL_ATTR_END; i++) {
		if (out && !strcmp(a[i].name, "out"))
			attr[i] = (struct ql_value){.set = true, .spec = &spec};
		if (relu && !strcmp(a[i].name, "act"))
			attr[i] = (struct ql_value){.set = true, .s = "relu"};
	}
	if (!CHECK(!ql_op_apply(ctx, &call), "%s: %s", op->doc.name, ctx->err))
		return NULL;
	CHECK(!strcmp(call.path, "integer"), "%s: the core's path is %s", op->doc.name, call.path);
	return call.out[0];
}

static void compare(const struct gpu_codes *in, int n_in, const char *op, struct ql_tensor *want, bool relu)
{
	const struct ql_gpu_option act = {.name = "act", .type = QL_GPU_OPTION_TEXT, .s = "relu"};
	struct ql_gpu_tensor list[2] = {in[0].t, in[n_in - 1].t};
	struct gpu_codes out;
	struct ql_gpu_call call;

	list[0].codes = &in[0].codes;
	list[1].codes = &in[n_in - 1].codes;
	gpu_codes_of(&g, &out, want, false);
	g.v->fill(g.s, out.t.at, 0x55, out.t.bytes);
	call = gpu_call(op, list, n_in, &out.t, 1);
	call.options = &act;
	call.n_options = relu;
	if (CHECK(gpu_run(&g, call), "refused: %s", g.why))
		gpu_expect(&g, &out.t, want, "code");
	gpu_codes_free(&g, &out);
}

static void try_pair(const struct pair *p)
{
	struct ql_tensor *in[2], *want;
	struct gpu_codes c[2];

	for (int i = 0; i < 2; i++) {
		in[i] = codes_of(p->spec[i], p->rank[i], p->shape[i]);
		gpu_codes_of(&g, &c[i], in[i], false);
	}
	if (p->turned)
		turn(&in[0], &c[0]);
	for (int k = 0; k < 3; k++)
		for (int o = 0; o < OUTS; o++)
			for (int relu = 0; relu < (k == 0 ? 2 : 1); relu++) {
				CASE("%s%s of %s and %s, rank %d, to %s", ops[k]->doc.name, relu ? " relu" : "",
					p->spec[0], p->spec[1], p->rank[0], outs[o]);
				want = want_of(ops[k], in, outs[o], relu);
				if (want)
					compare(c, 2, ops[k]->doc.name, want, relu);
				ql_tensor_release(ctx, want);
			}
	for (int i = 0; i < 2; i++) {
		ql_tensor_release(ctx, in[i]);
		gpu_codes_free(&g, &c[i]);
	}
}

static void try_relu(const char *spec, int64_t rows, int64_t columns, bool turned)
{
	struct ql_tensor *in = codes_of(spec, 2, (const int64_t[]){rows, columns}), *want;
	struct gpu_codes c;

	gpu_codes_of(&g, &c, in, false);
	if (turned)
		turn(&in, &c);
	CASE("relu of %s, %d by %d%s", spec, (int)rows, (int)columns, turned ? ", transposed" : "");
	want = want_of(&ql_op_relu, &in, NULL, false);
	if (want)
		compare(&c, 1, "relu", want, false);
	ql_tensor_release(ctx, want);
	ql_tensor_release(ctx, in);
	gpu_codes_free(&g, &c);
}

static void refusals(void)
{
	struct ql_tensor *in[2] = {
		codes_of("int8:8", 2, (const int64_t[]){4, 16}), codes_of("int8", 2, (const int64_t[]){4, 16})};
	struct gpu_codes c[2], out;
	struct ql_gpu_tensor list[2];
	struct ql_gpu_call call = gpu_call("add", list, 2, &out.t, 1);

	for (int i = 0; i < 2; i++) {
		gpu_codes_of(&g, &c[i], in[i], false);
		list[i] = c[i].t;
	}
	gpu_codes_of(&g, &out, in[1], false);
	CHECK(!gpu_run(&g, call) && strstr(g.why, "blocks"), "%s", g.why);
	list[0].codes = NULL;
	CHECK(!gpu_run(&g, call) && strstr(g.why, "not quantized"), "%s", g.why);
	list[0] = list[1];
	out.codes.flags |= QL_GPU_FIND;
	CHECK(!gpu_run(&g, call) && strstr(g.why, "no given scale"), "%s", g.why);
	for (int i = 0; i < 2; i++) {
		gpu_codes_free(&g, &c[i]);
		ql_tensor_release(ctx, in[i]);
	}
	gpu_codes_free(&g, &out);
}

int main(void)
{
	ctx = ql_ctx_new(1);
	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	ctx->quant = &ql_quant_default;
	for (int o = 0; o < ORDERS; o++) {
		CASE("threads %s", gpu_order(o));
		for (int i = 0; i < PAIRS; i++)
			try_pair(&pairs[i]);
		for (int i = 0; i < 2; i++) {
			try_relu("uint8", 17, 33, i);
			try_relu("int8", 16, 16, i);
			try_relu("uint8/1", 9, 12, i);
			try_relu("int16/2", 9, 12, i);
		}
	}
	refusals();
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
