/* SPDX-License-Identifier: MIT
 * Header of GGUF files: metadata and list of tensors. Nothing is allocated before the file is known to have the bytes
 * for it, and nothing is recursive: arrays of arrays are refused, as ggml does.
 */
#include <stdlib.h>
#include <string.h>

#include "tensor/io/elements.h"
#include "tensor/io/gguf.h"

#define BUFFER 8192
#define MOST ((uint64_t)1 << 20)       /* keys, tensors */
#define MOST_TEXTS ((uint64_t)1 << 22) /* of an array */
#define MOST_NAME 4096                 /* bytes of a key or name */
#define HEAD 24

enum { TEXT = 8, ARRAY = 9 };

/* Element types of metadata by their number in files. */
static const struct {
	uint8_t bytes, dtype;
	bool is_unsigned; /* wider than any unsigned dtype here: int64 */
} kinds[] = {{1, QL_uint8, false}, {1, QL_int8, false}, {2, QL_uint16, false}, {2, QL_int16, false},
	{4, QL_int64, true}, {4, QL_int32, false}, {4, QL_float32, false}, {1, QL_bool, false}, {0, 0, false},
	{0, 0, false}, {8, QL_int64, true}, {8, QL_int64, false}, {8, QL_float64, false}};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* A position in the file with the bytes after it. */
struct cursor {
	const struct ql_reader *r;
	uint64_t at, begin;
	size_t filled;
	uint8_t buffer[BUFFER];
};

static uint64_t left(const struct cursor *c)
{
	return c->r->size - c->at;
}

/* Copies the next n bytes. */
static enum ql_status take(struct cursor *c, void *to, uint64_t n, const char *what)
{
	enum ql_status status = ql_reader_check(c->r, c->at, n, what);

	if (!status && n > BUFFER)
		status = ql_reader_at(c->r, c->at, n, to, what);
	else if (!status && (c->at < c->begin || c->at + n > c->begin + c->filled)) {
		c->begin = c->at;
		c->filled = left(c) < BUFFER ? (size_t)left(c) : BUFFER;
		status = ql_reader_at(c->r, c->begin, c->filled, c->buffer, what);
		if (status)
			c->filled = 0;
	}
	if (status)
		return status;
	if (n <= BUFFER)
		memcpy(to, c->buffer + (c->at - c->begin), (size_t)n);
	c->at += n;
	return QL_OK;
}

static enum ql_status take32(struct cursor *c, uint32_t *value, const char *what)
{
	uint8_t bytes[4] = {0};
	enum ql_status status = take(c, bytes, 4, what);

	*value = ql_le32(bytes);
	return status;
}

static enum ql_status take64(struct cursor *c, uint64_t *value, const char *what)
{
	uint8_t bytes[8] = {0};
	enum ql_status status = take(c, bytes, 8, what);

	*value = ql_le64(bytes);
	return status;
}

/* Gives a name: a text without zero bytes. */
static enum ql_status take_name(struct cursor *c, const char *what, char **out)
{
	uint64_t n;
	enum ql_status status = take64(c, &n, what);

	*out = NULL;
	if (!status && (n == 0 || n > MOST_NAME))
		return ql_fail(c->r->ctx, QL_ERR_FORMAT, "%s: wanted 1 to %d bytes, got %llu", what, MOST_NAME,
			(unsigned long long)n);
	if (!status)
		status = ql_reader_take(c->r, c->at, n, what, out);
	if (status)
		return status;
	c->at += n;
	if (strlen(*out) == n)
		return QL_OK;
	status = ql_fail(c->r->ctx, QL_ERR_FORMAT, "%s: wanted no zero bytes, got some in '%.80s'", what, *out);
	ql_free(c->r->ctx, *out);
	*out = NULL;
	return status;
}

/* ---- metadata ---- */

/* Unsigned numbers from the front of the tensor's memory, where they were read, to int64. */
static enum ql_status widen(struct ql_ctx *ctx, const struct ql_metadata_value *v, struct ql_tensor *t, unsigned bytes)
{
	int64_t *to = t->storage->data;
	const uint8_t *from = t->storage->data;

	for (int64_t i = ql_tensor_nelem(t) - 1; i >= 0; i--) {
		uint64_t value = bytes == 4 ? ql_le32(from + 4 * i) : ql_le64(from + 8 * i);

		if (value > INT64_MAX)
			return ql_fail(ctx, QL_ERR_UNSUPPORTED,
				"metadata: %.80s: wanted integers up to 2^63-1, got %llu", v->key,
				(unsigned long long)value);
		to[i] = (int64_t)value;
	}
	return QL_OK;
}

