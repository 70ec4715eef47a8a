/* SPDX-License-Identifier: MIT
 * The dtype table and its row converters, half-precision conversions, promotion.
 */
#include "tensor/dtype.h"

#include <math.h>

#include "tensor/float8.h"
#include "tensor/half.h"
#include "tensor/narrow.h"

float ql_f16_to_f32(uint16_t h)
{
	return f32_of_f16(h);
}

uint16_t ql_f32_to_f16(float x)
{
	return f16_of_f32(x);
}

float ql_bf16_to_f32(uint16_t h)
{
	return f32_of_bf16(h);
}

uint16_t ql_f32_to_bf16(float x)
{
	return bf16_of_f32(x);
}

/* Round to odd: a second rounding to fewer digits then gives what one rounding of x would. */
static float odd_of_f64(double x)
{
	float f = (float)x;
	double back = (double)f;

	if (isfinite(x) && back != x && !(ql_bits(f) & 1u)) {
		uint32_t bits = ql_bits(f);

		f = ql_of_bits((fabs(back) > fabs(x)) ? bits - 1u : bits + 1u);
	}
	return f;
}

static float odd_of_i64(int64_t x)
{
	int64_t low = x & 0xffff;

	if (x < -(1LL << 53) || x > 1LL << 53) /* not always a double: 48 digits, rounded to odd */
		x = (x - low) | (low ? 0x10000 : 0);
	return odd_of_f64((double)x);
}

/* Half to even, saturating, NaN to 0, without calls or branches. Adding 2^52 rounds to an integer. */
static inline double rounded(double x)
{
	double a = fabs(x), r = a + 0x1p52 - 0x1p52;

	return a < 0x1p52 ? copysign(r, x) : x;
}

/* The bounds are compared as doubles, so that 2^63 saturates too. */
static inline int64_t saturate(double x, int64_t lo, int64_t hi)
{
	if (isnan(x))
		return 0;
	x = rounded(x);
	if (x <= (double)lo)
		return lo;
	if (x >= (double)hi)
		return hi;
	return (int64_t)x;
}

/* For bounds that are exact doubles, up to 32 bits. */
static inline int32_t saturate_32(double x, double lo, double hi)
{
	x = isnan(x) ? 0 : x;
	x = x < lo ? lo : x;
	x = x > hi ? hi : x;
	return (int32_t)(x + 0x1.8p52 - 0x1.8p52);
}

#define SELF(v) (v)
#define TO_I64(v) ((int64_t)(v))

#define T float32
#define C float
#define LOAD SELF
#define LOAD_I64(v) saturate((double)(v), INT64_MIN, INT64_MAX)
#define STORE_F32 SELF
#define STORE_F64(v) ((float)(v))
#define STORE_I64(v) ((float)(v))
#include "tensor/dtype_row.h"

#define T float64
#define C double
#define LOAD SELF
#define LOAD_I64(v) saturate(v, INT64_MIN, INT64_MAX)
#define STORE_F32(v) ((double)(v))
#define STORE_F64 SELF
#define STORE_I64(v) ((double)(v))
#include "tensor/dtype_row.h"

#define T float16
#define C uint16_t
#define LOAD f32_of_f16
#define LOAD_I64(v) saturate((double)f32_of_f16(v), INT64_MIN, INT64_MAX)
#define STORE_F32 f16_of_f32
#define STORE_F64(v) f16_of_f32(odd_of_f64(v))
#define STORE_I64(v) f16_of_f32(odd_of_i64(v))
#include "tensor/dtype_row.h"

#define T bfloat16
#define C uint16_t
#define LOAD f32_of_bf16
#define LOAD_I64(v) saturate((double)f32_of_bf16(v), INT64_MIN, INT64_MAX)
#define STORE_F32 bf16_of_f32
#define STORE_F64(v) bf16_of_f32(odd_of_f64(v))
#define STORE_I64(v) bf16_of_f32(odd_of_i64(v))
#include "tensor/dtype_row.h"

#define T float8_e4m3
#define C uint8_t
#define LOAD f32_of_e4m3
#define LOAD_I64(v) saturate((double)f32_of_e4m3(v), INT64_MIN, INT64_MAX)
#define STORE_F32 e4m3_of_f32
#define STORE_F64(v) e4m3_of_f32(odd_of_f64(v))
#define STORE_I64(v) e4m3_of_f32(odd_of_i64(v))
#include "tensor/dtype_row.h"

#define T float8_e5m2
#define C uint8_t
#define LOAD f32_of_e5m2
#define LOAD_I64(v) saturate((double)f32_of_e5m2(v), INT64_MIN, INT64_MAX)
#define STORE_F32 e5m2_of_f32
#define STORE_F64(v) e5m2_of_f32(odd_of_f64(v))
#define STORE_I64(v) e5m2_of_f32(odd_of_i64(v))
#include "tensor/dtype_row.h"

#define T float8_e8m0
#define C uint8_t
#define LOAD f32_of_e8m0
#define LOAD_I64(v) saturate((double)f32_of_e8m0(v), INT64_MIN, INT64_MAX)
#define STORE_F32 e8m0_of_f32
#define STORE_F64(v) e8m0_of_f32(odd_of_f64(v))
#define STORE_I64(v) e8m0_of_f32(odd_of_i64(v))
#include "tensor/dtype_row.h"

#define T int8
#define C int8_t
#define LOAD SELF
#define LOAD_I64 TO_I64
#define STORE_F32(v) ((int8_t)ql_narrow_16(v, INT8_MIN, INT8_MAX))
#define STORE_F64(v) ((int8_t)saturate_32(v, INT8_MIN, INT8_MAX))
#define STORE_I64(v) ((int8_t)(uint8_t)(v))
#include "tensor/dtype_row.h"

