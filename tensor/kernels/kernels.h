/* SPDX-License-Identifier: MIT
 * The table of selected kernels, one per family, and the interfaces of the families.
 * Integer families give the same bits on every ISA and thread count; so do map, quantize and dequantize
 * (no fused multiply-add anywhere). gemm_f32 states its tolerance; its ordered entries give the same bits, too.
 */
#ifndef QUOLL_TENSOR_KERNELS_H
#define QUOLL_TENSOR_KERNELS_H

#include "tensor/base.h"

#define QL_TURNED_ROWS 8

/* What a tile does with the numbers in c. */
enum ql_tile_start {
	QL_TILE_NEW, /* they are not read: a sum starts at 0 */
	QL_TILE_ADD, /* a sum starts at 0 and is added to them at the end; ordered tiles: as QL_TILE_ON */
	QL_TILE_ON,  /* a sum starts there, as if the tile before had not ended */
};

/* What becomes of the sums of row i: max(sum + bias[i] + other, least), each step rounded; nan and -0 stay. */
struct ql_tile_end_f32 {
	const float *bias;  /* NULL: none */
	const float *other; /* a second operand, laid out like c; NULL: none */
	float least;        /* 0, or -infinity: none */
};

/* Where a convolution reads nr consecutive pixels: number p of channel c at tap t is from[c * plane + at[t] + p], or 0
 * (and is not read) unless bit p of inside[t] is set. With `line`, of a padded source whose rows are whole vectors (of
 * narrow_columns numbers), all numbers are read: those of vector v at from[c * plane + at[t] + line[v]] and behind it. */
struct ql_taps_f32 {
	const float *from;
	int64_t channels, plane, taps;
	const int64_t *at;
	const uint64_t *inside;
	const int64_t *line;               /* NULL: by `inside` */
	const struct ql_tile_end_f32 *end; /* NULL: sums stay as they are */
	int64_t ahead;                     /* numbers so far ahead are fetched, for tiles to come; 0: none */
	int64_t apart; /* 0: A has the taps of a channel one after another; else its channels, and taps so far apart */
};

/* One micro-tile product in float32: c[i][j] = sum over k of a[i * lda + l] * b[l * ldb + j], in order of l, and what
 * was in c by `start`. 1 <= rows <= mr, 1 <= columns; nothing else is read or written. Columns beyond nr save calls. Tolerance of a
 * product against exact arithmetic: k * 2^-24 * sum |a||b| per element. */
struct ql_gemm_f32 {
	const char *name;
	int mr, nr;
	int rate; /* multiplications per ns on one core, roughly: for the size of chunks only */
	/* Each product is rounded and added to the previous sum, the first to 0 or to c: the same bits as a plain
	 * loop over k, even if k is split. Otherwise products are fused with their additions, which is faster. */
	bool ordered;
	void (*tile)(int rows, int columns, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb,
		float *c, int64_t ldc, enum ql_tile_start start);
	/* The same where B has a row for each channel and tap, in this order, which s describes; columns <= nr. Of at most
	 * narrow_columns columns, `narrow` rows are a tile: as many sums as hide the time that one takes. */
	int narrow, narrow_columns;
	void (*taps)(int rows, int columns, const struct ql_taps_f32 *s, const float *a, int64_t lda, float *c,
		int64_t ldc, enum ql_tile_start start);
	/* The same where k is consecutive in B: `lanes` columns, column j at b + j * ldb, are turned in registers. Of A,
	 * the `rows` numbers of each k are adjacent. 1 <= rows <= QL_TURNED_ROWS. lanes, <= 16, is 0 where there is none. */
	int lanes;
	void (*turned)(int rows, int64_t k, const float *a, const float *b, int64_t ldb, float *c, int64_t ldc,
		enum ql_tile_start start);
	/* Instead of a tile: the whole product by a library. A and B each have one stride of 1. */
	bool (*reentrant)(void); /* whether threads may call `whole` concurrently */
	void (*whole)(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_col, const float *b,
		int64_t b_row, int64_t b_col, float *c, int64_t ldc);
	/* false: cannot run here (no library); the dispatch then takes the next entry. NULL: always can */
	bool (*available)(void);
};

