/* SPDX-License-Identifier: MIT
 * Convolution of codes on AMX: four tiles of sums (up to 16 pixels x 16 outputs each), one of the weights, one of pixels in turn.
 * Both operands are read in place: the windows of neighbours in a line are a constant apart, as the rows of a tile are, and a panel
 * of QL_CONV_PANEL outputs is, for each quad, a row of 64 bytes, as TDPBUSD reads them. A step takes as many quads as divide a
 * segment, up to 16, so that no tile reads past it.
 *
 * A line is cut into tiles of equal size, of which the last may overlap the one before it; the four tiles of pixels may be of
 * several lines. Panels are the inner loop: windows of four tiles stay in the first level of cache, and only the tile of weights
 * comes from the second one, 1 KiB for four products of 16 cycles each. Tiles of 8 pixels take two thirds of the time of 16, because
 * a product must wait 52 cycles for the sum before it: so the pixels of some short lines should lie in turn (ql_conv_i8_lines.fold).
 *
 * The taps are the inner loop: sums stay in tiles until they are complete. They become codes through 4 KiB in the first level of
 * cache. The configuration is loaded for each block and released after it: registers in use would make every change of threads
 * slower.
 */
#include "tensor/kernels/amx.h"
#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define TILES 4 /* of sums: 0 to 3 */
#define W 4     /* the tile of weights; 5 to 7: of pixels */
#define QUAD (4 * QL_CONV_PANEL)

#ifdef QL_AMX_MODEL

#include "tensor/kernels/conv_i8_code.h"

#define OTHER conv_i8_ref

QL_INLINE void finish_row(
	const struct ql_conv_i8_codes *c, const int32_t *sum, int columns, const uint8_t *other, uint8_t *to)
{
	for (int o = 0; o < columns; o++)
		to[o] = ql_conv_i8_code(c, o, (uint32_t)sum[o], other ? other + o : NULL);
}

#else

#include "tensor/kernels/conv_i8_codes_avx512.h"

#define OTHER conv_i8_avx512vnni

QL_INLINE void finish_row(
	const struct ql_conv_i8_codes *c, const int32_t *sum, int columns, const uint8_t *other, uint8_t *to)
{
	__m512i v = _mm512_load_si512(sum);

	finish(c, &v, 0, columns, other, to);
}

#endif

extern const struct ql_conv_i8 OTHER;

/* Some pixels of a line. */
struct spot {
	const uint8_t *x;
	int64_t to; /* from the first code of the block */
	int skip;   /* pixels that the tile before has */
};

struct cut {
	const struct ql_conv_i8_lines *l;
	int rows;             /* pixels of a tile */
	int64_t across;       /* tiles of a line */
	int64_t at[AMX_ROWS]; /* from the first code of a tile to those of its pixels */
};

static struct cut cut_of(const struct ql_conv_i8_lines *l, int64_t pitch)
{
	int64_t across = (l->pixels + AMX_ROWS - 1) / AMX_ROWS;
	struct cut u = {l, (int)((l->pixels + across - 1) / across), across, {0}};

	for (int r = 0; r < u.rows; r++)
		u.at[r] = r / l->fold * pitch + r % l->fold * l->fold_apart;
	return u;
}

static struct spot spot_of(const struct cut *u, const struct ql_conv_i8_sums *s, const struct ql_conv_i8_codes *c,
	const uint8_t *x, int64_t tile)
{
	int64_t line = tile / u->across, wanted = tile % u->across * u->rows, first = wanted;

	if (first > u->l->pixels - u->rows)
		first = u->l->pixels - u->rows;
	return (struct spot){x + line * u->l->apart + first * s->step, line * u->l->to_apart + first * c->pitch,
		(int)(wanted - first)};
}

/* Quads of a step. */
static int depth_of(int64_t quads)
{
	int depth = AMX_BYTES / 4;

	while (depth > 1 && quads % depth)
		depth--;
	return depth;
}

