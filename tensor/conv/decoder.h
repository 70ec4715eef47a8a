/* SPDX-License-Identifier: MIT
 * The codes of a convolution's weight, decoded row by row while sums are computed.
 */
#ifndef QUOLL_TENSOR_CONV_DECODER_H
#define QUOLL_TENSOR_CONV_DECODER_H

#include "tensor/tensor.h"

struct ql_decoder;

struct ql_conv_decoder {
	struct ql_decoder *decoder;
	struct ql_tensor *view; /* the codes in the order of memory */
	int64_t channels, taps; /* of a row */
	bool turned;            /* in memory, channels are innermost */
	int variant;
};

/* True if t is the quantized weight of a convolution whose rows can be decoded one by one. */
bool ql_conv_decoder_takes(const struct ql_tensor *t);
/* The rows of w, each `channels` * `taps` numbers. Close them after an error, too; they use scratch memory. */
enum ql_status ql_conv_decoder_open(
	struct ql_ctx *ctx, struct ql_tensor *w, int64_t channels, int64_t taps, struct ql_conv_decoder *out);
void ql_conv_decoder_close(struct ql_ctx *ctx, struct ql_conv_decoder *d);
/* Decodes rows first..first+rows-1 to `out`, `pitch` numbers apart, with the bits of ql_decode: in order of taps and channels if they are
 * turned, else of channels and taps. Neither fails nor allocates. */
void ql_conv_decoder_read(const struct ql_conv_decoder *d, int64_t first, int64_t rows, int64_t pitch, float *out);

#endif
