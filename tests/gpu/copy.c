/* SPDX-License-Identifier: MIT
 * The kernel copy: views against plain loops, casts from all dtypes to all whole-byte ones against ql_tensor_cast.
 */
#include "tests/tools/gpu_views.h"

static struct gpu g;

/* ---- views ---- */

static const struct view views[] = {
	{"dense", 2, {3, 16}, {16, 1}, 0, 0},
	{"dense, from an odd element", 2, {3, 16}, {16, 1}, 3, 0},
	{"one element", 0, {0}, {0}, 7, 0},
	{"transposed", 2, {17, 5}, {1, 17}, 0, 0},
	{"narrowed", 3, {3, 5, 7}, {130, 13, 1}, 11, 0},
	{"permuted", 4, {2, 3, 4, 5}, {1, 40, 10, 2}, 1, 0},
	{"transposed by tiles", 2, {70, 45}, {1, 70}, 1, 0},
	{"more lines than a tile of bytes has", 2, {140, 20}, {1, 140}, 0, 0},
	{"permuted by tiles", 3, {3, 33, 40}, {1320, 1, 33}, 2, 0},
	{"reversed", 1, {1000}, {-1}, 1999, 0},
	{"expanded", 3, {4, 3, 5}, {0, 1, 0}, 2, 0},
	{"every third", 1, {333}, {3}, 0, 0},
	{"empty", 2, {0, 5}, {5, 1}, 0, 0},
	{"more than a launch", 2, {64, 63}, {64, 1}, 0, 0},
};
#define VIEWS (sizeof(views) / sizeof(views[0]))

static void try_view(const char *dtype, const struct view *v)
{
	static unsigned char data[VIEW_BUFFER * 8], got[VIEW_BUFFER * 8];
	size_t size = ql_dtypes[ql_dtype_by_name(dtype)].bits / 8;
	struct ql_gpu_tensor in, out;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)gpu_draw();
	in = view_gpu(&g, v, dtype, data);
	out = gpu_tensor(&g, dtype, v->rank, v->shape, NULL, 0);
	if (gpu_run(&g, gpu_call("copy", &in, 1, &out, 1))) {
		gpu_get(&g, &out, got);
		for (int64_t i = 0; i < gpu_count(&out); i++)
			CHECK(!memcmp(got + (size_t)i * size, data + (size_t)view_at(v, i) * size, size),
				"%s, %s: element %d", v->what, dtype, (int)i);
	}
	gpu_free(&g, &in);
	gpu_free(&g, &out);
}

/* ---- casts ---- */

static struct ql_tensor *random_tensor(struct ql_ctx *ctx, unsigned dtype, int64_t n)
{
	static const double special[] = {0, -0.0, 0.5, 1.5, -2.5, 127.5, 255.5, -32768.5, 65535.5, 3e9, -3e9, 1e19,
		-1e19, 448, 464, 65519, 65520, 1e-40, 6e-8, 5e-324, 3.4e38, 1e300, INFINITY, -INFINITY, NAN};
	struct ql_tensor *t = NULL;
	unsigned char *bytes;

	if (ql_tensor_new(ctx, dtype, 1, &n, &t))
		return NULL;
	bytes = t->storage->data;
	for (int64_t i = 0; i < (int64_t)t->storage->bytes; i++)
		bytes[i] = ql_dtype_is_bool(dtype) ? (unsigned char)(gpu_draw() & 1) : (unsigned char)gpu_draw();
	for (int64_t i = 0; ql_dtype_is_float(dtype) && i < 25; i++)
		ql_dtypes[dtype].from_f64(bytes, i, 1, 1, &special[i]);
	return t;
}

static void try_cast(struct ql_ctx *ctx, unsigned from, unsigned to)
{
	enum { N = 700 };
	int64_t n = N;
	struct ql_tensor *x = random_tensor(ctx, from, n), *want = NULL;
	struct ql_gpu_tensor in, out;
	int64_t got[N];

	if (!CHECK(x && !ql_tensor_cast(ctx, x, to, &want), "no memory"))
		return;
	in = gpu_tensor(&g, ql_dtype_name(from), 1, &n, x->storage->data, 0);
	out = gpu_tensor(&g, ql_dtype_name(to), 1, &n, NULL, 0);
	if (gpu_run(&g, gpu_call("copy", &in, 1, &out, 1))) {
		gpu_get(&g, &out, got);
		for (int64_t i = 0; i < n; i++)
			CHECK(view_same(ql_dtype_name(to), got, ql_tensor_data(want), i), "%s to %s: element %d, %.17g",
				ql_dtype_name(from), ql_dtype_name(to), (int)i, ql_tensor_at_f64(x, i));
	} else {
		CHECK(false, "refused: %s", g.why);
	}
	gpu_free(&g, &in);
	gpu_free(&g, &out);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, want);
}

static void try_casts(struct ql_ctx *ctx)
{
	for (unsigned from = 0; from < QL_DTYPE_COUNT; from++)
		for (unsigned to = 0; to < QL_DTYPE_COUNT; to++)
			if (!ql_dtype_is_packed(to))
				try_cast(ctx, from, to);
}

