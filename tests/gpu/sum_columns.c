/* SPDX-License-Identifier: MIT
 * The kernel sum_columns against the sums of dense rows of tensor/loops/lanes.h, whose order is that of all sums.
 */
#include "tensor/loops/lanes.h"
#include "tests/tools/gpu_device.h"

static struct gpu g;

static const struct shape {
	int64_t rows, columns, line; /* elements from a row to the next */
	int64_t sheets;              /* of so many rows and columns; all are reduced over the rows */
} shapes[] = {
	{3, 16, 16, 1},
	{37, 30, 33, 3},
	{64, 17, 17, 1},
	{65, 17, 17, 1},
	{300, 40, 40, 1},
	{257, 33, 50, 2},
	{2050, 20, 20, 1},
	{5000, 70, 77, 1},
	{66000, 16, 16, 1},
	{700, 16, 16, 600},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static double value_of(const char *dtype, uint16_t *half, float *single, double *wide, int64_t i)
{
	double x = (double)gpu_draw_float() * ((gpu_draw() & 7) ? 1 : 1e-3);

	wide[i] = x;
	single[i] = (float)x;
	half[i] = dtype[0] == 'b' ? ql_f32_to_bf16((float)x) : ql_f32_to_f16((float)x);
	if (!strcmp(dtype, "float64"))
		return x;
	if (!strcmp(dtype, "float32"))
		return (double)single[i];
	return (double)(dtype[0] == 'b' ? ql_bf16_to_f32(half[i]) : ql_f16_to_f32(half[i]));
}

static double sum_of(const char *dtype, const double *x, int64_t step, int64_t n)
{
	double *wide = check_alloc((size_t)n * sizeof(*wide)), sum;
	float *single = check_alloc((size_t)n * sizeof(*single));

	for (int64_t i = 0; i < n; i++)
		single[i] = (float)(wide[i] = x[i * step]);
	sum = strcmp(dtype, "float64") ? ql_sum_f32(0, single, n) : ql_sum_f64(wide, n);
	free(wide);
	free(single);
	return sum;
}

/* The result in the dtype of the operand. */
static double rounded(const char *dtype, double x)
{
	const struct ql_dtype_info *d = &ql_dtypes[ql_dtype_by_name(dtype)];
	double bytes;

	d->from_f64(&bytes, 0, 1, 1, &x);
	d->to_f64(&bytes, 0, 1, 1, &x);
	return x;
}

static double got_at(const char *dtype, const void *got, int64_t i)
{
	if (!strcmp(dtype, "float64"))
		return ((const double *)got)[i];
	if (!strcmp(dtype, "float32"))
		return (double)((const float *)got)[i];
	return (double)(dtype[0] == 'b' ? ql_bf16_to_f32(((const uint16_t *)got)[i])
					: ql_f16_to_f32(((const uint16_t *)got)[i]));
}

static void sum(const char *op, const char *dtype, const struct shape *s)
{
	int64_t n = s->sheets * s->rows * s->line, results = s->sheets * s->columns;
	uint16_t *half = check_alloc((size_t)n * sizeof(*half));
	float *single = check_alloc((size_t)n * sizeof(*single));
	double *wide = check_alloc((size_t)n * sizeof(*wide)), *x = check_alloc((size_t)n * sizeof(*x)),
	       *got = check_alloc((size_t)results * sizeof(*got));
	struct ql_gpu_option axis = {.name = "axis", .type = QL_GPU_OPTION_AXES, .i = 2};
	struct ql_gpu_tensor in, out = gpu_tensor(&g, dtype, 2, (const int64_t[]){s->sheets, s->columns}, NULL, 0);
	struct ql_gpu_call call;

	for (int64_t i = 0; i < n; i++)
		x[i] = value_of(dtype, half, single, wide, i);
	in = gpu_tensor(&g, dtype, 3, (const int64_t[]){s->sheets, s->rows, s->line},
		!strcmp(dtype, "float64")   ? (const void *)wide
		: !strcmp(dtype, "float32") ? (const void *)single
					    : (const void *)half,
		0);
	in.shape[2] = s->columns;
	call = gpu_call(op, &in, 1, &out, 1);
	call.options = &axis;
	call.n_options = 1;
	if (CHECK(gpu_run(&g, call), "%s refused: %s", op, g.why) &&
		CHECK(!strcmp(g.name, "sum_columns"), "%s ran", g.name)) {
		gpu_get(&g, &out, got);
		for (int64_t i = 0; i < results; i++) {
			double want = sum_of(
				dtype, x + i / s->columns * s->rows * s->line + i % s->columns, s->line, s->rows);
			double y = got_at(dtype, got, i);

			want = rounded(dtype, !strcmp(op, "mean") ? want / (double)s->rows : want);
			if (!CHECK(y == want, "%s of %s, %d rows of %d, result %d: %.17g, wanted %.17g", op, dtype,
				    (int)s->rows, (int)s->columns, (int)i, y, want))
				break;
		}
	}
	gpu_free(&g, &in);
	gpu_free(&g, &out);
	free(half);
	free(single);
	free(wide);
	free(x);
	free(got);
}

int main(void)
{
	static const char *const dtypes[] = {"float32", "float64", "float16", "bfloat16"};

	if (!gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	for (int o = 0; o < ORDERS; o++) {
		CASE("threads %s", gpu_order(o));
		for (size_t i = 0; i < SHAPES; i++)
			for (size_t d = 0; d < 4; d++)
				if (o == 0 ? d < 2 || i < 7 : i < 7 && d < 2)
					sum((i + d) % 2 ? "sum" : "mean", dtypes[d], &shapes[i]);
	}
	gpu_close(&g);
	return check_end();
}
