/* SPDX-License-Identifier: MIT
 * The kernel "gemm_i8_wgmma" against plain loops: ragged tiles, k beyond all stages, several tiles and batches for a block,
 * operands with and without sign, zero points, scales per tensor and line, bias, activation, results as floats and codes;
 * and what it leaves to others. Equal bits.
 */
#include "tests/tools/gpu_device.h"

static struct gpu g;

/* `batches` matrices of lines of k codes, `pitch` bytes apart. */
struct operand {
	int64_t batches, lines, k, pitch;
	bool is_unsigned, zero, per_line;
};

struct side {
	struct operand o;
	uint8_t *codes, *zeros;
	float *scales;
	struct ql_gpu_tensor t, scale, zero_point;
	struct ql_gpu_codes q;
};

static int32_t number(bool is_unsigned, uint8_t code)
{
	return is_unsigned ? code : (int8_t)code;
}

static void side_new(struct side *s, struct operand o, bool matmul_b)
{
	int64_t n = o.per_line ? o.lines : 1, bytes = o.batches * o.lines * o.pitch;
	const char *dtype = o.is_unsigned ? "uint8" : "int8";
	int rank = o.batches > 1 ? 3 : 2;

	*s = (struct side){.o = o};
	s->codes = check_alloc((size_t)bytes);
	s->zeros = check_alloc((size_t)n);
	s->scales = check_alloc((size_t)n * sizeof(float));
	for (int64_t i = 0; i < bytes; i++)
		s->codes[i] = (uint8_t)gpu_draw();
	for (int64_t i = 0; i < n; i++) {
		s->scales[i] = (float)(gpu_draw() % 1000 + 1) * 1e-3f;
		s->zeros[i] = (uint8_t)gpu_draw();
	}
	s->scale = gpu_tensor(&g, "float32", s->o.per_line, &n, s->scales, 0);
	s->zero_point = gpu_tensor(&g, dtype, s->o.per_line, &n, s->zeros, 0);
	s->q = (struct ql_gpu_codes){.size = sizeof(s->q),
		.flags = QL_GPU_AFFINE,
		.bits = 8,
		.axis = s->o.per_line ? rank - 2 + matmul_b : -1,
		.block_axis = -1,
		.scale = &s->scale,
		.zero_point = s->o.zero ? &s->zero_point : NULL,
		.lo = s->o.is_unsigned ? 0 : -128,
		.hi = s->o.is_unsigned ? 255 : 127};
	s->t = gpu_tensor(&g, dtype, 1, &bytes, s->codes, 0);
	s->t.codes = &s->q;
	s->t.rank = rank;
	s->t.shape[0] = s->o.batches;
	s->t.stride[0] = s->o.lines * s->o.pitch;
	s->t.shape[rank - 2 + matmul_b] = s->o.lines;
	s->t.stride[rank - 2 + matmul_b] = s->o.pitch;
	s->t.shape[rank - 1 - matmul_b] = s->o.k;
	s->t.stride[rank - 1 - matmul_b] = 1;
}

static void side_free(struct side *s)
{
	gpu_free(&g, &s->t);
	gpu_free(&g, &s->scale);
	gpu_free(&g, &s->zero_point);
	free(s->codes);
	free(s->zeros);
	free(s->scales);
}

/* The sum of products less zero points, of a row and a column. */
static int64_t exact(const struct side *a, const struct side *b, int64_t batch, int64_t i, int64_t j)
{
	const uint8_t *x = a->codes + ((a->o.batches > 1 ? batch : 0) * a->o.lines + i) * a->o.pitch;
	const uint8_t *w = b->codes + ((b->o.batches > 1 ? batch : 0) * b->o.lines + j) * b->o.pitch;
	int32_t za = a->o.zero ? number(a->o.is_unsigned, a->zeros[a->o.per_line ? i : 0]) : 0;
	int32_t zb = b->o.zero ? number(b->o.is_unsigned, b->zeros[b->o.per_line ? j : 0]) : 0;
	int64_t sum = 0;

	for (int64_t k = 0; k < a->o.k; k++)
		sum += (number(a->o.is_unsigned, x[k]) - za) * (number(b->o.is_unsigned, w[k]) - zb);
	return sum;
}

enum result { FLOATS, RELU6, CODES, RESULTS };

/* The result of a sum in units of `unit`. Codes of uint8 have scale 64 and zero point 100. */
static double result_of(enum result r, int64_t sum, float unit, const float *bias)
{
	float y = (float)sum * unit;
	double v;

	if (r == CODES) {
		sum += bias ? (int64_t)rint((double)*bias / (double)unit) : 0;
		v = rint((double)((float)sum * (float)((double)unit / 64))) + 100;
		return v < 0 ? 0 : v > 255 ? 255 : v;
	}
	if (bias)
		y = y + *bias;
	return r == RELU6 ? y > 6 ? 6 : y < 0 ? 0 : (double)y : (double)y;
}

static void expect(const struct side *a, const struct side *b, enum result r, const float *bias, const void *got)
{
	int64_t batches = a->o.batches > b->o.batches ? a->o.batches : b->o.batches, n = a->o.lines * b->o.lines;

	for (int64_t e = 0; e < batches * n; e++) {
		int64_t i = e % n / b->o.lines, j = e % b->o.lines;
		/* the factors of one product of scales, as the CPU multiplies them */
		float unit = a->scales[a->o.per_line ? i : 0] * b->scales[b->o.per_line ? j : 0];
		double want = result_of(r, exact(a, b, e / n, i, j), unit, bias ? &bias[j] : NULL);
		double have = r == CODES ? ((const uint8_t *)got)[e] : (double)((const float *)got)[e];

		if (!CHECK(have == want, "batch %d, row %d, column %d: %g, wanted %g", (int)(e / n), (int)i, (int)j,
			    have, want))
			return;
	}
}

