/* SPDX-License-Identifier: MIT
 * The kernels embedding and embedding_back: rows against the bytes of the table and, of codes, against the op of the core;
 * gradients against sums in order of the ids, written out here.
 */
#include "tests/tools/gpu_codes.h"

static struct gpu g;
static struct ql_ctx *ctx;

/* ---- rows as they are ---- */

static const struct view tables[] = {
	{"dense", 2, {40, 64}, {64, 1}, 0, 0},
	{"rows of 16 bytes", 2, {30, 16}, {48, 1}, 16, 0},
	{"odd rows", 2, {50, 33}, {33, 1}, 1, 0},
	{"transposed", 2, {21, 37}, {1, 21}, 0, 0},
	{"a single row", 2, {1, 5}, {5, 1}, 3, 0},
	{"backwards", 2, {9, 70}, {-80, -1}, 4000, 0},
};
#define TABLES (sizeof(tables) / sizeof(tables[0]))

static const struct view numbers[] = {
	{"dense", 2, {9, 5}, {5, 1}, 0, 0},
	{"narrowed and transposed", 3, {3, 4, 2}, {1, 10, 40}, 7, 0},
	{"expanded", 2, {3, 11}, {0, 2}, 1, 0},
	{"a number", 0, {0}, {0}, 2, 0},
	{"none", 1, {0}, {1}, 0, 0},
};
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static int64_t elements_of(const struct view *v)
{
	int64_t n = 1;

	for (int d = 0; d < v->rank; d++)
		n *= v->shape[d];
	return n;
}

/* Ids from 1 to `rows` of an integer dtype; wide: the same as int64. */
static void fill_ids(const char *dtype, int64_t rows, void *data, int64_t *wide)
{
	for (int64_t i = 0; i < VIEW_BUFFER; i++) {
		wide[i] = 1 + gpu_draw() % rows;
		ql_dtypes[ql_dtype_by_name(dtype)].from_i64(data, i, 1, 1, &wide[i]);
	}
}

static void try_rows(const char *dtype, const struct view *table, const char *id_dtype, const struct view *ids)
{
	static int64_t data[VIEW_BUFFER], id[VIEW_BUFFER], wide[VIEW_BUFFER], got[VIEW_BUFFER];
	int64_t d = table->shape[1], n = elements_of(ids), shape[2] = {n, d};
	size_t size = ql_dtypes[ql_dtype_by_name(dtype)].bits / 8;
	struct ql_gpu_tensor in[2], out;

	view_fill(dtype, data, false);
	fill_ids(id_dtype, table->shape[0], id, wide);
	in[0] = view_gpu(&g, table, dtype, data);
	in[1] = view_gpu(&g, ids, id_dtype, id);
	out = gpu_tensor(&g, dtype, 2, shape, NULL, 0);
	if (gpu_run(&g, gpu_call("embedding", in, 2, &out, 1)) || CHECK(false, "refused: %s", g.why)) {
		gpu_get(&g, &out, got);
		for (int64_t i = 0; i < n * d; i++) {
			int64_t row = wide[view_at(ids, i / d)] - 1, from = view_at(table, row * d + i % d);

			CHECK(!memcmp((char *)got + (size_t)i * size, (char *)data + (size_t)from * size, size),
				"%s, table %s, ids %s: element %d", dtype, table->what, ids->what, (int)i);
		}
	}
	gpu_free(&g, &in[0]);
	gpu_free(&g, &in[1]);
	gpu_free(&g, &out);
}

static void plain_rows(void)
{
	static const char *const dtypes[] = {"float32", "float64", "float16", "int8"};
	static const char *const id_dtypes[] = {"int64", "int32", "uint8", "int16"};

	for (size_t t = 0; t < TABLES; t++)
		for (size_t i = 0; i < NUMBERS; i++)
			for (int d = 0; d < 4; d++)
				try_rows(dtypes[d], &tables[t], id_dtypes[(d + (int)i) % 4], &numbers[i]);
}

/* ---- rows of codes ---- */

static struct ql_tensor *core(const char *op, struct ql_tensor *a, struct ql_tensor *b)
{
	struct ql_tensor *out;

	return ql_op_run(ctx, ql_op_by_name(ql_ops, op), a, b, &out) ? NULL : out;
}

