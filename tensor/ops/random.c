/* SPDX-License-Identifier: MIT
 * Random tensors: rand, randn, randint. All randomness comes from tensor.seed.
 */
#include "tensor/ops/construct.h"

#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/rng.h"

#define PIECE 1024 /* elements; their words are whole counters */

struct job {
	uint64_t seed, first;
	int variant;
	int64_t n;
	void (*convert)(int variant, const uint32_t *words, int64_t n, float *out);
	float *real;
	int64_t *integer; /* two words each */
	int64_t low;
	uint64_t span; /* 0: all 2^64 values */
	uint32_t keep; /* bits of each word used for a real number */
};

static void real_piece(const struct job *j, int64_t p)
{
	uint32_t words[PIECE];
	int64_t n = ql_min64(PIECE, j->n - p * PIECE);

	ql_rng_words(j->variant, j->seed, j->first + (uint64_t)p * (PIECE / 4), ql_ceil_div(n, 4), words);
	for (int64_t i = 0; i < n; i++)
		words[i] &= j->keep;
	j->convert(j->variant, words, n, j->real + p * PIECE);
}

/* A number below span from 64 random bits: the upper half of their product. If the lower half shows that this value
 * has one preimage too many, the bits are drawn again, so every value is equally likely: Lemire, "Fast random
 * integer generation in an interval", ACM TOMACS 29, 2019. */
static uint64_t below(uint64_t bits, const struct job *j, uint64_t position)
{
	unsigned __int128 product = (unsigned __int128)bits * j->span;

	if ((uint64_t)product < j->span) {
		uint64_t least = (0 - j->span) % j->span;

		for (uint32_t attempt = 1; (uint64_t)product < least; attempt++)
			product = (unsigned __int128)ql_rng_again(j->seed, position, attempt) * j->span;
	}
	return (uint64_t)(product >> 64);
}

static void integer_piece(const struct job *j, int64_t p)
{
	uint32_t words[2 * PIECE];
	int64_t n = ql_min64(PIECE, j->n - p * PIECE);

	ql_rng_words(j->variant, j->seed, j->first + (uint64_t)p * (PIECE / 2), ql_ceil_div(n, 2), words);
	for (int64_t i = 0; i < n; i++) {
		uint64_t bits = (uint64_t)words[2 * i] << 32 | words[2 * i + 1];
		uint64_t position = 2 * j->first + (uint64_t)(p * PIECE + i),
			 at = j->span ? below(bits, j, position) : bits;

		j->integer[p * PIECE + i] = (int64_t)((uint64_t)j->low + at);
	}
}

static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t p = begin; p < end; p++)
		if (j->integer)
			integer_piece(j, p);
		else
			real_piece(j, p);
}

/* A word for each element. */
static int64_t draws(const struct ql_call *call)
{
	const struct ql_result *r = &call->result[0];
	int64_t n = 1;

	for (int d = 0; d < r->rank; d++)
		n *= r->shape[d];
	return n;
}

static int64_t draws_two(const struct ql_call *call)
{
	return 2 * draws(call);
}

static enum ql_status run(struct ql_ctx *ctx, struct ql_call *call, struct job *j)
{
	struct ql_tensor *t;
	enum ql_status status = ql_construct_base(ctx, call, j->convert ? QL_float32 : QL_int64, &t);

	if (status)
		return status;
	j->n = ql_tensor_nelem(t);
	j->seed = call->random.seed;
	j->first = call->random.first;
	j->variant = ctx->kernels->simd->variant;
	if (j->convert)
		j->real = ql_tensor_data(t);
	else
		j->integer = ql_tensor_data(t);
	call->kernel = ctx->kernels->simd->name;
	status = ql_parallel_for(ctx, ql_ceil_div(j->n, PIECE), 32, j->n * 4, body, j);
	return ql_construct_finish(ctx, call, t, status);
}

/* As many bits as the dtype holds, so that rounding never gives 1. */
static enum ql_status eval_rand(struct ql_ctx *ctx, struct ql_call *call)
{
	int digits = ql_dtypes[call->result[0].dtype].digits;
	uint32_t keep = digits < 24 ? UINT32_MAX << (32 - digits) : UINT32_MAX;

