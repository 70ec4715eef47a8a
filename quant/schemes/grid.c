/* SPDX-License-Identifier: MIT
 * Grid: x = value[q] * scale, with the values of a grid (tensor/grid.h): small floating point, NF4, and tables of the
 * user. The scale maps the largest |x| to the grid's unit. Codes are bit fields in no particular order.
 */
#include <math.h>

#include "tensor/grid.h"
#include "tensor/qparams.h"

#define PIECE 256

static bool accepts(unsigned dtype)
{
	return ql_dtypes[dtype].kind == QL_KIND_UINT && ql_dtypes[dtype].bits <= 8;
}

static void range(unsigned dtype, bool wide, struct ql_codes *codes)
{
	(void)dtype;
	(void)wide;
	codes->lo = 0;
	codes->hi = codes->grid ? codes->grid->n - 1 : 0;
}

static double fit(const struct ql_stats *stats, const struct ql_codes *codes)
{
	return fmax(fabs(stats->lo), fabs(stats->hi)) / (double)codes->grid->unit;
}

static void encode(const float *x, int64_t n, float scale, int32_t zero, const struct ql_codes *codes, int32_t *out)
{
	uint8_t code[PIECE];

	(void)zero;
	for (int64_t i = 0; i < n; i += PIECE) {
		int64_t m = n - i < PIECE ? n - i : PIECE;

		ql_grid_encode(codes->grid, 0, codes->overflow, x + i, &scale, false, m, code);
		for (int64_t j = 0; j < m; j++)
			out[i + j] = code[j];
	}
}

/* Codes beyond the table, which other programs may write, are decoded as its last one. */
static void decode(const int32_t *q, int64_t n, float scale, int32_t zero, const struct ql_codes *codes, float *out)
{
	(void)zero;
	for (int64_t i = 0; i < n; i++)
		out[i] = codes->grid->value[q[i] < codes->grid->n ? q[i] : codes->grid->n - 1] * scale;
}

extern const struct ql_scheme ql_scheme_grid;
const struct ql_scheme ql_scheme_grid = {
	.doc = {.name = "grid",
		.usage = "x:quantize 'nf4'  x:quantize 'mxfp4'  x:quantize 'fp8_e4m3/1'",
		.text = "x = value[q] * scale with a table of at most 256 values; the formats of quant.formats() name their tables. "
			"Values need not be evenly spaced, so ops decode first; linear multiplies 8-bit codes by tables of small integers times a power "
			"of two (mxfp4, iq4_nl) exactly.",
		.example =
			"print(tensor{-3,0.4,1,6}:quantize('fp4_e2m1'):dequantize())  --> float32(4)  -3.0000   0.5000   1.0000   6.0000"},
	.grid = true,
	.rule = QL_FIT_LARGEST,
	.accepts = accepts,
	.range = range,
	.fit = fit,
	.encode = encode,
	.decode = decode,
};
