/* SPDX-License-Identifier: MIT
 * Conversions between element types in device code, with the bits of tensor/dtype.c and tensor/float8.h: to and from
 * float32, float64 and int64, to nearest with ties to even, saturating; NaN becomes the integer 0.
 */
#ifndef QUOLL_GPU_KERNELS_NUMBER_H
#define QUOLL_GPU_KERNELS_NUMBER_H

#include <cuda_runtime.h>
#include <math.h>

#include "gpu/kernels/dtypes.h"

#define QL_NUMBER __device__ static __forceinline__

QL_NUMBER float ql_float_of(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}
QL_NUMBER uint32_t ql_bits_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* ---- floats of 16 and 8 bits ---- */

/* A small float of `mantissa` bits whose fields begin at bit 23 - mantissa of a float32 after a shift. Multiplying by a
 * power of two moves the exponent, of denormals too. */
QL_NUMBER float ql_widen_small(uint32_t rest, int shift, float by)
{
	return ql_float_of(rest << shift) * by;
}

/* On a GPU the instructions do the same, but for the bits of NaN. */
QL_NUMBER float ql_from_f16(uint16_t h)
{
#ifdef __CUDA_ARCH__
	float x;

	asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
	return x;
#else
	uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu;

	if (rest >= 0x7c00u)
		return ql_float_of(sign | 0x7f800000u | rest << 13);
	return ql_float_of(sign | ql_bits_of(ql_widen_small(rest, 13, 0x1p112f)));
#endif
}
QL_NUMBER float ql_from_bf16(uint16_t h)
{
	return ql_float_of((uint32_t)h << 16);
}
QL_NUMBER float ql_from_e4m3(uint8_t code)
{
	uint32_t sign = (uint32_t)(code & 0x80u) << 24, rest = code & 0x7fu;

	return ql_float_of(sign | (rest == 0x7fu ? 0x7fc00000u : ql_bits_of(ql_widen_small(rest, 20, 0x1p120f))));
}
QL_NUMBER float ql_from_e5m2(uint8_t code)
{
	uint32_t sign = (uint32_t)(code & 0x80u) << 24, rest = code & 0x7fu;

	return ql_float_of(
		sign | (rest >= 0x7cu ? 0x7f800000u | rest << 21 : ql_bits_of(ql_widen_small(rest, 21, 0x1p112f))));
}
QL_NUMBER float ql_from_e8m0(uint8_t code)
{
	return ql_float_of(code == 0 ? 0x00400000u : code == 255 ? 0x7fc00000u : (uint32_t)code << 23);
}

/* Normal results: half of the dropped unit is added, less one, plus the low bit that stays. Denormal ones: the sum with
 * `magic` rounds at the right bit. */
QL_NUMBER uint32_t ql_narrow_small(uint32_t rest, int drop, uint32_t bias, uint32_t least, float magic)
{
	if (rest < least)
		return ql_bits_of(ql_float_of(rest) + magic) - ql_bits_of(magic);
	rest += (1u << (drop - 1)) - 1u + (rest >> drop & 1u);
	return (rest - bias) >> drop;
}

QL_NUMBER uint16_t ql_to_f16(float x)
{
#ifdef __CUDA_ARCH__
	uint16_t half;

	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
	return half;
#else
	uint32_t bits = ql_bits_of(x), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;

	if (rest > 0x7f800000u)
		return (uint16_t)(sign | 0x7e00u);
	if (rest >= 0x477ff000u)
		return (uint16_t)(sign | 0x7c00u);
	return (uint16_t)(sign | ql_narrow_small(rest, 13, 0x38000000u, 0x38800000u, 0.5f));
#endif
}
QL_NUMBER uint16_t ql_to_bf16(float x)
{
#ifdef __CUDA_ARCH__
	uint16_t half;

	asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half) : "f"(x));
	return half;
#else
	uint32_t bits = ql_bits_of(x);

	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(bits >> 16 | 0x40u);
	return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#endif
}
QL_NUMBER uint8_t ql_to_e4m3(float x)
{
	uint32_t bits = ql_bits_of(x), sign = bits >> 24 & 0x80u, rest = bits & 0x7fffffffu;

	if (rest > 0x43e80000u)
		return (uint8_t)(sign | 0x7fu);
	return (uint8_t)(sign | ql_narrow_small(rest, 20, 0x3c000000u, 0x3c800000u, 0x1p14f));
}
QL_NUMBER uint8_t ql_to_e5m2(float x)
{
	uint32_t bits = ql_bits_of(x), sign = bits >> 24 & 0x80u, rest = bits & 0x7fffffffu;

	if (rest > 0x7f800000u)
		return (uint8_t)(sign | 0x7eu);
	if (rest >= 0x47700000u)
		return (uint8_t)(sign | 0x7cu);
	return (uint8_t)(sign | ql_narrow_small(rest, 21, 0x38000000u, 0x38800000u, 0x1p7f));
}
QL_NUMBER uint8_t ql_to_e8m0(float x)
{
	uint32_t bits = ql_bits_of(x);

	if (bits == 0 || bits >= 0x7f400000u)
		return 255;
	if (bits < 0x00800000u)
		return bits >= 0x00600000u;
	return (uint8_t)((bits + 0x00400000u) >> 23);
}

