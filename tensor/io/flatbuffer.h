/* SPDX-License-Identifier: MIT
 * Reading FlatBuffers (https://flatbuffers.dev/internals) by tables of the fields that are wanted. Others are skipped; vectors of bytes are
 * given as places in the file, not copied. Nothing is allocated. Tables may share parts, so what is read is bounded by the size of the
 * file: each value takes a byte there, a table or text takes QL_FB_PART bytes.
 */
#ifndef QUOLL_TENSOR_IO_FLATBUFFER_H
#define QUOLL_TENSOR_IO_FLATBUFFER_H

#include "tensor/io/reader.h"

#define QL_FB_DEPTH 16                  /* tables inside of tables, at most */
#define QL_FB_VALUES ((int64_t)4 << 20) /* of a call, at most; a table or text counts as PART of them */
#define QL_FB_PART 8

enum ql_fb_kind {
	QL_FB_BOOL = 1,
	QL_FB_I8,
	QL_FB_U8,
	QL_FB_I32,
	QL_FB_U32,
	QL_FB_I64,
	QL_FB_FLOAT,
	QL_FB_TEXT,
	QL_FB_BYTES, /* a vector of bytes */
	QL_FB_TABLE,
	QL_FB_UNION /* a table whose fields are chosen by the byte of the slot before */
};

struct ql_fb_field;
/* What a table is by the byte before it; a list of them ends with the type 0. */
struct ql_fb_choice {
	unsigned type;
	const struct ql_fb_field *of;
};

/* One field of a table; a list of them ends with the name NULL. */
struct ql_fb_field {
	unsigned slot;
	enum ql_fb_kind kind;
	bool vector; /* of such values */
	const char *name;
	const struct ql_fb_field *of;       /* QL_FB_TABLE: its fields */
	const struct ql_fb_choice *choices; /* QL_FB_UNION: for each type; others are skipped */
};

enum ql_fb_what { QL_FB_VALUE, QL_FB_BEGIN, QL_FB_END };

struct ql_fb_event {
	enum ql_fb_what what; /* a value, or the begin or end of a table */
	const struct ql_fb_field *field;
	int64_t i;             /* numbers but QL_FB_FLOAT */
	double f;              /* QL_FB_FLOAT */
	uint64_t offset, size; /* in the file: of a text or of bytes */
};

/* Receives what is read, table by table. May raise a Lua error: the reader holds nothing. */
typedef enum ql_status ql_fb_sink(void *arg, const struct ql_fb_event *e);

/* Reads the root table, if the file has this identifier of four letters. Errors: another file, offsets outside of it, too many or too
 * deep parts, an error of the sink, an interrupt. */
enum ql_status ql_flatbuffer_read(const struct ql_reader *r, const char *identifier, const struct ql_fb_field *fields,
	ql_fb_sink *sink, void *arg);

#endif
