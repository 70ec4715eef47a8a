/* SPDX-License-Identifier: MIT
 * The kernels random, dropout and construct against the ops of the core with the same seed and place, and one counter against
 * the words that the authors of Philox4x32-10 publish (Random123, kat_vectors).
 */
#include "tests/tools/gpu_views.h"

#include "nn/nn.h"

#define MOST 5000
#define SEED 0x123456789abcdef0ull

static struct gpu g;
static struct ql_ctx *ctx;

static const char *const dtypes[] = {"float32", "float64", "float16", "bfloat16", "float8_e4m3", "float8_e8m0", "int64",
	"int32", "int8", "uint8", "bool"};
#define DTYPES (sizeof(dtypes) / sizeof(dtypes[0]))
#define FLOATS 6

static void compare(const char *what, struct ql_tensor *want, struct ql_gpu_tensor *out)
{
	static int64_t got[MOST];

	gpu_get(&g, out, got);
	for (int64_t i = 0; i < ql_tensor_nelem(want); i++)
		CHECK(view_same(out->dtype, got, ql_tensor_data(want), i), "%s, %s: element %d", what, out->dtype,
			(int)i);
}

/* The op of the core with these options, NULL if it refuses them. */
static struct ql_tensor *core(const char *op, struct ql_tensor **in, int n_in, const struct ql_gpu_option *o, int n,
	const char *dtype, const struct ql_ints *size)
{
	struct ql_call call = {.op = ql_op_by_name(n_in ? ql_nn_ops : ql_ops, op), .in = in, .n_in = n_in};
	struct ql_value attr[16] = {{.set = false}};
	const struct ql_attr *a = call.op->doc.attrs;

	for (int i = 0; a[i].type != QL_ATTR_END; i++) {
		if (dtype && !strcmp(a[i].name, "dtype"))
			attr[i] = (struct ql_value){.set = true, .i = ql_dtype_by_name(dtype)};
		if (size && !strcmp(a[i].name, "size"))
			attr[i] = (struct ql_value){.set = true, .ints = *size};
		for (int k = 0; k < n; k++)
			if (!strcmp(a[i].name, o[k].name))
				attr[i] = a[i].type == QL_ATTR_FLOAT ? (struct ql_value){.set = true, .f = o[k].f}
								     : (struct ql_value){.set = true, .i = o[k].i};
	}
	call.attr = attr;
	return ql_op_apply(ctx, &call) ? NULL : call.out[0];
}

static void construct(const char *op, const char *dtype, int64_t n, int64_t m, const struct ql_gpu_option *o, int n_o)
{
	int64_t shape[2] = {n, m};
	struct ql_ints size = {.n = 2, .at = shape};
	struct ql_tensor *want;
	struct ql_gpu_tensor out;
	struct ql_gpu_call call;

	ctx->seed = SEED;
	ctx->rng_position = 0x1fffffffeull; /* the second word of counters changes on the way */
	want = core(op, NULL, 0, o, n_o, dtype, strcmp(op, "arange") && strcmp(op, "eye") ? &size : NULL);
	if (!want) /* this dtype has no such values */
		return;
	out = gpu_tensor(&g, dtype, want->rank, want->shape, NULL, n % 2 ? 8 : 0);
	call = gpu_call(op, NULL, 0, &out, 1);
	call.seed = SEED;
	call.first = 0x1fffffffeull;
	call.options = o;
	call.n_options = n_o;
	if ((gpu_run(&g, call) || CHECK(false, "%s refused: %s", op, g.why)) &&
		CHECK(!strcmp(g.name, strncmp(op, "rand", 4) ? "construct" : "random"), "%s by %s", op, g.name))
		compare(op, want, &out);
	gpu_free(&g, &out);
	ql_tensor_release(ctx, want);
}

static struct ql_gpu_option integer(const char *name, int64_t i)
{
	return (struct ql_gpu_option){.name = name, .i = i};
}
static struct ql_gpu_option number(const char *name, double f)
{
	return (struct ql_gpu_option){.name = name, .type = QL_GPU_OPTION_NUMBER, .f = f};
}

static void numbers(void)
{
	static const int64_t sizes[][2] = {{1, 1}, {3, 5}, {4, 256}, {13, 97}, {0, 3}};

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (size_t d = 0; d < DTYPES; d++) {
			struct ql_gpu_option few[] = {integer("low", 0), integer("high", 1)},
					     wide[] = {integer("low", -100), integer("high", 27)},
					     most[] = {integer("low", INT64_MIN), integer("high", INT64_MAX)},
					     again[] = {integer("low", INT64_MIN / 2 - 9),
						     integer("high", INT64_MAX / 2)},
					     value = number("value", d < FLOATS ? 0.3 : 1);

			if (d < FLOATS)
				construct("rand", dtypes[d], sizes[s][0], sizes[s][1], NULL, 0);
			if (d < FLOATS)
				construct("randn", dtypes[d], sizes[s][0], sizes[s][1], NULL, 0);
			construct("randint", dtypes[d], sizes[s][0], sizes[s][1], few, 2);
			construct("randint", dtypes[d], sizes[s][0], sizes[s][1], wide, 2);
			construct("randint", dtypes[d], sizes[s][0], sizes[s][1], most, 2);
			construct("randint", dtypes[d], sizes[s][0], sizes[s][1], again, 2);
			construct("zeros", dtypes[d], sizes[s][0], sizes[s][1], NULL, 0);
			construct("empty", dtypes[d], sizes[s][0], sizes[s][1], NULL, 0);
			construct("ones", dtypes[d], sizes[s][0], sizes[s][1], NULL, 0);
			construct("full", dtypes[d], sizes[s][0], sizes[s][1], &value, 1);
		}
}

