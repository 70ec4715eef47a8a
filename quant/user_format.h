/* SPDX-License-Identifier: MIT
 * Formats that users make at run time: a named table of values, or functions that encode and decode. Specs accept
 * them like those of formats.def. They live as long as their context, because specs and tensors refer to them; of
 * several with the same name, the newest is found.
 */
#ifndef QUOLL_QUANT_USER_FORMAT_H
#define QUOLL_QUANT_USER_FORMAT_H

#include "quant/format.h"
#include "tensor/codec_functions.h"
#include "tensor/grid.h"

#define QL_FORMAT_NAME 32
#define QL_FORMAT_TEXT 256
#define QL_FORMAT_FUNCTIONS "#functions" /* suffix, in files, of the names of formats made from functions */

struct ql_user_format {
	struct ql_quant_format format;
	struct ql_grid_table table;
	struct ql_grid_index index;
	struct ql_codec_functions functions;
	struct ql_user_format *next;
	char name[QL_FORMAT_NAME], text[QL_FORMAT_TEXT];
	char stored[QL_FORMAT_NAME + 20]; /* in files: the name, # and a hash of the values or "functions" */
};

/* The definition of a new format. */
struct ql_user_fields {
	const char *name, *text; /* text: for help; may be NULL */
	const double *value;
	int64_t n;                                  /* values */
	const struct ql_codec_functions *functions; /* instead of values; copied; name and unit are set here */
	int64_t bits;                               /* of the codes of functions */
	bool is_signed;
	double unit;   /* the value that the largest |x| is scaled to; 0: the largest |value|, or 1 with functions */
	int64_t block; /* default number of elements per scale; 0: one scale */
};

/* Adds a format to the context. Errors: a name that is not an identifier or already taken; fewer than 2 or more than
 * 256 values; values that are not finite, or all equal; bits, unit or block out of range. */
enum ql_status ql_user_format_add(struct ql_ctx *ctx, const struct ql_user_fields *f);
/* Returns the name of a format in files, which differs between tables of the same name. */
const char *ql_format_stored_name(const struct ql_quant_format *format);
void ql_user_formats_free(struct ql_ctx *ctx);

#endif
