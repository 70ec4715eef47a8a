/* SPDX-License-Identifier: MIT
 * Sums along the channels of (n, channels, length), and a linear function applied to each channel, for norms per
 * channel.
 */
#ifndef QUOLL_NN_CHANNELS_H
#define QUOLL_NN_CHANNELS_H

#include "tensor/op.h"

/* Of one channel: sums of d = x - shift, d², g and g d. */
struct ql_channel_sums {
	double d, square, g, product;
};

/* The function applied to each number of a channel: y = (x - mean) * a + b; backward: dx = (g - b - (x - mean) *
 * slope) * a. */
struct ql_channel_line {
	double mean, a, b, slope;
};

struct ql_channels {
	struct ql_ctx *ctx;
	int64_t n, channels, length;
	int64_t pieces, group; /* pieces of a channel, or channels of a task */
	bool wide, backward;   /* float64 instead of float32; g is read too */
	const void *x, *g;
	void *out;
	double *shift;                /* (channels): the first number of each */
	struct ql_channel_sums *sums; /* (channels, pieces); after ql_channels_sum (channels) */
	struct ql_channel_line *line; /* (channels) */
};

/* Divides x into tasks; memory is scratch. The caller sets x, out and, for a backward, backward and g. */
enum ql_status ql_channels_take(struct ql_ctx *ctx, struct ql_channels *j, const struct ql_result *x);
/* Sets shift and sums. */
enum ql_status ql_channels_sum(struct ql_channels *j);
/* Mean and biased variance of channel c, from its sums. */
void ql_channels_moments(const struct ql_channels *j, int64_t c, double *mean, double *var);
/* Applies the functions and writes `out`. */
enum ql_status ql_channels_apply(struct ql_channels *j);

#endif
