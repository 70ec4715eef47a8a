/* SPDX-License-Identifier: MIT
 * Codes of 4 bits have 16 values under a scale. They are computed once for each scale and looked up in a register, by indices that are
 * the codes themselves: a word of 8 codes in each lane, shifted by the place of the lane's own one; higher bits are not looked at.
 * (int4 on AVX-512, Emerald Rapids: codes to bytes to floats 0.10 ns a code.)
 */
#include "tensor/nibbles.h"

#include <immintrin.h>
#include <string.h>

#include "tensor/vmath/simd.h"

/* Codes begin..end-1 of a block, one by one. */
static void look_up(const float *table, const uint8_t *q, int64_t begin, int64_t end, float *out)
{
	for (int64_t i = begin; i < end; i++)
		out[i] = table[q[i / 2] >> i % 2 * 4 & 15];
}

static void block_ref(const float *base, float scale, const uint8_t *q, int64_t n, float *out)
{
	float table[16];

	for (int i = 0; i < 16; i++)
		table[i] = base[i] * scale;
	look_up(table, q, 0, n, out);
}

QL_TARGET_AVX2 static void block_avx2(const float *base, float scale, const uint8_t *q, int64_t n, float *out)
{
	const __m256i shift = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
	const __m256 low = _mm256_loadu_ps(base) * scale, high = _mm256_loadu_ps(base + 8) * scale;
	float table[16];
	int64_t i = 0;

	for (; i + 8 <= n; i += 8) {
		int32_t word;
		__m256i code;
		__m256 upper;

		memcpy(&word, q + i / 2, sizeof(word));
		code = _mm256_srlv_epi32(_mm256_set1_epi32(word), shift);
		upper = _mm256_castsi256_ps(_mm256_slli_epi32(code, 28)); /* the sign is bit 3 of the code */
		_mm256_storeu_ps(out + i, _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, code),
						  _mm256_permutevar8x32_ps(high, code), upper));
	}
	if (i < n) {
		_mm256_storeu_ps(table, low);
		_mm256_storeu_ps(table + 8, high);
		look_up(table, q, i, n, out);
	}
}

QL_TARGET_AVX512 static void block_avx512(const float *base, float scale, const uint8_t *q, int64_t n, float *out)
{
	const __m512i shift = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
	const __m512i first = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
	const __m512i second = _mm512_setr_epi32(2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
	const __m512 value = _mm512_loadu_ps(base) * scale;
	float table[16];
	int64_t i = 0;

	for (; i + 32 <= n; i += 32) {
		__m512i words = _mm512_castsi128_si512(_mm_loadu_si128((const void *)(q + i / 2)));
		__m512i a = _mm512_srlv_epi32(_mm512_permutexvar_epi32(first, words), shift);
		__m512i b = _mm512_srlv_epi32(_mm512_permutexvar_epi32(second, words), shift);

		_mm512_storeu_ps(out + i, _mm512_permutexvar_ps(a, value));
		_mm512_storeu_ps(out + i + 16, _mm512_permutexvar_ps(b, value));
	}
	if (i < n) {
		_mm512_storeu_ps(table, value);
		look_up(table, q, i, n, out);
	}
}

static void (*const block[QL_SIMD_VARIANTS])(const float *base, float scale, const uint8_t *q, int64_t n,
	float *out) = {block_ref, block_avx2, block_avx512};

static void integers(bool is_signed, int32_t zero, float *base)
{
	int flip = is_signed ? 8 : 0;

	for (int i = 0; i < 16; i++)
		base[i] = (float)((i ^ flip) - flip - zero);
}

void ql_nibbles_decode(int variant, const struct ql_nibbles *as, const uint8_t *q, int64_t n, float *out)
{
	_Alignas(64) float base[16];
	int32_t zero = as->zero ? *as->zero : 0;

	if (!as->value)
		integers(as->is_signed, zero, base);
	for (int64_t begin = 0, at = 0; begin < n; begin += as->block, at++) {
		if (!as->value && as->zero && as->zero[at] != zero) {
			zero = as->zero[at];
			integers(as->is_signed, zero, base);
		}
		block[variant](as->value ? as->value : base, as->scale[at], q + begin / 2,
			n - begin < as->block ? n - begin : as->block, out + begin);
	}
}
