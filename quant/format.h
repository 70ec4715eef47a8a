/* SPDX-License-Identifier: MIT
 * Formats: named combinations of storage, scheme, grid, block and scales, which a spec names where a dtype is:
 * 'nvfp4', 'mxfp8_e4m3', 'nf4:64'. A format is one line of formats.def.
 */
#ifndef QUOLL_QUANT_FORMAT_H
#define QUOLL_QUANT_FORMAT_H

#include "tensor/attr.h"
#include "tensor/qparams.h"

struct ql_block_kind;

/* How a scale follows from the largest |x|: that over the grid's unit; or a power of two (OCP MX): the floor of
 * log2 of the largest |x|, of it rounded to the mantissa bits of the grid, its ceiling, or the least power of two
 * that clips nothing. */
enum ql_scaling { QL_SCALING_EXACT, QL_SCALING_FLOOR, QL_SCALING_EVEN, QL_SCALING_CEIL, QL_SCALING_POW2 };

struct ql_quant_format {
	struct ql_doc doc;
	unsigned dtype; /* of the codes */
	const struct ql_scheme *scheme;
	const struct ql_grid *grid;                 /* without values: codes are integers; NULL: `table` */
	const struct ql_grid_table *table;          /* of formats made at run time */
	const struct ql_codec_functions *functions; /* the same, made of functions */
	const char *stored;      /* of formats made at run time: the name in files; NULL: the name itself */
	int bits;                /* of the codes; 0: those of dtype */
	int64_t block;           /* default; 0: none */
	bool fixed;              /* the block cannot be changed */
	const char *scale;       /* spec of the scales; NULL: float32, or float16 for blocks */
	enum ql_scaling scaling; /* default */
	/* Finds scales and codes from the data of a block (quant/blocks); NULL: from statistics. */
	const struct ql_block_kind *blocks;
};

extern const struct ql_quant_format *const ql_quant_formats[]; /* NULL-terminated */
/* The format called `name`, also one of the user; NULL when unknown. */
const struct ql_quant_format *ql_quant_format_by_name(const struct ql_ctx *ctx, const char *name);
/* The values of its codes; NULL: integers. */
const struct ql_grid_table *ql_quant_format_table(const struct ql_quant_format *format);

extern const char ql_scaling_names[]; /* exact floor even ceil pow2 */
const char *ql_scaling_name(enum ql_scaling scaling);
bool ql_scaling_by_name(const char *name, enum ql_scaling *scaling);
/* The scale of values up to `most` in magnitude, in double; `unit`: the value of the codes that it stands for,
 * `mantissa`: bits after the leading one that the codes have at that value. */
double ql_scaling_of(enum ql_scaling scaling, double most, double unit, int mantissa);

#endif
