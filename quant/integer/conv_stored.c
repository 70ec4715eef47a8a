/* SPDX-License-Identifier: MIT
 * Weights of a convolution as the panels that its tiles read (tensor/kernels/kernels.h, conv_i8), and these panels in the place of
 * the codes: one of the layouts of tensor/closed.h, as of linear's weights (tensor/gemm/i8_stored.c).
 *
 * A segment is what lies together in the window: the channels of a row of taps, or of one tap if taps are apart. The code of output
 * o of a group, channel c and tap t is byte
 *   o / 16 * panel + (t / per * quads + i / 4) * 64 + o % 16 * 4 + i % 4   with i = t % per * channels + c
 * of the group's panels; tails of quads and panels are 0. The sums of the outputs follow, which the zero point of x needs.
 *
 * Where all this takes more than a 12th more than the codes, and where the codes lie in the block of their storage (1 KiB), which
 * would stay, panels are made at each call: of the first layer, of outputs that are no multiple of 16, and of codes below 8 bits.
 */
#include <string.h>

#include "quant/integer/conv_int.h"
#include "tensor/closed.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"

#define HEAD 128 /* keeps what follows aligned */
#define SHARE 10 /* the part of the codes' bytes that panels may need beyond them: weights of 64 x 64 need 9.4 % */
#define QUAD (4 * QL_CONV_PANEL) /* bytes */
#define NS 1                     /* per code */

struct stored {
	struct ql_closed base;
	struct ql_conv_layout l;
};

_Static_assert(sizeof(struct stored) <= HEAD, "the description has room in front");

struct ql_conv_layout ql_conv_layout_of(const struct ql_conv_int *j)
{
	const struct ql_window *w = &j->c.window;
	struct ql_conv_layout l = {.o = j->c.o,
		.rows = j->rows,
		.channels = j->c.c / j->c.groups,
		.taps = w->kernel[0] * w->kernel[1],
		.per = w->dilation[1] == 1 ? w->kernel[1] : 1,
		.panels = ql_ceil_div(j->rows, QL_CONV_PANEL)};

	l.quads = ql_ceil_div(l.per * l.channels, 4);
	l.panel = l.taps / l.per * l.quads * QUAD;
	return l;
}

int64_t ql_conv_panel_bytes(const struct ql_conv_layout *l)
{
	return ql_mul64(l->o / l->rows * l->panels, l->panel);
}

int64_t ql_conv_packed_bytes(const struct ql_conv_layout *l)
{
	return ql_add64(ql_conv_panel_bytes(l), ql_mul64((int64_t)sizeof(int32_t), l->o));
}

/* ---- one output ---- */

/* Where its codes begin. */
static int64_t place_of(const struct ql_conv_layout *l, int64_t o)
{
	int64_t row = o % l->rows;

	return (o / l->rows * l->panels + row / QL_CONV_PANEL) * l->panel + row % QL_CONV_PANEL * 4;
}

/* From there, the code of channel c and tap t of a segment. */
static int64_t byte_of(const struct ql_conv_layout *l, int64_t t, int64_t c)
{
	int64_t i = t * l->channels + c;

	return i / 4 * QUAD + i % 4;
}

static int32_t put_four(const int8_t *from, int64_t step, int8_t *to)
{
	const int8_t four[4] = {from[0], from[step], from[2 * step], from[3 * step]};

	memcpy(to, four, 4);
	return four[0] + four[1] + four[2] + four[3];
}

/* A segment, of one byte for each channel and tap. */
static int32_t pack_segment(
	const struct ql_conv_layout *l, const struct ql_conv_codes *c, const int8_t *from, int8_t *to)
{
	int64_t n = l->per * l->channels, whole = c->channel == 1 && (c->x == l->channels || l->per == 1) ? n / 4 : 0;
	int32_t sum = 0;

	for (int64_t q = 0; q < whole; q++)
		memcpy(to + q * QUAD, from + 4 * q, 4);
	for (int64_t i = 0; i < 4 * whole; i++)
		sum += from[i];
	if (whole) {
		for (int64_t i = 4 * whole; i < n; i++)
			sum += to[i / 4 * QUAD + i % 4] = from[i];
		return sum;
	}
	for (int64_t t = 0; t < l->per; t++, from += c->x) {
		int64_t i = 0;

		for (; l->channels % 4 == 0 && i < l->channels; i += 4, to += QUAD)
			sum += put_four(from + i * c->channel, c->channel, to);
		for (; i < l->channels; i++)
			sum += to[byte_of(l, t, i)] = from[i * c->channel];
	}
	return sum;
}

/* Outputs first..first+n-1 of a panel, segment by segment, which stay in the first cache. */
static void pack_panel(const struct ql_conv_layout *l, const struct ql_conv_codes *c, int64_t first, int64_t n,
	int8_t *to, int32_t *sum)
{
	memset(sum, 0, (size_t)n * sizeof(*sum));
	for (int64_t t = 0; t < l->taps; t += l->per, to += l->quads * QUAD)
		for (int64_t o = 0; o < n; o++)
			sum[o] += pack_segment(l, c,
				c->data + (first + o) * c->o + t / c->width * c->y + t % c->width * c->x, to + 4 * o);
}

static void unpack_output(const struct ql_conv_layout *l, const int8_t *from, int8_t *to)
{
	for (int64_t s = 0; s < l->taps; s += l->per, from += l->quads * QUAD)
		for (int64_t c = 0; c < l->channels; c++)
			for (int64_t t = 0; t < l->per; t++)
				to[c * l->taps + s + t] = from[byte_of(l, t, c)];
}

