/* SPDX-License-Identifier: MIT
 * Reading a zip archive's directory (PKWARE APPNOTE 6.3, sections 4.3 and 4.5.3). The end record is searched from
 * the end of the file; the directory before it lists the entries, and each is compared with the local header before
 * its data.
 */
#include "tensor/io/zip.h"

#include <stdlib.h>
#include <string.h>

#define END_SIZE 22
#define LOCATOR_SIZE 20
#define END64_SIZE 56
#define ENTRY_SIZE 46
#define LOCAL_SIZE 30
#define SMALL_MAX 0xffffffffu /* the value is in the 64-bit extension */

struct end {
	uint64_t at; /* of the first end record; entries and directory are before it */
	uint64_t n, size, offset;
};

static enum ql_status bad(struct ql_zip *z, const char *reason)
{
	return ql_fail(z->r->ctx, QL_ERR_FORMAT, "zip: %s", reason);
}

static enum ql_status bad_entry(struct ql_zip *z, const struct ql_zip_entry *e, const char *reason)
{
	return ql_fail(z->r->ctx, QL_ERR_FORMAT, "entry '%.80s': %s", e->name, reason);
}

/* The last end record whose comment reaches exactly to the end of the file. */
static enum ql_status find_end(struct ql_zip *z, struct end *end)
{
	uint64_t n = z->r->size < END_SIZE + 65535 ? z->r->size : END_SIZE + 65535, i;
	char *tail;
	enum ql_status status;

	if (n < END_SIZE)
		return bad(z, "wanted an archive, got a file of fewer than 22 bytes");
	status = ql_reader_take(z->r, z->r->size - n, n, "zip end record", &tail);
	if (status)
		return status;
	for (i = n - END_SIZE + 1; i > 0; i--) {
		const char *p = tail + i - 1;

		if (ql_le32(p) != 0x06054b50 || i - 1 + END_SIZE + ql_le16(p + 20) != n)
			continue;
		*end = (struct end){.at = z->r->size - n + i - 1,
			.n = ql_le16(p + 10),
			.size = ql_le32(p + 12),
			.offset = ql_le32(p + 16)};
		if (ql_le16(p + 4) || ql_le16(p + 6) || ql_le16(p + 8) != end->n)
			status = bad(z, "wanted an archive in one part, got one in several");
		break;
	}
	ql_free(z->r->ctx, tail);
	return i > 0 || status ? status : bad(z, "wanted an end record, found none");
}

/* The 64-bit end record, if the locator before the end record points to one. */
static enum ql_status find_end64(struct ql_zip *z, struct end *end)
{
	uint8_t locator[LOCATOR_SIZE], record[END64_SIZE];
	uint64_t at;
	enum ql_status status;

	if (end->at < LOCATOR_SIZE)
		return QL_OK;
	status = ql_reader_at(z->r, end->at - LOCATOR_SIZE, LOCATOR_SIZE, locator, "zip locator");
	if (status || ql_le32(locator) != 0x07064b50)
		return status;
	at = ql_le64(locator + 8);
	if (at > end->at - LOCATOR_SIZE || end->at - LOCATOR_SIZE - at < END64_SIZE)
		return bad(z, "wanted the 64-bit end record in front of its locator, got another place");
	status = ql_reader_at(z->r, at, END64_SIZE, record, "zip 64-bit end record");
	if (status)
		return status;
	if (ql_le32(record) != 0x06064b50)
		return bad(z, "wanted a 64-bit end record, got other bytes");
	*end = (struct end){
		.at = at, .n = ql_le64(record + 32), .size = ql_le64(record + 40), .offset = ql_le64(record + 48)};
	return ql_le64(record + 24) == end->n ? QL_OK : bad(z, "wanted an archive in one part, got one in several");
}

static enum ql_status check_end(struct ql_zip *z, const struct end *end)
{
	uint64_t directory_end;

	if (!ql_size_add(end->offset, end->size, &directory_end) || directory_end != end->at)
		return bad(z, "wanted the directory directly in front of its end record, got another place");
	if (end->n > end->size / ENTRY_SIZE)
		return ql_fail(z->r->ctx, QL_ERR_FORMAT,
			"zip: wanted at most %llu entries in a directory of %llu bytes, got %llu",
			(unsigned long long)(end->size / ENTRY_SIZE), (unsigned long long)end->size,
			(unsigned long long)end->n);
	return QL_OK;
}

/* Fields of all ones in the entry have their values in the extension with id 1, in this order. */
static bool read_extension(const char *p, size_t n, struct ql_zip_entry *e)
{
	uint64_t *wanted[3] = {&e->size, &e->packed, &e->offset};
	size_t length, at = 4;

	for (; n >= 4; p += 4 + length, n -= 4 + length) {
		length = ql_le16(p + 2);
		if (length > n - 4)
			return false;
		if (ql_le16(p) != 1)
			continue;
		for (int i = 0; i < 3; i++) {
			if (*wanted[i] != SMALL_MAX)
				continue;
			if (at + 8 > 4 + length)
				return false;
			*wanted[i] = ql_le64(p + at);
			at += 8;
		}
		return true;
	}
	return true;
}

/* One record of the directory at p, of which n bytes are left; *length is that of the record. */
static enum ql_status read_entry(struct ql_zip *z, char *p, uint64_t n, struct ql_zip_entry *e, uint64_t *length)
{
	size_t name, extra;
	uint16_t flags, method;

