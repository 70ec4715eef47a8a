/* SPDX-License-Identifier: MIT
 * The gradient of a convolution's input, and the result of a transposed convolution, in float32: for each remainder of rows and columns
 * modulo the stride a convolution sum over the taps that reach them, so no product with an inserted zero is computed.
 */
#include "tensor/conv/conv.h"
#include "tensor/kernels/kernels.h"
#include "tensor/scratch.h"

/* Taps that reach rows (d 0) or columns (d 1) r, r + stride, …: lists them and, for each, the output from which it
 * reaches the first of these rows. */
static int64_t taps_of(const struct ql_window *w, int d, int64_t r, int64_t *tap, int64_t *from)
{
	int64_t n = 0;

	for (int64_t k = 0; k < w->kernel[d]; k++) {
		int64_t at = r + w->before[d] - k * w->dilation[d];

		if (at % w->stride[d] == 0) {
			tap[n] = k;
			from[n++] = at / w->stride[d];
		}
	}
	return n;
}

/* One pair of remainders: lists of taps and offsets, and the weights in their order. */
struct phase {
	int64_t n[2];
	int64_t *tap[2], *from[2];
	int64_t *y, *x;
	float *a; /* (channels, outputs of a group * taps) */
};

static enum ql_status phase_take(struct ql_ctx *ctx, const struct ql_conv *c, struct phase *p)
{
	const int64_t *kernel = c->window.kernel;
	int64_t taps = ql_mul64(kernel[0], kernel[1]), numbers = ql_mul64(ql_mul64(c->c, c->o / c->groups), taps);

	for (int d = 0; d < 2; d++) {
		p->tap[d] = ql_scratch_array(ctx, kernel[d], sizeof(int64_t));
		p->from[d] = ql_scratch_array(ctx, kernel[d], sizeof(int64_t));
		if (!p->tap[d] || !p->from[d])
			return QL_ERR_MEMORY;
	}
	p->y = ql_scratch_array(ctx, taps, sizeof(*p->y));
	p->x = ql_scratch_array(ctx, taps, sizeof(*p->x));
	p->a = ql_scratch_array(ctx, numbers, sizeof(*p->a));
	return p->y && p->x && p->a ? QL_OK : QL_ERR_MEMORY;
}

/* a[channel][o, tap] = w[o][channel][tap], within each group */
static void turn_weights(const struct ql_conv *c, const float *w, const struct phase *p)
{
	int64_t per = c->c / c->groups, outputs = c->o / c->groups,
		*kernel = (int64_t[]){c->window.kernel[0], c->window.kernel[1]};
	float *to = p->a;

	for (int64_t channel = 0; channel < c->c; channel++)
		for (int64_t o = 0; o < outputs; o++) {
			const float *from =
				w + ((channel / per * outputs + o) * per + channel % per) * kernel[0] * kernel[1];

			for (int64_t i = 0; i < p->n[0]; i++)
				for (int64_t j = 0; j < p->n[1]; j++)
					*to++ = from[p->tap[0][i] * kernel[1] + p->tap[1][j]];
		}
}

static void offsets(const struct phase *p, struct ql_unfold *u)
{
	for (int64_t i = 0; i < p->n[0]; i++)
		for (int64_t j = 0; j < p->n[1]; j++) {
			p->y[i * p->n[1] + j] = p->from[0][i];
			p->x[i * p->n[1] + j] = p->from[1][j];
		}
	u->taps = p->n[0] * p->n[1];
	u->y = p->y;
	u->x = p->x;
	for (int d = 0; d < 2 && u->taps; d++) { /* `from` decreases with the tap */
		u->low[d] = p->from[d][p->n[d] - 1];
		u->high[d] = p->from[d][0];
	}
}

static enum ql_status input_phase(struct ql_ctx *ctx, const struct ql_conv *c, const float *g, const float *w,
	const struct ql_epilogue *e, float *dx, struct phase *p, const int64_t *at)
{
	const struct ql_window *v = &c->window;
	struct ql_conv_sums s = {
		.u = {.from = g,
			.images = c->n,
			.planes = c->o,
			.h = v->out[0],
			.w = v->out[1],
			.gh = ql_ceil_div(v->in[0] - at[0], v->stride[0]),
			.gw = ql_ceil_div(v->in[1] - at[1], v->stride[1]),
			.step = {1, 1},
			.variant = ctx->kernels->simd->variant},
		.groups = c->groups,
		.channels = c->o / c->groups,
		.rows = c->c / c->groups,
		.a = p->a,
		.target = dx,
		.th = v->in[0],
		.tw = v->in[1],
		.at = {at[0], at[1]},
		.every = {v->stride[0], v->stride[1]},
		.e = *e,
	};

	for (int d = 0; d < 2; d++)
		p->n[d] = taps_of(v, d, at[d], p->tap[d], p->from[d]);
	turn_weights(c, w, p);
	offsets(p, &s.u);
	return ql_conv_sums(ctx, &s);
}

enum ql_status ql_conv_input(struct ql_ctx *ctx, const struct ql_conv *c, const float *g, const float *w,
	const struct ql_epilogue *e, float *dx)
{
	struct phase p;
	enum ql_status status = phase_take(ctx, c, &p);

	for (int64_t y = 0; y < ql_min64(c->window.stride[0], c->window.in[0]) && !status; y++)
		for (int64_t x = 0; x < ql_min64(c->window.stride[1], c->window.in[1]) && !status; x++)
			status = input_phase(ctx, c, g, w, e, dx, &p, (const int64_t[]){y, x});
	return status;
}