/* Rounded to odd, so that a second rounding to fewer digits gives what one rounding of x would. */
QL_NUMBER float ql_odd_of_f64(double x)
{
	float f = (float)x;
	double back = (double)f;

	if (!isfinite(x) || back == x || ql_bits_of(f) & 1u)
		return f;
	return ql_float_of(fabs(back) > fabs(x) ? ql_bits_of(f) - 1u : ql_bits_of(f) + 1u);
}
QL_NUMBER float ql_odd_of_i64(int64_t x)
{
	int64_t low = x & 0xffff;

	if (x < -((int64_t)1 << 53) || x > (int64_t)1 << 53)
		x = (x - low) | (low ? 0x10000 : 0);
	return ql_odd_of_f64((double)x);
}

/* ---- integers ---- */

/* Half to even within lo .. hi, which are exact doubles or the ends of int64. */
QL_NUMBER int64_t ql_saturate(double x, int64_t lo, int64_t hi)
{
	if (isnan(x))
		return 0;
	x = rint(x);
	return x <= (double)lo ? lo : x >= (double)hi ? hi : (int64_t)x;
}
QL_NUMBER int64_t ql_clamp_i64(int64_t x, int64_t lo, int64_t hi)
{
	return x < lo ? lo : x > hi ? hi : x;
}

/* ---- elements: element i of `at` ---- */

QL_NUMBER float ql_load_small(int element, const void *at, int64_t i)
{
	switch (element) {
	case QL_E_float32: return static_cast<const float *>(at)[i];
	case QL_E_float16: return ql_from_f16(static_cast<const uint16_t *>(at)[i]);
	case QL_E_bfloat16: return ql_from_bf16(static_cast<const uint16_t *>(at)[i]);
	case QL_E_float8_e4m3: return ql_from_e4m3(static_cast<const uint8_t *>(at)[i]);
	case QL_E_float8_e5m2: return ql_from_e5m2(static_cast<const uint8_t *>(at)[i]);
	default: return ql_from_e8m0(static_cast<const uint8_t *>(at)[i]);
	}
}

/* Packed integers: a stream of fields, low bits first. */
QL_NUMBER bool ql_is_packed(int element)
{
	return element > QL_E_bool; /* tensor/dtype.def ends with them */
}
QL_NUMBER int ql_bits_of_packed(int element)
{
	switch (element) {
#define X(name, bits, kind, lo, hi, digits) \
	case QL_E_##name: \
		return bits;
#include "tensor/dtype.def"
#undef X
	default: return 0;
	}
}
QL_NUMBER bool ql_is_signed_packed(int element)
{
	switch (element) {
#define X(name, bits, kind, lo, hi, digits) \
	case QL_E_##name: \
		return QL_E_##kind == QL_E_INT;
#include "tensor/dtype.def"
#undef X
	default: return false;
	}
}
QL_NUMBER int32_t ql_load_packed(int element, const void *at, int64_t i)
{
	int bits = ql_bits_of_packed(element), half = ql_is_signed_packed(element) ? 1 << (bits - 1) : 0;
	int64_t bit = i * bits;
	const uint8_t *p = static_cast<const uint8_t *>(at);
	int code = p[bit >> 3] | p[(bit + bits - 1) >> 3] << 8; /* the second byte may be the first again */

	code = code >> (bit & 7) & ((1 << bits) - 1);
	return bits == 1 ? code * 2 - 1 : (code ^ half) - half;
}

/* Of a float type. */
QL_NUMBER float ql_load_float(int element, const void *at, int64_t i)
{
	return element == QL_E_float64 ? (float)static_cast<const double *>(at)[i] : ql_load_small(element, at, i);
}
/* Of an integer type of whole bytes. */
QL_NUMBER int64_t ql_load_whole(int element, const void *at, int64_t i)
{
	switch (element) {
	case QL_E_int8: return static_cast<const int8_t *>(at)[i];
	case QL_E_int16: return static_cast<const int16_t *>(at)[i];
	case QL_E_uint16: return static_cast<const uint16_t *>(at)[i];
	case QL_E_int32: return static_cast<const int32_t *>(at)[i];
	case QL_E_int64: return static_cast<const int64_t *>(at)[i];
	default: return static_cast<const uint8_t *>(at)[i]; /* uint8 or bool */
	}
}

/* Of an integer type of at most 16 bits. */
QL_NUMBER int32_t ql_load_code(int element, const void *at, int64_t i)
{
	switch (element) {
	case QL_E_int8: return static_cast<const int8_t *>(at)[i];
	case QL_E_uint8: return static_cast<const uint8_t *>(at)[i];
	case QL_E_int16: return static_cast<const int16_t *>(at)[i];
	case QL_E_uint16: return static_cast<const uint16_t *>(at)[i];
	default: return ql_load_packed(element, at, i);
	}
}

