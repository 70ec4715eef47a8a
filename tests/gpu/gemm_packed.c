/* SPDX-License-Identifier: MIT
 * The kernel "gemm_packed" against the integer paths of the core, equal bits: codes of 2 to 7 bits beside codes of 8 and each
 * other, scales and zero points per tensor, row and column, views, batches, bias and activation, results of codes.
 */
#include "tests/tools/gpu_operand.h"

static struct gpu g;

struct test {
	const char *op;
	struct operand in[3];
	int n_in;
	const char *act, *out; /* out: a spec with scale 0.5; NULL: floats */
};

static const struct test tests[] = {
	{"linear", {{"=int8", 0, 2, {9, 61}}, {"=int4/1", 0, 2, {20, 61}}, {"float32", 0, 1, {20}}}, 3, "relu", NULL},
	{"linear", {{"=uint8/1", 0, 2, {9, 64}}, {"=uint4/1", 0, 2, {33, 64}}}, 2, NULL, NULL},
	{"linear", {{"=int4", 0, 3, {2, 5, 200}}, {"=int4", 0, 2, {7, 200}}, {"float32", 0, 1, {7}}}, 3, "gelu", NULL},
	{"linear", {{"=uint4", 0, 2, {1, 64}}, {"=int3/1", 0, 2, {140, 64}}}, 2, NULL, NULL},
	{"linear", {{"=int6/1", 0, 2, {5, 40}}, {"=int8/1", 0, 2, {7, 40}}}, 2, NULL, NULL},
	{"linear", {{"=int8", 0, 2, {9, 64}}, {"=int4/1", 0, 2, {20, 64}}}, 2, "relu", "uint8"},
	{"linear", {{"=int8", 0, 2, {9, 64}}, {"=int5", 0, 2, {20, 64}}}, 2, NULL, "int8"},
	{"matmul", {{"=int8/1", 0, 2, {12, 40}}, {"=int4/2", 0, 2, {40, 24}}}, 2, NULL, NULL},
	{"matmul", {{"=int4", TRANSPOSED, 2, {12, 40}}, {"=uint8/1", TRANSPOSED, 2, {40, 24}}}, 2, NULL, NULL},
	{"matmul", {{"=int4", 0, 3, {3, 4, 30}}, {"=int2", 0, 3, {3, 30, 5}}}, 2, NULL, NULL},
};

static void run(struct ql_ctx *ctx, const struct test *t, struct ql_call *call, const struct ql_gpu_tensor *operands)
{
	struct ql_gpu_option act = {.name = "act", .type = QL_GPU_OPTION_TEXT, .s = t->act};
	const bool coded = t->out != NULL;
	struct ql_gpu_tensor out = {0};
	struct gpu_codes codes = {0};
	struct ql_gpu_call device = gpu_call(t->op, operands, t->n_in, &out, 1);

	if (!CHECK(!ql_op_apply(ctx, call), "%s", ctx->err))
		return;
	if (coded)
		gpu_codes_of(&g, &codes, call->out[0], false);
	out = coded ? codes.t : gpu_of_core(&g, call->out[0], false);
	device.options = &act;
	device.n_options = t->act != NULL;
	g.v->fill(g.s, out.at, 0xAB, out.bytes);
	if (CHECK(gpu_run(&g, device), "refused: %s", g.why)) {
		CHECK(!strcmp(g.name, "gemm_packed"), "ran by %s", g.name);
		gpu_expect(&g, &out, call->out[0], g.name);
	}
	if (coded)
		gpu_codes_free(&g, &codes);
	else
		gpu_free(&g, &out);
	ql_tensor_release(ctx, call->out[0]);
}

static void try(struct ql_ctx *ctx, const struct test *t)
{
	bool linear = !strcmp(t->op, "linear");
	struct operand_pair o[3];
	struct ql_tensor *in[3];
	struct ql_gpu_tensor operands[3];
	struct ql_spec spec;
	struct ql_value attr[4] = {{.set = linear && t->act, .s = t->act}, {.set = t->out != NULL, .spec = &spec}};
	struct ql_call call = {.op = ql_op_by_name(ql_ops, t->op), .in = in, .n_in = t->n_in, .attr = attr};
	int made = 0;

	if (!CHECK(!ql_spec_parse(ctx, t->out ? t->out : "int8", &spec), "%s", ctx->err))
		return;
	spec.has_scale = true;
	spec.scale = 0.5;
	for (; made < t->n_in && operand_make(&g, ctx, &t->in[made], &o[made]); made++) {
		in[made] = o[made].core;
		operands[made] = o[made].t;
	}
	if (made == t->n_in)
		run(ctx, t, &call, operands);
	while (made-- > 0)
		operand_drop(&g, ctx, &o[made]);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_CUDAEMU"))
		return check_end();
	ctx->quant = &ql_quant_default;
	for (int o = 0; o < ORDERS; o++)
		for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
			CASE("%s %s x %s, threads %s", tests[i].op, tests[i].in[0].type, tests[i].in[1].type,
				gpu_order(o));
			try(ctx, &tests[i]);
		}
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