static struct ql_tensor *table_of(const char *text, int64_t rows, int64_t d)
{
	struct ql_spec spec;
	struct ql_tensor *x, *q = NULL;

	if (ql_tensor_new(ctx, QL_float32, 2, (const int64_t[]){rows, d}, &x))
		return NULL;
	for (int64_t i = 0; i < rows * d; i++)
		((float *)ql_tensor_data(x))[i] = gpu_draw_float();
	CHECK(!ql_spec_parse(ctx, text, &spec) && !ql_quantize(ctx, x, &spec, &q), "%s: %s", text, ctx->err);
	ql_tensor_release(ctx, x);
	return q;
}

static void try_codes(const char *text, int64_t rows, int64_t d)
{
	enum { N = 37 };
	struct ql_tensor *table = table_of(text, rows, d), *ids = NULL, *want = NULL;
	struct ql_gpu_tensor in[2], out;
	struct gpu_codes c;

	if (!table || ql_tensor_new(ctx, QL_int64, 1, (const int64_t[]){N}, &ids))
		return;
	for (int i = 0; i < N; i++)
		((int64_t *)ql_tensor_data(ids))[i] = i == 0 ? rows : 1 + gpu_draw() % rows;
	want = core("embedding", table, ids);
	if (!CHECK(want, "%s: %s", text, ctx->err))
		return;
	gpu_codes_of(&g, &c, table, false);
	in[0] = c.t;
	in[1] = gpu_of_core(&g, ids, true);
	out = gpu_tensor(&g, "float32", want->rank, want->shape, NULL, 0);
	if (gpu_run(&g, gpu_call("embedding", in, 2, &out, 1)) || CHECK(false, "%s refused: %s", text, g.why))
		gpu_expect(&g, &out, want, text);
	gpu_free(&g, &in[1]);
	gpu_free(&g, &out);
	gpu_codes_free(&g, &c);
	ql_tensor_release(ctx, table);
	ql_tensor_release(ctx, ids);
	ql_tensor_release(ctx, want);
}

static void rows_of_codes(void)
{
	static const char *const specs[] = {"int8", "uint8", "int8/1", "uint8/2", "int16/1", "int8:16", "uint8:7",
		"int8/1:4", "uint8/1:3", "int4", "int4/1", "uint4:32", "int3/2", "uint5", "int2:8"};

	for (size_t s = 0; s < sizeof(specs) / sizeof(specs[0]); s++) {
		try_codes(specs[s], 23, 64);
		try_codes(specs[s], 7, 33);
		try_codes(specs[s], 1, 1);
	}
}

/* ---- ids that are no rows ---- */

static void bad_ids(void)
{
	const float table[2][3] = {{1, 2, 3}, {4, 5, 6}};
	const int32_t bad[] = {0, 3, -7, INT32_MAX};

	for (int i = 0; i < 4; i++) {
		int32_t id[4] = {2, bad[i], 1, 2};
		struct ql_gpu_tensor in[2] = {gpu_tensor(&g, "float32", 2, (const int64_t[]){2, 3}, table, 0),
			gpu_tensor(&g, "int32", 2, (const int64_t[]){2, 2}, id, 0)};
		struct ql_gpu_tensor out = gpu_tensor(&g, "float32", 3, (const int64_t[]){2, 2, 3}, NULL, 0),
				     sum = gpu_tensor(&g, "float32", 2, (const int64_t[]){2, 3}, NULL, 0);
		struct ql_gpu_call call = gpu_call("embedding", in, 2, &out, 1);
		struct ql_gpu_fault fault;
		float got[12];

		call.serial = 17;
		CHECK(gpu_run(&g, call), "refused: %s", g.why);
		CHECK(!g.v->fault(g.s, &fault) && fault.kind == QL_GPU_FAULT_INDEX && fault.serial == 17 &&
				fault.position == 1 && fault.value == bad[i] && fault.limit == 2,
			"fault %d of %d: %d at %d", fault.kind, (int)fault.serial, (int)fault.value,
			(int)fault.position);
		gpu_get(&g, &out, got);
		CHECK(got[0] == 4 && got[3] == 1 && got[6] == 1 && got[11] == 6, "%g %g", (double)got[0],
			(double)got[3]);
		gpu_free(&g, &in[0]);
		in[0] = out;
		call = gpu_call("embedding_back", in, 2, &sum, 1);
		call.serial = 18;
		CHECK(gpu_run(&g, call), "refused: %s", g.why);
		CHECK(!g.v->fault(g.s, &fault) && fault.kind == QL_GPU_FAULT_INDEX && fault.serial == 18 &&
				fault.position == 1 && fault.value == bad[i],
			"fault %d of %d: %d at %d", fault.kind, (int)fault.serial, (int)fault.value,
			(int)fault.position);
		CHECK(!g.v->fault(g.s, &fault) && fault.kind == QL_GPU_FAULT_NONE, "the fault comes again");
		gpu_free(&g, &in[1]);
		gpu_free(&g, &out);
		gpu_free(&g, &sum);
	}
}

