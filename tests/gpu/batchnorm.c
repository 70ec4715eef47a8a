/* SPDX-License-Identifier: MIT
 * The kernel batchnorm against the op of the core, with the running statistics that training writes, and its gradient against
 * the formulas written out here.
 */
#include "tests/tools/gpu_views.h"

extern const struct ql_op ql_op_batchnorm;

#define MOST 8192

static struct gpu g;
static double x[MOST], dy[MOST], vector[4][64]; /* weight, bias, mean, var */

struct problem {
	int rank;
	int64_t shape[4];
};

static const struct problem problems[] = {{2, {9, 40}}, {4, {3, 5, 4, 7}}, {3, {2, 2, 600}}, {3, {2, 3, 70}},
	{2, {2, 1}}, {3, {3, 1, 1030}}, {2, {35, 8}}, {3, {17, 3, 16}}};

static int64_t size_of(const struct problem *p)
{
	int64_t n = 1;

	for (int d = 0; d < p->rank; d++)
		n *= p->shape[d];
	return n;
}

/* Numbers rounded to the dtype, in `to`; and in `from`, so that both are the same. */
static void fill(const char *dtype, void *to, double *from, int64_t n)
{
	const struct ql_dtype_info *d = &ql_dtypes[ql_dtype_by_name(dtype)];

	d->from_f64(to, 0, 1, n, from);
	d->to_f64(to, 0, 1, n, from);
}

static struct ql_tensor *tensor_of(
	struct ql_ctx *ctx, const char *dtype, int rank, const int64_t *shape, const void *data)
{
	unsigned type = (unsigned)ql_dtype_by_name(dtype);
	struct ql_tensor *t = NULL;

	if (!CHECK(!ql_tensor_new(ctx, type, rank, shape, &t), "%s", ctx->err))
		exit(check_end());
	memcpy(ql_tensor_data(t), data, (size_t)ql_tensor_nelem(t) * ql_dtypes[type].bits / 8);
	return t;
}

static void expect(const struct ql_gpu_tensor *t, const char *dtype, const void *want, int64_t n, const char *what)
{
	static int64_t got[MOST];

	gpu_get(&g, t, got);
	for (int64_t i = 0; i < n; i++)
		if (!CHECK(view_same(dtype, got, want, i), "%s of %s: element %d", what, dtype, (int)i))
			return;
}

static void try_forward(struct ql_ctx *ctx, const struct problem *p, const char *dtype, bool training)
{
	static int64_t data[MOST];
	struct ql_value attr[4] = {{.set = true, .f = 1e-3}, {.set = true, .b = training}, {.set = true, .f = 0.25}};
	struct ql_gpu_option options[] = {{.name = "eps", .type = QL_GPU_OPTION_NUMBER, .f = 1e-3},
		{.name = "training", .i = training}, {.name = "momentum", .type = QL_GPU_OPTION_NUMBER, .f = 0.25}};
	struct ql_tensor *in[5];
	struct ql_gpu_tensor at[5], out = gpu_tensor(&g, dtype, p->rank, p->shape, NULL, 0);
	struct ql_call call = {.op = &ql_op_batchnorm, .in = in, .n_in = 5, .attr = attr};
	struct ql_gpu_call on;
	const char *narrow = strcmp(dtype, "float64") ? "float32" : dtype;

	for (int i = 0; i < 5; i++) {
		const char *type = i ? narrow : dtype;
		int rank = i ? 1 : p->rank;
		const int64_t *shape = i ? &p->shape[1] : p->shape;

		fill(type, data, i ? vector[i - 1] : x, i ? p->shape[1] : size_of(p));
		in[i] = tensor_of(ctx, type, rank, shape, data);
		at[i] = gpu_tensor(&g, type, rank, shape, data, 0);
	}
	on = gpu_call("batchnorm", at, 5, &out, 1);
	on.options = options;
	on.n_options = 3;
	if (CHECK(!ql_op_apply(ctx, &call), "%s", ctx->err) && CHECK(gpu_run(&g, on), "refused: %s", g.why)) {
		expect(&out, dtype, ql_tensor_data(call.out[0]), size_of(p), training ? "training" : "inference");
		expect(&at[3], narrow, ql_tensor_data(in[3]), p->shape[1], "mean");
		expect(&at[4], narrow, ql_tensor_data(in[4]), p->shape[1], "var");
		ql_tensor_release(ctx, call.out[0]);
	}
	for (int i = 0; i < 5; i++) {
		ql_tensor_release(ctx, in[i]);
		gpu_free(&g, &at[i]);
	}
	gpu_free(&g, &out);
}