/* Of an integer type; of a float, saturated. */
QL_NUMBER int64_t ql_load_i64(int element, const void *at, int64_t i)
{
	switch (element) {
	case QL_E_int8:
	case QL_E_uint8:
	case QL_E_bool:
	case QL_E_int16:
	case QL_E_uint16:
	case QL_E_int32:
	case QL_E_int64: return ql_load_whole(element, at, i);
	case QL_E_float64: return ql_saturate(static_cast<const double *>(at)[i], INT64_MIN, INT64_MAX);
	default:
		if (ql_is_packed(element))
			return ql_load_packed(element, at, i);
		return ql_saturate((double)ql_load_small(element, at, i), INT64_MIN, INT64_MAX);
	}
}

QL_NUMBER bool ql_is_float(int element)
{
	return element <= QL_E_float8_e8m0; /* tensor/dtype.def begins with the floats */
}

QL_NUMBER double ql_load_f64(int element, const void *at, int64_t i)
{
	if (element == QL_E_float64)
		return static_cast<const double *>(at)[i];
	if (ql_is_float(element))
		return (double)ql_load_small(element, at, i);
	return ql_is_packed(element) ? (double)ql_load_packed(element, at, i) : (double)ql_load_whole(element, at, i);
}
QL_NUMBER float ql_load_f32(int element, const void *at, int64_t i)
{
	if (ql_is_float(element))
		return ql_load_float(element, at, i);
	return ql_is_packed(element) ? (float)ql_load_packed(element, at, i) : (float)ql_load_whole(element, at, i);
}

QL_NUMBER void ql_store_small(int element, void *at, int64_t i, float x)
{
	switch (element) {
	case QL_E_float32: static_cast<float *>(at)[i] = x; return;
	case QL_E_float16: static_cast<uint16_t *>(at)[i] = ql_to_f16(x); return;
	case QL_E_bfloat16: static_cast<uint16_t *>(at)[i] = ql_to_bf16(x); return;
	case QL_E_float8_e4m3: static_cast<uint8_t *>(at)[i] = ql_to_e4m3(x); return;
	case QL_E_float8_e5m2: static_cast<uint8_t *>(at)[i] = ql_to_e5m2(x); return;
	default: static_cast<uint8_t *>(at)[i] = ql_to_e8m0(x); return;
	}
}

/* Integers wrap, bool is whether it is not 0. */
QL_NUMBER void ql_store_i64(int element, void *at, int64_t i, int64_t x)
{
	switch (element) {
	case QL_E_int8:
	case QL_E_uint8: static_cast<uint8_t *>(at)[i] = (uint8_t)x; return;
	case QL_E_int16:
	case QL_E_uint16: static_cast<uint16_t *>(at)[i] = (uint16_t)x; return;
	case QL_E_int32: static_cast<uint32_t *>(at)[i] = (uint32_t)x; return;
	case QL_E_int64: static_cast<int64_t *>(at)[i] = x; return;
	case QL_E_bool: static_cast<uint8_t *>(at)[i] = x != 0; return;
	case QL_E_float64: static_cast<double *>(at)[i] = (double)x; return;
	case QL_E_float32: static_cast<float *>(at)[i] = (float)x; return;
	default: ql_store_small(element, at, i, ql_odd_of_i64(x)); return;
	}
}

QL_NUMBER void ql_store_f64(int element, void *at, int64_t i, double x)
{
	switch (element) {
	case QL_E_int8: ql_store_i64(element, at, i, ql_saturate(x, INT8_MIN, INT8_MAX)); return;
	case QL_E_uint8: ql_store_i64(element, at, i, ql_saturate(x, 0, UINT8_MAX)); return;
	case QL_E_int16: ql_store_i64(element, at, i, ql_saturate(x, INT16_MIN, INT16_MAX)); return;
	case QL_E_uint16: ql_store_i64(element, at, i, ql_saturate(x, 0, UINT16_MAX)); return;
	case QL_E_int32: ql_store_i64(element, at, i, ql_saturate(x, INT32_MIN, INT32_MAX)); return;
	case QL_E_int64: ql_store_i64(element, at, i, ql_saturate(x, INT64_MIN, INT64_MAX)); return;
	case QL_E_bool: static_cast<uint8_t *>(at)[i] = x != 0; return;
	case QL_E_float64: static_cast<double *>(at)[i] = x; return;
	case QL_E_float32: static_cast<float *>(at)[i] = (float)x; return;
	default: ql_store_small(element, at, i, ql_odd_of_f64(x)); return;
	}
}
QL_NUMBER void ql_store_f32(int element, void *at, int64_t i, float x)
{
	if (ql_is_float(element) && element != QL_E_float64)
		ql_store_small(element, at, i, x);
	else
		ql_store_f64(element, at, i, (double)x);
}

#endif
