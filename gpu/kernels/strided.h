/* SPDX-License-Identifier: MIT
 * Strided operands in device code: the shape that they share, with neighbouring axes joined, and an offset per operand.
 */
#ifndef QUOLL_GPU_KERNELS_STRIDED_H
#define QUOLL_GPU_KERNELS_STRIDED_H

#include "gpu/kernels/dtypes.h"
#include "gpu/kernels/kernel.h"

#define QL_STRIDED_MOST 2

/* Element i in row-major order is at offset[operand] elements from its first one. Along the axis `cut` operand 1 advances
 * once per `block` elements. */
struct ql_strided {
	int32_t rank, cut; /* cut: -1: none */
	int64_t count, block;
	int64_t shape[QL_GPU_MAX_RANK], stride[QL_STRIDED_MOST][QL_GPU_MAX_RANK];
};

static inline int64_t ql_count(const struct ql_gpu_tensor *t)
{
	int64_t n = 1;

	for (int d = 0; d < t->rank; d++)
		n *= t->shape[d];
	return n;
}

/* Elements in row-major order without gaps. */
static inline bool ql_dense(const struct ql_gpu_tensor *t)
{
	int64_t n = 1;

	for (int d = t->rank - 1; d >= 0; d--) {
		if (t->shape[d] != 1 && t->stride[d] != n)
			return ql_count(t) == 0;
		n *= t->shape[d];
	}
	return true;
}

/* Packed elements from row to row: rows begin at whole bytes. */
static inline int64_t ql_packed_pitch(int element, int64_t length)
{
	int bits = ql_element_get(element).bits, last = (bits % 2 ? 8 : bits % 4 ? 4 : 2) - 1;

	return (length + last) & ~(int64_t)last;
}

/* Drops axes of size 1 and joins axes that follow each other in all operands; at least one axis is left. */
static inline void ql_strided_join(struct ql_strided *s)
{
	int n = 0, cut = -1;

	for (int d = 0; d < s->rank; d++) {
		bool joins = n > 0 && d != s->cut && cut != n - 1;

		if (s->shape[d] == 1)
			continue;
		for (int k = 0; k < QL_STRIDED_MOST && joins; k++)
			joins = s->stride[k][n - 1] == s->stride[k][d] * s->shape[d];
		n -= joins;
		s->shape[n] = (joins ? s->shape[n] : 1) * s->shape[d];
		for (int k = 0; k < QL_STRIDED_MOST; k++)
			s->stride[k][n] = s->stride[k][d];
		cut = d == s->cut ? n : cut;
		n++;
	}
	s->cut = cut;
	if (n == 0) {
		s->shape[0] = 1;
		for (int k = 0; k < QL_STRIDED_MOST; k++)
			s->stride[k][0] = 0;
		n = 1;
	}
	s->rank = n;
}

/* The axes in `mask` of a, and of b with the same shape (NULL: only a). */
static inline struct ql_strided ql_strided_of(
	const struct ql_gpu_tensor *a, const struct ql_gpu_tensor *b, uint32_t mask)
{
	struct ql_strided s = {};

	s.count = 1;
	s.cut = -1;
	for (int d = 0; d < a->rank; d++) {
		if (!(mask >> d & 1))
			continue;
		s.shape[s.rank] = a->shape[d];
		s.count *= a->shape[d];
		s.stride[0][s.rank] = a->stride[d];
		s.stride[1][s.rank++] = b ? b->stride[d] : 0;
	}
	ql_strided_join(&s);
	return s;
}

__device__ static __forceinline__ void ql_strided_at(const ql_strided &s, int64_t i, int64_t offset[QL_STRIDED_MOST])
{
	offset[0] = offset[1] = 0;
	for (int d = s.rank - 1; d >= 0; d--) {
		int64_t rest = d ? i / s.shape[d] : 0, at = i - rest * s.shape[d]; /* one division of 64 bits */

		i = rest;
		offset[0] += at * s.stride[0][d];
		offset[1] += (d == s.cut ? at / s.block : at) * s.stride[1][d];
	}
}

/* plan->why, and false. */
static inline bool ql_refuse(struct ql_gpu_plan *plan, const char *why)
{
	strncpy(plan->why, why, sizeof(plan->why) - 1);
	return false;
}

/* For ops without operands: any dense result of plain numbers. */
static inline bool ql_plan_made(const struct ql_gpu_call *call, struct ql_gpu_plan *plan)
{
	const struct ql_gpu_tensor *out = call->out;
	int to = ql_element_of(out->dtype);

	if (out->codes || !ql_element_whole(to))
		return ql_refuse(plan, "wanted a result of plain numbers of whole bytes");
	if (!ql_dense(out))
		return ql_refuse(plan, "the result is a view");
	plan->path = ql_element_get(to).name;
	return true;
}

#endif