/* One micro-tile product of bfloat16 numbers: c[i][j] = or, with `add`, += a sum of `pairs` pairs of products, from 0 and with the
 * roundings of VDPBF16PS (gemm_bf16_ref.c): the same bits for all kernels, but for those of a nan. A panel holds for each pair of
 * consecutive k nr pairs, the even element in the low half. 1 <= rows <= mr, 1 <= columns <= nr; nothing else is read or written.
 * Kernels with `tiles` have the order and the roundings of TDPBF16PS (gemm_bf16_tiles_ref.c), which adds other sums: the same bits
 * among themselves. `add` continues the sums of c, so a product may be cut after any multiple of QL_BF16_GROUP pairs. */
struct ql_gemm_bf16 {
	const char *name;
	int mr, nr; /* nr is a multiple of 16 and at most 64 */
	int rate;   /* multiplications per ns on one core, roughly: for the size of chunks only */
	bool tiles;
	void (*tile)(int rows, int columns, int64_t pairs, const uint16_t *a, int64_t lda, const uint32_t *panel,
		float *c, int64_t ldc, bool add);
	/* Of some with `tiles`: rows <= QL_BF16_FEW times lines of B that are read in place, k adjacent numbers of each, ldb apart. `a` has
	 * a pair of each row for each two k, an odd k is filled up with zeros. c is (columns, rows); columns <= nr. */
	void (*few)(int rows, int columns, int64_t k, const uint32_t *a, const uint16_t *b, int64_t ldb, float *c);
};
#define QL_BF16_GROUP 16
#define QL_BF16_FEW 16

/* y[i][j] = max((float)(sum - column[j] - row[i]) * (row_scale[i * row_step] * column_scale[j]) + bias[j], least), each step
 * rounded, the differences mod 2^32; nan stays nan. A bias of -0, a least of -infinity and a row of NULL change nothing. */
struct ql_gemm_i8_scaled {
	const int32_t *column;
	const uint32_t *row;
	const float *row_scale, *column_scale, *bias;
	int64_t row_step;
	float least;
	float *y;
	int64_t ld;
};

/* One micro-tile product: c[i][j] = sum over 4 * k4 of a (u8; rows lda bytes apart) times panel (s8), mod 2^32. A
 * panel holds nr columns of B: for each group of 4 consecutive k, nr x 4 bytes (the layout of an AMX tile too); k
 * is padded with zeros to a multiple of 4. 1 <= rows <= mr, 1 <= columns <= nr; elements of c beyond the given rows
 * and columns are undefined. */
typedef void ql_gemm_i8_tile_fn(int rows, int columns, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *panel,
	int32_t *c /* (mr, nr) */);

/* A product of a block of rows and consecutive panels. A has the form that `form` gives it. */
struct ql_gemm_i8_block {
	int64_t rows, columns, k4;
	bool is_signed; /* the bytes of a */
	const uint8_t *a;
	const int8_t *panels;
	int64_t ahead; /* bytes behind the panels that are read next */
	void *memory;  /* 64-byte aligned, QL_GEMM_I8_SUMS bytes for each panel */
};

#define QL_GEMM_I8_SUMS 8192

struct ql_gemm_i8 {
	const char *name;
	int mr, nr; /* largest tile; nr is a multiple of 16, mr * nr <= QL_GEMM_TILE */
	int rate;   /* multiplications per ns on one core, roughly: for the size of chunks only */
	ql_gemm_i8_tile_fn *tile;
	/* The same where the bytes of a are signed. NULL: there is none, and signed codes are shifted to unsigned ones. */
	ql_gemm_i8_tile_fn *tile_s8;
	/* As tile, for nr columns and any number of rows, of which the sums become float32 while they are in registers. NULL: it
	 * is not faster. */
	void (*scaled)(int64_t rows, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *panel,
		const struct ql_gemm_i8_scaled *to);
	/* The same for many rows and panels at once, whose last one may have fewer columns. NULL: it is not faster. `form` gives k bytes of
	 * each row, lda bytes apart, a form of form_rows x form_k bytes for each so many rows and k, or less of them. */
	void (*scaled_block)(const struct ql_gemm_i8_block *b, const struct ql_gemm_i8_scaled *to);
	void (*form)(int64_t rows, int64_t k, const uint8_t *a, int64_t lda, uint8_t *to);
	int form_rows, form_k;
	int block_rows; /* a block is best a multiple of it; so many rows may be formed by themselves */
	/* c[i][l] = sum over `steps` bytes, a multiple of QL_DOTS_STEP, of a (u8; rows lda bytes apart) times b (s8;
	 * QL_DOTS_LINES lines ldb bytes apart), mod 2^32; 1 <= rows <= dot_rows, rows of c are ldc apart. */
	int dot_rows;
	void (*dots)(int rows, int64_t steps, const uint8_t *a, int64_t lda, const int8_t *b, int64_t ldb, int32_t *c,
		int64_t ldc);
};

