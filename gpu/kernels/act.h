/* SPDX-License-Identifier: MIT
 * Activations of linear in device code: the functions of tensor/vmath, so the bits of the CPU.
 */
#ifndef QUOLL_GPU_KERNELS_ACT_H
#define QUOLL_GPU_KERNELS_ACT_H

#include "gpu/kernels/vmath.h"
#include "tensor/vmath/act.h"

/* X(name, value of a) */
#define QL_ACTS(X) \
	X(relu, a < 0 ? 0 : a) \
	X(relu6, a > 6 ? 6 : a < 0 ? 0 : a) \
	X(gelu, ql_gelu(a)) \
	X(silu, ql_silu(a)) \
	X(tanh, ql_tanh(a)) \
	X(sigmoid, ql_sigmoid(a)) \
	X(hardswish, a *(a + 3 > 6 ? 6 : a + 3 > 0 ? a + 3 : a != a ? a : 0) / 6)

enum ql_act {
	QL_ACT_none,
#define X(name, value) QL_ACT_##name,
	QL_ACTS(X)
#undef X
};

/* The number of the activation of that name, NULL: none; -1: there is no such one. */
static inline int ql_act_of(const char *name)
{
	if (!name)
		return QL_ACT_none;
#define X(act, value) \
	if (!strcmp(name, #act)) \
		return QL_ACT_##act;
	QL_ACTS(X)
#undef X
	return -1;
}

QL_INLINE float ql_activate(int32_t act, float a)
{
	switch (act) {
#define X(name, value) \
	case QL_ACT_##name: return value;
		QL_ACTS(X)
#undef X
	default: return a;
	}
}

#endif
