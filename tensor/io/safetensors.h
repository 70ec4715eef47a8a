/* SPDX-License-Identifier: MIT
 * The parts of the safetensors format: its checked header (safetensors_header.c), loading
 * (safetensors_load.c), saving and the description of the format (safetensors.c).
 */
#ifndef QUOLL_TENSOR_IO_SAFETENSORS_H
#define QUOLL_TENSOR_IO_SAFETENSORS_H

#include "tensor/io/elements.h"
#include "tensor/io/json.h"
#include "tensor/io/named.h"

#define QL_SAFETENSORS_HEADER_MAX 100000000u /* bytes: the format's own cap */
#define QL_SAFETENSORS_KEYS_MAX 65536        /* of metadata that are no notes */

/* Suffixes of a tensor's name for the parts that the format has no field for. */
#define QL_SCALE_TAIL "::scale"
#define QL_ZERO_TAIL "::zero_point"
#define QL_SHIFT_TAIL "::minimum"
#define QL_BITS_TAIL "::bits"
#define QL_VALUES_TAIL "::values"
#define QL_NOTE_TAIL "::quoll"

/* One tensor of the header. Small, because a file may have an entry per 50 bytes. */
struct ql_safetensor {
	char *name;
	uint64_t begin, end;    /* in the data */
	uint32_t value, length; /* position of its JSON object in the header */
	uint32_t note;          /* position of its note; 0: none */
	bool part;              /* of another, quantized tensor */
};

struct ql_safetensors {
	const struct ql_reader *r;
	struct ql_ctx *ctx;
	char *text; /* header */
	size_t n_text;
	uint64_t data, n_data; /* offset in the file, bytes */
	struct ql_safetensor *entry;
	uint32_t n;
	uint32_t *by_name, *by_offset; /* indices of entries, sorted */
	struct ql_json_value metadata;
	struct ql_metadata *other; /* receives the metadata that are no notes */
};

/* An entry's JSON object. */
struct ql_safetensor_fields {
	const struct ql_element_wire *wire;
	int rank;
	int64_t shape[QL_MAX_RANK];
	uint64_t begin, end;
};

/* Reads and checks the header; `f` holds r and zeros. Release afterwards also on failure. */
enum ql_status ql_safetensors_open(struct ql_safetensors *f);
void ql_safetensors_close(struct ql_safetensors *f);
/* The entry called base (n bytes) followed by tail, or NULL. */
struct ql_safetensor *ql_safetensors_find(struct ql_safetensors *f, const char *base, size_t n, const char *tail);
/* dtype, shape and place of one entry. */
enum ql_status ql_safetensors_fields(
	struct ql_safetensors *f, const struct ql_safetensor *e, struct ql_safetensor_fields *out);
/* Prefixes the message of a lower layer with the tensor's name; returns status. */
enum ql_status ql_safetensors_where(struct ql_safetensors *f, const struct ql_safetensor *e, enum ql_status status);

enum ql_status ql_safetensors_load(const struct ql_reader *r, struct ql_named_list *out);

/* Name of a dtype in the format: U8 for packed ones, which have a note; NULL when it has none. */
const char *ql_safetensors_type(unsigned dtype);

/* Bytes of a row of n elements of a packed dtype. */
static inline int64_t ql_packed_size(int64_t n, unsigned dtype)
{
	return (int64_t)ql_rows_bytes(1, n, dtype);
}

#endif
