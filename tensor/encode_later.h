/* SPDX-License-Identifier: MIT
 * Bytes of affine codes under one scale that are encoded when somebody needs them (deferred.h). A product that packs its operand anyway
 * encodes while it packs (tensor/gemm/gemm.h): then floats are read from memory once, and codes are not written there.
 */
#ifndef QUOLL_TENSOR_ENCODE_LATER_H
#define QUOLL_TENSOR_ENCODE_LATER_H

#include "tensor/tensor.h"

struct ql_quantize;

/* What is encoded. */
struct ql_encode_source {
	const float *x; /* the value of the code at offset 0 */
	float scale;
	int32_t zero, lo, hi; /* lo, hi: range of the codes */
};

/* Whether codes of x may wait: enough of them that it pays. */
bool ql_encode_can_wait(const struct ql_tensor *x, unsigned dtype);
/* Gives codes of such an x, which is contiguous float32, under the affine q with one scale, of which it takes a reference. */
enum ql_status ql_encode_later(
	struct ql_ctx *ctx, struct ql_tensor *x, unsigned dtype, struct ql_qparams *q, struct ql_tensor **out);
/* Whether the codes of t still wait. */
bool ql_encode_waits(const struct ql_tensor *t);
/* Sets *from if they do, and nobody has asked before: whoever comes second has them encoded in memory. */
bool ql_encode_take(const struct ql_tensor *t, struct ql_encode_source *from);

#endif
