/* SPDX-License-Identifier: MIT
 * Quantization as tensor/ sees it: parameters that follow a view, and the interface of a scheme (how codes
 * map to reals), which quant/schemes implement. Granularity (one scale per tensor, per index of an axis, per
 * block) is data and is handled here once, never per scheme.
 *
 * Layout of scale and zero_point: rank 0 per tensor; (size of axis) per axis; for blocks the tensor's own
 * shape with block_axis replaced by ceil(size / block). Per axis the channels may have different numbers of bits:
 * their codes share a dtype, and each channel keeps to the range of its own.
 */
#ifndef QUOLL_TENSOR_QPARAMS_H
#define QUOLL_TENSOR_QPARAMS_H

#include "tensor/attr.h"
#include "tensor/tensor.h"

struct ql_scheme;

/* Range of the codes of one spec. `bits` may be smaller than the dtype's. */
struct ql_codes {
	uint8_t bits;
	int32_t lo, hi;
	float octaves;      /* log only */
	const float *table; /* of schemes that have one, while codes are converted; else NULL */
};

/* Immutable after creation and shared by views (the scale tensor's contents may be written by slice). */
struct ql_qparams {
	int refs;
	const struct ql_scheme *scheme;
	struct ql_codes codes; /* of the channel with the most bits */
	int8_t axis;       /* -1: not per axis */
	int8_t block_axis; /* axis along which blocks run; -1: no blocks */
	int32_t block;     /* elements per scale along block_axis; 0: no blocks */
	uint8_t from;      /* dtype that was quantized */
	int64_t nan_count, inf_count; /* non-finite values met when quantizing: NaN -> zero_point, Inf saturates */
	struct ql_tensor *scale;      /* float32, or float16 for blocks of at most 8 bits */
	struct ql_tensor *zero_point; /* dtype of the codes, packed ones in whole bytes; NULL when symmetric, log or binary */
	struct ql_tensor *bits;       /* int8, shape of scale: bits of each channel; NULL: they are all alike */
};

/* What a scheme needs to know of the data under one scale. Non-finite values are not in it. */
struct ql_stats {
	double lo, hi, meanabs;
	int64_t count;
};

struct ql_scheme {
	struct ql_doc doc;
	bool affine; /* x = (q - zero_point) * scale, so integer products are possible */
	bool tight;  /* all codes are needed for the range, so that a scale rounded down would clip its ends */
	bool (*accepts)(unsigned dtype);
	/* Fills lo and hi from dtype and bits; `wide`: with an explicit scale the whole range of the bits is legal. */
	void (*range)(unsigned dtype, bool wide, struct ql_codes *codes);
	/* Scale in double, before its one rounding; 0 when all values are 0. */
	double (*fit)(const struct ql_stats *stats, const struct ql_codes *codes);
	/* Zero point under the rounded scale; NULL: there is none (0). */
	int32_t (*zero)(const struct ql_stats *stats, const struct ql_codes *codes, float scale);
	/* Rows of n values with one scale and zero point. Codes are int32 here; the caller stores them. */
	void (*encode)(const float *x, int64_t n, float scale, int32_t zero, const struct ql_codes *codes, int32_t *out);
	void (*decode)(const int32_t *q, int64_t n, float scale, int32_t zero, const struct ql_codes *codes, float *out);
	/* A table that encode and decode find in codes->table: its length, and its filling. NULL: none. */
	size_t (*table_length)(const struct ql_codes *codes);
	void (*table_fill)(const struct ql_codes *codes, float *table);
};

struct ql_qparams *ql_qparams_keep(struct ql_qparams *q);
void ql_qparams_release(struct ql_ctx *ctx, struct ql_qparams *q);
/* gives a copy of the struct with its own references to scale and zero_point (to be changed by the caller
 * before anyone else sees it) */
struct ql_qparams *ql_qparams_copy(struct ql_ctx *ctx, const struct ql_qparams *q);
/* The range of the codes under scale i. */
struct ql_codes ql_qparams_codes(const struct ql_qparams *q, unsigned dtype, int64_t i);
/* Makes codes those of the widest channel there is and drops bits that are all alike. For q that nobody else sees. */
void ql_qparams_settle(struct ql_ctx *ctx, struct ql_qparams *q, unsigned dtype);
bool ql_qparams_equal(const struct ql_qparams *a, const struct ql_qparams *b);

/* Views. Each gives the params of the view, or fails naming `op` and suggesting :dequantize(). */
enum ql_status ql_qparams_permute(struct ql_ctx *ctx, const struct ql_tensor *t, const int *order,
	struct ql_qparams **out);
enum ql_status ql_qparams_narrow(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int axis,
	int64_t start, int64_t length, struct ql_qparams **out);
enum ql_status ql_qparams_select(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int axis,
	int64_t index, struct ql_qparams **out);
enum ql_status ql_qparams_reshape(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int rank,
	const int64_t *shape, struct ql_qparams **out);
enum ql_status ql_qparams_expand(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int rank,
	const int64_t *shape, struct ql_qparams **out);

/* gives a contiguous float32 tensor with the real values of the quantized t. */
enum ql_status ql_decode(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out);
/* The real value of one element of the quantized t, by 0-based index: for printing a few of many. */
enum ql_status ql_decode_element(struct ql_ctx *ctx, const struct ql_tensor *t, const int64_t *index, float *value);
/* Writes the float32 values x (same shape as t, any strides) into the quantized t as codes under t's own
 * params; counts of NaN and Inf are added to nan and inf when given. The only encoder. */
enum ql_status ql_encode(struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor *t, int64_t *nan,
	int64_t *inf);

#endif
