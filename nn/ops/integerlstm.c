/* SPDX-License-Identifier: MIT
 * The steps of an LSTM whose states are integers, as LiteRT's reference kernels compute those with weights of 8 bits (lstm_eval.cc,
 * LstmStepInteger8x8_16): the products of inputs come in, scaled to gates in 2^-12; functions are looked up; nothing is rounded but by
 * gemmlowp's rules. nn/export/ops/integerlstm.lua has the same in C for exports.
 */
#include <string.h>

#include "tensor/loops/dense.h"
#include "tensor/op.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define CODES 65536
#define OPERANDS 6
#define PRODUCT_NS 0.25

enum { X, H, C, W, FACTORS, TABLES };
enum { SIGMOID, TANH, CELL_TANH };

struct steps {
	int64_t batch, steps, n, gates; /* gates: 3 or 4 */
	const int16_t *x, *h0, *c0, *table[3];
	const int8_t *w;
	const int64_t *multiplier, *shift;
	int16_t *y, *h, *c;
	int64_t exponent, clip, zero, state_zero, out_multiplier, out_shift;
	int16_t *z; /* (batch, gates * n) */
};

/* ---- arithmetic ---- */

static int64_t floor_shift(int64_t x, int64_t n)
{
	return x >= 0 ? x >> n : ~(~x >> n);
}

/* x * multiplier * 2^(shift - 31): the high half of the doubled product, rounded, then a rounding shift. */
static int64_t times(int64_t x, int64_t multiplier, int64_t shift)
{
	uint64_t product = ((uint64_t)x << (shift > 0 ? shift : 0)) * (uint64_t)multiplier;
	int64_t high = floor_shift((int64_t)(product + (1u << 30)), 31);

	if (shift >= 0)
		return high;
	return floor_shift(high + ((int64_t)1 << (-shift - 1)) - (high < 0), -shift);
}

/* x / 2^n, halves away from 0. */
static int64_t divided(int64_t x, int64_t n)
{
	return n ? floor_shift(x + ((int64_t)1 << (n - 1)) - (x < 0), n) : x;
}

static int64_t clamped(int64_t x, int64_t low, int64_t high)
{
	return x < low ? low : x > high ? high : x;
}

/* ---- steps ---- */

#define CHUNK 256 /* products of 16 and 8 bits whose sum has 32 */

static int64_t dot(const int16_t *h, const int8_t *w, int64_t n)
{
	int64_t all = 0;

	for (int64_t from = 0; from < n; from += CHUNK) {
		int64_t most = ql_min64(n, from + CHUNK);
		int32_t sum = 0;

		for (int64_t i = from; i < most; i++)
			sum += h[i] * w[i];
		all += sum;
	}
	return all;
}

static void gates_of(const struct steps *s, const int16_t *x, const int16_t *h, int16_t *z)
{
	for (int64_t g = 0; g < s->gates * s->n; g++) {
		int64_t sum = dot(h, s->w + g * s->n, s->n);

		z[g] = (int16_t)clamped(times(sum, s->multiplier[g], s->shift[g]) + x[g], -32768, 32767);
	}
}

static void step(const struct steps *s, const int16_t *z, int16_t *h, int16_t *c)
{
	const int16_t *at = z + (s->gates - 4) * s->n; /* where four gates would begin */

	for (int64_t j = 0; j < s->n; j++) {
		int64_t forget = s->table[SIGMOID][at[s->n + j] + 32768];
		int64_t input = s->gates == 4 ? s->table[SIGMOID][z[j] + 32768] : 32767 - forget;
		int64_t cell = s->table[TANH][at[2 * s->n + j] + 32768],
			out = s->table[SIGMOID][at[3 * s->n + j] + 32768], y;

		cell = clamped(divided(forget * c[j], 15) + divided(input * cell, 30 + s->exponent), -32768, 32767);
		if (s->clip)
			cell = clamped(cell, -s->clip, s->clip);
		c[j] = (int16_t)cell;
		y = times(out * s->table[CELL_TANH][cell + 32768], s->out_multiplier, s->out_shift);
		h[j] = (int16_t)(clamped(y + s->zero, -128, 127) - s->state_zero);
	}
}

/* item: a sequence */
static void body(void *arg, int64_t begin, int64_t end)
{
	const struct steps *s = arg;
	size_t bytes = (size_t)ql_mul64(s->n, sizeof(int16_t));

	for (int64_t b = begin; b < end; b++) {
		int16_t *h = s->h + b * s->n, *c = s->c + b * s->n, *z = s->z + b * s->gates * s->n;

		memcpy(h, s->h0 + b * s->n, bytes);
		memcpy(c, s->c0 + b * s->n, bytes);
		for (int64_t t = 0; t < s->steps; t++) {
			int64_t row = b * s->steps + t;

			gates_of(s, s->x + row * s->gates * s->n, h, z);
			step(s, z, h, c);
			memcpy(s->y + row * s->n, h, bytes);
		}
	}
}

/* ---- the op ---- */

