/* SPDX-License-Identifier: MIT
 * FlatBuffers over a cache of the file's last blocks. Tables are no calls of each other: those that are open are on a stack of our own.
 */
#include "tensor/io/flatbuffer.h"

#include <string.h>

#define BLOCK 512
#define BLOCKS 16 /* a power of two */
#define POLL 4096 /* steps between two polls of the interrupt flag */

struct open {
	const struct ql_fb_field *field; /* that is this table; NULL: the root */
	const struct ql_fb_field *next;  /* of its fields */
	uint64_t at, vtable;
	unsigned size, slots; /* bytes of the table, entries of the vtable */
	/* the vector of tables of the field before `next` */
	uint64_t element, left;
};

struct parser {
	const struct ql_reader *r;
	uint64_t begin[BLOCKS], filled[BLOCKS];
	uint8_t block[BLOCKS][BLOCK];
	struct open open[QL_FB_DEPTH];
	int depth;
	int64_t values, most;
	ql_fb_sink *sink;
	void *arg;
};

/* ---- bytes ---- */

static enum ql_status fill(struct parser *p, unsigned b, uint64_t begin)
{
	uint64_t n = p->r->size - begin;
	enum ql_status status;

	n = n < BLOCK ? n : BLOCK;
	status = ql_reader_at(p->r, begin, n, p->block[b], "table");
	p->begin[b] = begin;
	p->filled[b] = status ? 0 : n;
	return status;
}

/* Copies n bytes, which may be anywhere. */
static enum ql_status get(struct parser *p, uint64_t offset, uint64_t n, void *to)
{
	uint8_t *out = to;
	enum ql_status status = ql_reader_check(p->r, offset, n, "table");

	while (n > 0 && !status) {
		uint64_t begin = offset / BLOCK * BLOCK, here;
		unsigned b = (unsigned)(offset / BLOCK % BLOCKS);

		if (p->filled[b] == 0 || p->begin[b] != begin)
			status = fill(p, b, begin);
		if (status)
			break;
		here = begin + p->filled[b] - offset;
		here = here < n ? here : n;
		memcpy(out, p->block[b] + (offset - begin), (size_t)here);
		out += here;
		offset += here;
		n -= here;
	}
	return status;
}

static enum ql_status broken(struct parser *p, const char *why, uint64_t offset)
{
	return ql_fail(p->r->ctx, QL_ERR_FORMAT, "FlatBuffers: %s at byte %llu", why, (unsigned long long)offset);
}

/* Follows the offset that is stored at *offset. */
static enum ql_status follow(struct parser *p, uint64_t *offset)
{
	uint8_t bytes[4];
	enum ql_status status = get(p, *offset, 4, bytes);

	if (status)
		return status;
	if (ql_le32(bytes) < 4 || ql_le32(bytes) > p->r->size - *offset)
		return broken(p, "an offset leads out of the file", *offset);
	*offset += ql_le32(bytes);
	return QL_OK;
}

/* ---- events ---- */

static enum ql_status give(struct parser *p, const struct ql_fb_event *e, int64_t cost)
{
	p->values += cost;
	if (p->values > p->most)
		return ql_fail(p->r->ctx, QL_ERR_FORMAT,
			"FlatBuffers: wanted at most %lld values outside of tensors, got more", (long long)p->most);
	return p->sink(p->arg, e);
}

static unsigned bytes_of(enum ql_fb_kind kind)
{
	return kind <= QL_FB_U8 ? 1 : kind == QL_FB_I64 ? 8 : 4;
}

static enum ql_status give_number(struct parser *p, const struct ql_fb_field *f, uint64_t offset)
{
	struct ql_fb_event e = {.what = QL_FB_VALUE, .field = f};
	uint8_t bytes[8];
	uint32_t word;
	float single;
	enum ql_status status = get(p, offset, bytes_of(f->kind), bytes);

	if (status)
		return status;
	switch (f->kind) {
	case QL_FB_BOOL: e.i = bytes[0] != 0; break;
	case QL_FB_I8: e.i = (int8_t)bytes[0]; break;
	case QL_FB_U8: e.i = bytes[0]; break;
	case QL_FB_I32: e.i = (int32_t)ql_le32(bytes); break;
	case QL_FB_U32: e.i = ql_le32(bytes); break;
	case QL_FB_I64: e.i = (int64_t)ql_le64(bytes); break;
	default:
		word = ql_le32(bytes);
		memcpy(&single, &word, sizeof(single));
		e.f = (double)single;
	}
	return give(p, &e, 1);
}

/* ---- tables ---- */

/* Opens the table at `offset`. */
static enum ql_status begin(
	struct parser *p, const struct ql_fb_field *field, const struct ql_fb_field *fields, uint64_t offset)
{
	struct ql_fb_event e = {.what = QL_FB_BEGIN, .field = field};
	struct open o = {.field = field, .next = fields, .at = offset};
	uint8_t head[4], sizes[4];
	int64_t vtable;
	enum ql_status status = get(p, offset, 4, head);

