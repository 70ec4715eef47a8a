/* SPDX-License-Identifier: MIT
 * Functions for float32 that need double inside: sine and cosine, whose argument must be reduced, and powers, whose
 * exponent magnifies errors. They follow the rules of vmath.h, but only for arguments that ql_pow_fits and
 * ql_sin_fits accept. The C library computes other powers, ql_sin_far and ql_cos_far other angles: they take every
 * float and do not vectorize. Errors: sin and cos at most 2 units in the last place, pow 0.6.
 */
#ifndef QUOLL_TENSOR_VMATH_WIDE_H
#define QUOLL_TENSOR_VMATH_WIDE_H

#include "tensor/vmath/log.h"

#define QL_ROUNDER_64 0x1.8p52 /* a sum with it is rounded to an integer */

QL_INLINE uint64_t ql_bits_64(double x)
{
	uint64_t b;

	memcpy(&b, &x, sizeof(b));
	return b;
}

QL_INLINE double ql_of_bits_64(uint64_t b)
{
	double x;

	memcpy(&x, &b, sizeof(x));
	return x;
}

/* sin(r + q pi / 2) for |r| <= pi / 4: polynomials in r^2. */
QL_INLINE float ql_sin_reduced(float r, uint32_t q)
{
	float z = r * r, s, c;

	s = (-1.95180997e-4f * z + 8.33218824e-3f) * z + -0.166666552f;
	s = copysignf(r + r * (z * s), r);
	c = (2.44325529e-5f * z + -1.38873106e-3f) * z + 4.16666456e-2f;
	c = 1 - 0.5f * z + z * z * c;
	return ql_of_bits(ql_bits(q & 1 ? c : s) ^ (q & 2) << 30);
}

/* sin(x + quarters pi / 2) for |x| < 2^20: x = k pi / 2 + r, where pi / 2 is a sum of 31 bits, whose product with k is
 * exact, and 53 more. */
QL_INLINE float ql_sin_quarters(float x, uint32_t quarters)
{
	double n = (double)x * 0x1.45f306dc9c883p-1 + QL_ROUNDER_64, k = n - QL_ROUNDER_64;

	return ql_sin_reduced((float)((double)x - k * 0x1.921fb544p+0 - k * 0x1.0b4611a626331p-34),
		(uint32_t)ql_bits_64(n) + quarters);
}

QL_INLINE bool ql_sin_fits(float x)
{
	return fabsf(x) < 0x1p20f;
}

QL_INLINE float ql_sin(float x)
{
	return ql_sin_quarters(x, 0);
}

QL_INLINE float ql_cos(float x)
{
	return ql_sin_quarters(x, 1);
}

/* sin(x + quarters pi / 2) for |x| >= 2^20 (Payne and Hanek 1983): x = m 2^e with m of 24 bits. Bits of 2 / pi that
 * give multiples of four quarters are skipped. In the product of m and the next 96 bits, the first two bits are the
 * quarter and the next 62 the fraction, with an error below 2^-61; the float nearest to a whole quarter is 2^-30
 * away from it. */
QL_INLINE float ql_sin_far_quarters(float x, uint32_t quarters)
{
	static const uint32_t two_by_pi[8] = {
		0, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
	uint32_t b = ql_bits(x), e = b >> 23 & 255, skip, word, left, q;
	uint64_t m = (b & 0x7fffffu) | 0x800000u, high, low, turn;
	double r;

	if (e == 255)
		return NAN;
	skip = e - 150 + 30; /* e - 2 bits, and the 32 leading zeros */
	word = skip >> 5;
	left = skip & 31;
	high = (uint64_t)two_by_pi[word] << 32 | two_by_pi[word + 1];
	low = (uint64_t)two_by_pi[word + 2] << 32 | two_by_pi[word + 3];
	high = high << left | low >> 32 >> (32 - left);
	low = low << left >> 32;
	turn = m * high + (m * low >> 32); /* 2^64: four quarters */
	q = (uint32_t)((turn + ((uint64_t)1 << 61)) >> 62);
	turn -= (uint64_t)q << 62;
	r = (turn >> 63 ? -(double)(0 - turn) : (double)turn) * 0x1.921fb54442d18p-62;
	return x < 0 ? ql_sin_reduced((float)-r, quarters - q) : ql_sin_reduced((float)r, quarters + q);
}

QL_INLINE float ql_sin_far(float x)
{
	return ql_sin_far_quarters(x, 0);
}

QL_INLINE float ql_cos_far(float x)
{
	return ql_sin_far_quarters(x, 1);
}

/* The sign of x^y for x < 0: -1 where y is an odd integer, 1 where it is an even one, else NaN. */
QL_INLINE double ql_pow_sign(float y)
{
	double v = fabsf(y) < 0x1p30f ? (double)y : 2, half = 0.5 * v; /* from 2^24 on all floats are even */
	double sign = half + QL_ROUNDER_64 - QL_ROUNDER_64 == half ? 1 : -1;

	return v + QL_ROUNDER_64 - QL_ROUNDER_64 == v ? sign : NAN;
}

/* |x|^y = 2^(y log2 |x|) for finite x other than 0 and finite y: log2(1 + f) = s p(s^2), s = f / (2 + f), within 2^-37;
 * 2^f for |f| <= 1/2 within 2^-29. */
QL_INLINE float ql_pow(float x, float y)
{
	float e, head = ql_log_split(fabsf(x), &e);
	double f = (double)head, s = f / (2 + f), z = s * s, p = 0.34073218931835081, t, n, q;

	p = p * z + 0.41167261156045826;
	p = p * z + 0.57708358666403836;
	p = p * z + 0.96179667333341445;
	p = p * z + 2.8853900817900926;
	t = (double)y * ((double)e + s * p);
	t = t < -160 ? -160 : t;
	t = t > 135 ? 135 : t;
	n = t + QL_ROUNDER_64;
	f = t - (n - QL_ROUNDER_64);
	q = 1.534580195974346e-4;
	q = q * f + 1.3399931138233401e-3;
	q = q * f + 9.6184889944509501e-3;
	q = q * f + 5.5503287772173178e-2;
	q = q * f + 0.2402264689028914;
	q = q * f + 0.6931472057371113;
	q = q * f + 1.0000000005542129;
	q *= x < 0 ? ql_pow_sign(y) : 1;
	return (float)(q * ql_of_bits_64((ql_bits_64(n) - ql_bits_64(QL_ROUNDER_64) + 1023) << 52));
}

QL_INLINE bool ql_pow_fits(float x, float y)
{
	return fabsf(x) > 0 && fabsf(x) < INFINITY && fabsf(y) < INFINITY;
}

#endif
