/* SPDX-License-Identifier: MIT
 * Non-temporal stores of whole lines. Pieces of 16 bytes are slower than ordinary stores (7.5 ms in the
 * measurement of stream.h), so the baseline copies.
 */
#include "tensor/stream.h"

#include <immintrin.h>
#include <string.h>

#include "tensor/simd.h"

#define LINE 16 /* floats of a cache line */

QL_TARGET_AVX2 static void lines_avx2(float *to, const float *from, int64_t n)
{
	for (int64_t i = 0; i < n; i += 8)
		_mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
}

QL_TARGET_AVX512 static void lines_avx512(float *to, const float *from, int64_t n)
{
	for (int64_t i = 0; i < n; i += LINE)
		_mm512_stream_ps(to + i, _mm512_loadu_ps(from + i));
}

static void lines_ref(float *to, const float *from, int64_t n)
{
	memcpy(to, from, (size_t)n * sizeof(*to));
}

void ql_stream(int variant, float *to, const float *from, int64_t n)
{
	static void (*const lines[QL_SIMD_VARIANTS])(float *, const float *, int64_t) = {
		lines_ref, lines_avx2, lines_avx512};
	int64_t head = (int64_t)(-(uintptr_t)to / sizeof(*to) % LINE), whole;

	if (head > n)
		head = n;
	whole = (n - head) / LINE * LINE;
	memcpy(to, from, (size_t)head * sizeof(*to));
	lines[variant](to + head, from + head, whole);
	memcpy(to + head + whole, from + head + whole, (size_t)(n - head - whole) * sizeof(*to));
}

void ql_stream_done(void)
{
	_mm_sfence();
}