/* Sums of a channel: positions over n, then pieces of 512 positions in order. */
static void sums_of(const struct problem *p, int64_t c, double sum[4])
{
	int64_t channels = p->shape[1], length = size_of(p) / p->shape[0] / channels;
	double shift = x[c * length];

	memset(sum, 0, 4 * sizeof(*sum));
	for (int64_t piece = 0; piece < length; piece += 512) {
		double of[4] = {0};

		for (int64_t l = piece; l < piece + 512 && l < length; l++) {
			double s[4] = {0};

			for (int64_t i = 0; i < p->shape[0]; i++) {
				int64_t e = (i * channels + c) * length + l;
				double d = x[e] - shift;

				s[0] += d;
				s[1] += d * d;
				s[2] += dy[e];
				s[3] += dy[e] * d;
			}
			for (int q = 0; q < 4; q++)
				of[q] += s[q];
		}
		for (int q = 0; q < 4; q++)
			sum[q] = piece ? sum[q] + of[q] : of[q];
	}
}

static void back_of_channel(const struct problem *p, int64_t c, bool training, float *dx, float *dw, float *db)
{
	int64_t channels = p->shape[1], length = size_of(p) / p->shape[0] / channels;
	double m = (double)p->shape[0] * (double)length, s[4], mean = vector[2][c], var = vector[3][c], r, product;
	float centre, a, b = 0, slope = 0;

	sums_of(p, c, s);
	if (training) {
		double d = s[0] / m, v = s[1] / m - d * d;

		mean = x[c * length] + d;
		var = v < 0 ? 0 : v;
	}
	r = 1 / sqrt(var + 1e-3);
	product = (s[3] - (mean - x[c * length]) * s[2]) * r;
	dw[c] = (float)product;
	db[c] = (float)s[2];
	centre = (float)mean;
	a = (float)(vector[0][c] * r);
	if (training) {
		slope = (float)(product / m * r);
		b = (float)(s[2] / m - (mean - (double)centre) * (product / m * r));
	}
	for (int64_t i = 0; i < p->shape[0]; i++)
		for (int64_t l = 0; l < length; l++) {
			int64_t e = (i * channels + c) * length + l;

			dx[e] = ((float)dy[e] - b - ((float)x[e] - centre) * slope) * a;
		}
}

static void try_back(const struct problem *p, bool training)
{
	static float data[MOST], dx[MOST], dw[64], db[64];
	struct ql_gpu_option options[] = {
		{.name = "eps", .type = QL_GPU_OPTION_NUMBER, .f = 1e-3}, {.name = "training", .i = training}};
	double *from[] = {dy, x, vector[0], vector[2], vector[3]};
	struct ql_gpu_tensor in[5], out[3];
	struct ql_gpu_call call;

	for (int i = 0; i < 5; i++) {
		fill("float32", data, from[i], i < 2 ? size_of(p) : p->shape[1]);
		in[i] = gpu_tensor(&g, "float32", i < 2 ? p->rank : 1, i < 2 ? p->shape : &p->shape[1], data, 0);
	}
	for (int i = 0; i < 3; i++)
		out[i] = gpu_tensor(&g, "float32", i ? 1 : p->rank, i ? &p->shape[1] : p->shape, NULL, 0);
	for (int64_t c = 0; c < p->shape[1]; c++)
		back_of_channel(p, c, training, dx, dw, db);
	call = gpu_call("batchnorm_back", in, training ? 3 : 5, out, 3);
	call.options = options;
	call.n_options = 2;
	if (CHECK(gpu_run(&g, call), "refused: %s", g.why)) {
		expect(&out[0], "float32", dx, size_of(p), "the gradient of x");
		expect(&out[1], "float32", dw, p->shape[1], "the gradient of weight");
		expect(&out[2], "float32", db, p->shape[1], "the gradient of bias");
	}
	for (int i = 0; i < 5; i++)
		gpu_free(&g, &in[i]);
	for (int i = 0; i < 3; i++)
		gpu_free(&g, &out[i]);
}

int main(void)
{
	static const char *const dtypes[] = {"float32", "float64", "float16", "bfloat16"};
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	for (int i = 0; i < MOST; i++) {
		x[i] = (double)gpu_draw_float() + 100;
		dy[i] = (double)gpu_draw_float();
	}
	for (int i = 0; i < 4; i++)
		for (int c = 0; c < 64; c++)
			vector[i][c] = fabs((double)gpu_draw_float()) + 0.5;
	for (int o = 0; o < ORDERS; o++)
		for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
			CASE("shape %d, threads %s", (int)i, gpu_order(o));
			for (int training = 0; training < 2; training++) {
				for (int d = 0; d < 4; d++)
					try_forward(ctx, &problems[i], dtypes[d], training);
				try_back(&problems[i], training);
			}
		}
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
