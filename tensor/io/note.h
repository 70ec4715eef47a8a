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
 *
 * Where channels differ in bits, the codes of each are a row of fields of its own width, which needs version 3:
 *
 * 	"... version=3 format=- scaling=exact overflow=0 rows=channels"
 *
 * Older files have such codes in the dtype of the widest channel, with a note of version 1.
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
	bool ragged; /* the codes are rows of channels, see tensor/ragged.h */
	int version;
	struct ql_qparams q; /* refs and tensors not set */
};

/* Tensors stored beside the codes; all but scale may be NULL. `rows`: uint8, the codes if they are ragged. */
struct ql_note_parts {
	struct ql_tensor *scale, *zero_point, *shift, *bits, *values, *rows;
};

/* True if t needs a note. */
bool ql_note_needed(const struct ql_tensor *t);
void ql_note_write(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_text *out);
/* Looks scheme and format up in ctx->quant. Every number is checked against dtype and shape. */
enum ql_status ql_note_read(struct ql_ctx *ctx, const char *text, struct ql_note *note);
/* Gives a tensor for the codes of parts->rows, whose elements are not set, if the note, bits and rows fit together. */
enum ql_status ql_note_room(
	struct ql_ctx *ctx, const struct ql_note *note, const struct ql_note_parts *parts, struct ql_tensor **out);
/* Attaches quantization parameters to t, the codes or the room for them; keeps the parts. All are contiguous. Shapes, dtypes and values
 * are checked, because a file may be crafted. */
enum ql_status ql_note_apply(
	struct ql_ctx *ctx, const struct ql_note *note, struct ql_tensor *t, const struct ql_note_parts *parts);
/* Fails if a code of the contiguous t, quantized with one range for all, is out of it. */
enum ql_status ql_note_check_codes(struct ql_ctx *ctx, const struct ql_tensor *t);

#endif
