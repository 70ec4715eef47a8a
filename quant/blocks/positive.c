/* SPDX-License-Identifier: MIT
 * Encodes the scales of a superblock if importance is given.
 */
#include "quant/blocks/positive.h"

#include <math.h>
#include <string.h>

#define ROUNDS 5 /* passes that improve single codes */

int ql_positive_round(float v)
{
	float moved = v + 0x1.8p23f;
	int32_t bits;

	memcpy(&bits, &moved, sizeof(bits));
	return (bits & 0x7fffff) - 0x400000;
}

void ql_positive_weights(struct ql_block_tile *t, int factor)
{
	float sum = 0;

	for (int i = 0; i < QL_TILE; i++)
		sum += t->x[i] * t->x[i];
	sum = (float)factor * sum / QL_TILE;
	for (int i = 0; i < QL_TILE; i++)
		t->weight[i] *= sqrtf(sum + t->x[i] * t->x[i]);
}

static int code_of(float v, int top)
{
	int code = ql_positive_round(v);

	return code < top ? code : top;
}

/* The inverse scale of least error among nine candidates. */
static float choose(int n, int top, float most, const float *v, const float *w)
{
	float chosen = (float)top / most, best = 0;

	for (int i = 0; i < n; i++) {
		float d = v[i] - 1 / chosen * (float)ql_positive_round(chosen * v[i]);

		best += w[i] * d * d;
	}
	for (int k = -4; k <= 4; k++) {
		float inverse = (0.1f * (float)k + (float)top) / most, scale = 1 / inverse, error = 0;

		for (int i = 0; i < n && k; i++) {
			float d = v[i] - scale * (float)code_of(inverse * v[i], top);

			error += w[i] * d * d;
		}
		if (k && error < best) {
			best = error;
			chosen = inverse;
		}
	}
	return chosen;
}

struct sums {
	float xq, qq;
};

/* Changes the code of one value if the least-squares scale then has a smaller error. */
static bool improve(int top, float v, float w, int *code, struct sums *s)
{
	float q = (float)*code, x_rest = s->xq - w * v * q, q_rest = s->qq - w * q * q;
	int better;

	if (!(x_rest > 0 && q_rest > 0))
		return false;
	better = code_of(v * q_rest / x_rest, top);
	if (better == *code)
		return false;
	q = (float)better;
	x_rest += w * v * q;
	q_rest += w * q * q;
	if (!(x_rest * x_rest * s->qq > s->xq * s->xq * q_rest))
		return false;
	*code = better;
	*s = (struct sums){x_rest, q_rest};
	return true;
}

float ql_positive_search(int n, int top, const float *v, const float *w, uint8_t *code)
{
	int q[QL_TILE_BLOCKS];
	struct sums s = {0, 0};
	bool changed = true;
	float most = 0, inverse;

	memset(code, 0, (size_t)n);
	for (int i = 0; i < n; i++)
		most = v[i] > most ? v[i] : most;
	if (most < 1e-15f)
		return 0;
	inverse = choose(n, top, most, v, w);
	for (int i = 0; i < n; i++) {
		q[i] = code_of(inverse * v[i], top);
		s.xq += w[i] * v[i] * (float)q[i];
		s.qq += w[i] * (float)q[i] * (float)q[i];
	}
	for (int round = 0; round < ROUNDS && changed; round++) {
		changed = false;
		for (int i = 0; i < n; i++)
			changed |= improve(top, v[i], w[i], &q[i], &s);
	}
	for (int i = 0; i < n; i++)
		code[i] = (uint8_t)(q[i] < 0 ? 0 : q[i]);
	return s.qq > 0 ? s.xq / s.qq : 0;
}
