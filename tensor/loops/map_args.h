/* SPDX-License-Identifier: MIT
 * Numeric attributes of an elementwise op (clamp's bounds, a slope), in the order of its attributes; for device code, too.
 */
#ifndef QUOLL_TENSOR_LOOPS_MAP_ARGS_H
#define QUOLL_TENSOR_LOOPS_MAP_ARGS_H

#include <stdint.h>

struct ql_map_args {
	double p[4];
	int64_t i[2]; /* the same for integers, where doubles are not exact */
};

#endif
