/* SPDX-License-Identifier: MIT
 * The quantization parameters of a tensor, which views carry along, and the interface of a scheme (how codes map to
 * reals), which quant/schemes implements. Granularity (a scale per tensor, per index of an axis, per block) is
 * data: it is handled here, not in the schemes.
 *
 * Layout of scale and zero_point: rank 0 per tensor; (size of axis) per axis; for blocks the tensor's own shape
 * with block_axis replaced by ceil(size / block). Channels of an axis may have different numbers of bits: their
 * codes share a dtype, and each channel uses its own range; ragged.h stores each at its own width.
 *
 * Levels of scales: the scale tensor may itself be quantized (codes of 6 or 8 bits with an outer scale, as in NVFP4
 * and k-quants), or of a narrow float dtype. Read scales with ql_qparams_scales, never from the storage.
 */
#ifndef QUOLL_TENSOR_QPARAMS_H
#define QUOLL_TENSOR_QPARAMS_H

#include "tensor/attr.h"
#include "tensor/tensor.h"

struct ql_codec_functions;
struct ql_quant_format;
struct ql_grid_table;
struct ql_codebook;
struct ql_scheme;

/* Range of the codes of one spec. `bits` may be smaller than the dtype's. */
struct ql_codes {
	uint8_t bits;
	bool overflow;   /* floating point beyond its range becomes infinity or NaN; else it saturates */
	uint8_t scaling; /* how scales follow from ranges: enum ql_scaling of quant/format.h */
	int32_t lo, hi;
	float octaves;                         /* log only */
	const float *table;                    /* of schemes with a table, during a conversion; else NULL */
	const struct ql_grid_table *grid;      /* values of the codes; NULL: those of the scheme's formula */
	const struct ql_codec_functions *host; /* of schemes with `host`; else NULL */
};

/* How scale and zero point follow from the finite values under a scale, for kernels of devices; or that they are given, and sums
 * of integers are rescaled in fixed point (quant/integer/fixed.h). */
enum ql_fit_rule {
	QL_FIT_OTHER,   /* by another rule, or they are given */
	QL_FIT_LARGEST, /* from max |x|; the zero point is 0, or the middle of unsigned codes */
	QL_FIT_RANGE,   /* from the range with 0; the zero point is where 0 is */
	QL_FIT_SINGLE,  /* given, rounding='single' */
	QL_FIT_DOUBLE   /* given, rounding='double' */
};

/* Immutable after creation and shared by views (the scale tensor's contents may be written by slice). */
struct ql_qparams {
	int refs;
	const struct ql_scheme *scheme;
	struct ql_codes codes;        /* of the channel with the most bits */
	int8_t axis;                  /* -1: not per axis */
	int8_t block_axis;            /* axis that is divided into blocks; -1: no blocks */
	int32_t block;                /* elements per scale along block_axis; 0: no blocks */
	uint8_t from;                 /* dtype before quantization */
	int64_t nan_count, inf_count; /* non-finite values in the input: NaN -> zero_point, Inf saturates */
	struct ql_tensor *scale;      /* any float dtype, or quantized */
	struct ql_tensor *zero_point; /* dtype of the codes (packed: the whole-byte one); NULL: the scheme has none */
	struct ql_tensor
		*shift;         /* shape of scale, any float dtype or quantized: x = (q - zero_point) * scale + shift */
	struct ql_tensor *bits; /* int8, shape of scale: bits of each channel; NULL: the same for all */
	struct ql_tensor
		*counts; /* int64 (2), on the device that quantized: more NaN and infinite values; NULL: none */
	struct ql_tensor *values; /* float32 (number of codes): the codebook of this tensor; NULL: the format's table */
	struct ql_codebook *codebook;         /* `values` as codes.grid; NULL without */
	const struct ql_quant_format *format; /* named format of the spec, for texts and files; NULL: none */
};

/* Statistics of the finite values under one scale, from which a scheme fits its parameters. */
struct ql_stats {
	double lo, hi, meanabs;
	int64_t count;
};