/* A number of the host fills every element of a view, as a cast of it. */
static void try_number(struct ql_ctx *ctx, unsigned from, double value, unsigned to)
{
	int64_t n = 33, got[33];
	struct ql_tensor *x = NULL, *want = NULL;
	struct ql_gpu_tensor out = gpu_tensor(&g, ql_dtype_name(to), 1, &n, NULL, 0);
	struct ql_gpu_tensor in = {.dtype = ql_dtype_name(from), .flags = QL_GPU_NUMBER, .f = value};

	if (from == QL_int64) {
		in.flags |= QL_GPU_INTEGER;
		in.i = (int64_t)value;
	}
	CHECK(!ql_tensor_new(ctx, from, 0, NULL, &x), "no memory");
	ql_dtypes[from].from_f64(ql_tensor_data(x), 0, 1, 1, &value);
	CHECK(!ql_tensor_cast(ctx, x, to, &want), "no memory");
	g.v->fill(g.s, out.at, 0, out.bytes);
	out.shape[0] = 11;
	out.stride[0] = 3;
	if (gpu_run(&g, gpu_call("copy", &in, 1, &out, 1))) {
		const int64_t zeros[33] = {0};

		out.bytes = (uint64_t)n * ql_dtypes[to].bits / 8;
		gpu_get(&g, &out, got);
		for (int64_t i = 0; i < n; i++) {
			size_t size = ql_dtypes[to].bits / 8;
			const char *element = (const char *)got + (size_t)i * size;

			CHECK(!memcmp(element, i % 3 ? (const char *)zeros : ql_tensor_data(want), size),
				"%g of %s in %s: element %d", value, ql_dtype_name(from), ql_dtype_name(to), (int)i);
		}
	} else {
		CHECK(false, "refused: %s", g.why);
	}
	gpu_free(&g, &out);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, want);
}

static void try_numbers(struct ql_ctx *ctx)
{
	static const double values[] = {0, 1, -3, 100, 300, -40000, 0.1, 2.5, 1e10, -1e300};

	for (unsigned to = 0; to < QL_DTYPE_COUNT; to++)
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]) && !ql_dtype_is_packed(to); i++) {
			try_number(ctx, QL_float64, values[i], to);
			if (values[i] == rint(values[i]) && fabs(values[i]) < 0x1p62)
				try_number(ctx, QL_int64, values[i], to);
		}
}

/* All values of 8 and 16 bits. */
static void try_all_small(struct ql_ctx *ctx, unsigned from)
{
	int64_t n = 1 << ql_dtypes[from].bits;
	struct ql_tensor *x = NULL, *want = NULL;
	struct ql_gpu_tensor in, out;
	float *got;

	if (!CHECK(!ql_tensor_new(ctx, from, 1, &n, &x), "no memory"))
		return;
	for (int64_t i = 0; i < n; i++)
		memcpy((char *)ql_tensor_data(x) + i * ql_dtypes[from].bits / 8, &i, ql_dtypes[from].bits / 8);
	if (!CHECK(!ql_tensor_cast(ctx, x, QL_float32, &want), "no memory"))
		return;
	got = check_alloc((size_t)n * sizeof(*got));
	in = gpu_tensor(&g, ql_dtype_name(from), 1, &n, ql_tensor_data(x), 0);
	out = gpu_tensor(&g, "float32", 1, &n, NULL, 0);
	if (gpu_run(&g, gpu_call("copy", &in, 1, &out, 1))) {
		gpu_get(&g, &out, got);
		for (int64_t i = 0; i < n; i++)
			CHECK(gpu_same_f32(got[i], ((float *)ql_tensor_data(want))[i]), "code %d", (int)i);
	}
	gpu_free(&g, &in);
	gpu_free(&g, &out);
	free(got);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, want);
}

static void refusals(void)
{
	int64_t n = 8;
	struct ql_gpu_tensor in = gpu_tensor(&g, "int8", 1, &n, "\1\2\3\4\5\6\7", 0),
			     out = gpu_tensor(&g, "int4", 1, &n, NULL, 0);

	CHECK(!gpu_run(&g, gpu_call("copy", &in, 1, &out, 1)) && strstr(g.why, "packed"), "%s", g.why);
	gpu_free(&g, &in);
	gpu_free(&g, &out);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	for (int o = 0; o < ORDERS; o++) {
		CASE("views, threads %s", gpu_order(o));
		for (size_t i = 0; i < VIEWS; i++) {
			try_view("uint8", &views[i]);
			try_view("float16", &views[i]);
			try_view("float32", &views[i]);
			try_view("int64", &views[i]);
		}
	}
	CASE("casts to all whole-byte dtypes");
	try_casts(ctx);
	for (unsigned d = 0; d < QL_DTYPE_COUNT; d++)
		if (ql_dtype_is_float(d) && ql_dtypes[d].bits <= 16) {
			CASE("all values of %s", ql_dtype_name(d));
			try_all_small(ctx, d);
		}
	CASE("numbers");
	try_numbers(ctx);
	CASE("refusals");
	refusals();
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
