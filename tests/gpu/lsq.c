/* SPDX-License-Identifier: MIT
 * The kernels lsq and lsq_back against the formulas of LSQ written out: values, the gradient of x, and sums in the order of
 * quant/ops/lsq.c, pieces of 4096 elements in eight lanes, or rows of columns. tests/gpu/qat.lua compares with the core.
 */
#include "tests/tools/gpu_device.h"

static struct gpu g;

#define MOST 10000
#define PIECE 4096

static float x[MOST], dy[MOST], scale[MOST], want_y[MOST], want_dx[MOST];
static double want_ds[MOST];

/* The term of element i in the gradient of its scale. Codes lo .. hi. */
static double term(int64_t i, float s, float lo, float hi)
{
	float u = x[i] / s, v = u < lo - 1 ? lo - 1 : u > hi + 1 ? hi + 1 : u, r = rintf(v);
	bool low = v<lo, high = v> hi;

	r = r < lo ? lo : r > hi ? hi : r;
	want_y[i] = r * s;
	want_dx[i] = (low || high ? 0.0f : 1.0f) * dy[i];
	return (double)((low ? lo : high ? hi : r - v) * dy[i]);
}

static double piece_of(int64_t begin, int64_t end, float s, float lo, float hi)
{
	double a[8] = {0};

	for (int64_t i = begin; i < end; i++)
		a[(i - begin) % 8] += term(i, s, lo, hi);
	return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

/* rows of `row` elements. axis 0: a scale for each row; 1: for each column; -1: one. */
static void expect(int64_t rows, int64_t row, int axis, float lo, float hi)
{
	int64_t scales = axis < 0 ? 1 : axis ? row : rows, length = axis < 0 ? rows * row : row;
	int64_t piece = PIECE / row > 16 ? PIECE / row : 16;

	for (int64_t s = 0; s < scales; s++) {
		double sum = 0;

		for (int64_t i = 0; axis < 1 && i < length; i += PIECE)
			sum += piece_of(s * length + i, s * length + (i + PIECE < length ? i + PIECE : length),
				scale[s], lo, hi);
		for (int64_t r = 0; axis == 1 && r < rows; r += piece) {
			double part = 0;

			for (int64_t k = r; k < rows && k < r + piece; k++)
				part += term(k * row + s, scale[s], lo, hi);
			sum += part;
		}
		want_ds[s] = sum * (1 / sqrt((double)(rows * row / scales) * (double)hi));
	}
}

static void try(int64_t rows, int64_t row, int axis, int bits)
{
	const int64_t shape[] = {rows, row}, scales = axis < 0 ? 1 : shape[axis];
	struct ql_gpu_option options[] = {{.name = "bits", .type = QL_GPU_OPTION_INTEGER, .i = bits},
		{.name = "axis", .type = QL_GPU_OPTION_INTEGER, .i = axis}};
	struct ql_gpu_tensor in[3], out[2], y;
	struct ql_gpu_call call = gpu_call("lsq", in + 1, 2, &y, 1);
	float top = (float)(1 << (bits - 1)) - 1, low = bits <= 3 ? -top - 1 : -top;
	static float got[MOST];
	static double sums[MOST];

	for (int64_t i = 0; i < rows * row; i++) {
		x[i] = gpu_draw_float();
		dy[i] = gpu_draw_float();
	}
	for (int64_t s = 0; s < scales; s++)
		scale[s] = 0.3f + (float)(gpu_draw() % 100) / 100;
	expect(rows, row, axis, low, top);
	in[0] = gpu_tensor(&g, "float32", 2, shape, dy, 4);
	in[1] = gpu_tensor(&g, "float32", 2, shape, x, 8);
	in[2] = gpu_tensor(&g, "float32", 1, &scales, scale, 0);
	y = gpu_tensor(&g, "float32", 2, shape, NULL, 0);
	out[0] = gpu_tensor(&g, "float32", 2, shape, NULL, 0);
	out[1] = gpu_tensor(&g, "float64", 1, &scales, NULL, 0);
	CASE("%d by %d, axis %d, %d bits", (int)rows, (int)row, axis, bits);
	call.options = options;
	call.n_options = axis < 0 ? 1 : 2;
	CHECK(gpu_run(&g, call), "refused: %s", g.why);
	gpu_get(&g, &y, got);
	for (int64_t i = 0; i < rows * row; i++)
		if (!CHECK(got[i] == want_y[i], "value %d: %g, wanted %g", (int)i, (double)got[i], (double)want_y[i]))
			break;
	call = gpu_call("lsq_back", in, 3, out, 2);
	call.options = options;
	call.n_options = axis < 0 ? 1 : 2;
	CHECK(gpu_run(&g, call), "refused: %s", g.why);
	gpu_get(&g, &out[0], got);
	gpu_get(&g, &out[1], sums);
	for (int64_t i = 0; i < rows * row; i++)
		if (!CHECK(got[i] == want_dx[i], "gradient %d: %g, wanted %g", (int)i, (double)got[i],
			    (double)want_dx[i]))
			break;
	for (int64_t s = 0; s < scales; s++)
		CHECK(sums[s] == want_ds[s], "of scale %d: %.17g, wanted %.17g", (int)s, sums[s], want_ds[s]);
	for (int i = 0; i < 3; i++)
		gpu_free(&g, &in[i]);
	gpu_free(&g, &out[0]);
	gpu_free(&g, &out[1]);
	gpu_free(&g, &y);
}

int main(void)
{
	if (!gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	for (int o = 0; o < ORDERS; o++) {
		CASE("threads %s", gpu_order(o));
		for (int axis = -1; axis < 2; axis++)
			for (int bits = 3; bits < 9; bits += 5) {
				try(1, 9000, axis == 1 ? -1 : axis, bits);
				try(7, 130, axis, bits);
				try(2, 4600, axis, bits);
				try(900, 3, axis, bits);
			}
	}
	gpu_close(&g);
	return check_end();
}
