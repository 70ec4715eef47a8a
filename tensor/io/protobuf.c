/* SPDX-License-Identifier: MIT
 * Protocol buffers by nanopb's primitives (tags, varints, fixed numbers) over a buffered reader. Messages are no calls of each other:
 * the ends of those that are open are on a stack of our own.
 */
#include "tensor/io/protobuf.h"

#include <pb_decode.h>
#include <string.h>

#define BUFFER 4096
#define POLL 4096 /* fields between two polls of the interrupt flag */

struct input {
	const struct ql_reader *r;
	uint64_t at;            /* of the next byte */
	uint64_t begin, filled; /* of the buffer in the file; its bytes */
	enum ql_status status;
	uint8_t buffer[BUFFER];
};

struct open {
	const struct ql_pb_field *field; /* that is this message; NULL: the outermost */
	const struct ql_pb_field *fields;
	uint64_t end;
};

struct parser {
	struct input in;
	pb_istream_t stream;
	struct open open[QL_PB_DEPTH];
	int depth; /* of the innermost open message */
	int64_t values, polled;
	ql_pb_sink *sink;
	void *arg;
};

/* ---- bytes ---- */

static bool fill(struct input *in)
{
	uint64_t n = in->r->size - in->at;

	n = n < BUFFER ? n : BUFFER;
	in->status = ql_reader_at(in->r, in->at, n, in->buffer, "message");
	in->begin = in->at;
	in->filled = in->status ? 0 : n;
	return !in->status;
}

/* For nanopb, which has checked that the bytes are in the stream. */
static bool take(pb_istream_t *stream, pb_byte_t *to, size_t count)
{
	struct input *in = stream->state;

	while (count > 0) {
		uint64_t left =
			in->at >= in->begin && in->at < in->begin + in->filled ? in->begin + in->filled - in->at : 0;
		size_t n = left < count ? (size_t)left : count;

		if (n == 0 && !fill(in))
			return false;
		if (n == 0)
			continue;
		memcpy(to, in->buffer + (in->at - in->begin), n);
		in->at += n;
		to += n;
		count -= n;
	}
	return true;
}

/* The next n bytes, if they fit into the buffer. */
static const char *at_hand(struct input *in, uint64_t n)
{
	bool held = in->at >= in->begin && in->at + n <= in->begin + in->filled;

	if (n > BUFFER || (!held && !fill(in)))
		return NULL;
	return (const char *)in->buffer + (in->at - in->begin);
}

static void skip(struct parser *p, uint64_t n)
{
	p->in.at += n;
	p->stream.bytes_left -= (size_t)n;
}

static enum ql_status broken(struct parser *p, const char *why)
{
	return p->in.status ? p->in.status
			    : ql_fail(p->in.r->ctx, QL_ERR_FORMAT, "protocol buffer: %s at byte %llu", why,
				      (unsigned long long)p->in.at);
}

/* ---- events ---- */

static enum ql_status give(struct parser *p, const struct ql_pb_event *e, int64_t cost)
{
	p->values += cost;
	if (p->values > QL_PB_VALUES)
		return ql_fail(p->in.r->ctx, QL_ERR_FORMAT,
			"protocol buffer: wanted at most %lld values outside of tensors, got more",
			(long long)QL_PB_VALUES);
	return p->sink(p->arg, e);
}

static bool read_value(struct parser *p, pb_wire_type_t wire, struct ql_pb_event *e)
{
	uint64_t whole;
	float single;

	switch (wire) {
	case PB_WT_VARINT:
		if (!pb_decode_varint(&p->stream, &whole))
			return false;
		e->i = (int64_t)whole;
		return true;
	case PB_WT_64BIT: return pb_decode_fixed64(&p->stream, &e->f);
	default:
		if (!pb_decode_fixed32(&p->stream, &single))
			return false;
		e->f = (double)single;
		return true;
	}
}

/* What a number of this kind is on the wire. */
static pb_wire_type_t wire_of(enum ql_pb_kind kind)
{
	switch (kind) {
	case QL_PB_INT: return PB_WT_VARINT;
	case QL_PB_FLOAT:
	case QL_PB_FLOATS: return PB_WT_32BIT;
	case QL_PB_DOUBLE:
	case QL_PB_DOUBLES: return PB_WT_64BIT;
	default: return PB_WT_STRING;
	}
}

