/* SPDX-License-Identifier: MIT
 * Text of a Markov chain of known entropy, the lower bound of a model's loss. Each state has a few likely
 * successors: its probabilities are the fourth powers of uniform numbers, normalized. The entropy rate is the mean
 * over the stationary distribution pi of the entropies of the rows (Shannon, 1948, section 7),
 *
 * 	H = - sum_i pi_i sum_j P_ij log P_ij
 *
 * with pi from repeated multiplication: all P_ij are above 0, so it converges.
 */
#include <math.h>

#include "nn/synth.h"
#include "tensor/kernels/kernels.h"
#include "tensor/rng.h"

#define N QL_SYNTH_STATES
#define ROUNDS 1000                   /* of the power iteration; far more than needed */
#define PIECE 1024                    /* words drawn at a time */
#define TEXT_FROM ((uint64_t)1 << 40) /* smaller counters are for the chain */

static void make_chain(int variant, uint64_t chain, double p[N][N])
{
	uint32_t words[4 * ((N * N + 3) / 4)];

	ql_rng_words(variant, chain, 0, (N * N + 3) / 4, words);
	for (int i = 0; i < N; i++) {
		double sum = 0;

		for (int j = 0; j < N; j++) {
			double u = ((double)words[N * i + j] + 1) * 0x1p-32;

			p[i][j] = u * u * u * u;
			sum += p[i][j];
		}
		for (int j = 0; j < N; j++)
			p[i][j] /= sum;
	}
}

static void stationary(double p[N][N], double pi[N])
{
	double next[N];

	for (int i = 0; i < N; i++)
		pi[i] = 1.0 / N;
	for (int r = 0; r < ROUNDS; r++) {
		for (int j = 0; j < N; j++) {
			next[j] = 0;
			for (int i = 0; i < N; i++)
				next[j] += pi[i] * p[i][j];
		}
		for (int j = 0; j < N; j++)
			pi[j] = next[j];
	}
}

static double entropy_of(double p[N][N])
{
	double pi[N], sum = 0;

	stationary(p, pi);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			sum -= pi[i] * p[i][j] * log(p[i][j]);
	return sum;
}

/* The first state whose cumulated probability is above u. */
static int step(const double row[N], double u)
{
	int j = 0;

	for (double sum = row[0]; j < N - 1 && u >= sum; sum += row[j])
		j++;
	return j;
}

static enum ql_status write_text(struct ql_ctx *ctx, int64_t n, uint64_t seed, double p[N][N], int32_t *tokens)
{
	int variant = ctx->kernels->simd->variant, state = 0;
	uint32_t words[PIECE];

	for (int64_t i = 0; i < n; i++) {
		if (i % PIECE == 0) {
			if (ctx->interrupted)
				return ql_fail(ctx, QL_ERR_INTERRUPTED, "interrupted");
			ql_rng_words(variant, seed, TEXT_FROM + (uint64_t)(i / 4), PIECE / 4, words);
		}
		state = step(p[state], (double)words[i % PIECE] * 0x1p-32);
		tokens[i] = state + 1;
	}
	return QL_OK;
}

enum ql_status ql_synth_markov(struct ql_ctx *ctx, int64_t n, uint64_t chain, uint64_t seed, struct ql_tensor **tokens,
	struct ql_tensor **matrix, double *entropy)
{
	double p[N][N], *out;
	enum ql_status status;

	if (n < 1)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "synth: n: wanted 1 or more, got %lld", (long long)n);
	status = ql_tensor_new(ctx, QL_int32, 1, &n, tokens);
	if (!status)
		status = ql_tensor_new(ctx, QL_float64, 2, (int64_t[]){N, N}, matrix);
	if (status)
		return status;
	make_chain(ctx->kernels->simd->variant, chain, p);
	*entropy = entropy_of(p);
	out = ql_tensor_data(*matrix);
	for (int i = 0; i < N * N; i++)
		out[i] = p[i / N][i % N];
	return write_text(ctx, n, seed, p, ql_tensor_data(*tokens));
}
