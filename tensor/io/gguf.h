/* SPDX-License-Identifier: MIT
 * Parts of the GGUF format (versions 2 and 3, little-endian). All numbers are unaligned in the file:
 *
 * 	"GGUF" u32 version, u64 tensors, u64 keys, the keys with their values, for each tensor its name, number of axes,
 * 	sizes (the last axis first), type and offset; then, aligned, the data, to which the offsets refer
 *
 * A text is a u64 length and its bytes. Quantized types interleave the codes and scales of a block; in memory they are
 * separate tensors (quant/blocks/README.md).
 */
#ifndef QUOLL_TENSOR_IO_GGUF_H
#define QUOLL_TENSOR_IO_GGUF_H

#include "tensor/io/named.h"
#include "tensor/io/reader.h"
#include "tensor/io/writer.h"

#define QL_GGUF_ALIGNMENT 32 /* without a key for it */
#define QL_GGUF_RANK 4       /* maximum number of axes */
#define QL_GGUF_ELEMENTS 256 /* of a block, at most */

/* What a block has besides its codes. */
struct ql_gguf_scales {
	uint16_t scale, shift; /* bits of float16, or of float8_e8m0 */
	uint8_t scale_code[16], shift_code[16];
};

typedef void ql_gguf_unpack_fn(const uint8_t *block, uint8_t *code, struct ql_gguf_scales *s);
typedef void ql_gguf_pack_fn(const uint8_t *code, const struct ql_gguf_scales *s, uint8_t *block);

struct ql_gguf_type {
	uint32_t id;
	const char *name;
	uint16_t bytes, elements; /* of a block */
	uint16_t dtype;           /* of types with blocks of one element; else of no meaning */
	const char *format;       /* of quant/formats.def; NULL: plain elements, or (elements > 1) there is none */
	ql_gguf_unpack_fn *unpack;
	ql_gguf_pack_fn *pack;
};

/* NULL: unknown. */
const struct ql_gguf_type *ql_gguf_type_by_id(uint32_t id);
/* The type that holds the elements and params of t without a change; NULL: none. */
const struct ql_gguf_type *ql_gguf_type_of(struct ql_ctx *ctx, const struct ql_tensor *t);
/* True if tensors of the type can be read. */
bool ql_gguf_type_known(const struct ql_gguf_type *type);

#define X(name) \
	ql_gguf_unpack_fn ql_gguf_unpack_##name; \
	ql_gguf_pack_fn ql_gguf_pack_##name;
X(q4_0)
X(q4_1)
X(q5_0)
X(q5_1)
X(q8_0)
X(q2_k)
X(q3_k)
X(q4_k)
X(q5_k)
X(q6_k)
X(iq4_nl)
X(tq1_0)
X(tq2_0)
X(mxfp4)
#undef X

struct ql_gguf_entry {
	char *name;
	uint32_t id; /* of the type */
	int rank;
	int64_t shape[QL_GGUF_RANK]; /* in Quoll's order */
	uint64_t offset, bytes;      /* in the file */
};

struct ql_gguf_file {
	int64_t n;
	struct ql_gguf_entry *at; /* (n) */
	uint64_t data;            /* offset of the first byte of data */
};

/* Reads all but the data and checks it: every tensor lies within the file and apart from the others. Appends the keys. The caller
 * clears `file`, also after an error. */
enum ql_status ql_gguf_header(const struct ql_reader *r, struct ql_metadata *metadata, struct ql_gguf_file *file);
void ql_gguf_clear(struct ql_ctx *ctx, struct ql_gguf_file *file);
/* The alignment of data by the key general.alignment. */
enum ql_status ql_gguf_alignment(struct ql_ctx *ctx, const struct ql_metadata *m, uint64_t *alignment);
/* Gives the tensor of an entry, whose type is known. */
enum ql_status ql_gguf_read(const struct ql_reader *r, const struct ql_gguf_entry *e, struct ql_tensor **out);

enum ql_status ql_gguf_save(struct ql_writer *w, const struct ql_named_list *list, unsigned flags);

#endif
