/* SPDX-License-Identifier: MIT
 * The kernel relu: values, bits and gradients of relu and relu6 by their definitions, for views, dtypes and sizes around the
 * pieces of 4096 elements.
 */
#include "tests/tools/gpu_views.h"

static struct gpu g;

static const struct view views[] = {
	{"a buffer", 1, {VIEW_BUFFER}, {1}, 0, 0},
	{"more than a piece", 2, {3, 1500}, {0, 1}, 1, 0},
	{"transposed", 2, {30, 41}, {1, 30}, 3, 0},
	{"five", 1, {5}, {2}, 0, 0},
	{"empty", 2, {0, 4}, {4, 1}, 0, 0},
};
#define VIEWS (sizeof(views) / sizeof(views[0]))

/* The bit of element i of n. */
static bool bit_of(const uint8_t *bits, int64_t i, int64_t n)
{
	int64_t piece = i / 4096 * 4096, length = n - piece < 4096 ? n - piece : 4096, stride = (length + 7) / 8;

	return bits[piece / 8 + (i - piece) % stride] >> (i - piece) / stride & 1;
}

static void try(const struct view *v, const char *dtype, bool six)
{
	const struct ql_dtype_info *d = &ql_dtypes[ql_dtype_by_name(dtype)];
	static unsigned char x[VIEW_BUFFER * 8], dy[VIEW_BUFFER * 8], y[VIEW_BUFFER * 16], dx[VIEW_BUFFER * 16];
	static uint8_t bits[VIEW_BUFFER];
	struct ql_gpu_tensor in, back[2], out[2], slope;
	int64_t n, bytes;

	view_fill(dtype, x, true);
	view_fill(dtype, dy, false);
	in = view_gpu(&g, v, dtype, x);
	n = gpu_count(&in);
	bytes = (n + 7) / 8;
	out[0] = gpu_tensor(&g, dtype, v->rank, v->shape, NULL, 0);
	out[1] = gpu_tensor(&g, "uint8", 1, &bytes, NULL, 0);
	slope = gpu_tensor(&g, dtype, v->rank, v->shape, NULL, 0);
	back[0] = view_gpu(&g, v, dtype, dy);
	back[1] = out[1];
	CASE("%s of %s, %s", six ? "relu6" : "relu", v->what, dtype);
	CHECK(gpu_run(&g, gpu_call(six ? "relu6" : "relu", &in, 1, out, 2)), "refused: %s", g.why);
	CHECK(gpu_run(&g, gpu_call("relu_back", back, 2, &slope, 1)), "refused: %s", g.why);
	if (n) {
		gpu_get(&g, &out[0], y);
		gpu_get(&g, &out[1], bits);
		gpu_get(&g, &slope, dx);
	}
	for (int64_t i = 0; i < n; i++) {
		double a, b, from, to, want;
		bool passes;

		d->to_f64(x, view_at(v, i), 1, 1, &a);
		d->to_f64(dy, view_at(v, i), 1, 1, &from);
		d->to_f64(y, i, 1, 1, &b);
		d->to_f64(dx, i, 1, 1, &to);
		want = a < 0 ? 0 : six && a > 6 ? 6 : a;
		passes = six ? want > 0 && want < 6 : !(want <= 0);
		if (!CHECK((b == want && signbit(b) == signbit(want)) || (isnan(b) && isnan(want)),
			    "element %d: %g of %g", (int)i, b, a) ||
			!CHECK(bit_of(bits, i, n) == passes, "bit of element %d, %g", (int)i, a) ||
			!CHECK(to == (passes ? from : 0), "gradient %d: %g of %g", (int)i, to, from))
			break;
	}
	gpu_free(&g, &in);
	gpu_free(&g, &back[0]);
	gpu_free(&g, &out[0]);
	gpu_free(&g, &out[1]);
	gpu_free(&g, &slope);
}

int main(void)
{
	static const char *const dtypes[] = {"float32", "float64", "float16", "bfloat16"};

	if (!gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	for (int o = 0; o < ORDERS; o++) {
		CASE("threads %s", gpu_order(o));
		for (size_t v = 0; v < VIEWS; v++)
			for (int t = 0; t < 4; t++) {
				try(&views[v], dtypes[t], false);
				try(&views[v], dtypes[t], true);
			}
	}
	gpu_close(&g);
	return check_end();
}