#define QL_DOTS_STEP 64
#define QL_DOTS_LINES 4

/* Brings operands of gemm_i8 into the form of its tiles. All bytes are xored with `flip`. */
struct ql_pack_i8 {
	const char *name;
	/* 4 * k4 rows of B, whose columns are consecutive bytes and whose rows are `row` bytes apart, to panels of nr columns
	 * that are `pitch` bytes apart. `columns` and nr are multiples of 16. */
	void (*rows)(int64_t k4, int64_t columns, int nr, const uint8_t *b, int64_t row, uint8_t flip, uint8_t *panels,
		int64_t pitch);
	void (*copy)(int64_t n, const uint8_t *from, uint8_t flip, uint8_t *to);
};

/* The same as gemm_i8 for 16-bit values with exact 64-bit sums; lda counts elements. */
struct ql_gemm_i16 {
	const char *name;
	int mr, nr;
	int rate;
	void (*tile)(int rows, int columns, int64_t k4, const int16_t *a, int64_t lda, const int16_t *panel,
		int64_t *c /* (mr, nr) */);
};

/* c[i][j] = number of bits that differ between row i of a and column j, of `words` 64-bit words each. A panel holds
 * for each word nr consecutive columns; lda counts words. */
struct ql_gemm_b1 {
	const char *name;
	int mr, nr; /* nr is a multiple of 8 */
	int rate;   /* bits per ns */
	void (*tile)(int rows, int columns, int64_t words, const uint64_t *a, int64_t lda, const uint64_t *panel,
		int32_t *c /* (mr, nr) */);
};

/* Sums of a few taps over a line of numbers, for 1 to QL_TAPS_OUTPUTS sets of `pairs` pairs of weights: to[o *
 * pitch + i] = sum over l < pairs of w[o][l][0] * x[at[l] + step * i] + w[o][l][1] * x[at[l] + step * i + 1] for 0
 * <= i < n, mod 2^32; step is 1 or 2. Up to QL_TAPS_SLACK numbers after the last one needed may be read, and as
 * many sums after the last of an output written. */
struct ql_taps_i16 {
	const char *name;
	int rate; /* products per ns, as above */
	void (*sums)(int64_t n, int step, int outputs, int64_t pairs, const int16_t *x, const int64_t *at,
		const int16_t *w, int32_t *to, int64_t pitch);
};

#define QL_CONV_PANEL 16 /* outputs */
#define QL_CONV_PANELS 4 /* most panels of a tile */

/* Where the sums of a tile of a convolution are: output o of pixel i is the sum over segments s and l < 4 * quads of
 * x[i * step + at[s] + l] (u8) times the weight l of segment s (s8), mod 2^32. The weights of QL_CONV_PANEL outputs are
 * a panel: for each segment and quad, QL_CONV_PANEL x 4 bytes. */
struct ql_conv_i8_sums {
	int64_t step, quads;
	const int64_t *at;
	int segments;
	int64_t panel; /* bytes from a panel to the next one */
};

/* How they become codes: v = clamp(rint((float)max(sum + bias, least) * factor), lo, hi), the code is v + zero. With a multiplier the
 * product is the one in fixed point with two roundings (quant/integer/fixed.h, double) by multiplier * 2^-(31 + right), right >= 0. With
 * the codes of a second operand, of the same layout, the sum of both: clamp(rint(v * by[0] + (float)((other ^ flip) -
 * other_zero) * by[1]), sum_lo, sum_hi) + sum_zero. Factors are finite, bounds whole numbers below 2^22. */
struct ql_conv_i8_codes {
	const int32_t *bias; /* one per output, as are factors; whole panels */
	const float *factor;
	const int32_t *multiplier, *right; /* like factors; NULL: those are taken */
	int32_t least, zero;
	float lo, hi;
	int64_t pitch; /* bytes from the codes of a pixel to those of the next one */
	float by[2], sum_lo, sum_hi;
	int32_t other_zero, sum_zero;
	uint8_t flip;
};

