/* SPDX-License-Identifier: MIT
 * The kernel rope against the formula, written out here with the angles in double, forward and back.
 */
#include "tests/tools/gpu_views.h"

static struct gpu g;

/* axis: of the positions */
static const struct shape {
	struct view v;
	int axis;
} shapes[] = {
	{{"rows", 2, {9, 8}, {8, 1}, 0, 0}, 0},
	{{"heads", 4, {2, 3, 5, 6}, {90, 30, 6, 1}, 0, 0}, 2},
	{{"heads behind the positions", 4, {2, 5, 7, 4}, {140, 28, 4, 1}, 2, 0}, 1},
	{{"turned", 3, {4, 12, 10}, {1, 48, 4}, 3, 0}, 1},
	{{"many rows", 3, {33, 2, 4}, {8, 4, 1}, 0, 0}, 1},
	{{"no rows", 3, {0, 2, 4}, {8, 4, 1}, 0, 0}, 1},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static double element(const char *dtype, const void *data, int64_t i)
{
	double x;

	ql_dtypes[ql_dtype_by_name(dtype)].to_f64(data, i, 1, 1, &x);
	return x;
}

/* Element i of the result, in row-major order, in the type in which pairs are turned. */
static double wanted(const struct shape *s, const char *dtype, const void *data, int64_t i, double base, int64_t start,
	double direction)
{
	int64_t d = s->v.shape[s->v.rank - 1], rest = i / d, position = 0, pair = i % d / 2;
	double a = element(dtype, data, view_at(&s->v, i - i % 2)),
	       b = element(dtype, data, view_at(&s->v, i - i % 2 + 1));
	double angle, c, sine;

	for (int k = s->v.rank - 2; k >= s->axis; k--) {
		position = rest % s->v.shape[k];
		rest /= s->v.shape[k];
	}
	angle = (double)(position + start - 1) * pow(base, -(double)(2 * pair) / (double)d);
	c = cos(angle);
	sine = direction * sin(angle);
	if (!strcmp(dtype, "float64"))
		return i % 2 ? b * c + a * sine : a * c - b * sine;
	return i % 2 ? (double)((float)b * (float)c + (float)a * (float)sine)
		     : (double)((float)a * (float)c - (float)b * (float)sine);
}

static void rotate(const char *op, const struct shape *s, const char *dtype, double base, int64_t start)
{
	static int64_t data[VIEW_BUFFER], got[VIEW_BUFFER];
	struct ql_gpu_option o[] = {{.name = "axis", .i = s->axis}, {.name = "start", .i = start},
		{.name = "base", .type = QL_GPU_OPTION_NUMBER, .f = base}};
	struct ql_gpu_tensor in, out;
	struct ql_gpu_call call;

	view_fill(dtype, data, false);
	in = view_gpu(&g, &s->v, dtype, data);
	out = gpu_tensor(&g, dtype, s->v.rank, s->v.shape, NULL, 0);
	call = gpu_call(op, &in, 1, &out, 1);
	call.options = o;
	call.n_options = 3;
	if (gpu_run(&g, call) || CHECK(false, "refused: %s", g.why)) {
		gpu_get(&g, &out, got);
		for (int64_t i = 0; i < gpu_count(&out); i++) {
			double want = wanted(s, dtype, data, i, base, start, strcmp(op, "rope") ? -1 : 1), x;
			int64_t one = 0;

			ql_dtypes[ql_dtype_by_name(dtype)].from_f64(&one, 0, 1, 1, &want);
			x = element(dtype, got, i);
			want = element(dtype, &one, 0);
			CHECK(fabs(x - want) <= 1e-15 * fabs(want), "%s of %s, %s: element %d is %.9g, wanted %.9g", op,
				dtype, s->v.what, (int)i, x, want);
		}
	}
	gpu_free(&g, &in);
	gpu_free(&g, &out);
}

static void refusals(void)
{
	int64_t shape[2] = {2, 4};
	struct ql_gpu_tensor in = gpu_tensor(&g, "int32", 2, shape, NULL, 0),
			     out = gpu_tensor(&g, "float32", 2, shape, NULL, 0);

	CHECK(!gpu_run(&g, gpu_call("rope", &in, 1, &out, 1)) && strstr(g.why, "floats"), "%s", g.why);
	gpu_free(&g, &in);
	gpu_free(&g, &out);
}

int main(void)
{
	static const char *const dtypes[] = {"float32", "float64", "float16", "bfloat16"};

	if (!gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	for (int o = 0; o < ORDERS; o++) {
		CASE("rotations, threads %s", gpu_order(o));
		for (size_t s = 0; s < SHAPES; s++)
			for (int d = 0; d < 4; d++) {
				rotate("rope", &shapes[s], dtypes[d], 10000, 1);
				rotate("rope", &shapes[s], dtypes[d], 50, 1234);
				rotate("rope_back", &shapes[s], dtypes[d], 10000, 7);
			}
	}
	CASE("refusals");
	refusals();
	gpu_close(&g);
	return check_end();
}
