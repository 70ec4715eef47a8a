/* SPDX-License-Identifier: MIT
 * Tiles of 16 pixels x 16 outputs, 12 x 32, 8 x 48 or 6 x 64: up to 24 of the 32 registers hold sums. A panel is one
 * vector. With few outputs, many pixels share a load of the weights; the loads of a step, one per pixel and panel, are
 * then as many as its vpdpbusd, of which current cores start two per cycle, like loads.
 */
#include <immintrin.h>

#define VECTOR __m512i
#define STEP __m512i
#define LANES 16
#define PARTS 1
#define MOST_ROWS 16
#define MOST_VECTORS 4
#define WEIGHTS(p) _mm512_loadu_si512(p)
#define SPREAD(x) _mm512_set1_epi32(x)
#define DOT(sum, u, s) _mm512_dpbusd_epi32(sum, u, s)
#define ZERO() _mm512_setzero_si512()

#include "tensor/kernels/conv_i8_codes_avx512.h"
#include "tensor/kernels/conv_i8_tile.h"

static void codes_1 PARAMETERS
{
	switch (rows) {
		ROWS_CASE(1, 1)
		ROWS_CASE(2, 1)
		ROWS_CASE(3, 1)
		ROWS_CASE(4, 1)
		ROWS_CASE(5, 1)
		ROWS_CASE(6, 1)
		ROWS_CASE(7, 1)
		ROWS_CASE(8, 1)
		ROWS_CASE(9, 1)
		ROWS_CASE(10, 1)
		ROWS_CASE(11, 1)
		ROWS_CASE(12, 1)
		ROWS_CASE(13, 1)
		ROWS_CASE(14, 1)
		ROWS_CASE(15, 1)
		ROWS_CASE(16, 1)
	}
}

static void codes_2 PARAMETERS
{
	switch (rows) {
		ROWS_CASE(1, 2)
		ROWS_CASE(2, 2)
		ROWS_CASE(3, 2)
		ROWS_CASE(4, 2)
		ROWS_CASE(5, 2)
		ROWS_CASE(6, 2)
		ROWS_CASE(7, 2)
		ROWS_CASE(8, 2)
		ROWS_CASE(9, 2)
		ROWS_CASE(10, 2)
		ROWS_CASE(11, 2)
		ROWS_CASE(12, 2)
	}
}

static void codes_3 PARAMETERS
{
	switch (rows) {
		ROWS_CASE(1, 3)
		ROWS_CASE(2, 3)
		ROWS_CASE(3, 3)
		ROWS_CASE(4, 3)
		ROWS_CASE(5, 3)
		ROWS_CASE(6, 3)
		ROWS_CASE(7, 3)
		ROWS_CASE(8, 3)
	}
}

static void codes_4 PARAMETERS
{
	switch (rows) {
		ROWS_CASE(1, 4)
		ROWS_CASE(2, 4)
		ROWS_CASE(3, 4)
		ROWS_CASE(4, 4)
		ROWS_CASE(5, 4)
		ROWS_CASE(6, 4)
	}
}

static void codes PARAMETERS
{
	static void(*const of[QL_CONV_PANELS + 1]) PARAMETERS = {NULL, codes_1, codes_2, codes_3, codes_4};

	of[(columns + QL_CONV_PANEL - 1) / QL_CONV_PANEL](rows, columns, s, c, x, panel, other, to);
}

extern const struct ql_conv_i8 conv_i8_avx512vnni;
const struct ql_conv_i8 conv_i8_avx512vnni = {
	.name = "conv_i8_avx512vnni", .rate = 200, .most = {0, 16, 12, 8, 6}, .codes = codes};
