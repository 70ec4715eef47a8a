/* SPDX-License-Identifier: MIT
 * Formats: named combinations of storage, scheme, grid, block and scales. A spec names a format in place of a dtype:
 * 'nvfp4', 'mxfp8_e4m3', 'nf4:64'. A format is one line of formats.def.
 */
#ifndef QUOLL_QUANT_FORMAT_H
#define QUOLL_QUANT_FORMAT_H

#include "tensor/attr.h"
#include "tensor/qparams.h"

struct ql_block_kind;

/* The scale for a largest magnitude m and the grid's unit u.
 *   EXACT   m / u
 *   FLOOR   2^(floor(log2 m) - floor(log2 u)) (OCP Microscaling Formats 1.0)
 *   EVEN    FLOOR of m rounded to the mantissa bits of the grid
 *   CEIL    2^(ceil(log2 m) - floor(log2 u))
 *   POW2    the smallest power of two that clips nothing */
enum ql_scaling { QL_SCALING_EXACT, QL_SCALING_FLOOR, QL_SCALING_EVEN, QL_SCALING_CEIL, QL_SCALING_POW2 };

struct ql_quant_format {
	struct ql_doc doc;
	unsigned dtype; /* of the codes */
	const struct ql_scheme *scheme;
	const struct ql_grid *grid;                 /* n = 0: codes are integers; NULL: see `table` */
	const struct ql_grid_table *table;          /* for formats made at run time from a table; else NULL */
	const struct ql_codec_functions *functions; /* for formats made at run time from functions; else NULL */
	const char *stored;                         /* name in files, for formats made at run time; NULL: doc.name */
	int bits;                                   /* of the codes; 0: those of dtype */
	int64_t block;                              /* default; 0: none */
	bool fixed;                                 /* the block cannot be changed */
	const char *scale;                          /* spec of the scales; NULL: float32, or float16 for blocks */
	enum ql_scaling scaling;                    /* default */
	/* Fits scales and codes to the data of a block (quant/blocks); NULL: scales come from statistics. */
	const struct ql_block_kind *blocks;
};

extern const struct ql_quant_format *const ql_quant_formats[]; /* NULL-terminated */
/* Returns the format `name`, of the program or made at run time; NULL if unknown. */
const struct ql_quant_format *ql_quant_format_by_name(const struct ql_ctx *ctx, const char *name);
/* Returns the values of the codes; NULL if codes are integers or functions convert them. */
const struct ql_grid_table *ql_quant_format_table(const struct ql_quant_format *format);

extern const char ql_scaling_names[]; /* exact floor even ceil pow2 */
const char *ql_scaling_name(enum ql_scaling scaling);
bool ql_scaling_by_name(const char *name, enum ql_scaling *scaling);
/* Returns the scale, in double, that maps the magnitude `most` to `unit`; 0 for 0. mantissa: number of bits after the
 * leading one that codes have at `unit`. */
double ql_scaling_of(enum ql_scaling scaling, double most, double unit, int mantissa);

#endif