static void ranges(void)
{
	for (size_t d = 0; d < DTYPES; d++) {
		struct ql_gpu_option range[] = {number("first", 0.1), number("last", 30.4), number("step", 0.1)},
				     down[] = {number("first", 5), number("last", -600), number("step", -1)},
				     wide[] = {integer("n", 3), integer("m", 70)},
				     tall[] = {integer("n", 300), integer("m", 1)};

		construct("arange", dtypes[d], 1, 1, range, 3);
		construct("arange", dtypes[d], 1, 1, down, 3);
		construct("eye", dtypes[d], 1, 1, wide, 2);
		construct("eye", dtypes[d], 1, 1, tall, 2);
	}
}

static void published(void)
{
	struct ql_gpu_option all[] = {integer("low", 0), integer("high", -1)};
	int64_t n = 2, got[2];
	struct ql_gpu_tensor out = gpu_tensor(&g, "int64", 1, &n, NULL, 0);
	struct ql_gpu_call call = gpu_call("randint", NULL, 0, &out, 1);

	call.options = all;
	call.n_options = 2;
	if (!gpu_run(&g, call))
		return;
	gpu_get(&g, &out, got);
	CHECK((uint64_t)got[0] == 0x6627e8d5e169c58d && (uint64_t)got[1] == 0xbc57ac4c9b00dbd8, "%llx %llx",
		(unsigned long long)got[0], (unsigned long long)got[1]);
	gpu_free(&g, &out);
}

/* ---- dropout ---- */

static const struct view views[] = {
	{"a row", 1, {1029}, {1}, 0, 0},
	{"dense and a multiple of 4", 2, {8, 64}, {64, 1}, 0, 0},
	{"unaligned", 1, {64}, {1}, 1, 0},
	{"transposed", 2, {40, 30}, {1, 40}, 0, 0},
	{"reversed and narrowed", 2, {9, 70}, {100, -1}, 99, 0},
	{"a single element", 0, {0}, {0}, 5, 0},
	{"nothing", 2, {0, 5}, {5, 1}, 0, 0},
};

static void drop(const struct view *v, const char *dtype, double p)
{
	static int64_t data[VIEW_BUFFER];
	struct ql_gpu_option o = number("p", p);
	struct ql_gpu_tensor in, out;
	struct ql_tensor *x, *want;
	struct ql_gpu_call call;

	view_fill(dtype, data, true);
	x = view_core(ctx, v, dtype, data);
	ctx->seed = SEED + 1;
	ctx->rng_position = 77;
	want = x ? core("dropout", &x, 1, &o, 1, NULL, NULL) : NULL;
	if (!CHECK(want, "dropout of %s: %s", dtype, ctx->err))
		return;
	in = view_gpu(&g, v, dtype, data);
	out = gpu_tensor(&g, dtype, want->rank, want->shape, NULL, 0);
	call = gpu_call("dropout_back", &in, 1, &out, 1);
	call.seed = SEED + 1;
	call.first = 77;
	call.options = &o;
	call.n_options = 1;
	if (gpu_run(&g, call) || CHECK(false, "dropout refused: %s", g.why))
		compare(v->what, want, &out);
	gpu_free(&g, &in);
	gpu_free(&g, &out);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, want);
}

static void refusals(void)
{
	struct ql_gpu_option o = integer("training", 0);
	int64_t n = 3;
	struct ql_gpu_tensor in = gpu_tensor(&g, "float32", 1, &n, NULL, 0),
			     out = gpu_tensor(&g, "float32", 1, &n, NULL, 0);
	struct ql_gpu_call call = gpu_call("dropout", &in, 1, &out, 1), packed;

	call.options = &o;
	call.n_options = 1;
	CHECK(!gpu_run(&g, call) && strstr(g.why, "training"), "%s", g.why);
	packed = gpu_call("randint", NULL, 0, &out, 1);
	out.dtype = "int4";
	CHECK(!gpu_run(&g, packed) && strstr(g.why, "whole bytes"), "%s", g.why);
	gpu_free(&g, &in);
	gpu_free(&g, &out);
}

int main(void)
{
	ctx = ql_ctx_new(1);
	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	for (int o = 0; o < ORDERS; o++) {
		CASE("random and constant numbers, threads %s", gpu_order(o));
		numbers();
		ranges();
		CASE("dropout, threads %s", gpu_order(o));
		for (size_t v = 0; v < sizeof(views) / sizeof(views[0]); v++)
			for (int d = 0; d < 4; d++)
				for (int p = 0; p < 3; p++)
					drop(&views[v], dtypes[d], (double[]){0.5, 0.1, 0.999}[p]);
	}
	CASE("the published words");
	published();
	CASE("refusals");
	refusals();
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