/* ---- all ---- */

struct job {
	const struct ql_conv_layout *l;
	const struct ql_conv_codes *from; /* NULL: from panels to dense codes */
	int8_t *codes, *w;
	int32_t *sum;
};

/* Panels from `begin` on, counted over all groups. */
static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_conv_layout *l = j->l;
	int64_t k = l->channels * l->taps;

	for (int64_t p = begin; p < end; p++) {
		int64_t row = p % l->panels * QL_CONV_PANEL, first = p / l->panels * l->rows + row,
			n = ql_min64(QL_CONV_PANEL, l->rows - row);

		if (j->from && (n < QL_CONV_PANEL || l->per * l->channels % 4))
			memset(j->w + p * l->panel, 0, (size_t)l->panel);
		if (j->from)
			pack_panel(l, j->from, first, n, j->w + p * l->panel, j->sum + first);
		for (int64_t o = first; !j->from && o < first + n; o++)
			unpack_output(l, j->w + place_of(l, o), j->codes + o * k);
	}
}

static enum ql_status run(struct ql_ctx *ctx, struct job *j)
{
	const struct ql_conv_layout *l = j->l;
	int64_t panels = l->o / l->rows * l->panels;

	return ql_parallel_for(ctx, panels, ql_max64(1, 65536 / (l->panel + 1)), panels * l->panel * NS, body, j);
}

enum ql_status ql_conv_pack(
	struct ql_ctx *ctx, const struct ql_conv_layout *l, const struct ql_conv_codes *codes, int8_t *w, int32_t *sum)
{
	return run(ctx, &(struct job){l, codes, NULL, w, sum});
}

struct ql_conv_codes ql_conv_codes_in(const struct ql_tensor *w)
{
	int x = w->shape[3] == 1 ? 2 : 3; /* a kernel of one column may be computed as one row, see conv2d_int.c */

	return (struct ql_conv_codes){
		ql_tensor_data(w), w->stride[0], w->stride[1], w->stride[5 - x], w->stride[x], w->shape[x]};
}

/* ---- in the place of codes ---- */

static int8_t *panels_of(const struct stored *s)
{
	return (int8_t *)(uintptr_t)s + HEAD;
}

static int32_t *sums_of(const struct stored *s)
{
	return (int32_t *)(void *)(panels_of(s) + ql_conv_panel_bytes(&s->l));
}

static enum ql_status unpack(struct ql_ctx *ctx, const struct ql_closed *c, void *dense)
{
	const struct stored *s = (const struct stored *)c;

	return run(ctx, &(struct job){&s->l, NULL, dense, panels_of(s), NULL});
}

static int64_t get(const struct ql_closed *c, int64_t at)
{
	const struct stored *s = (const struct stored *)c;
	const struct ql_conv_layout *l = &s->l;
	int64_t k = l->channels * l->taps, channel = at % k / l->taps, tap = at % l->taps;

	return panels_of(s)[place_of(l, at / k) + tap / l->per * l->quads * QUAD + byte_of(l, tap % l->per, channel)];
}

static void drop(struct ql_ctx *ctx, struct ql_closed *c)
{
	ql_free(ctx, c);
}

static const struct ql_closed_kind kind = {.unpack = unpack, .get = get, .free = drop};

bool ql_conv_can_store(const struct ql_tensor *w, const struct ql_conv_layout *l)
{
	int64_t bytes = (int64_t)w->storage->bytes, more = ql_add64(HEAD, ql_conv_packed_bytes(l)) - bytes;

	return w->dtype == QL_int8 && ql_can_close(w) && !ql_storage_inside(w->storage, w->storage->data) &&
	       more <= bytes / SHARE;
}

enum ql_status ql_conv_store(struct ql_ctx *ctx, const struct ql_tensor *w, const struct ql_conv_layout *l)
{
	size_t bytes = (size_t)ql_add64(HEAD, ql_conv_packed_bytes(l));
	struct stored *s = ql_alloc(ctx, bytes);
	struct ql_conv_codes codes = ql_conv_codes_in(w);
	enum ql_status status;

	if (!s)
		return QL_OK;
	*s = (struct stored){.l = *l};
	s->base = (struct ql_closed){.kind = &kind,
		.dtype = w->dtype,
		.codes = (int64_t)w->storage->bytes,
		.dense = w->storage->bytes,
		.bytes = bytes};
	status = ql_conv_pack(ctx, l, &codes, panels_of(s), sums_of(s));
	if (status)
		ql_free(ctx, s);
	else
		ql_storage_close(ctx, w->storage, &s->base);
	return status;
}

static bool is_stored(const struct ql_tensor *w)
{
	return ql_is_closed(w) && w->storage->closed->kind == &kind;
}

bool ql_conv_stored(
	const struct ql_tensor *w, const struct ql_conv_layout *l, const int8_t **panels, const int32_t **sum)
{
	const struct stored *s = (const struct stored *)w->storage->closed;

	if (!is_stored(w) || w->dtype != s->base.dtype || w->offset || !ql_tensor_is_contiguous(w) ||
		ql_tensor_nelem(w) != s->base.codes || memcmp(&s->l, l, sizeof(*l)))
		return false;
	*panels = panels_of(s);
	*sum = sums_of(s);
	return true;
}
