/* SPDX-License-Identifier: MIT
 * Properties for which safetensors has no field, as one line of text per tensor in the file's __metadata__: dtype
 * and shape of packed elements, and quantization parameters.
 *
 * 	"w::quoll": "dtype=int4 shape=(64,33) scheme=symmetric bits=4 lo=-7 hi=7 octaves=0 axis=-1 block=32
 * 	             block_axis=1 from=float32 nan=0 inf=0"
 *
 * dtype and shape are always present; the other words if the tensor is quantized. Axes count from 0; -1 is none. If
 * channels differ in bits, bits, lo and hi are those of the widest channel.
 *
 * Formats, powers of two as scales, minimums and scales that are codes need version 2, which has more words:
 *
 * 	"... nan=0 inf=0 version=2 format=nvfp4 scaling=exact overflow=0"
 *
 * format is "-" without a name. Programs that know version 1 only refuse such a note.
 */
#ifndef QUOLL_TENSOR_IO_NOTE_H
#define QUOLL_TENSOR_IO_NOTE_H

#include "tensor/io/json.h"
#include "tensor/qparams.h"

struct ql_note {
	unsigned dtype;
	int rank;
	int64_t shape[QL_MAX_RANK];
	bool quantized;
	struct ql_qparams q; /* refs and tensors not set */
};

/* Tensors stored beside the codes; all but scale may be NULL. */
struct ql_note_parts {
	struct ql_tensor *scale, *zero_point, *shift, *bits, *values;
};

/* True if t needs a note. */
bool ql_note_needed(const struct ql_tensor *t);
void ql_note_write(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_text *out);
/* Looks scheme and format up in ctx->quant. Every number is checked against dtype and shape. */
enum ql_status ql_note_read(struct ql_ctx *ctx, const char *text, struct ql_note *note);
/* Attaches quantization parameters to t, the codes; keeps the parts. All are contiguous. Shapes, dtypes and values
 * are checked, because a file may be crafted. */
enum ql_status ql_note_apply(
	struct ql_ctx *ctx, const struct ql_note *note, struct ql_tensor *t, const struct ql_note_parts *parts);

#endif
