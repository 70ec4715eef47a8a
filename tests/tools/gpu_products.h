/* SPDX-License-Identifier: MIT
 * Products of codes by a kernel of a device against the integer paths of the core: equal bits.
 */
#ifndef QUOLL_TESTS_TOOLS_GPU_PRODUCTS_H
#define QUOLL_TESTS_TOOLS_GPU_PRODUCTS_H

#include "tests/tools/gpu_operand.h"

struct product_test {
	const char *op;
	struct operand in[3];
	int n_in;
	const char *act, *out; /* out: a spec with scale 0.5; NULL: floats */
};

static inline void product_run(struct gpu *g, const char *kernel, struct ql_ctx *ctx, const struct product_test *t,
	struct ql_call *call, const struct ql_gpu_tensor *operands)
{
	struct ql_gpu_option act = {.name = "act", .type = QL_GPU_OPTION_TEXT, .s = t->act};
	const bool coded = t->out != NULL;
	struct ql_gpu_tensor out = {0};
	struct gpu_codes codes = {0};
	struct ql_gpu_call device = gpu_call(t->op, operands, t->n_in, &out, 1);

	if (!CHECK(!ql_op_apply(ctx, call), "%s", ctx->err))
		return;
	if (coded)
		gpu_codes_of(g, &codes, call->out[0], false);
	out = coded ? codes.t : gpu_of_core(g, call->out[0], false);
	device.options = &act;
	device.n_options = t->act != NULL;
	g->v->fill(g->s, out.at, 0xAB, out.bytes);
	if (CHECK(gpu_run(g, device), "refused: %s", g->why)) {
		CHECK(!strcmp(g->name, kernel), "ran by %s", g->name);
		gpu_expect(g, &out, call->out[0], g->name);
	}
	if (coded)
		gpu_codes_free(g, &codes);
	else
		gpu_free(g, &out);
	ql_tensor_release(ctx, call->out[0]);
}

static inline void product_try(struct gpu *g, const char *kernel, struct ql_ctx *ctx, const struct product_test *t)
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
	for (; made < t->n_in && operand_make(g, ctx, &t->in[made], &o[made]); made++) {
		in[made] = o[made].core;
		operands[made] = o[made].t;
	}
	if (made == t->n_in)
		product_run(g, kernel, ctx, t, &call, operands);
	while (made-- > 0)
		operand_drop(g, ctx, &o[made]);
}

/* All tests in each order of threads; gives what main returns. */
static inline int product_tests(struct gpu *g, const char *kernel, const struct product_test *tests, size_t n)
{
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	ctx->quant = &ql_quant_default;
	for (int o = 0; o < ORDERS; o++)
		for (size_t i = 0; i < n; i++) {
			CASE("%s %s x %s, threads %s", tests[i].op, tests[i].in[0].type, tests[i].in[1].type,
				gpu_order(o));
			product_try(g, kernel, ctx, &tests[i]);
		}
	gpu_close(g);
	ql_ctx_free(ctx);
	return check_end();
}

#endif