	if (n < ENTRY_SIZE || ql_le32(p) != 0x02014b50)
		return bad(z, "wanted a directory record, got other bytes");
	name = ql_le16(p + 28);
	extra = ql_le16(p + 30);
	*length = ENTRY_SIZE + name + extra + ql_le16(p + 32);
	if (*length > n)
		return bad(z, "wanted a directory record, got only a part of one");
	flags = ql_le16(p + 8);
	method = ql_le16(p + 10);
	*e = (struct ql_zip_entry){.name = p,
		.offset = ql_le32(p + 42),
		.packed = ql_le32(p + 20),
		.size = ql_le32(p + 24),
		.crc = ql_le32(p + 16),
		.deflated = method == 8};
	if (!read_extension(p + ENTRY_SIZE + name, extra, e))
		return bad(z, "wanted an extra field that fits its record, got a longer one");
	memmove(p, p + ENTRY_SIZE, name); /* over the record's head, to make room for a zero byte after it */
	p[name] = '\0';
	if (strlen(p) != name)
		return bad(z, "wanted names without zero bytes, got one");
	if (flags & 1)
		return bad_entry(z, e, "wanted plain data, got encrypted data");
	if (method != 0 && method != 8)
		return ql_fail(z->r->ctx, QL_ERR_UNSUPPORTED,
			"entry '%.80s': wanted stored or deflated data, got method %u", e->name, method);
	if (!e->deflated && e->packed != e->size)
		return bad_entry(z, e, "wanted stored data to have one size, got two");
	return QL_OK;
}

/* Finds the data after the local header, whose name must match the directory's. */
static enum ql_status locate(struct ql_zip *z, struct ql_zip_entry *e, uint64_t limit)
{
	uint8_t head[LOCAL_SIZE];
	size_t n = strlen(e->name);
	char *name;
	uint64_t end;
	enum ql_status status = ql_reader_at(z->r, e->offset, LOCAL_SIZE, head, "zip local header");

	if (status)
		return status;
	if (ql_le32(head) != 0x04034b50 || ql_le16(head + 26) != n)
		return bad_entry(z, e, "wanted a local header like the directory's record, got another");
	status = ql_reader_take(z->r, e->offset + LOCAL_SIZE, n, "zip local header", &name);
	if (status)
		return status;
	if (memcmp(name, e->name, n))
		status = bad_entry(z, e, "wanted the same name in front of the data, got another");
	ql_free(z->r->ctx, name);
	e->data = e->offset + LOCAL_SIZE + n + ql_le16(head + 28);
	if (!status && (!ql_size_add(e->data, e->packed, &end) || end > limit))
		status = bad_entry(z, e, "wanted data in front of the directory, got a place outside");
	return status;
}

static int compare_places(const void *a, const void *b)
{
	const struct ql_zip_entry *const *x = a, *const *y = b;

	return (*x)->offset < (*y)->offset ? -1 : (*x)->offset > (*y)->offset;
}

static int compare_names(const void *a, const void *b)
{
	const struct ql_zip_entry *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* Entries must not share bytes, by which a small file can declare large contents ("A better zip bomb", Fifield
 * 2019). */
static enum ql_status check_apart(struct ql_zip *z)
{
	struct ql_zip_entry **sorted = ql_alloc_array(z->r->ctx, (int64_t)z->n, sizeof(struct ql_zip_entry *));
	uint64_t total = 0;
	enum ql_status status = QL_OK;

	if (!sorted)
		return QL_ERR_MEMORY;
	for (uint64_t i = 0; i < z->n; i++)
		sorted[i] = &z->entry[i];
	qsort(sorted, (size_t)z->n, sizeof(struct ql_zip_entry *), compare_places);
	for (uint64_t i = 1; !status && i < z->n; i++)
		if (sorted[i - 1]->data + sorted[i - 1]->packed > sorted[i]->offset)
			status = bad_entry(z, sorted[i], "wanted data of its own, got some of another entry");
	qsort(sorted, (size_t)z->n, sizeof(struct ql_zip_entry *), compare_names);
	for (uint64_t i = 1; !status && i < z->n; i++)
		if (!strcmp(sorted[i - 1]->name, sorted[i]->name))
			status = bad_entry(z, sorted[i], "wanted every name once, got it twice");
	for (uint64_t i = 0; !status && i < z->n; i++)
		if (z->entry[i].deflated && (!ql_size_add(total, z->entry[i].size, &total) || total > QL_INFLATE_MAX))
			status = bad(z, "wanted at most 8 GiB of inflated data in all, got more declared");
	ql_free(z->r->ctx, sorted);
	return status;
}

static enum ql_status read_directory(struct ql_zip *z, const struct end *end)
{
	uint64_t at = 0, length = 0;
	enum ql_status status = ql_reader_take(z->r, end->offset, end->size, "zip directory", &z->directory);

	if (status)
		return status;
	z->entry = ql_alloc_array(z->r->ctx, (int64_t)end->n, sizeof(*z->entry));
	if (!z->entry)
		return QL_ERR_MEMORY;
	for (; !status && z->n < end->n; at += length) {
		status = read_entry(z, z->directory + at, end->size - at, &z->entry[z->n], &length);
		if (!status)
			status = locate(z, &z->entry[z->n++], end->offset);
	}
	if (!status && at != end->size)
		return bad(z, "wanted the directory to end with its last record, got more bytes");
	return status ? status : check_apart(z);
}

enum ql_status ql_zip_open(const struct ql_reader *r, struct ql_zip *z)
{
	struct end end = {0};
	enum ql_status status;

	*z = (struct ql_zip){.r = r};
	status = find_end(z, &end);
	if (!status)
		status = find_end64(z, &end);
	if (!status)
		status = check_end(z, &end);
	return status ? status : read_directory(z, &end);
}

void ql_zip_close(struct ql_zip *z)
{
	ql_free(z->r->ctx, z->directory);
	ql_free(z->r->ctx, z->entry);
}