	return run(ctx, call, &(struct job){.convert = ql_rng_uniform, .keep = keep});
}

static enum ql_status eval_randn(struct ql_ctx *ctx, struct ql_call *call)
{
	return run(ctx, call, &(struct job){.convert = ql_rng_normal, .keep = UINT32_MAX});
}

static enum ql_status infer_float(struct ql_ctx *ctx, struct ql_call *call)
{
	enum ql_status status = ql_construct_infer(ctx, call);

	if (!status && !ql_dtype_is_float(call->result[0].dtype))
		return ql_fail(ctx, QL_ERR_DTYPE,
			"%s: dtype: wanted a float, got %s; use randint or quant=", call->op->doc.name,
			ql_dtype_name(call->result[0].dtype));
	return status;
}

const struct ql_op ql_op_rand = {
	.doc = {.name = "rand",
		.usage = "tensor.rand(2, 3)  tensor.rand{2, 3, dtype=, quant=}",
		.text = "Uniform random numbers in [0, 1), multiples of 2^-24 (float16: 2^-11, bfloat16: 2^-8, float8_e4m3: 2^-4, float8_e5m2: 2^-3). The same seed gives the same bits on any machine and "
			"number of threads.",
		.example = "tensor.seed(1)\nprint(tensor.rand(1000):max():item() < 1)  --> true",
		.attrs = ql_construct_attrs},
	.flags = QL_FUNCTION | QL_NATIVE,
	.infer = infer_float,
	.eval = eval_rand,
	.draws = draws,
	.allocates = true,
};

const struct ql_op ql_op_randn = {
	.doc = {.name = "randn",
		.usage = "tensor.randn(2, 3)  tensor.randn{2, 3, dtype=, quant=}",
		.text = "Normal random numbers with mean 0 and variance 1, by inversion (AS 241). The same seed gives the same bits on "
			"any machine and number of threads.",
		.example = "tensor.seed(1)\nprint(math.abs(tensor.randn(10000):mean():item()) < 0.05)  --> true",
		.attrs = ql_construct_attrs},
	.flags = QL_FUNCTION | QL_NATIVE,
	.infer = infer_float,
	.eval = eval_randn,
	.draws = draws,
	.allocates = true,
};

static const struct ql_attr randint_attrs[] = {
	QL_CONSTRUCT_SIZE,
	QL_CONSTRUCT_OPTIONS_OF("element type (default int64)"),
	{"low", QL_ATTR_INT, 0, NULL, "smallest value (default 0)"},
	{"high", QL_ATTR_INT, QL_REQUIRED, NULL, "largest value, included"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status infer_randint(struct ql_ctx *ctx, struct ql_call *call)
{
	int64_t low = ql_call_int(call, "low", 0), high = ql_call_int(call, "high", 0);
	const struct ql_dtype_info *d;
	enum ql_status status = ql_construct_infer(ctx, call);

	if (status)
		return status;
	if (!ql_call_attr(call, "dtype"))
		call->result[0].dtype = QL_int64;
	d = &ql_dtypes[call->result[0].dtype];
	if (low > high)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "randint: wanted low <= high, got %lld and %lld", (long long)low,
			(long long)high);
	if (d->kind != QL_KIND_FLOAT && (low < d->lo || high > d->hi))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "randint: wanted low and high that fit %s, got %lld and %lld",
			d->name, (long long)low, (long long)high);
	return QL_OK;
}

static enum ql_status eval_randint(struct ql_ctx *ctx, struct ql_call *call)
{
	struct job j = {.low = ql_call_int(call, "low", 0)};

	j.span = (uint64_t)ql_call_int(call, "high", 0) - (uint64_t)j.low + 1;
	return run(ctx, call, &j);
}

const struct ql_op ql_op_randint = {
	.doc = {.name = "randint",
		.usage = "tensor.randint{2, 3, low=, high=, dtype=}",
		.text = "Random integers from low to high, both included, all equally likely; int64 unless dtype= says otherwise.",
		.example = "print(tensor.randint{100, low = 3, high = 5}:min():item() >= 3)  --> true",
		.attrs = randint_attrs},
	.flags = QL_FUNCTION | QL_NATIVE,
	.infer = infer_randint,
	.eval = eval_randint,
	.draws = draws_two,
	.allocates = true,
};
