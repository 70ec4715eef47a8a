/* SPDX-License-Identifier: MIT
 * Integer convolutions: sums of codes minus zero points, and the conversion of the sums. Four algorithms give the
 * same sums: on codes with their channels last, from codes to codes, tiles of pixels and outputs, and depthwise tiles of pixels and
 * channels; matrix products with unfolded codes (im2col); and direct summation tap by tap.
 */
#ifndef QUOLL_QUANT_INTEGER_CONV_INT_H
#define QUOLL_QUANT_INTEGER_CONV_INT_H

#include "quant/integer/fixed.h"
#include "quant/integer/rounding.h"
#include "tensor/gemm/gemm.h"
#include "tensor/gemm/matmul.h"
#include "tensor/conv/window.h"

struct ql_conv_int {
	struct ql_ctx *ctx;
	struct ql_conv c;
	int64_t k, rows, pixels; /* per group: summed elements and outputs; per image: result pixels */
	const uint8_t *x;        /* codes (n, c, h, w) */
	unsigned dtype;          /* of x: int8 or uint8 */
	int32_t zero;            /* zero point of x */
	struct ql_matrix_int w;  /* codes (o, k), with their zero points */
	const float *scale;      /* (o): sx * sw */
	struct ql_epilogue e;    /* bias per output; act */
	int variant;             /* of the loops of tensor/vmath/simd.h */
	float *y;                /* float result; or codes: */
	struct ql_tensor *out;   /* NULL: float result */
	const int64_t *bias;     /* (o) */
	const float *factor;     /* (o); in fixed point, `fixed` */
	const struct ql_fixed *fixed;
	enum ql_requant rule;
	struct ql_rounding r;
	bool relu, narrow; /* narrow: sum + bias fits 32 bits */
};

/* Converts and stores the sums of n pixels of one output and image, from `pixel` on. Exactly one of sum32 and sum64
 * is not NULL. May be called on any thread. */
void ql_conv_int_store(const struct ql_conv_int *j, int64_t image, int64_t output, int64_t pixel, int64_t n,
	const int32_t *sum32, const int64_t *sum64);

/* The conversion of the sums to 8-bit codes, from the operands' parameters. */
struct ql_conv_params {
	float x_scale, out_scale;
	int32_t x_zero;
	bool relu;
	struct ql_rounding r;
	enum ql_requant rule; /* QL_REQUANT_FLOAT or QL_REQUANT_DOUBLE */
};

/* A second operand that is added to the codes: v * by[0] + (code of other - other_zero) * by[1], rounded to `r`. */
struct ql_conv_sum {
	const uint8_t *other; /* laid out like the result, with channels last; NULL: no sum */
	unsigned dtype;       /* of other */
	int32_t other_zero;
	float by[2];
	struct ql_rounding r;
};

/* Lines of an image with their channels last, unsigned and padded: conv_lines.c. */
struct ql_conv_lines {
	const struct ql_conv_int *c;
	const uint8_t *x;         /* all images */
	bool last;                /* x has its channels last */
	uint8_t flip;             /* to make codes of x unsigned */
	int64_t channels, repeat; /* of a group, and how often each stands in a line */
	int64_t pitch;            /* bytes of a line */
	int64_t fold;             /* lines whose pixels lie in turn: so many times `pitch` bytes */
};

#define QL_CONV_SLACK 64 /* bytes behind the lines that are read, times weights of 0 */

struct ql_conv_i8_codes;
/* Lines that `rows` rows of the result read; pixels of a line that one row does. */
int64_t ql_conv_lines_of(const struct ql_window *w, int64_t rows);
int64_t ql_conv_reach_of(const struct ql_window *w);
struct ql_conv_lines ql_conv_lines_from(const struct ql_conv_int *c, const struct ql_tensor *x, int64_t channels);
/* Copies the lines of `rows` rows of the result from `row` on, with slack behind them; with `fold` f those of f parts of them, of
 * rows / f rows each. */
void ql_conv_lines_copy(
	const struct ql_conv_lines *j, int64_t image, int64_t group, int64_t row, int64_t rows, uint8_t *to);
/* How sums become codes; without bias and factors. */
struct ql_conv_i8_codes ql_conv_codes_of(
	const struct ql_conv_int *c, const struct ql_conv_params *p, const struct ql_conv_sum *sum);

/* Weights (o, channels, taps) as panels; conv_stored.c has their bytes. */
struct ql_conv_layout {
	int64_t o, rows;        /* outputs: all, of a group */
	int64_t channels, taps; /* of a group */
	int64_t per, quads;     /* taps of a segment; steps of four codes */
	int64_t panels, panel;  /* of a group; bytes of a panel */
};

