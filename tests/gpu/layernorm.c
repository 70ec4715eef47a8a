/* SPDX-License-Identifier: MIT
 * The kernel layernorm: results against the ops of the core, gradients against the order of sums that tensor/ops/layernorm.c
 * describes, written out here for rows whose squares do not overflow; tests/gpu/lines.lua has gradients of the others.
 */
#include "tensor/loops/lanes.h"
#include "tests/tools/gpu_views.h"

#define MOST 60000

static struct gpu g;
static float x[MOST], dy[MOST], weight[MOST], bias[MOST], got[MOST], want[MOST];

struct problem {
	int64_t rows, n;
};

static const struct problem problems[] = {{1, 1}, {40, 30}, {150, 33}, {3, 300}, {2, 1500}, {18, 1030}, {2, 8300}};

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

/* size: what the rows are multiplied with */
static void try_forward(struct ql_ctx *ctx, const struct problem *p, bool centred, const char *dtype, float size)
{
	static int64_t data[MOST];
	const char *op = centred ? "layernorm" : "rmsnorm";
	const int64_t shape[] = {p->rows, p->n};
	struct ql_value attr[4] = {{.set = true, .f = 1e-4}};
	struct ql_gpu_option eps = {.name = "eps", .type = QL_GPU_OPTION_NUMBER, .f = 1e-4};
	struct ql_tensor *in[3];
	struct ql_gpu_tensor at[3], out = gpu_tensor(&g, dtype, 2, shape, NULL, 0);
	struct ql_call call = {.op = ql_op_by_name(ql_ops, op), .in = in, .n_in = centred ? 3 : 2, .attr = attr};
	struct ql_gpu_call on;

	for (int64_t i = 0; i < p->rows * p->n; i++) {
		double value = (double)(x[i] * size);

		ql_dtypes[ql_dtype_by_name(dtype)].from_f64(data, i, 1, 1, &value);
	}
	for (int i = 0; i < 3; i++) {
		const void *from = i == 0 ? (const void *)data : i == 1 ? weight : bias;

		in[i] = tensor_of(ctx, i ? "float32" : dtype, i ? 1 : 2, i ? &p->n : shape, from);
		at[i] = gpu_tensor(&g, i ? "float32" : dtype, i ? 1 : 2, i ? &p->n : shape, from, 0);
	}
	on = gpu_call(op, at, centred ? 3 : 2, &out, 1);
	on.options = &eps;
	on.n_options = 1;
	if (CHECK(!ql_op_apply(ctx, &call), "%s", ctx->err) && CHECK(gpu_run(&g, on), "refused: %s", g.why)) {
		gpu_get(&g, &out, data);
		for (int64_t i = 0; i < p->rows * p->n; i++)
			if (!CHECK(view_same(dtype, data, ql_tensor_data(call.out[0]), i),
				    "%s of %s, %d x %d: element %d", op, dtype, (int)p->rows, (int)p->n, (int)i))
				break;
		ql_tensor_release(ctx, call.out[0]);
	}
	for (int i = 0; i < 3; i++) {
		ql_tensor_release(ctx, in[i]);
		gpu_free(&g, &at[i]);
	}
	gpu_free(&g, &out);
}

/* Sums of a and b, whose float32 lanes are widened after 256 elements and joined at the end. */
static void lanes_of(const float *a, const float *b, int64_t n, double sum[2])
{
	double wide[2][32] = {{0}};

	for (int64_t r = 0; r < n; r += 256) {
		float lane[2][32] = {{0}};

		for (int64_t i = r; i < r + 256 && i < n; i++) {
			lane[0][i % 32] += a[i];
			lane[1][i % 32] += b[i];
		}
		for (int l = 0; l < 32; l++) {
			wide[0][l] += (double)lane[0][l];
			wide[1][l] += (double)lane[1][l];
		}
	}
	sum[0] = ql_join_lanes(wide[0], 32, 1);
	sum[1] = ql_join_lanes(wide[1], 32, 1);
}

/* dx, and h in its place in `h`. */
static void back_of_row(int64_t n, const float *row, const float *gradient, bool centred, float *dx, float *h)
{
	static float a[MOST], b[MOST];
	double mean = centred ? ql_sum_f32(0, row, n) / (double)n : 0, sum[2], rest = 0, variance;
	float shift = (float)mean, by, slope;

	for (int64_t i = 0; i < n; i++) {
		a[i] = row[i] - shift;
		b[i] = a[i] * a[i];
	}
	lanes_of(a, b, n, sum);
	if (centred)
		rest = -sum[0] / (double)n;
	variance = sum[1] / (double)n - rest * rest;
	by = (float)(1 / sqrt((variance < 0 ? 0 : variance) + 1e-4));
	for (int64_t i = 0; i < n; i++) {
		h[i] = ((row[i] - shift) + (float)rest) * by;
		a[i] = gradient[i] * weight[i];
		b[i] = a[i] * h[i];
	}
	lanes_of(a, b, n, sum);
	mean = centred ? sum[0] / (double)n : 0;
	slope = (float)(sum[1] / (double)n);
	for (int64_t i = 0; i < n; i++)
		dx[i] = (a[i] - (float)mean - h[i] * slope) * by;
}

