/* SPDX-License-Identifier: MIT
 * Grid: the values that codes represent under a scale of 1, as a table of at most 256 entries. Codes are bit fields
 * 0..n-1; their order need not be the order of the values (floating point has a sign bit).
 *
 * A value x becomes the code whose entry is nearest to x / scale in float32. The edge of two neighbours is their mean
 * in float32; a value on it goes where `tie` says.
 */
#ifndef QUOLL_TENSOR_GRID_H
#define QUOLL_TENSOR_GRID_H

#include <stdbool.h>
#include <stdint.h>

#define QL_GRID_MAX 256   /* values */
#define QL_GRID_STATIC 64 /* grids of the program */

/* Binary floating point: sign, exponent and mantissa in this order from the highest bit. */
struct ql_minifloat {
	uint8_t exponent, mantissa; /* bits */
	int16_t bias;
	uint8_t most;     /* code of the largest finite value */
	uint8_t infinity; /* its code; 0: none */
	uint8_t nan;      /* a code of NaN; 0: none */
};

enum ql_grid_tie {
	QL_TIE_LOWER, /* the lower value */
	QL_TIE_UPPER, /* the upper value */
	QL_TIE_EVEN,  /* the even code */
	QL_TIE_ZERO,  /* the value nearer to 0 */
};

struct ql_grid {
	const char *name;
	int n;              /* codes */
	const float *value; /* n values; NULL: those of `fill` or `minifloat` */
	void (*fill)(float *value);
	const struct ql_minifloat *minifloat;
	enum ql_grid_tie tie;
	float unit;      /* the value that a scale maps the largest |x| to; 0: the largest finite |value| */
	bool reciprocal; /* x times 1 / scale, rounded in float32, instead of x / scale (bitsandbytes) */
	bool learned;    /* a codebook of each tensor (quant/ranges/codebook.h); these values hold without data */
};

/* Where the search for a value begins: by the sign, exponent and 5 bits of the mantissa of a float32. */
#define QL_GRID_CELLS 16384
struct ql_grid_index {
	int steps;                    /* most edges in one cell */
	uint8_t start[QL_GRID_CELLS]; /* rank of the least value of the cell */
};

/* A grid ready for conversion. */
struct ql_grid_table {
	const struct ql_minifloat *minifloat; /* encode by rounding instead of a search; NULL: search */
	int n, ranks;                         /* ranks: finite values */
	int zero;                             /* the code of the value nearest to 0: that of NaN when no code is NaN */
	int nan;                              /* code of NaN */
	float unit;
	float least;     /* of the finite values */
	bool monotone;   /* values increase with codes */
	bool reciprocal; /* as in the grid */
	bool learned;    /* as in the grid; false in the codebook of a tensor */
	float value[QL_GRID_MAX];
	float edge[QL_GRID_MAX];           /* between rank i and i + 1; NaN beyond the last */
	uint8_t code[QL_GRID_MAX];         /* of rank i */
	const struct ql_grid_index *index; /* of large tables; NULL: none */
};

/* Gives the table of a grid with static storage; built once. */
const struct ql_grid_table *ql_grid_table(const struct ql_grid *grid);
/* Fills a table from n <= 256 values, of which NaN ones are not encoded; false: fewer than 2 finite values. */
bool ql_grid_fill(struct ql_grid_table *t, const float *value, int n, enum ql_grid_tie tie);

/* Fills the index and makes the search of t use it, unless t is small or its values are too close for it. The index must
 * live as long as t. */
void ql_grid_use_index(struct ql_grid_table *t, struct ql_grid_index *index);

/* True if a code stands for 0 in every tensor: not where values are learned. */
bool ql_grid_has_zero(const struct ql_grid_table *t);
/* The largest finite value. */
float ql_grid_most(const struct ql_grid_table *t);

/* Rows of n elements with one scale, or (each) one per element. Code bytes are unpacked. variant: of the SIMD
 * loops. NaN becomes t->nan. overflow: floating point beyond its range becomes infinity or NaN where it has them,
 * else the largest value. */
void ql_grid_encode(const struct ql_grid_table *t, int variant, bool overflow, const float *x, const float *scale,
	bool each, int64_t n, uint8_t *code);
void ql_grid_decode(const struct ql_grid_table *t, int variant, const uint8_t *code, const float *scale, bool each,
	int64_t n, float *out);

#endif