/* Lines of pixels, and the bytes from one to the next: in x, and of the codes. With `fold` above 1 a line has the pixels of so many
 * rows of the result in turn, at most QL_CONV_FOLD in all: pixel i is pixel i / fold of row i % fold, whose codes are fold_apart
 * bytes apart. */
struct ql_conv_i8_lines {
	int64_t lines, pixels; /* at least 1 each */
	int64_t apart, to_apart;
	int fold; /* at least 1 */
	int64_t fold_apart;
};

#define QL_CONV_FOLD 16

struct ql_conv_i8 {
	const char *name;
	int rate; /* products per ns, as above */
	/* One tile: the codes of 1 to most[p] pixels and `columns` outputs, where p = ceil(columns / QL_CONV_PANEL) and most[p]
	 * is not 0. Nothing else is written. `other` is NULL, or the second operand. */
	int most[QL_CONV_PANELS + 1];
	void (*codes)(int rows, int columns, const struct ql_conv_i8_sums *s, const struct ql_conv_i8_codes *c,
		const uint8_t *x, const int8_t *panel, const uint8_t *other, uint8_t *to);
	/* The same for any number of lines, pixels and outputs. NULL: tile by tile is as fast. */
	void (*block)(const struct ql_conv_i8_lines *l, int columns, const struct ql_conv_i8_sums *s,
		const struct ql_conv_i8_codes *c, const uint8_t *x, const int8_t *panel, const uint8_t *other,
		uint8_t *to);
	/* The kernel for windows of so many segments and quads, and so many outputs. NULL: this one for all. */
	const struct ql_conv_i8 *(*instead)(int64_t segments, int64_t quads, int64_t outputs);
};

/* Depthwise sums: channel o of pixel i is the sum over t < 4 * quads of x[i * step + at[t] + o] (u8) times the weight of tap t (s8), mod
 * 2^32. 16 * lanes channels are a block: 4 * lanes of them, four for each 128 bits of a register, at a time. Channel o of a block
 * stands at place o % 16 / 4 * 4 * lanes + o / 16 * 4 + o % 4: of its 4 weights of each quad, and of its bias and factor. */
struct ql_depth_i8_sums {
	int64_t step, quads;
	const int64_t *at;
};

/* The codes of 1 to `most` pixels and 1 to 16 * lanes channels; those of a whole block are read. The rest as in conv_i8. */
struct ql_depth_i8 {
	const char *name;
	int rate; /* products per ns, as above */
	int most, lanes;
	bool fixed; /* takes a multiplier */
	void (*codes)(int rows, int channels, const struct ql_depth_i8_sums *s, const struct ql_conv_i8_codes *c,
		const uint8_t *x, const int8_t *w, const uint8_t *other, uint8_t *to);
};

#define QL_DEPTH_BLOCK 64 /* largest block of any kernel */

#define QL_TAPS_OUTPUTS 4
#define QL_TAPS_SLACK 128

static inline int32_t ql_taps_pair(const int16_t *w)
{
	return (int32_t)((uint32_t)(uint16_t)w[0] | (uint32_t)(uint16_t)w[1] << 16);
}

/* 16 columns of a matrix B of codes below 2^bits. Codes lie in groups of 64 bytes, four for each column: of 4 bits the codes of 8
 * consecutive k, byte i has those of i (low half) and 4 + i; of 8 bits the codes of 4 consecutive k. A code's value is
 * (code - zero) * scale + shift or, with `value`, value[code] * scale, each step rounded to float32. `mini` says that codes of 8 bits
 * are finite binary floating point, with the same values: the bits below `sign`, moved up by 23 - mantissa, are a float32 to be
 * multiplied by `unit`. One row of `dots` also takes codes of 1, 2, 3, 5 and 6 bits as strips hold them (`held`;
 * tensor/gemm/strip_codes.h has the layout), `floats` integers of 4 and 6 bits as fields in order of k in each lane of 32 bits. */