static enum ql_status give_number(struct parser *p, const struct ql_pb_field *f)
{
	struct ql_pb_event e = {.what = QL_PB_VALUE, .field = f};

	if (!read_value(p, wire_of(f->kind), &e))
		return broken(p, "wanted a number");
	return give(p, &e, 1);
}

static enum ql_status give_packed(struct parser *p, const struct ql_pb_field *f, uint64_t size)
{
	uint64_t end = p->in.at + size;
	enum ql_status status = QL_OK;

	while (p->in.at < end && !status)
		status = give_number(p, f);
	return status || p->in.at == end ? status : broken(p, "packed numbers end too late");
}

/* A string, of any kind of field, of `size` bytes within its message. */
static enum ql_status give_string(struct parser *p, const struct ql_pb_field *f, uint64_t size)
{
	struct ql_pb_event e = {.what = QL_PB_VALUE, .field = f, .offset = p->in.at, .size = size};

	if (f->kind != QL_PB_FLOATS && f->kind != QL_PB_DOUBLES && wire_of(f->kind) != PB_WT_STRING)
		return f->repeated ? give_packed(p, f, size) : broken(p, "wanted one number, got packed ones");
	if (f->kind == QL_PB_TEXT) {
		e.text = at_hand(&p->in, size);
		if (p->in.status)
			return p->in.status;
	}
	if (f->kind != QL_PB_MESSAGE) {
		skip(p, size);
		return give(p, &e, QL_PB_PART);
	}
	if (p->depth + 1 == QL_PB_DEPTH)
		return ql_fail(p->in.r->ctx, QL_ERR_FORMAT,
			"protocol buffer: wanted messages at most %d deep, got deeper ones", QL_PB_DEPTH);
	p->open[++p->depth] = (struct open){f, f->of, p->in.at + size};
	e.what = QL_PB_BEGIN;
	return give(p, &e, QL_PB_PART);
}

/* ---- fields ---- */

static const struct ql_pb_field *find(const struct ql_pb_field *f, uint32_t number)
{
	while (f->number && f->number != number)
		f++;
	return f->number ? f : NULL;
}

static enum ql_status read_string(struct parser *p, const struct ql_pb_field *f, uint64_t end)
{
	uint64_t size;

	if (!pb_decode_varint(&p->stream, &size) || p->in.at > end || size > end - p->in.at)
		return broken(p, "a length is beyond its message");
	if (f)
		return give_string(p, f, size);
	skip(p, size);
	return QL_OK;
}

static enum ql_status read_field(struct parser *p)
{
	struct open o = p->open[p->depth];
	const struct ql_pb_field *f;
	pb_wire_type_t wire;
	uint32_t number;
	bool eof;
	enum ql_status status = QL_OK;

	if (!pb_decode_tag(&p->stream, &wire, &number, &eof) || number == 0)
		return broken(p, "wanted a field");
	f = find(o.fields, number);
	if (wire == PB_WT_STRING)
		return read_string(p, f, o.end);
	if (f && wire != wire_of(f->kind))
		return broken(p, "a field has another type than it should");
	if (f)
		status = give_number(p, f);
	else if (!pb_skip_field(&p->stream, wire))
		status = broken(p, "wanted a field");
	return status || p->in.at <= o.end ? status : broken(p, "a field ends after its message");
}

static enum ql_status close_message(struct parser *p)
{
	struct ql_pb_event e = {.what = QL_PB_END, .field = p->open[p->depth--].field};

	return p->sink(p->arg, &e);
}

enum ql_status ql_protobuf_read(const struct ql_reader *r, uint64_t offset, uint64_t size,
	const struct ql_pb_field *fields, ql_pb_sink *sink, void *arg)
{
	struct parser p = {.in = {.r = r, .at = offset}, .sink = sink, .arg = arg};
	enum ql_status status = ql_reader_check(r, offset, size, "message");

	p.open[0] = (struct open){NULL, fields, offset + size};
	p.stream = (pb_istream_t){.callback = take, .state = &p.in, .bytes_left = (size_t)size};
	while (!status && (p.depth > 0 || p.in.at < p.open[0].end)) {
		if (p.in.at == p.open[p.depth].end)
			status = close_message(&p);
		else
			status = read_field(&p);
		if (!status && ++p.polled % POLL == 0 && ql_stopped(r->ctx))
			status = ql_fail(r->ctx, QL_ERR_INTERRUPTED, "interrupted");
	}
	return status;
}