static void try_product(struct operand x, struct operand w, enum result r, bool with_bias)
{
	struct side a, b;
	bool matmul = x.batches > 1 || w.batches > 1;
	int64_t shape[] = {x.batches > w.batches ? x.batches : w.batches, x.lines, w.lines};
	float bias[600], sixty_four = 64;
	uint8_t hundred = 100;
	struct ql_gpu_option act = {.name = "act", .type = QL_GPU_OPTION_TEXT, .s = "relu6"};
	struct ql_gpu_tensor in[3], out, scale = gpu_tensor(&g, "float32", 0, NULL, &sixty_four, 0),
					 zero = gpu_tensor(&g, "uint8", 0, NULL, &hundred, 0);
	struct ql_gpu_codes codes = {.size = sizeof(codes),
		.flags = QL_GPU_AFFINE,
		.bits = 8,
		.hi = 255,
		.axis = -1,
		.block_axis = -1,
		.scale = &scale,
		.zero_point = &zero};
	struct ql_gpu_call call = gpu_call(matmul ? "matmul" : "linear", in, with_bias ? 3 : 2, &out, 1);
	void *got;

	side_new(&a, x, false);
	side_new(&b, w, matmul);
	for (int64_t j = 0; j < w.lines; j++)
		bias[j] = gpu_draw_float() * 100;
	in[0] = a.t;
	in[1] = b.t;
	in[2] = gpu_tensor(&g, "float32", 1, &w.lines, bias, 0);
	out = gpu_tensor(&g, r == CODES ? "uint8" : "float32", matmul ? 3 : 2, matmul ? shape : shape + 1, NULL, 0);
	out.codes = r == CODES ? &codes : NULL;
	call.options = &act;
	call.n_options = r == RELU6;
	got = check_alloc((size_t)out.bytes);
	if (CHECK(gpu_run(&g, call), "refused: %s", g.why) &&
		CHECK(!strcmp(g.name, "gemm_i8_wgmma"), "%s ran", g.name)) {
		gpu_get(&g, &out, got);
		expect(&a, &b, r, with_bias ? bias : NULL, got);
	}
	side_free(&a);
	side_free(&b);
	gpu_free(&g, &in[2]);
	gpu_free(&g, &out);
	gpu_free(&g, &scale);
	gpu_free(&g, &zero);
	free(got);
}

static void products(int order)
{
	/* one tile, one stage; then edges of all kinds, k beyond four stages and with a rest */
	try_product((struct operand){1, 128, 128, 128, false, false, true},
		(struct operand){1, 256, 128, 128, false, false, true}, FLOATS, true);
	try_product((struct operand){1, 141, 657, 672, true, true, false},
		(struct operand){1, 70, 657, 672, false, false, true}, (enum result)(order % RESULTS), true);
	try_product((struct operand){1, 65, 700, 704, order & 1, order & 1, true},
		(struct operand){1, 261, 700, 704, order & 1, true, true}, (enum result)((order + 1) % RESULTS),
		order != 1);
	/* five tiles on four blocks: batches of a that follow each other are rows */
	try_product((struct operand){3, 190, 140, 144, false, false, false},
		(struct operand){1, 64, 140, 144, true, true, false}, FLOATS, false);
	if (order == 0)
		try_product((struct operand){1, 64, 130, 144, false, true, false},
			(struct operand){2, 66, 130, 144, true, false, true}, RELU6, false);
	if (order == 1)
		try_product((struct operand){2, 64, 130, 144, false, true, true},
			(struct operand){1, 66, 130, 144, true, true, true}, RELU6, false);
}

static void refusals(void)
{
	static const struct {
		int64_t m, n, k, pitch;
		const char *why;
	} list[] = {{63, 300, 512, 512, "too small"}, {64, 63, 512, 512, "too small"}, {64, 64, 127, 128, "too small"},
		{64, 64, 200, 200, "multiples of 16"}};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		struct operand x = {1, list[i].m, list[i].k, list[i].pitch, false, false, false};
		struct operand w = {1, list[i].n, list[i].k, list[i].pitch, false, false, false};
		struct side a, b;
		struct ql_gpu_tensor in[2], out;

		side_new(&a, x, false);
		side_new(&b, w, false);
		in[0] = a.t;
		in[1] = b.t;
		out = gpu_tensor(&g, "float32", 2, (const int64_t[]){x.lines, w.lines}, NULL, 0);
		CHECK(!gpu_run(&g, gpu_call("linear", in, 2, &out, 1)) && strstr(g.why, list[i].why), "%s", g.why);
		side_free(&a);
		side_free(&b);
		gpu_free(&g, &out);
	}
}

int main(void)
{
	if (!gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	g.v->force(g.d, "wgmma");
	for (int o = 0; o < ORDERS; o++) {
		CASE("threads %s", gpu_order(o));
		products(o);
	}
	CASE("refusals");
	refusals();
	gpu_close(&g);
	return check_end();
}