	if (status)
		return status;
	vtable = (int64_t)offset - (int32_t)ql_le32(head);
	if (vtable < 0 || (uint64_t)vtable > p->r->size)
		return broken(p, "a table has its fields out of the file", offset);
	o.vtable = (uint64_t)vtable;
	status = get(p, o.vtable, 4, sizes);
	if (status)
		return status;
	o.size = ql_le16(sizes + 2);
	o.slots = ql_le16(sizes) < 4 ? 0 : (ql_le16(sizes) - 4u) / 2;
	if (ql_le16(sizes) < 4 || o.size < 4)
		return broken(p, "a table has sizes below 4", offset);
	status = ql_reader_check(p->r, o.vtable, ql_le16(sizes), "table");
	if (!status)
		status = ql_reader_check(p->r, offset, o.size, "table");
	if (status)
		return status;
	if (p->depth + 1 == QL_FB_DEPTH)
		return broken(p, "tables are too deep", offset);
	p->open[++p->depth] = o;
	return field ? give(p, &e, QL_FB_PART) : QL_OK;
}

static enum ql_status end(struct parser *p)
{
	struct ql_fb_event e = {.what = QL_FB_END, .field = p->open[p->depth--].field};

	return e.field ? p->sink(p->arg, &e) : QL_OK;
}

/* Sets *offset to the place of a slot of the table, which has `bytes` bytes; 0: it has none. */
static enum ql_status place_of(struct parser *p, const struct open *o, unsigned slot, unsigned bytes, uint64_t *offset)
{
	uint8_t entry[2];
	enum ql_status status;

	*offset = 0;
	if (slot >= o->slots)
		return QL_OK;
	status = get(p, o->vtable + 4 + 2 * (uint64_t)slot, 2, entry);
	if (status || !ql_le16(entry))
		return status;
	if (ql_le16(entry) < 4 || ql_le16(entry) + bytes > o->size)
		return broken(p, "a field is outside of its table", o->at);
	*offset = o->at + ql_le16(entry);
	return QL_OK;
}

/* ---- fields ---- */

static enum ql_status give_union(struct parser *p, struct open *o, const struct ql_fb_field *f, uint64_t offset)
{
	const struct ql_fb_choice *c = f->choices;
	uint8_t type = 0;
	uint64_t place;
	enum ql_status status = place_of(p, o, f->slot - 1, 1, &place);

	if (!status && place)
		status = get(p, place, 1, &type);
	while (c->type && c->type != type)
		c++;
	return status || !c->type ? status : begin(p, f, c->of, offset);
}

/* A vector or text at `offset`. */
static enum ql_status give_vector(struct parser *p, struct open *o, const struct ql_fb_field *f, uint64_t offset)
{
	struct ql_fb_event e = {.what = QL_FB_VALUE, .field = f, .offset = offset + 4};
	bool bytes = f->kind == QL_FB_TEXT || f->kind == QL_FB_BYTES;
	uint64_t step = bytes ? 1 : bytes_of(f->kind);
	uint8_t count[4];
	enum ql_status status = get(p, offset, 4, count);

	e.size = status ? 0 : ql_le32(count);
	if (!status)
		status = ql_reader_check(p->r, e.offset, e.size * step, f->name);
	if (status)
		return status;
	if (bytes)
		return give(p, &e, QL_FB_PART + (f->kind == QL_FB_TEXT ? (int64_t)e.size : 0));
	if (f->kind == QL_FB_TABLE) {
		o->element = e.offset;
		o->left = e.size;
		return QL_OK;
	}
	for (uint64_t i = 0; i < e.size && !status; i++)
		status = give_number(p, f, e.offset + i * step);
	return status;
}

static enum ql_status read_field(struct parser *p, struct open *o, const struct ql_fb_field *f)
{
	bool far = f->vector || f->kind >= QL_FB_TEXT;
	uint64_t offset;
	enum ql_status status = place_of(p, o, f->slot, far ? 4 : bytes_of(f->kind), &offset);

	if (status || !offset)
		return status;
	if (!far)
		return give_number(p, f, offset);
	status = follow(p, &offset);
	if (status)
		return status;
	if (f->vector || f->kind == QL_FB_TEXT || f->kind == QL_FB_BYTES)
		return give_vector(p, o, f, offset);
	return f->kind == QL_FB_TABLE ? begin(p, f, f->of, offset) : give_union(p, o, f, offset);
}

static enum ql_status step(struct parser *p)
{
	struct open *o = &p->open[p->depth];
	uint64_t offset = o->element;
	enum ql_status status;

	if (o->left > 0) {
		o->left--;
		o->element += 4;
		status = follow(p, &offset);
		return status ? status : begin(p, o->next - 1, o->next[-1].of, offset);
	}
	if (!o->next->name)
		return end(p);
	o->next++;
	return read_field(p, o, o->next - 1);
}

enum ql_status ql_flatbuffer_read(const struct ql_reader *r, const char *identifier, const struct ql_fb_field *fields,
	ql_fb_sink *sink, void *arg)
{
	struct parser p = {.r = r, .sink = sink, .arg = arg, .depth = -1};
	uint64_t root = 0;
	uint8_t name[4] = {0};
	int64_t steps = 0;
	enum ql_status status = get(&p, 4, 4, name);

	if (!status && memcmp(name, identifier, 4) != 0)
		status =
			ql_fail(r->ctx, QL_ERR_FORMAT, "wanted a file with the identifier %s, got another", identifier);
	p.most = r->size < (uint64_t)QL_FB_VALUES ? (int64_t)r->size : QL_FB_VALUES;
	if (!status)
		status = follow(&p, &root);
	if (!status)
		status = begin(&p, NULL, fields, root);
	while (!status && p.depth >= 0) {
		status = step(&p);
		if (!status && ++steps % POLL == 0 && ql_stopped(r->ctx))
			status = ql_fail(r->ctx, QL_ERR_INTERRUPTED, "interrupted");
	}
	return status;
}