static void same(const struct ql_gpu_tensor *t, const float *wanted, int64_t n, const char *what)
{
	gpu_get(&g, t, got);
	for (int64_t i = 0; i < n; i++)
		if (!CHECK(gpu_same_f32(got[i], wanted[i]), "%s: element %d of %d: %.9g, wanted %.9g", what, (int)i,
			    (int)n, (double)got[i], (double)wanted[i]))
			return;
}

/* Sums over the rows: at most 64 parts of at least 16, float32 over 16 rows. */
static void sum_rows(const struct problem *p, const float *h, float *dw, float *db)
{
	int64_t wanted = (p->rows + 15) / 16 < 64 ? (p->rows + 15) / 16 : 64, part = (p->rows + wanted - 1) / wanted;

	for (int64_t i = 0; i < p->n; i++) {
		double all[2] = {0};

		for (int64_t first = 0; first < p->rows; first += part) {
			double of_part[2] = {0};

			for (int64_t f = first; f < first + part && f < p->rows; f += 16) {
				float sum[2] = {0};

				for (int64_t r = f; r < f + 16 && r < first + part && r < p->rows; r++) {
					sum[0] += dy[r * p->n + i] * h[r * p->n + i];
					sum[1] += dy[r * p->n + i];
				}
				of_part[0] += (double)sum[0];
				of_part[1] += (double)sum[1];
			}
			all[0] += of_part[0];
			all[1] += of_part[1];
		}
		dw[i] = (float)all[0];
		db[i] = (float)all[1];
	}
}

static void try_back(const struct problem *p, bool centred)
{
	static float h[MOST], dw[MOST], db[MOST];
	const int64_t shape[] = {p->rows, p->n};
	struct ql_gpu_option eps = {.name = "eps", .type = QL_GPU_OPTION_NUMBER, .f = 1e-4};
	struct ql_gpu_tensor in[] = {gpu_tensor(&g, "float32", 2, shape, dy, 0),
		gpu_tensor(&g, "float32", 2, shape, x, 0), gpu_tensor(&g, "float32", 1, &p->n, weight, 0)};
	struct ql_gpu_tensor out[] = {gpu_tensor(&g, "float32", 2, shape, NULL, 0),
		gpu_tensor(&g, "float32", 1, &p->n, NULL, 0), gpu_tensor(&g, "float32", 1, &p->n, NULL, 0)};
	struct ql_gpu_call call = gpu_call(centred ? "layernorm_back" : "rmsnorm_back", in, 3, out, 3);

	for (int64_t r = 0; r < p->rows; r++)
		back_of_row(p->n, x + r * p->n, dy + r * p->n, centred, want + r * p->n, h + r * p->n);
	sum_rows(p, h, dw, db);
	call.options = &eps;
	call.n_options = 1;
	if (CHECK(gpu_run(&g, call), "refused: %s", g.why)) {
		same(&out[0], want, p->rows * p->n, "the gradient of x");
		same(&out[1], dw, p->n, "the gradient of weight");
		same(&out[2], db, p->n, "the gradient of bias");
	}
	for (int i = 0; i < 3; i++) {
		gpu_free(&g, &in[i]);
		gpu_free(&g, &out[i]);
	}
}

/* Rows enough that a part has more than eight times 16. */
static void many_rows(void)
{
	struct problem p = {64 * 130 + 5, 2};

	try_back(&p, true);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	for (int i = 0; i < MOST; i++) {
		x[i] = gpu_draw_float() + 3;
		dy[i] = gpu_draw_float();
		weight[i] = gpu_draw_float();
		bias[i] = gpu_draw_float();
	}
	for (int o = 0; o < ORDERS; o++)
		for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
			CASE("%d rows of %d, threads %s", (int)problems[i].rows, (int)problems[i].n, gpu_order(o));
			for (int centred = 0; centred < 2; centred++) {
				try_forward(ctx, &problems[i], centred, i % 2 ? "float32" : "bfloat16", 1);
				try_forward(ctx, &problems[i], centred, "float32", 0x1p100f);
				try_forward(ctx, &problems[i], centred, "float32", INFINITY);
				try_back(&problems[i], centred);
			}
		}
	CASE("many rows");
	gpu_order(0); /* the warp that stores the sums comes last */
	many_rows();
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