struct ql_strip {
	const uint8_t *codes;
	int bits; /* 4 or 8 */
	int held; /* bits of the codes where they are in chunks, for one row of `dots`; with `look` 6 only; 0: in groups */
	int fields; /* bits of fields, for `floats`: 4 in a lane of 8, or, with `bits` 8, 6 in a lane of 4; 0: codes in groups */
	bool half;           /* scales and shifts are float16, else float32 */
	int64_t block;       /* consecutive k under one scale, a multiple of 8; k and more: one scale per column */
	const void *scale;   /* 16 for each block */
	const void *shift;   /* the same; NULL: 0 */
	const uint8_t *zero; /* the same; NULL: `middle` for all */
	int32_t middle;      /* 0 with `zero` */
	const float *value;  /* 2^bits values; NULL: codes are integers */
	uint8_t mirror;      /* of 8 bits: value[mirror + d] is -value[mirror - d] for d of 1 to 127; 0: not so */
	const uint8_t *look; /* `dots`: integers in the place of the codes, 16 of 4 bits or 64 of 8; NULL: the codes */
	bool mini;
	uint8_t sign, mantissa; /* of mini: the bit of the sign; bits of the mantissa */
	float unit;
};

/* Rows of a with consecutive k, and a number per row and block. */
struct ql_strip_rows {
	const int8_t *a; /* rows lda bytes apart; 0 from k to the next multiple of 8 */
	int64_t lda;
	const int32_t *sum; /* (rows, blocks), `pitch` apart: sums of a - zero of the block */
	const int32_t
		*start; /* likewise: -middle times these; with `look` zero * look[0] more for each code behind k */
	int64_t pitch;
	const int32_t *zero; /* (rows) zero points of a; NULL: 0 */
};

#define QL_STRIP 16     /* columns */
#define QL_STRIP_ROWS 4 /* at most, of `dots` */
#define QL_STRIP_TILE 2 /* strips at most, of `dots` */
#define QL_STRIPS 4     /* at most, of `row` */

struct ql_gemm_coded {
	const char *name;
	int rate; /* codes decoded per ns on one core, roughly: for the size of chunks only */
	/* Values of rows l..l+depth-1 of B, 16 numbers each, `pitch` apart; l is a multiple of 8. */
	void (*floats)(const struct ql_strip *s, int64_t l, int64_t depth, float *out, int64_t pitch);
	/* c[16 i + j] = sum over k of a[l] * column j of strip i, in groups of QL_STRIP_DEPTH: the bits of gemm_f32's tiles of the same
	 * ISA, ordered or not. 1 <= strips <= QL_STRIPS; strips differ in nothing but their pointers. */
	void (*row)(int strips, const struct ql_strip *s, int64_t k, const float *a, float *c, bool ordered);
	/* c[i][16 t + j] = of row i and column j of strip t, the sum over the blocks, in order and from 0, of (float)(sum over k of
	 * (a - zero) * (code - zero)) * scale, then of (float)(sum of a - zero) * shift, each step rounded; c is (rows, 16 strips). Codes
	 * from k to the next multiple of 8 are 0. For one row without `scale` c are the sums of all blocks as int32, mod 2^32; strips as above. With `look` a code stands for look[code], and none is above 15 or 63. The same bits for all kernels. `value` is not read. */
	void (*dots)(
		int strips, int rows, const struct ql_strip *s, int64_t k, const struct ql_strip_rows *a, float *c);
};

#define QL_STRIP_DEPTH 256

#define QL_GEMM_TILE 1024    /* largest mr * nr of any kernel */
#define QL_GEMM_TILE_ROWS 64 /* largest mr */

/* The parameters of a row of affine codes. */
struct ql_affine {
	const float *scale;  /* one value, n with `each`, or one per block */
	const int32_t *zero; /* likewise; NULL: 0 */
	bool each;           /* every element has its own scale and zero point */
	bool stream;         /* the result is larger than the caches: use non-temporal stores */
	int log_block;       /* element i has scale i >> log_block, which is at least QL_LOG_BLOCK; 0: no blocks */
	int64_t ahead;       /* quantize: the values so many elements further on are fetched, too; 0: none */
	int32_t lo, hi;      /* range of the codes (quantize) */
};

#define QL_LOG_BLOCK 5 /* whole vectors of every instruction set */

/* code = clamp(rint(x / scale), lo - zero, hi - zero) + zero; NaN gives zero, infinities saturate. Returns true if
 * some x is not finite. Codes are stored as their low 8 or 16 bits. */