#define T uint8
#define C uint8_t
#define LOAD SELF
#define LOAD_I64 TO_I64
#define STORE_F32(v) ((uint8_t)ql_narrow_16(v, 0, UINT8_MAX))
#define STORE_F64(v) ((uint8_t)saturate_32(v, 0, UINT8_MAX))
#define STORE_I64(v) ((uint8_t)(v))
#include "tensor/dtype_row.h"

#define T int16
#define C int16_t
#define LOAD SELF
#define LOAD_I64 TO_I64
#define STORE_F32(v) ((int16_t)ql_narrow_16(v, INT16_MIN, INT16_MAX))
#define STORE_F64(v) ((int16_t)saturate_32(v, INT16_MIN, INT16_MAX))
#define STORE_I64(v) ((int16_t)(uint16_t)(v))
#include "tensor/dtype_row.h"

#define T uint16
#define C uint16_t
#define LOAD SELF
#define LOAD_I64 TO_I64
#define STORE_F32(v) ((uint16_t)ql_narrow_16(v, 0, UINT16_MAX))
#define STORE_F64(v) ((uint16_t)saturate_32(v, 0, UINT16_MAX))
#define STORE_I64(v) ((uint16_t)(v))
#include "tensor/dtype_row.h"

#define T int32
#define C int32_t
#define LOAD SELF
#define LOAD_I64 TO_I64
#define STORE_F32 ql_narrow_32
#define STORE_F64(v) (saturate_32(v, INT32_MIN, INT32_MAX))
#define STORE_I64(v) ((int32_t)(uint32_t)(v))
#include "tensor/dtype_row.h"

#define T int64
#define C int64_t
#define LOAD SELF
#define LOAD_I64 SELF
#define STORE_F32(v) saturate((double)(v), INT64_MIN, INT64_MAX)
#define STORE_F64(v) saturate(v, INT64_MIN, INT64_MAX)
#define STORE_I64 SELF
#include "tensor/dtype_row.h"

#undef bool /* here `bool` is the name of a dtype */
#define T bool
#define C uint8_t
#define LOAD SELF
#define LOAD_I64 TO_I64
#define STORE_F32(v) ((uint8_t)((v) != 0))
#define STORE_F64(v) ((uint8_t)((v) != 0))
#define STORE_I64(v) ((uint8_t)((v) != 0))
#include "tensor/dtype_row.h"

#define T int6
#define BITS 6
#define SIGNED 1
#include "tensor/dtype_packed.h"

#define T uint6
#define BITS 6
#define SIGNED 0
#include "tensor/dtype_packed.h"

#define T int5
#define BITS 5
#define SIGNED 1
#include "tensor/dtype_packed.h"

#define T uint5
#define BITS 5
#define SIGNED 0
#include "tensor/dtype_packed.h"

#define T int4
#define BITS 4
#define SIGNED 1
#include "tensor/dtype_packed.h"

#define T uint4
#define BITS 4
#define SIGNED 0
#include "tensor/dtype_packed.h"

#define T int3
#define BITS 3
#define SIGNED 1
#include "tensor/dtype_packed.h"

#define T uint3
#define BITS 3
#define SIGNED 0
#include "tensor/dtype_packed.h"

#define T int2
#define BITS 2
#define SIGNED 1
#include "tensor/dtype_packed.h"

#define T uint2
#define BITS 2
#define SIGNED 0
#include "tensor/dtype_packed.h"

#define T binary
#define BITS 1
#define DECODE(code) ((int)(code)*2 - 1)
#define ENCODE(value) ((unsigned)((value) >= 0))
#define FROM_FLOAT(v) ((v) >= 0 ? 1 : -1)
#define FROM_I64(v) ((v) >= 0 ? 1 : -1)
#include "tensor/dtype_packed.h"

const struct ql_dtype_info ql_dtypes[QL_DTYPE_COUNT] = {
#define X(name, bits, kind, lo, hi, digits) \
	{#name, bits, QL_KIND_##kind, lo, hi, digits, name##_to_f32, name##_to_f64, name##_to_i64, name##_from_f32, \
		name##_from_f64, name##_from_i64},
#include "tensor/dtype.def"
#undef X
};

const char ql_dtype_names[] =
#define X(dtype, bits, kind, lo, hi, digits) #dtype " "
#include "tensor/dtype.def"
#undef X
	;

int ql_dtype_by_name(const char *name)
{
	for (int i = 0; i < QL_DTYPE_COUNT; i++)
		if (!strcmp(ql_dtypes[i].name, name))
			return i;
	return -1;
}

static unsigned promote_floats(unsigned a, unsigned b)
{
	if (a == b)
		return a;
	if (a == QL_float64 || b == QL_float64)
		return QL_float64;
	return QL_float32;
}

static unsigned next_signed(unsigned bits)
{
	return bits < 8 ? QL_int8 : bits < 16 ? QL_int16 : bits < 32 ? QL_int32 : QL_int64;
}

unsigned ql_dtype_promote(unsigned a, unsigned b)
{
	const struct ql_dtype_info *x = &ql_dtypes[a], *y = &ql_dtypes[b];

	if (x->kind == QL_KIND_FLOAT && y->kind == QL_KIND_FLOAT)
		return promote_floats(a, b);
	if (x->kind == QL_KIND_FLOAT || a == b)
		return a;
	if (y->kind == QL_KIND_FLOAT)
		return b;
	if (x->kind == QL_KIND_BOOL)
		return b;
	if (y->kind == QL_KIND_BOOL)
		return a;
	if (x->bits != y->bits)
		return x->bits > y->bits ? a : b;
	return next_signed(x->bits);
}