static const unsigned DTYPES[OPERANDS] = {QL_int16, QL_int16, QL_int16, QL_int8, QL_int64, QL_int16};
static const char *const NAMES[OPERANDS] = {"x", "h", "c", "w", "factors", "tables"};

static enum ql_status check_dtypes(struct ql_ctx *ctx, const struct ql_call *call)
{
	char text[QL_SHAPE_TEXT];

	for (int i = 0; i < OPERANDS; i++)
		if (call->in[i]->q || call->in[i]->dtype != DTYPES[i])
			return ql_fail(ctx, QL_ERR_DTYPE, "integerlstm: %s: wanted %s, got %s", NAMES[i],
				ql_dtypes[DTYPES[i]].name, ql_tensor_text(call->in[i], text));
	return QL_OK;
}

static enum ql_status check_shape(
	struct ql_ctx *ctx, const struct ql_call *call, int i, int rank, int64_t a, int64_t b, int64_t c)
{
	const struct ql_tensor *t = call->in[i];
	const int64_t want[3] = {a, b, c};
	char got[QL_SHAPE_TEXT], text[QL_SHAPE_TEXT];

	if (t->rank == rank && !memcmp(t->shape, want, sizeof(*want) * (size_t)rank))
		return QL_OK;
	return ql_fail(ctx, QL_ERR_SHAPE, "integerlstm: %s: wanted %s, got %s", NAMES[i],
		ql_shape_text(rank, want, text), ql_shape_text(t->rank, t->shape, got));
}

static enum ql_status check_option(
	struct ql_ctx *ctx, const struct ql_call *call, const char *name, int64_t otherwise, int64_t low, int64_t high)
{
	int64_t value = ql_call_int(call, name, otherwise);

	if (value >= low && value <= high)
		return QL_OK;
	return ql_fail(ctx, QL_ERR_ARGUMENT, "integerlstm: %s: wanted %lld to %lld, got %lld", name, (long long)low,
		(long long)high, (long long)value);
}

static enum ql_status check_options(struct ql_ctx *ctx, const struct ql_call *call)
{
	enum ql_status status = check_option(ctx, call, "exponent", -12, -15, -9);

	if (!status)
		status = check_option(ctx, call, "clip", 0, 0, 32767);
	if (!status)
		status = check_option(ctx, call, "zero", 0, -128, 127);
	if (!status)
		status = check_option(ctx, call, "statezero", 0, -128, 127);
	if (!status)
		status = check_option(ctx, call, "multiplier", 0, 0, INT32_MAX);
	return status ? status : check_option(ctx, call, "shift", 0, -31, 31);
}

static enum ql_status check_shapes(struct ql_ctx *ctx, const struct ql_call *call)
{
	const struct ql_tensor *x = call->in[X], *h = call->in[H];
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	int64_t n = h->rank == 2 ? h->shape[1] : 0, width = x->rank == 3 ? x->shape[2] : 0;
	enum ql_status status = QL_OK;

	if (n < 1 || x->shape[0] != h->shape[0] || width % n || width / n < 3 || width / n > 4)
		return ql_fail(ctx, QL_ERR_SHAPE,
			"integerlstm: wanted x (batch, steps, 3 or 4 gates of n) and h (batch, n), got %s and %s",
			ql_shape_text(x->rank, x->shape, a), ql_shape_text(h->rank, h->shape, b));
	status = check_shape(ctx, call, C, 2, h->shape[0], n, 0);
	if (!status)
		status = check_shape(ctx, call, W, 2, width, n, 0);
	if (!status)
		status = check_shape(ctx, call, FACTORS, 2, 2, width, 0);
	return status ? status : check_shape(ctx, call, TABLES, 2, 3, CODES, 0);
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	enum ql_status status = check_dtypes(ctx, call);
	const struct ql_tensor *x = call->in[X], *h = call->in[H];

	if (!status)
		status = check_options(ctx, call);
	if (!status)
		status = check_shapes(ctx, call);
	if (status)
		return status;
	ql_result_set(call, 0, QL_int16, 3, (const int64_t[]){x->shape[0], x->shape[1], h->shape[1]});
	ql_result_set(call, 1, QL_int16, 2, h->shape);
	ql_result_set(call, 2, QL_int16, 2, h->shape);
	call->n_out = 3;
	return QL_OK;
}

/* Factors are those of ql_fixed_of; with others shifts would be undefined. */
static enum ql_status check_factors(struct ql_ctx *ctx, const struct steps *s)
{
	for (int64_t g = 0; g < s->gates * s->n; g++)
		if (s->multiplier[g] < 0 || s->multiplier[g] > INT32_MAX || s->shift[g] < -62 || s->shift[g] > 31)
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"integerlstm: factors: wanted multipliers below 2^31 and shifts of -62 to 31, got %lld and %lld",
				(long long)s->multiplier[g], (long long)s->shift[g]);
	return QL_OK;
}