struct ql_conv_layout ql_conv_layout_of(const struct ql_conv_int *j);
int64_t ql_conv_panel_bytes(const struct ql_conv_layout *l);
int64_t ql_conv_packed_bytes(const struct ql_conv_layout *l); /* with 32-bit sums of the outputs behind the panels */
/* Codes of a weight (o, channels, kernel), one byte each, in any order. */
struct ql_conv_codes {
	const int8_t *data;
	int64_t o, channel, y, x; /* steps */
	int64_t width;            /* of the kernel */
};
/* w: (groups, panels, panel); sum: (o) sums of the codes. */
enum ql_status ql_conv_pack(
	struct ql_ctx *ctx, const struct ql_conv_layout *l, const struct ql_conv_codes *codes, int8_t *w, int32_t *sum);
/* Those of a tensor of int8. */
struct ql_conv_codes ql_conv_codes_in(const struct ql_tensor *w);
/* Whether panels may replace the codes of w, for little more memory; replacing them. */
bool ql_conv_can_store(const struct ql_tensor *w, const struct ql_conv_layout *l);
enum ql_status ql_conv_store(struct ql_ctx *ctx, const struct ql_tensor *w, const struct ql_conv_layout *l);
/* Whether panels of this layout are in the place of the codes of w. */
bool ql_conv_stored(
	const struct ql_tensor *w, const struct ql_conv_layout *l, const int8_t **panels, const int32_t **sum);
/* The scales where they are float32 in memory, one after the other; else NULL. */
const float *ql_conv_plain_scales(const struct ql_qparams *q);
/* Gives contiguous codes of one byte each; t itself if its codes are. */
enum ql_status ql_conv_int_codes(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_tensor **out);

/* What sums of outputs become: see struct ql_conv_i8_codes. Without a fixed rule, multiplier and right are NULL. */
struct ql_conv_ends {
	int32_t *bias;
	float *factor;
	int32_t *multiplier, *right;
};

/* Takes arrays for n outputs, which are 0, from scratch memory. */
enum ql_status ql_conv_ends_take(struct ql_ctx *ctx, int64_t n, enum ql_requant rule, struct ql_conv_ends *e);
/* Those of all outputs, biases without what zero points add, `rows` at a time and `pitch` apart, with 0 between; false in *fine: they do
 * not permit sums of 32 bits, or a factor is no fraction. */
enum ql_status ql_conv_factors(const struct ql_conv_int *j, const struct ql_call *call, const struct ql_conv_params *p,
	int64_t rows, int64_t pitch, struct ql_conv_ends *e, bool *fine);

/* Puts those of the outputs from o on into the codes. */
void ql_conv_ends_at(const struct ql_conv_ends *e, int64_t o, struct ql_conv_i8_codes *codes);

/* What tiles read. */
struct ql_conv_tiles {
	int64_t panels, panel; /* of a group; bytes of a panel */
	const int8_t *w;       /* (groups, panels, panel) */
	const int32_t *sum;    /* (o) */
	struct ql_conv_ends e; /* (groups, panels, QL_CONV_PANEL): with what the zero point of x adds to the sums */
};

/* True if tiles compute the call, if the bias and the factors permit it: ql_conv_tiles_prepare says so by t->w. */
bool ql_conv_tiles_fit(const struct ql_conv_int *j, const struct ql_tensor *w, const struct ql_spec *spec);
enum ql_status ql_conv_tiles_prepare(
	struct ql_conv_int *j, const struct ql_call *call, const struct ql_conv_params *p, struct ql_conv_tiles *t);
/* The kernel that computes the call: the best one of this processor, or the one that it names for the window. */
struct ql_conv_i8;
const struct ql_conv_i8 *ql_conv_tiles_kernel(const struct ql_conv_int *j);
/* x: codes (n, c, h, w), with their channels last or contiguous. The codes of j->out get their channels last. */
enum ql_status ql_conv_tiles(const struct ql_conv_int *j, const struct ql_conv_params *p, const struct ql_conv_tiles *t,
	const struct ql_conv_sum *sum, const struct ql_tensor *x);

/* The same for one channel of x a group, in which some outputs may share it: conv_depth.c. */
bool ql_conv_depth_fits(const struct ql_conv_int *j, const struct ql_tensor *w, const struct ql_spec *spec);
enum ql_status ql_conv_depth_prepare(
	struct ql_conv_int *j, const struct ql_call *call, const struct ql_conv_params *p, struct ql_conv_tiles *t);
enum ql_status ql_conv_depth(const struct ql_conv_int *j, const struct ql_conv_params *p, const struct ql_conv_tiles *t,
	const struct ql_conv_sum *sum, const struct ql_tensor *x);

enum ql_status ql_conv_int_unfolded(const struct ql_conv_int *j);
/* True if the direct algorithm is at least as fast as products: few channels per group, taps close together. */
bool ql_conv_int_is_direct(const struct ql_conv_int *j);
enum ql_status ql_conv_int_direct(const struct ql_conv_int *j);

#endif