static enum ql_status take_numbers(struct cursor *c, uint32_t kind, int64_t n, struct ql_metadata_value *v)
{
	unsigned bytes = kinds[kind].bytes;
	struct ql_tensor *t;
	uint8_t *data;
	enum ql_status status = ql_tensor_new(c->r->ctx, kinds[kind].dtype, v->list, &n, &v->numbers);

	if (status)
		return status;
	t = v->numbers;
	data = t->storage->data;
	status = take(c, data, (uint64_t)n * bytes, v->key); /* size: checked against the file */
	if (!status && kinds[kind].is_unsigned)
		status = widen(c->r->ctx, v, t, bytes);
	for (int64_t i = 0; !status && ql_dtype_is_bool(t->dtype) && i < n; i++)
		data[i] = data[i] != 0;
	return status;
}

/* Adds up the lengths of n texts from the cursor on, which it moves past them. */
static enum ql_status measure(struct cursor *c, uint64_t n, const char *what, uint64_t *total)
{
	uint64_t length;
	enum ql_status status = QL_OK;

	*total = 0;
	for (uint64_t i = 0; i < n && !status; i++) {
		status = take64(c, &length, what);
		if (!status)
			status = ql_reader_check(c->r, c->at, length, what);
		if (!status) {
			c->at += length;
			*total += length;
		}
	}
	return status;
}

static enum ql_status take_texts(struct cursor *c, uint64_t n, struct ql_metadata_value *v)
{
	uint64_t begin = c->at, total, length = 0, at = 0;
	enum ql_status status = measure(c, n, v->key, &total);

	if (!status)
		status = ql_metadata_texts(c->r->ctx, v, (int64_t)n, total);
	c->at = begin;
	for (uint64_t i = 0; i < n && !status; i++) {
		if (c->r->ctx->interrupted)
			return ql_fail(c->r->ctx, QL_ERR_INTERRUPTED, "interrupted");
		status = take64(c, &length, v->key);
		if (!status && length > total - at) /* changed by another program meanwhile */
			status = ql_fail(c->r->ctx, QL_ERR_IO, "%.80s: the file changed while it was read", v->key);
		if (!status)
			status = take(c, v->text + at, length, v->key);
		at += length;
		v->end[i] = at;
	}
	if (!status)
		v->text[at] = '\0';
	return status;
}

static enum ql_status take_array(struct cursor *c, struct ql_metadata_value *v)
{
	struct ql_ctx *ctx = c->r->ctx;
	uint32_t kind;
	uint64_t n;
	enum ql_status status = take32(c, &kind, v->key);

	if (!status)
		status = take64(c, &n, v->key);
	if (status)
		return status;
	v->list = true;
	if (kind == ARRAY || kind >= KINDS)
		return ql_fail(ctx, QL_ERR_UNSUPPORTED,
			"metadata: %.80s: wanted an array of numbers or texts, got one of %s", v->key,
			kind == ARRAY ? "arrays" : "an unknown type");
	if (n > left(c) / (kind == TEXT ? 8 : kinds[kind].bytes) || (kind == TEXT && n > MOST_TEXTS))
		return ql_fail(ctx, QL_ERR_FORMAT, "metadata: %.80s: wanted elements that fit into the file, got %llu",
			v->key, (unsigned long long)n);
	return kind == TEXT ? take_texts(c, n, v) : take_numbers(c, kind, (int64_t)n, v);
}

static enum ql_status take_value(struct cursor *c, struct ql_metadata_value *v)
{
	uint32_t kind;
	enum ql_status status = take32(c, &kind, v->key);

	if (status)
		return status;
	if (kind == ARRAY)
		return take_array(c, v);
	if (kind == TEXT)
		return take_texts(c, 1, v);
	if (kind >= KINDS)
		return ql_fail(
			c->r->ctx, QL_ERR_FORMAT, "metadata: %.80s: wanted a type from 0 to 12, got %u", v->key, kind);
	return take_numbers(c, kind, 1, v);
}

static enum ql_status take_metadata(struct cursor *c, uint64_t n, struct ql_metadata *m)
{
	struct ql_metadata_value *v;
	enum ql_status status = QL_OK;
	char *key;