struct ql_scheme {
	struct ql_doc doc;
	/* Capabilities. Paths, forms and exporters test these, never the name of a scheme. */
	bool affine;   /* x = (q - zero_point) * scale: integer products and sums */
	bool monotone; /* under one scale > 0 a larger code is never a smaller value: max, min, pooling, relu on codes */
	bool zero_code; /* the zero point (0 without one) decodes to exactly 0: relu, padding */
	bool offset;    /* the zero point comes from the data; else it is 0, or the middle of unsigned codes */
	bool tight;     /* all codes are needed for the range, so that a scale rounded down would clip its ends */
	bool grid;      /* the values of codes are a grid's (codes->grid) */
	bool shift;     /* codes begin at the minimum, a real number: x = q * scale + shift */
	enum ql_fit_rule rule; /* of scales from the smallest and largest value */
	bool mean;             /* the scale comes from mean |x|, so that observers do not apply */
	bool any_scale;        /* a scale may be 0 or negative */
	bool host; /* functions of the host convert (codes->host): encode and decode are NULL, only codec.c can */
	bool (*accepts)(unsigned dtype);
	/* Fills lo and hi from dtype and bits; `wide`: with an explicit scale the whole range of the bits is legal. */
	void (*range)(unsigned dtype, bool wide, struct ql_codes *codes);
	/* The scale in double, before its single rounding; 0 when all values are 0. */
	double (*fit)(const struct ql_stats *stats, const struct ql_codes *codes);
	/* Zero point under the rounded scale; NULL: there is none (0). */
	int32_t (*zero)(const struct ql_stats *stats, const struct ql_codes *codes, float scale);
	/* Rows of n values with one scale and zero point. Codes are int32 here; the caller stores them. */
	void (*encode)(
		const float *x, int64_t n, float scale, int32_t zero, const struct ql_codes *codes, int32_t *out);
	void (*decode)(
		const int32_t *q, int64_t n, float scale, int32_t zero, const struct ql_codes *codes, float *out);
	/* Length and contents of the table that encode and decode read in codes->table. NULL: no table. */
	size_t (*table_length)(const struct ql_codes *codes);
	void (*table_fill)(const struct ql_codes *codes, float *table);
};

/* The numbers of NaN and infinite values in the input; waits for a device that has counted them. */
void ql_qparams_counts(const struct ql_qparams *q, int64_t *nan, int64_t *inf);
struct ql_qparams *ql_qparams_keep(struct ql_qparams *q);
void ql_qparams_release(struct ql_ctx *ctx, struct ql_qparams *q);
/* Gives a copy of the struct with its own references to scale and zero_point. The caller may change it until it is
 * shared. */
struct ql_qparams *ql_qparams_copy(struct ql_ctx *ctx, const struct ql_qparams *q);
/* The range of the codes under scale i. */
struct ql_codes ql_qparams_codes(const struct ql_qparams *q, unsigned dtype, int64_t i);
/* Sets `codes` to those of the widest channel and drops `bits` when all channels have the same number. q must not
 * be shared. */
void ql_qparams_settle(struct ql_ctx *ctx, struct ql_qparams *q, unsigned dtype);
/* Makes `values`, float32 and contiguous, the codebook of q, which must not be shared and must not have one. Errors: fewer
 * than two different finite values. */
enum ql_status ql_qparams_set_values(struct ql_ctx *ctx, struct ql_qparams *q, struct ql_tensor *values);
bool ql_qparams_equal(const struct ql_qparams *a, const struct ql_qparams *b);
/* Gives the scales (or shifts) as float32 in row-major order; out has room for all of them. */
enum ql_status ql_qparams_scales(struct ql_ctx *ctx, const struct ql_tensor *scale, float *out);
/* The same of zero points. */
void ql_qparams_zeros(const struct ql_tensor *zero_point, int32_t *out);
/* True if codes are integers of x = (q - zero_point) * scale with plain scales: what integer products can use. */
bool ql_qparams_affine(const struct ql_qparams *q);
/* True if a larger code under one scale is never a smaller value: not where scales may be below 0, as those that are
 * coded around their mean. */
bool ql_qparams_monotone(const struct ql_qparams *q);

/* Views. Each gives the params of the view, or fails naming `op` and suggesting :dequantize(). */
enum ql_status ql_qparams_permute(
	struct ql_ctx *ctx, const struct ql_tensor *t, const int *order, struct ql_qparams **out);
/* Of the indices start, start + step, …; only of whole blocks, so that step is 1 along an axis of blocks. */
enum ql_status ql_qparams_slice(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int axis, int64_t start,
	int64_t step, int64_t length, struct ql_qparams **out);
enum ql_status ql_qparams_select(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int axis, int64_t index,
	struct ql_qparams **out);
enum ql_status ql_qparams_reshape(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int rank,
	const int64_t *shape, struct ql_qparams **out);
enum ql_status ql_qparams_expand(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int rank,
	const int64_t *shape, struct ql_qparams **out);

#endif
