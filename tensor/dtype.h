/* SPDX-License-Identifier: MIT
 * Element types. A dtype is a field of a tensor, not a C type; only the row converters are instantiated per type
 * (dtype_row.h for whole bytes, dtype_packed.h for packed ones).
 */
#ifndef QUOLL_TENSOR_DTYPE_H
#define QUOLL_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

enum ql_dtype {
#define X(name, bits, kind, lo, hi, digits) QL_##name,
#include "tensor/dtype.def"
#undef X
	QL_DTYPE_COUNT
};

enum ql_dtype_kind { QL_KIND_FLOAT, QL_KIND_INT, QL_KIND_UINT, QL_KIND_BOOL, QL_KIND_BINARY };

/* Convert a row of n elements; element i is at index offset + i * stride of `base` (packed types: a stream of
 * fields, element i at bit i * bits, low bits first). from_f32 and from_f64 round half to even and saturate (NaN gives 0), from_i64
 * wraps, as C does. bool: any non-zero value is 1. binary: values >= 0 are +1, others -1. */
typedef void ql_row_to_f32_fn(const void *base, int64_t offset, int64_t stride, int64_t n, float *out);
typedef void ql_row_to_f64_fn(const void *base, int64_t offset, int64_t stride, int64_t n, double *out);
typedef void ql_row_to_i64_fn(const void *base, int64_t offset, int64_t stride, int64_t n, int64_t *out);
typedef void ql_row_from_f32_fn(void *base, int64_t offset, int64_t stride, int64_t n, const float *in);
typedef void ql_row_from_f64_fn(void *base, int64_t offset, int64_t stride, int64_t n, const double *in);
typedef void ql_row_from_i64_fn(void *base, int64_t offset, int64_t stride, int64_t n, const int64_t *in);

struct ql_dtype_info {
	const char *name;
	uint8_t bits;
	enum ql_dtype_kind kind;
	int64_t lo, hi;
	uint8_t digits; /* of a float's significand, with the leading one */
	ql_row_to_f32_fn *to_f32;
	ql_row_to_f64_fn *to_f64;
	ql_row_to_i64_fn *to_i64;
	ql_row_from_f32_fn *from_f32;
	ql_row_from_f64_fn *from_f64;
	ql_row_from_i64_fn *from_i64;
};

extern const struct ql_dtype_info ql_dtypes[QL_DTYPE_COUNT];

/* The dtype called `name`; -1 for an unknown name. */
int ql_dtype_by_name(const char *name);
extern const char ql_dtype_names[]; /* separated by spaces */

static inline const char *ql_dtype_name(unsigned dtype)
{
	return ql_dtypes[dtype].name;
}
static inline bool ql_dtype_is_float(unsigned dtype)
{
	return ql_dtypes[dtype].kind == QL_KIND_FLOAT;
}
/* Integers and bool; binary counts as a one-bit integer. */
static inline bool ql_dtype_is_integer(unsigned dtype)
{
	return ql_dtypes[dtype].kind != QL_KIND_FLOAT;
}
static inline bool ql_dtype_is_bool(unsigned dtype)
{
	return ql_dtypes[dtype].kind == QL_KIND_BOOL;
}
static inline bool ql_dtype_is_binary(unsigned dtype)
{
	return ql_dtypes[dtype].kind == QL_KIND_BINARY;
}
static inline bool ql_dtype_is_packed(unsigned dtype)
{
	return ql_dtypes[dtype].bits < 8;
}

/* Elements in the fewest whole bytes: offsets and strides of packed tensors are multiples of it, and so is the length
 * of a row in memory. */
static inline int ql_dtype_group(unsigned dtype)
{
	unsigned bits = ql_dtypes[dtype].bits;

	return bits >= 8 || bits % 2 ? (bits < 8 ? 8 : 1) : bits % 4 ? 4 : 2;
}
/* Length in elements of a row of n elements with its padding. */
static inline int64_t ql_dtype_pitch(unsigned dtype, int64_t n)
{
	int64_t last = ql_dtype_group(dtype) - 1;

	return (n + last) & ~last;
}
/* The dtype of one byte per element that holds the codes of a packed one; any other dtype itself. */
static inline unsigned ql_dtype_whole(unsigned dtype)
{
	return !ql_dtype_is_packed(dtype) ? dtype : ql_dtypes[dtype].kind == QL_KIND_UINT ? QL_uint8 : QL_int8;
}

/* Dtype of the result of two operands. Order: bool < integers < floats of 8 and 16 bits < float32 < float64; two
 * different ones of the former give float32. Two integers give the wider one; signed and unsigned of the same width give the next
 * wider signed one. */
unsigned ql_dtype_promote(unsigned a, unsigned b);

float ql_f16_to_f32(uint16_t h);
uint16_t ql_f32_to_f16(float x); /* round half to even, overflow to infinity */
float ql_bf16_to_f32(uint16_t h);
uint16_t ql_f32_to_bf16(float x);

#endif