static enum ql_status run(struct ql_ctx *ctx, struct ql_call *call, struct ql_tensor *const *in)
{
	const struct ql_tensor *x = call->in[X], *h = call->in[H];
	struct steps s = {.batch = x->shape[0],
		.steps = x->shape[1],
		.n = h->shape[1],
		.gates = x->shape[2] / h->shape[1],
		.exponent = ql_call_int(call, "exponent", -12),
		.clip = ql_call_int(call, "clip", 0),
		.zero = ql_call_int(call, "zero", 0),
		.state_zero = ql_call_int(call, "statezero", ql_call_int(call, "zero", 0)),
		.out_multiplier = ql_call_int(call, "multiplier", 0),
		.out_shift = ql_call_int(call, "shift", 0)};
	enum ql_status status;
	double work;

	s.x = ql_tensor_data(in[X]), s.h0 = ql_tensor_data(in[H]), s.c0 = ql_tensor_data(in[C]);
	s.w = ql_tensor_data(in[W]), s.multiplier = ql_tensor_data(in[FACTORS]);
	s.shift = s.multiplier + s.gates * s.n;
	for (int i = 0; i < 3; i++)
		s.table[i] = (const int16_t *)ql_tensor_data(in[TABLES]) + i * CODES;
	s.y = ql_tensor_data(call->out[0]), s.h = ql_tensor_data(call->out[1]), s.c = ql_tensor_data(call->out[2]);
	status = check_factors(ctx, &s);
	s.z = ql_scratch_array(ctx, ql_mul64(s.batch, x->shape[2]), sizeof(*s.z));
	if (status || !s.z)
		return status ? status : QL_ERR_MEMORY;
	work = (double)s.batch * (double)s.steps * (double)(s.gates * s.n) * ((double)s.n * PRODUCT_NS + 10);
	return ql_parallel_for(ctx, s.batch, 1, work < 1e15 ? (int64_t)work : (int64_t)1e15, body, &s);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_tensor *in[OPERANDS] = {NULL};
	enum ql_status status = QL_OK;

	for (int i = 0; i < OPERANDS && !status; i++)
		status = ql_dense_of(ctx, call->in[i], DTYPES[i], &in[i]);
	call->path = "int16";
	if (!status)
		status = run(ctx, call, in);
	for (int i = 0; i < OPERANDS; i++)
		ql_tensor_release(ctx, in[i]);
	ql_scratch_release(ctx, mark);
	return status;
}

static const struct ql_attr attrs[] = {{"exponent", QL_ATTR_INT, 0, NULL, "c is in units of 2^exponent (default -12)"},
	{"clip", QL_ATTR_INT, 0, NULL, "c stays within -clip to clip (default 0: no bounds)"},
	{"zero", QL_ATTR_INT, 0, NULL, "zero point of the codes of h, which stay within -128 to 127 (default 0)"},
	{"statezero", QL_ATTR_INT, 0, NULL, "what is taken from these codes where h is multiplied (default: zero)"},
	{"multiplier", QL_ATTR_INT, QL_REQUIRED, NULL, "of what becomes h, in 2^-30, by multiplier * 2^(shift - 31)"},
	{"shift", QL_ATTR_INT, QL_REQUIRED, NULL, "of it"}, {NULL, QL_ATTR_END, 0, NULL, NULL}};

extern const struct ql_op ql_op_integerlstm;
const struct ql_op ql_op_integerlstm = {
	.doc = {.name = "integerlstm",
		.usage =
			"y, h, c = nn.integerlstm(x, h, c, w, factors, tables, {multiplier=, shift=, zero=0, statezero=, exponent=-12, clip=0})",
		.text = "The steps of an LSTM in integers, with the rounding of LiteRT's reference kernels for 8-bit weights; graph.load makes it of "
			"such layers of TFLite files. x (batch, steps, gates * n), int16, has the sums of the gates' inputs in units of 2^-12: input, "
			"forget, cell, output; with three gates the input gate is 32767 - forget. h and c (batch, n), int16, are the states before the "
			"first step, h less its zero point; the results h and c those after the last, y (batch, steps, n) has all h. w (gates * n, n) "
			"is int8. factors (2, gates * n), int64, has for each row of w a multiplier and a shift: its products count multiplier * 2^(shift - "
			"31). tables (3, 65536), int16, has for each code from -32768 on sigmoid and tanh of gates, and tanh of c, in 2^-15.",
		.example =
			"tables = tensor.zeros{3, 65536, dtype='int16'} + 32767\n"
			"zero = tensor.zeros{1, 1, dtype='int16'}\n"
			"factors = tensor{{0, 0, 0, 0}, {0, 0, 0, 0}}:to 'int64'\n"
			"y = nn.integerlstm(tensor.zeros{1, 2, 4, dtype='int16'}, zero, zero, tensor.zeros{4, 1, dtype='int8'}, factors, tables,\n"
			"  {multiplier=1 << 30, shift=-22})\n"
			"print(y:view(2))  --> int16(2)  127  127",
		.attrs = attrs},
	.arity_min = OPERANDS,
	.arity_max = OPERANDS,
	.outputs = 3,
	.flags = QL_FUNCTION,
	.infer = infer,
	.eval = eval,
};