/* ---- gradients ---- */

static void try_sums(const char *dtype, int64_t n, int64_t rows, int64_t d, bool turned)
{
	bool wide = !strcmp(dtype, "float64");
	size_t size = ql_dtypes[ql_dtype_by_name(dtype)].bits / 8, to = wide ? 8 : 4;
	int64_t *id = check_alloc((size_t)n * 8 + 8), shape[2] = {n, d}, size_of[2] = {rows, d};
	char *x = check_alloc((size_t)(n * d) * size + 8), *want = check_alloc((size_t)(rows * d) * to),
	     *got = check_alloc((size_t)(rows * d) * to);
	struct ql_gpu_tensor in[2], out;

	memset(want, 0, (size_t)(rows * d) * to);
	for (int64_t i = 0; i < n; i++)
		id[i] = 1 + (gpu_draw() % 4 ? gpu_draw() % rows : gpu_draw() % (rows < 3 ? rows : 3));
	for (int64_t i = 0; i < n * d; i++) {
		double v = gpu_draw_float(), back;
		int64_t position = turned ? i % n : i / d, column = turned ? i / n : i % d;
		int64_t at = (id[position] - 1) * d + column;

		ql_dtypes[ql_dtype_by_name(dtype)].from_f64(x, i, 1, 1, &v);
		ql_dtypes[ql_dtype_by_name(dtype)].to_f64(x, i, 1, 1, &back);
		if (wide)
			((double *)(void *)want)[at] += back;
		else
			((float *)(void *)want)[at] += (float)back;
	}
	in[0] = gpu_tensor(&g, dtype, 2, shape, x, 0);
	if (turned) {
		in[0].stride[0] = 1;
		in[0].stride[1] = n;
	}
	in[1] = gpu_tensor(&g, "int64", 1, &n, id, 0);
	out = gpu_tensor(&g, wide ? "float64" : "float32", 2, size_of, NULL, 0);
	if (gpu_run(&g, gpu_call("embedding_back", in, 2, &out, 1)) || CHECK(false, "refused: %s", g.why)) {
		gpu_get(&g, &out, got);
		CHECK(!memcmp(got, want, (size_t)(rows * d) * to), "%s: %d ids of %d rows of %d: other sums", dtype,
			(int)n, (int)rows, (int)d);
	}
	gpu_free(&g, &in[0]);
	gpu_free(&g, &in[1]);
	gpu_free(&g, &out);
	free(id);
	free(x);
	free(want);
	free(got);
}

static void gradients(bool all)
{
	try_sums("float32", 1, 1, 1, false);
	try_sums("float32", 0, 5, 3, false);
	try_sums("float32", 300, 1, 5, false);
	try_sums("float32", 5000, 11, 3, false);
	try_sums("float32", 257, 40, 64, false);
	try_sums("float64", 700, 300, 33, false);
	try_sums("float16", 513, 5, 40, false);
	try_sums("bfloat16", 100, 7, 31, true);
	try_sums("float32", 700, 13, 3, true);
	if (all)
		try_sums("float32", 3000, 70000, 2, false);
}

int main(void)
{
	ctx = ql_ctx_new(1);
	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	ctx->quant = &ql_quant_default;
	for (int o = 0; o < ORDERS; o++) {
		CASE("rows, threads %s", gpu_order(o));
		plain_rows();
		CASE("rows of codes, threads %s", gpu_order(o));
		rows_of_codes();
		CASE("ids that are no rows, threads %s", gpu_order(o));
		bad_ids();
		CASE("gradients, threads %s", gpu_order(o));
		gradients(o == 0);
	}
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
