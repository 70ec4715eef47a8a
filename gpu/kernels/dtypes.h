/* SPDX-License-Identifier: MIT
 * The element types of tensor/dtype.def by number, for the host side of kernels and for device code.
 */
#ifndef QUOLL_GPU_KERNELS_DTYPES_H
#define QUOLL_GPU_KERNELS_DTYPES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum ql_element {
#define X(name, bits, kind, lo, hi, digits) QL_E_##name,
#include "tensor/dtype.def"
#undef X
	QL_E_COUNT
};

enum ql_element_kind { QL_E_FLOAT, QL_E_INT, QL_E_UINT, QL_E_BOOL, QL_E_BINARY };

struct ql_element_info {
	const char *name;
	int32_t bits, kind; /* enum ql_element_kind */
	int64_t lo, hi;
	int32_t digits; /* of a float's significand */
};

static inline struct ql_element_info ql_element_get(int element)
{
	static const struct ql_element_info table[] = {
#define X(name, bits, kind, lo, hi, digits) {#name, bits, QL_E_##kind, lo, hi, digits},
#include "tensor/dtype.def"
#undef X
	};

	return table[element];
}

/* The number of the dtype of that name; -1: there is none. */
static inline int ql_element_of(const char *name)
{
	for (int i = 0; i < QL_E_COUNT; i++)
		if (name && !strcmp(ql_element_get(i).name, name))
			return i;
	return -1;
}

static inline bool ql_element_whole(int element)
{
	return element >= 0 && ql_element_get(element).bits >= 8;
}
static inline bool ql_element_float(int element)
{
	return ql_element_get(element).kind == QL_E_FLOAT;
}

#endif
