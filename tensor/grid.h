/* SPDX-License-Identifier: MIT
 * Grid: the values of the codes under a scale of 1, as a table of at most 256 entries. Codes are bit fields 0..n-1, not
 * necessarily in the order of their values (floating point has a sign bit).
 *
 * A value x is encoded as the code whose entry is nearest to x / scale, in float32. The edge between two neighbouring
 * values is their mean in float32; `tie` chooses the code of a value on an edge.
 */
#ifndef QUOLL_TENSOR_GRID_H
#define QUOLL_TENSOR_GRID_H

#include <stdbool.h>
#include <stdint.h>

#define QL_GRID_MAX 256   /* values */
#define QL_GRID_STATIC 64 /* grids defined in the program */

/* Binary floating point: sign, exponent and mantissa in this order from the highest bit. */
struct ql_minifloat {
	uint8_t exponent, mantissa; /* bits */
	int16_t bias;
	uint8_t most;     /* code of the largest finite value */
	uint8_t infinity; /* code of infinity; 0: none */
	uint8_t nan;      /* code of NaN; 0: none */
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
	bool reciprocal; /* multiply by 1 / scale, rounded to float32, instead of dividing (bitsandbytes) */
	bool learned;    /* each tensor has its own values (quant/ranges/codebook.h); these are used without data */
};

/* Start of the search for a value, by the sign, exponent and upper 5 bits of the mantissa of a float32. */
#define QL_GRID_CELLS 16384
struct ql_grid_index {
	int steps;                    /* maximum number of edges in a cell */
	uint8_t start[QL_GRID_CELLS]; /* rank of the smallest value in each cell */
};

/* A grid ready for conversion. */
struct ql_grid_table {
	const struct ql_minifloat *minifloat; /* encode by rounding; NULL: by searching the edges */
	int n, ranks;                         /* ranks: finite values */
	int zero;                             /* code of the value nearest to 0; also that of NaN if no code is NaN */
	int nan;                              /* code of NaN */
	float unit;
	float least;     /* smallest finite value */
	bool monotone;   /* values increase with codes */
	bool reciprocal; /* as in the grid */
	bool learned;    /* as in the grid; false for the codebook of a tensor */
	float value[QL_GRID_MAX];
	float edge[QL_GRID_MAX];           /* between rank i and i + 1; NaN beyond the last */
	uint8_t code[QL_GRID_MAX];         /* code of rank i */
	const struct ql_grid_index *index; /* NULL: none */
};

/* Returns the table of a grid that has static storage. It is built by the first call; any thread may call. */
const struct ql_grid_table *ql_grid_table(const struct ql_grid *grid);
/* Fills a table from n <= QL_GRID_MAX values. Codes whose value is not finite are decoded, but finite values are never
 * encoded as one. Returns false if there are fewer than 2 different finite values. */
bool ql_grid_fill(struct ql_grid_table *t, const float *value, int n, enum ql_grid_tie tie);

/* Fills the index and makes encoding by t use it, unless t has few values or several of them are too close together. The
 * index must live as long as t. */
void ql_grid_use_index(struct ql_grid_table *t, struct ql_grid_index *index);

/* True if some code decodes to 0 in every tensor; false if the values are learned. */
bool ql_grid_has_zero(const struct ql_grid_table *t);
/* Returns the largest finite value. */
float ql_grid_most(const struct ql_grid_table *t);

/* The values as integers of 8 bits times a power of two, the largest of 1, 1/2, … 1/128: value[i] = whole[i] * *unit. False: they are not. */
bool ql_grid_whole(const struct ql_grid_table *t, int8_t *whole, float *unit);

/* Convert n elements; `scale` is one number or, with `each`, one per element. Codes are one per byte. variant: index of the
 * SIMD loops (tensor/vmath/simd.h). NaN is encoded as t->nan. overflow: values beyond the range of a floating-point format
 * are encoded as infinity or NaN if it has them; otherwise they saturate. */
void ql_grid_encode(const struct ql_grid_table *t, int variant, bool overflow, const float *x, const float *scale,
	bool each, int64_t n, uint8_t *code);
void ql_grid_decode(const struct ql_grid_table *t, int variant, int bits, const uint8_t *code, const float *scale,
	bool each, int64_t n, float *out);

#endif