struct ql_quantize {
	const char *name;
	bool (*to_8)(const struct ql_affine *p, const float *x, int64_t n, uint8_t *out);
	bool (*to_16)(const struct ql_affine *p, const float *x, int64_t n, uint16_t *out);
	/* The smallest and the largest finite value of each of `blocks` consecutive runs of n values; INFINITY and
	 * -INFINITY if there is none. A zero is positive. */
	void (*ranges)(const float *x, int64_t n, int64_t blocks, float *lo, float *hi);
	/* Bit i is 0 where x[i] < 0, the lowest bit first; bits of the last byte beyond n are 0. */
	void (*to_signs)(const float *x, int64_t n, uint8_t *out);
};

/* x = (float)(code - zero) * scale */
struct ql_dequantize {
	const char *name;
	void (*from_i8)(const struct ql_affine *p, const int8_t *q, int64_t n, float *out);
	void (*from_u8)(const struct ql_affine *p, const uint8_t *q, int64_t n, float *out);
	void (*from_i16)(const struct ql_affine *p, const int16_t *q, int64_t n, float *out);
	void (*from_u16)(const struct ql_affine *p, const uint16_t *q, int64_t n, float *out);
	/* scale where bit i is 1, else -scale */
	void (*from_signs)(float scale, const uint8_t *q, int64_t n, float *out);
};

/* Selects the variant of loops generated by tensor/vmath/simd.h: elementwise maps and reductions. */
struct ql_simd {
	const char *name;
	int variant;
};

/* What this processor can do at most with an instruction set: loops that do nothing else, for measurements. */
struct ql_limit {
	const char *name, *dot; /* the instruction that `integers` repeats */
	/* Float32 multiply-adds and exact u8 x s8 ones on registers: the operations that so many rounds make, two for each. */
	double (*floats)(int64_t rounds);
	double (*integers)(int64_t rounds);
	/* Passes over memory; p and q begin at cache lines, n is a multiple of QL_LIMIT_STEP. read: the or of all 32-bit words. copy, fill
	 * (with ones: some processors write zeros faster) and narrow write past the caches; narrow saturates n 32-bit integers at p to n bytes. */
	uint32_t (*read)(const uint8_t *p, int64_t n);
	void (*copy)(const uint8_t *p, uint8_t *q, int64_t n);
	void (*fill)(uint8_t *q, int64_t n);
	void (*narrow)(const uint8_t *p, uint8_t *q, int64_t n);
};

#define QL_LIMIT_STEP 256
extern const uint8_t ql_limit_zeros[64], ql_limit_ones[64]; /* operands whose value the compiler does not see */
#define QL_KERNEL_FAMILIES(F) \
	F(gemm_f32) \
	F(gemm_bf16) \
	F(gemm_coded) \
	F(gemm_i8) \
	F(pack_i8) F(gemm_i16) F(gemm_b1) F(taps_i16) F(conv_i8) F(depth_i8) F(quantize) F(dequantize) F(simd) F(limit)

struct ql_kernels {
#define F(family) const struct ql_##family *family;
	QL_KERNEL_FAMILIES(F)
#undef F
	const struct ql_gemm_f32 *tiles; /* gemm_f32, or its best entry with tiles if that is a library */
	bool bf16;    /* products of matrices of floats are those of gemm_bf16, of rounded operands */
	bool ordered; /* sums of float32 products in a fixed order; of convolutions over (channels, kernel) */
};

/* The best kernel per family among the allowed features (QUOLL_KERNEL at first use, ql_kernels_force later). */
const struct ql_kernels *ql_kernels_cpu(void);
/* The same with ordered float32 products: every float32 result is the same bits on every CPU, and in exported C. */
const struct ql_kernels *ql_kernels_ordered(void);
/* Restricts to a level of cpu.h ("native": all) and, by words behind it or alone, to families of devices' kernels, which devices
 * ask for (ql_kernels_families). The word bf16 sets ql_kernels.bf16. False: no such level or family, or bf16 at the level native on a
 * processor without it (bf16tiles: TDPBF16PS). A level that this CPU lacks selects the next lower one. */
bool ql_kernels_force(const char *level);
/* Whether it is such a text, on some processor. */
bool ql_kernels_known(const char *level);
/* The current level, for ql_kernels_force, and the families of devices' kernels in it; "": all. */
const char *ql_kernels_level(void);
const char *ql_kernels_families(void);

/* Every entry of kernels.def, for tests and benchmarks. */
struct ql_kernel_entry {
	const char *family, *isa;
	uint32_t needs;
	const void *kernel;
};
extern const struct ql_kernel_entry ql_kernel_entries[];
extern const int ql_kernel_count;

#endif
