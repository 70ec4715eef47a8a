/* SPDX-License-Identifier: MIT
 * The kernel "gemm_i8_few" against the integer paths of the core, equal bits: 1 to 32 rows, codes of 8 and 4 bits, k of several
 * stages and parts and beyond their ends, lines at multiples of 16 bytes or not, scales and zero points per tensor, row and column,
 * bias and activation, results of codes; and what it leaves to other kernels.
 */
#include "tests/tools/gpu_products.h"

static struct gpu g;

static const struct product_test tests[] = {
	{"linear", {{"=int8", 0, 2, {1, 512}}, {"=int8/1", 0, 2, {64, 512}}}, 2, NULL, NULL},
	{"linear", {{"=int8/1", 0, 2, {9, 784}}, {"=int4/1", 0, 2, {131, 784}}, {"float32", 0, 1, {131}}}, 3, "relu",
		NULL},
	{"linear", {{"=uint8/1", 0, 2, {17, 301}}, {"=uint8/1", 0, 2, {70, 301}}, {"float32", 0, 1, {70}}}, 3, "gelu",
		NULL},
	{"linear", {{"=uint8", 0, 3, {2, 3, 1000}}, {"=uint4/1", 0, 2, {70, 1000}}}, 2, NULL, NULL},
	{"linear", {{"=int8", 0, 2, {32, 416}}, {"=uint4", 0, 2, {64, 416}}}, 2, NULL, NULL},
	{"linear", {{"=uint8", 0, 2, {5, 310}}, {"=int4", 0, 2, {65, 310}}}, 2, NULL, NULL},
	{"linear", {{"=int8", 0, 2, {3, 288}}, {"=int4/1", 0, 2, {64, 288}}}, 2, "relu", "uint8"},
	{"linear", {{"=uint8", 0, 2, {3, 288}}, {"=int8", 0, 2, {64, 288}}}, 2, NULL, "int8"},
	{"matmul", {{"=int8/1", 0, 2, {12, 512}}, {"=int4/1", TRANSPOSED, 2, {512, 72}}}, 2, NULL, NULL},
	{"matmul", {{"=int8", 0, 2, {2, 256}}, {"=uint8", TRANSPOSED, 2, {256, 200}}}, 2, NULL, NULL},
};

/* More rows, fewer columns, k that is short or not in order. */
static void left(struct ql_ctx *ctx, struct operand x, struct operand w)
{
	struct operand_pair o[2];
	struct ql_gpu_tensor in[2],
		out = gpu_tensor(&g, "float32", 2, (const int64_t[]){x.shape[0], w.shape[1]}, NULL, 0);

	CASE("%dx%d x %d are left", (int)x.shape[0], (int)x.shape[1], (int)w.shape[1]);
	if (!operand_make(&g, ctx, &x, &o[0]) || !operand_make(&g, ctx, &w, &o[1]))
		return;
	in[0] = o[0].t;
	in[1] = o[1].t;
	CHECK(gpu_run(&g, gpu_call("matmul", in, 2, &out, 1)) && strcmp(g.name, "gemm_i8_few"), "ran by %s", g.name);
	operand_drop(&g, ctx, &o[0]);
	operand_drop(&g, ctx, &o[1]);
	gpu_free(&g, &out);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	ctx->quant = &ql_quant_default;
	for (int o = 0; o < ORDERS; o++)
		for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
			CASE("%s %s x %s, k %d, threads %s", tests[i].op, tests[i].in[0].type, tests[i].in[1].type,
				(int)tests[i].in[0].shape[tests[i].in[0].rank - 1], gpu_order(o));
			product_try(&g, "gemm_i8_few", ctx, &tests[i]);
		}
	left(ctx, (struct operand){"=int8", 0, 2, {33, 256}}, (struct operand){"=int8", TRANSPOSED, 2, {256, 64}});
	left(ctx, (struct operand){"=int8", 0, 2, {3, 256}}, (struct operand){"=int8", TRANSPOSED, 2, {256, 63}});
	left(ctx, (struct operand){"=int8", 0, 2, {3, 255}}, (struct operand){"=int8", TRANSPOSED, 2, {255, 64}});
	left(ctx, (struct operand){"=int8", 0, 2, {3, 256}}, (struct operand){"=int8", 0, 2, {256, 64}});
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