QL_INLINE void add_up(const int tiles, const struct ql_conv_i8_sums *s, int depth, const struct spot *at,
	const int8_t *w, int32_t *sum)
{
	amx_zero(0);
	amx_zero(1);
	amx_zero(2);
	amx_zero(3);
	for (int k = 0; k < s->segments; k++)
		for (int64_t q = 0; q < s->quads; q += depth, w += depth * QUAD) {
			int64_t i = s->at[k] + 4 * q;

			amx_load(W, w, QUAD);
			amx_load(5, at[0].x + i, s->step);
			amx_dot_u8_s8(0, 5, W);
			if (tiles > 1) {
				amx_load(6, at[1].x + i, s->step);
				amx_dot_u8_s8(1, 6, W);
			}
			if (tiles > 2) {
				amx_load(7, at[2].x + i, s->step);
				amx_dot_u8_s8(2, 7, W);
			}
			if (tiles > 3) {
				amx_load(5, at[3].x + i, s->step);
				amx_dot_u8_s8(3, 5, W);
			}
		}
	amx_store(0, sum, QUAD);
	amx_store(1, sum + AMX_ROWS * QL_CONV_PANEL, QUAD);
	amx_store(2, sum + 2 * AMX_ROWS * QL_CONV_PANEL, QUAD);
	amx_store(3, sum + 3 * AMX_ROWS * QL_CONV_PANEL, QUAD);
	amx_written(sum);
}

static void configure(int rows, int depth)
{
	struct amx_config shape = {.palette = 1};

	for (int t = 0; t < 8; t++) {
		shape.rows[t] = (uint8_t)(t == W ? depth : rows);
		shape.bytes[t] = (uint8_t)(t > W ? 4 * depth : AMX_BYTES);
	}
	amx_configure(&shape);
}

/* Up to TILES tiles of pixels, one panel. */
static void run(int tiles, const struct cut *u, int depth, int columns, const struct ql_conv_i8_sums *s,
	const struct ql_conv_i8_codes *c, const struct spot *at, const int8_t *w, const uint8_t *other, uint8_t *to)
{
	_Alignas(64) int32_t sum[TILES][AMX_ROWS][QL_CONV_PANEL];

	switch (tiles) {
	case 1: add_up(1, s, depth, at, w, &sum[0][0][0]); break;
	case 2: add_up(2, s, depth, at, w, &sum[0][0][0]); break;
	case 3: add_up(3, s, depth, at, w, &sum[0][0][0]); break;
	default: add_up(4, s, depth, at, w, &sum[0][0][0]);
	}
	for (int t = 0; t < tiles; t++)
		for (int r = at[t].skip; r < u->rows; r++) {
			int64_t i = at[t].to + u->at[r];

			finish_row(c, sum[t][r], columns, other ? other + i : NULL, to + i);
		}
}

static void block(const struct ql_conv_i8_lines *l, int columns, const struct ql_conv_i8_sums *s,
	const struct ql_conv_i8_codes *c, const uint8_t *x, const int8_t *panel, const uint8_t *other, uint8_t *to)
{
	struct cut u = cut_of(l, c->pitch);
	int64_t all = l->lines * u.across;
	int depth = depth_of(s->quads);
	struct ql_conv_i8_codes codes = *c;

	configure(u.rows, depth);
	for (int64_t t = 0; t < all; t += TILES) {
		struct spot at[TILES];
		int tiles = (int)(all - t < TILES ? all - t : TILES);

		for (int i = 0; i < tiles; i++)
			at[i] = spot_of(&u, s, c, x, t + i);
		for (int o = 0; o < columns; o += QL_CONV_PANEL) {
			int n = columns - o < QL_CONV_PANEL ? columns - o : QL_CONV_PANEL;

			codes.bias = c->bias + o;
			codes.factor = c->factor + o;
			codes.multiplier = c->multiplier ? c->multiplier + o : NULL;
			codes.right = c->multiplier ? c->right + o : NULL;
			run(tiles, &u, depth, n, s, &codes, at, panel + o / QL_CONV_PANEL * s->panel,
				other ? other + o : NULL, to + o);
		}
	}
	amx_release();
}

static void codes(int rows, int columns, const struct ql_conv_i8_sums *s, const struct ql_conv_i8_codes *c,
	const uint8_t *x, const int8_t *panel, const uint8_t *other, uint8_t *to)
{
	block(&(struct ql_conv_i8_lines){.lines = 1, .pixels = rows, .fold = 1}, columns, s, c, x, panel, other, to);
}

/* Steps of few bytes take as long as full ones. */
static const struct ql_conv_i8 *instead(int64_t segments, int64_t quads, int64_t outputs)
{
	(void)segments;
	(void)outputs;
	return depth_of(quads) < 8 ? &OTHER : NULL;
}

extern const struct ql_conv_i8 conv_i8_amx;
const struct ql_conv_i8 conv_i8_amx = {.name = "conv_i8_amx",
	.rate = 1000,
	.most = {0, 16, 16, 16, 16},
	.codes = codes,
	.block = block,
	.instead = instead};
