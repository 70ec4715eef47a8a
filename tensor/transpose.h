/* SPDX-License-Identifier: MIT
 * Copies between layouts that are contiguous along different axes: x:t():clone(), a permutation of image axes.
 */
#ifndef QUOLL_TENSOR_TRANSPOSE_H
#define QUOLL_TENSOR_TRANSPOSE_H

#include "tensor/walk.h"

/* The axis along which the source (operand 1) is contiguous, if it differs from the last one, along which the
 * destination (operand 0) is contiguous; -1: copy row by row. */
int ql_transpose_axis(const struct ql_walk *w);
/* Copies elements of `size` bytes (1, 2, 4 or 8); dst and src must not overlap. */
enum ql_status ql_transpose(
	struct ql_ctx *ctx, const struct ql_walk *w, int axis, size_t size, void *dst, const void *src);

/* dst[i * dst_step + j] = src[j * src_step + i] for i < n, j < m; they do not overlap. */
void ql_transpose_bytes(int64_t n, int64_t m, const uint8_t *src, int64_t src_step, uint8_t *dst, int64_t dst_step);

#endif