	for (uint64_t i = 0; i < n && !status; i++) {
		status = take_name(c, "metadata: key", &key);
		if (!status)
			status = ql_metadata_add(c->r->ctx, m, key, &v);
		if (!status)
			status = take_value(c, v);
		ql_free(c->r->ctx, key);
	}
	return status ? status : ql_metadata_check(c->r->ctx, m);
}

/* ---- tensors ---- */

static enum ql_status take_shape(struct cursor *c, struct ql_gguf_entry *e)
{
	uint32_t rank;
	uint64_t size;
	enum ql_status status = take32(c, &rank, e->name);

	if (!status && rank > QL_GGUF_RANK)
		return ql_fail(c->r->ctx, QL_ERR_UNSUPPORTED, "'%.80s': wanted at most %d axes, got %u", e->name,
			QL_GGUF_RANK, rank);
	e->rank = (int)rank;
	for (int d = e->rank - 1; d >= 0 && !status; d--) {
		status = take64(c, &size, e->name);
		if (!status && size > INT64_MAX)
			status = ql_fail(c->r->ctx, QL_ERR_FORMAT, "'%.80s': wanted sizes below 2^63, got %llu",
				e->name, (unsigned long long)size);
		e->shape[d] = (int64_t)size;
	}
	return status ? status : ql_shape_check(c->r->ctx, e->name, e->rank, e->shape);
}

/* Bytes of the entry's data. */
static enum ql_status set_bytes(struct ql_ctx *ctx, struct ql_gguf_entry *e)
{
	const struct ql_gguf_type *type = ql_gguf_type_by_id(e->id);
	int64_t shape[QL_GGUF_RANK], row = e->rank ? e->shape[e->rank - 1] : 1;

	if (!type) /* an error below, by name */
		return QL_OK;
	if (row % type->elements || (type->elements > 1 && !e->rank))
		return ql_fail(ctx, QL_ERR_FORMAT,
			"'%.80s': wanted rows of whole blocks of %d for %s, got %lld elements", e->name, type->elements,
			type->name, (long long)row);
	memcpy(shape, e->shape, sizeof(shape));
	if (e->rank)
		shape[e->rank - 1] /= type->elements;
	return ql_elements_size(ctx, e->rank, shape, type->bytes, &e->bytes);
}

static enum ql_status take_entry(struct cursor *c, struct ql_gguf_entry *e)
{
	enum ql_status status = take_name(c, "tensor: name", &e->name);

	if (!status)
		status = take_shape(c, e);
	if (!status)
		status = take32(c, &e->id, e->name);
	if (!status)
		status = take64(c, &e->offset, e->name);
	return status ? status : set_bytes(c->r->ctx, e);
}

static int by_name(const void *a, const void *b)
{
	const struct ql_gguf_entry *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int by_offset(const void *a, const void *b)
{
	const struct ql_gguf_entry *const *x = a, *const *y = b;

	if ((*x)->offset != (*y)->offset)
		return (*x)->offset < (*y)->offset ? -1 : 1;
	return ((*x)->bytes > (*y)->bytes) - ((*x)->bytes < (*y)->bytes);
}

/* Checks that names differ, and that data are within the file and apart. */
static enum ql_status check_entries(const struct ql_reader *r, const struct ql_gguf_file *f)
{
	struct ql_gguf_entry **sorted = ql_alloc_array(r->ctx, f->n, sizeof(struct ql_gguf_entry *)), *a, *b;
	enum ql_status status = QL_OK;

	if (!sorted)
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < f->n; i++)
		sorted[i] = &f->at[i];
	qsort(sorted, (size_t)f->n, sizeof(struct ql_gguf_entry *), by_name);
	for (int64_t i = 1; i < f->n && !status; i++)
		if (!by_name(&sorted[i], &sorted[i - 1]))
			status = ql_fail(
				r->ctx, QL_ERR_FORMAT, "wanted every name once, got '%.80s' twice", sorted[i]->name);
	qsort(sorted, (size_t)f->n, sizeof(struct ql_gguf_entry *), by_offset);
	for (int64_t i = 1; i < f->n && !status; i++) {
		a = sorted[i - 1];
		b = sorted[i];
		if (b->offset - a->offset < a->bytes && b->bytes)
			status = ql_fail(r->ctx, QL_ERR_FORMAT,
				"wanted tensors that do not overlap, got '%.80s' and '%.80s'", a->name, b->name);
	}
	ql_free(r->ctx, sorted);
	return status;
}

