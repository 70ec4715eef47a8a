/* SPDX-License-Identifier: MIT
 * The table of chosen kernels, one per family, and the families' interfaces.
 * Integer families give the same bits on every ISA and thread count; so do map, quantize and dequantize
 * (no fused multiply-add anywhere). gemm_f32 states its tolerance.
 */
#ifndef QUOLL_TENSOR_KERNELS_H
#define QUOLL_TENSOR_KERNELS_H

#include "tensor/base.h"

/* C (m, n) += 0; C = A (m, k) * B (k, n), float32. Strides in elements; one of each operand's strides is 1.
 * Tolerance against exact arithmetic: k * 2^-24 * sum |a||b| per element (any summation order). */
struct ql_gemm_f32 {
	const char *name;
	/* false: cannot run here (library missing); dispatch then takes the next one */
	bool (*available)(void);
	void (*run)(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_col, const float *b,
		int64_t b_row, int64_t b_col, float *c, int64_t ldc);
};

/* One micro-tile product: rows x nr int32 sums over k of a (u8, lda) times packed b (s8), mod 2^32.
 * b_panel holds nr columns: for each group of 4 k, nr x 4 consecutive bytes; k is padded with zeros to 4. */
struct ql_gemm_i8 {
	const char *name;
	int mr, nr; /* largest tile: rows of A, columns of one packed panel (a multiple of 16) */
	void (*tile)(int rows, int64_t k4, const uint8_t *a, int64_t lda, const int8_t *b_panel, int32_t *c /* (mr, nr) */);
};

/* The same for 16-bit values with 64-bit sums: b_panel holds for each k nr consecutive values. */
struct ql_gemm_i16 {
	const char *name;
	int mr, nr;
	void (*tile)(int rows, int64_t k, const int16_t *a, int64_t lda, const int16_t *b_panel, int64_t *c /* (mr, nr) */);
};

/* Dot products of +-1 vectors given as bits (1: +1): out[j] = number of differing bits between a and row j of
 * b, `words` 64-bit words each. */
struct ql_gemm_b1 {
	const char *name;
	void (*differing)(const uint64_t *a, const uint64_t *b, int64_t ldb, int64_t rows, int64_t words, int32_t *out);
};

/* code = clamp(rint(x / scale), lo - zero, hi - zero) + zero; NaN gives zero, infinities saturate. Returns
 * true when some x was not finite. Codes are stored as their low 8 or 16 bits. */
struct ql_quantize {
	const char *name;
	bool (*to_8)(const float *x, int64_t n, float scale, int32_t zero, int32_t lo, int32_t hi, uint8_t *out);
	bool (*to_16)(const float *x, int64_t n, float scale, int32_t zero, int32_t lo, int32_t hi, uint16_t *out);
};

/* x = (float)(code - zero) * scale */
struct ql_dequantize {
	const char *name;
	void (*from_i8)(const int8_t *q, int64_t n, float scale, int32_t zero, float *out);
	void (*from_u8)(const uint8_t *q, int64_t n, float scale, int32_t zero, float *out);
	void (*from_i16)(const int16_t *q, int64_t n, float scale, int32_t zero, float *out);
	void (*from_u16)(const uint16_t *q, int64_t n, float scale, int32_t zero, float *out);
};

/* Which of the variants that tensor/simd.h generates runs: elementwise maps and reductions. */
struct ql_simd {
	const char *name;
	int variant;
};

#define QL_KERNEL_FAMILIES(F) \
	F(gemm_f32) F(gemm_i8) F(gemm_i16) F(gemm_b1) F(quantize) F(dequantize) F(simd)

struct ql_kernels {
#define F(family) const struct ql_##family *family;
	QL_KERNEL_FAMILIES(F)
#undef F
};

/* The best kernel per family among the allowed features (QUOLL_KERNEL at first use, ql_kernels_force later). */
const struct ql_kernels *ql_kernels_cpu(void);
/* Restricts to a level of cpu.h ("native": all). False: no such level. A level this CPU lacks just selects
 * what is there below it. */
bool ql_kernels_force(const char *level);
/* Name of the level in force. */
const char *ql_kernels_level(void);

/* Every entry of kernels.def, for tests and benchmarks. */
struct ql_kernel_entry {
	const char *family, *isa;
	uint32_t needs;
	const void *kernel;
};
extern const struct ql_kernel_entry ql_kernel_entries[];
extern const int ql_kernel_count;

#endif
