/* SPDX-License-Identifier: MIT
 * Reading protocol buffers (https://protobuf.dev/programming-guides/encoding) by tables of the fields that are wanted. Others are
 * skipped; long bytes are given as places in the file, not copied. Nothing is allocated.
 */
#ifndef QUOLL_TENSOR_IO_PROTOBUF_H
#define QUOLL_TENSOR_IO_PROTOBUF_H

#include "tensor/io/reader.h"

#define QL_PB_DEPTH 64                  /* messages inside of messages, at most */
#define QL_PB_VALUES ((int64_t)4 << 20) /* of a call, at most; a message or text counts as PART of them */
#define QL_PB_PART 8

/* FLOATS and DOUBLES: repeated numbers, of which packed ones are given by their place. */
enum ql_pb_kind {
	QL_PB_INT = 1,
	QL_PB_FLOAT,
	QL_PB_DOUBLE,
	QL_PB_FLOATS,
	QL_PB_DOUBLES,
	QL_PB_TEXT,
	QL_PB_BYTES,
	QL_PB_MESSAGE
};

/* One field of a message; a table of them ends with the number 0. A repeated field of numbers may be packed. */
struct ql_pb_field {
	uint32_t number;
	enum ql_pb_kind kind;
	bool repeated;
	const char *name;
	const struct ql_pb_field *of; /* QL_PB_MESSAGE: its fields */
};

enum ql_pb_what { QL_PB_VALUE, QL_PB_BEGIN, QL_PB_END };

struct ql_pb_event {
	enum ql_pb_what what; /* a value, or the begin or end of a message */
	const struct ql_pb_field *field;
	int64_t i;             /* QL_PB_INT */
	double f;              /* one of floats or doubles */
	uint64_t offset, size; /* in the file: of text, bytes, a message at its begin, packed FLOATS and DOUBLES */
	const char *text;      /* the bytes of a short text, until the sink returns; NULL: read them */
};

/* Receives what is read, in the order of the file. May raise a Lua error: the reader holds nothing. */
typedef enum ql_status ql_pb_sink(void *arg, const struct ql_pb_event *e);

/* Reads the message of `size` bytes at `offset`. Errors: no such bytes, another encoding, too many or too deep parts, an error of the
 * sink, an interrupt. */
enum ql_status ql_protobuf_read(const struct ql_reader *r, uint64_t offset, uint64_t size,
	const struct ql_pb_field *fields, ql_pb_sink *sink, void *arg);

#endif