static enum ql_status place(const struct ql_reader *r, uint64_t alignment, struct ql_gguf_file *f)
{
	enum ql_status status = QL_OK;

	for (int64_t i = 0; i < f->n && !status; i++) {
		struct ql_gguf_entry *e = &f->at[i];

		if (e->offset % alignment)
			status = ql_fail(r->ctx, QL_ERR_FORMAT, "'%.80s': wanted an offset in steps of %llu, got %llu",
				e->name, (unsigned long long)alignment, (unsigned long long)e->offset);
		else if (!ql_size_add(f->data, e->offset, &e->offset))
			status = ql_fail(
				r->ctx, QL_ERR_FORMAT, "'%.80s': wanted an offset below 2^64, got more", e->name);
		else if (e->bytes)
			status = ql_reader_check(r, e->offset, e->bytes, e->name);
	}
	return status ? status : check_entries(r, f);
}

/* ---- all ---- */

enum ql_status ql_gguf_alignment(struct ql_ctx *ctx, const struct ql_metadata *m, uint64_t *alignment)
{
	const struct ql_metadata_value *v = ql_metadata_find(m, "general.alignment");
	double value = v && v->numbers && !v->list ? ql_tensor_at_f64(v->numbers, 0) : v ? 0 : QL_GGUF_ALIGNMENT;

	*alignment = value >= 1 && value <= 1 << 20 ? (uint64_t)value : 0;
	if (*alignment && !(*alignment & (*alignment - 1)) && (double)*alignment == value)
		return QL_OK;
	return ql_fail(ctx, QL_ERR_FORMAT, "general.alignment: wanted a power of two up to 2^20, got %s%g",
		v && v->numbers ? "" : "text ", value);
}

static enum ql_status take_head(struct cursor *c, uint64_t *tensors, uint64_t *keys)
{
	uint8_t head[HEAD];
	uint32_t version;
	enum ql_status status = take(c, head, HEAD, "header");

	if (status)
		return status;
	if (memcmp(head, "GGUF", 4) != 0)
		return ql_fail(c->r->ctx, QL_ERR_FORMAT, "wanted a file that begins with GGUF, got another");
	version = ql_le32(head + 4);
	if (version > 0xffff && !(version & 0xffff))
		return ql_fail(c->r->ctx, QL_ERR_UNSUPPORTED, "wanted a little-endian file, got a big-endian one");
	if (version < 2 || version > 3)
		return ql_fail(c->r->ctx, QL_ERR_UNSUPPORTED, "wanted version 2 or 3, got %u", version);
	*tensors = ql_le64(head + 8);
	*keys = ql_le64(head + 16);
	/* the least bytes of a key with its value, and of a tensor */
	if (*keys > MOST || *keys > left(c) / 14 || *tensors > MOST || *tensors > left(c) / 25)
		return ql_fail(c->r->ctx, QL_ERR_FORMAT,
			"header: wanted keys and tensors that fit into the file, got %llu and %llu",
			(unsigned long long)*keys, (unsigned long long)*tensors);
	return QL_OK;
}

enum ql_status ql_gguf_header(const struct ql_reader *r, struct ql_metadata *metadata, struct ql_gguf_file *file)
{
	struct cursor c;
	uint64_t tensors = 0, keys = 0, alignment = 0;
	enum ql_status status;

	c.r = r;
	c.at = c.begin = c.filled = 0;
	status = take_head(&c, &tensors, &keys);
	if (!status)
		status = take_metadata(&c, keys, metadata);
	if (!status)
		status = ql_gguf_alignment(r->ctx, metadata, &alignment);
	if (status)
		return status;
	file->at = ql_alloc_array_zeroed(r->ctx, (int64_t)tensors, sizeof(*file->at));
	if (!file->at)
		return QL_ERR_MEMORY;
	for (; file->n < (int64_t)tensors && !status; file->n++)
		status = take_entry(&c, &file->at[file->n]);
	if (status)
		return status;
	file->data = (c.at + alignment - 1) & ~(alignment - 1);
	return place(r, alignment, file);
}

void ql_gguf_clear(struct ql_ctx *ctx, struct ql_gguf_file *file)
{
	for (int64_t i = 0; i < file->n; i++)
		ql_free(ctx, file->at[i].name);
	ql_free(ctx, file->at);
	*file = (struct ql_gguf_file){0};
}
