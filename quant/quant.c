/* SPDX-License-Identifier: MIT
 * The tables of this folder and the functions that it registers with tensor/.
 */
#include "quant/ranges/quantize.h"
#include "quant/ranges/scales.h"

#define X(name) extern const struct ql_op ql_op_##name;
#include "quant/ops.def"
#include "quant/methods.def"
#undef X
#define X(name) extern const struct ql_path ql_path_##name;
#include "quant/paths.def"
#undef X

const struct ql_op *const ql_quant_ops[] = {
#define X(name) &ql_op_##name,
#include "quant/ops.def"
#include "quant/methods.def"
#undef X
	NULL,
};

static const struct ql_path *const paths[] = {
#define X(name) &ql_path_##name,
#include "quant/paths.def"
#undef X
	NULL,
};
_Static_assert(sizeof(paths) / sizeof(paths[0]) <= QL_PATHS_MOST + 1, "a bit each");

const struct ql_quant ql_quant_default = {.paths = paths,
	.quantize = ql_quantize,
	.result = ql_quantize_on,
	.scheme = ql_scheme_by_name,
	.formats = &ql_format_words};
