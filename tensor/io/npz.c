/* SPDX-License-Identifier: MIT
 * NumPy's .npz: a zip archive with one .npy file per tensor. Written like np.savez (stored) or np.savez_compressed
 * (deflated), with a fixed date, so that the same tensors give the same bytes. Local headers always have 64-bit
 * sizes, which are known only after the data; the directory has them where needed.
 */
#include <string.h>

#include "tensor/io/format.h"
#include "tensor/io/json.h"
#include "tensor/io/npy.h"
#include "tensor/io/zip.h"
#include "tensor/utf8.h"

#define SMALL_MAX 0xffffffffu
#define LOCAL_SIZES 4 /* offset of the 64-bit sizes in the extra field */

static enum ql_status load_entry(const struct ql_zip *z, const struct ql_zip_entry *e, struct ql_named_list *out)
{
	struct ql_ctx *ctx = z->r->ctx;
	struct ql_stream s;
	struct ql_tensor *t = NULL;
	size_t n = strlen(e->name);
	char reason[sizeof(ctx->err)];
	enum ql_status status;

	if (n < 4 || strcmp(e->name + n - 4, ".npy") || !ql_utf8_valid(e->name, n))
		return ql_fail(ctx, QL_ERR_FORMAT, "entry '%.80s': wanted a name in UTF-8 that ends in .npy", e->name);
	status = ql_stream_open(&s, z->r, e->data, e->packed, e->deflated ? QL_DEFLATE : QL_STORED, e->size);
	s.summed = true;
	if (!status)
		status = ql_npy_read(&s, &t);
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	if (!status && s.crc != e->crc)
		status = ql_fail(ctx, QL_ERR_FORMAT, "data: wanted the checksum %08x, got %08x", e->crc, s.crc);
#endif
	ql_stream_close(&s);
	if (!status) {
		e->name[n - 4] = '\0';
		status = ql_named_add(ctx, out, e->name, t);
	} else {
		memcpy(reason, ctx->err, sizeof(reason));
		ql_fail(ctx, status, "entry '%.80s': %s", e->name, reason);
	}
	ql_tensor_release(ctx, t);
	return status;
}

static enum ql_status load(const struct ql_reader *r, struct ql_named_list *out)
{
	struct ql_zip z;
	enum ql_status status = ql_zip_open(r, &z);

	for (uint64_t i = 0; !status && i < z.n; i++)
		status = load_entry(&z, &z.entry[i], out);
	ql_zip_close(&z);
	return status;
}

/* The directory's data of a written entry. */
struct written {
	const char *name;
	uint64_t offset, packed, size;
	uint32_t crc;
};

/* A record of little-endian fields. */
struct record {
	uint8_t at[96];
	size_t n;
};

static void put(struct record *r, unsigned bytes, uint64_t value)
{
	for (unsigned i = 0; i < bytes; i++)
		r->at[r->n++] = (uint8_t)(value >> 8 * i);
}

static uint64_t small(uint64_t value)
{
	return value < SMALL_MAX ? value : SMALL_MAX;
}

static unsigned name_flags(const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name >= 0x80)
			return 1u << 11; /* the name is UTF-8 */
	return 0;
}

/* Version to read, flags, method, time, date: common to both headers. */
static void put_common(struct record *r, const char *name, bool deflated)
{
	put(r, 2, 45);
	put(r, 2, name_flags(name));
	put(r, 2, deflated ? 8 : 0);
	put(r, 2, 0);
	put(r, 2, 0x21); /* 1980-01-01 */
}

static enum ql_status put_name(struct ql_writer *w, const char *name)
{
	enum ql_status status = ql_writer_put(w, name, strlen(name));

	return status ? status : ql_writer_put(w, ".npy", 4);
}

/* Writes the local header with placeholders for sizes and checksum; *sizes and *crc receive their positions. */
static enum ql_status put_local(
	struct ql_writer *w, const struct written *e, bool deflated, uint64_t *crc, uint64_t *sizes)
{
	struct record head = {.n = 0}, extra = {.n = 0};
	enum ql_status status;

	put(&head, 4, 0x04034b50);
	put_common(&head, e->name, deflated);
	*crc = w->at + head.n;
	put(&head, 4, 0);
	put(&head, 4, SMALL_MAX);
	put(&head, 4, SMALL_MAX);
	put(&head, 2, strlen(e->name) + 4);
	put(&head, 2, 20);
	status = ql_writer_put(w, head.at, head.n);
	if (!status)
		status = put_name(w, e->name);
	*sizes = w->at + LOCAL_SIZES;
	put(&extra, 2, 1);
	put(&extra, 2, 16);
	put(&extra, 8, 0);
	put(&extra, 8, 0);
	return status ? status : ql_writer_put(w, extra.at, extra.n);
}

static enum ql_status put_entry(struct ql_writer *w, struct ql_tensor *t, bool deflated, struct written *e)
{
	struct record crc = {.n = 0}, sizes = {.n = 0};
	uint64_t crc_at, sizes_at, start;
	enum ql_status status;

	e->offset = w->at;
	status = put_local(w, e, deflated, &crc_at, &sizes_at);
	start = w->at;
	if (!status)
		status = ql_writer_section(w, deflated);
	if (!status)
		status = ql_npy_write(w, t);
	if (!status)
		status = ql_writer_section_end(w);
	if (status)
		return status;
	e->size = w->raw;
	e->packed = w->at - start;
	e->crc = w->crc;
	put(&crc, 4, e->crc);
	put(&sizes, 8, e->size);
	put(&sizes, 8, e->packed);
	status = ql_writer_patch(w, crc_at, crc.at, crc.n);
	return status ? status : ql_writer_patch(w, sizes_at, sizes.at, sizes.n);
}

static enum ql_status put_directory_record(struct ql_writer *w, const struct written *e, bool deflated)
{
	struct record head = {.n = 0}, extra = {.n = 0};
	const uint64_t values[3] = {e->size, e->packed, e->offset};
	enum ql_status status;

	for (int i = 0; i < 3; i++)
		if (values[i] >= SMALL_MAX)
			put(&extra, 8, values[i]);
	put(&head, 4, 0x02014b50);
	put(&head, 2, 3 << 8 | 45); /* made on Unix, so that the permissions below count */
	put_common(&head, e->name, deflated);
	put(&head, 4, e->crc);
	put(&head, 4, small(e->packed));
	put(&head, 4, small(e->size));
	put(&head, 2, strlen(e->name) + 4);
	put(&head, 2, extra.n ? extra.n + 4 : 0);
	put(&head, 2, 0);
	put(&head, 2, 0);
	put(&head, 2, 0);
	put(&head, 4, 0100644u << 16);
	put(&head, 4, small(e->offset));
	status = ql_writer_put(w, head.at, head.n);
	if (!status)
		status = put_name(w, e->name);
	if (!extra.n)
		return status;
	head.n = 0;
	put(&head, 2, 1);
	put(&head, 2, extra.n);
	if (!status)
		status = ql_writer_put(w, head.at, head.n);
	return status ? status : ql_writer_put(w, extra.at, extra.n);
}

static enum ql_status put_end(struct ql_writer *w, uint64_t n, uint64_t offset)
{
	struct record end = {.n = 0};
	uint64_t size = w->at - offset, here = w->at;
	enum ql_status status;

	if (n >= 0xffff || size >= SMALL_MAX || offset >= SMALL_MAX) {
		put(&end, 4, 0x06064b50);
		put(&end, 8, 44);
		put(&end, 2, 3 << 8 | 45);
		put(&end, 2, 45);
		put(&end, 8, 0);
		put(&end, 8, n);
		put(&end, 8, n);
		put(&end, 8, size);
		put(&end, 8, offset);
		put(&end, 4, 0x07064b50);
		put(&end, 4, 0);
		put(&end, 8, here);
		put(&end, 4, 1);
	}
	status = ql_writer_put(w, end.at, end.n);
	end.n = 0;
	put(&end, 4, 0x06054b50);
	put(&end, 4, 0);
	put(&end, 2, n < 0xffff ? n : 0xffff);
	put(&end, 2, n < 0xffff ? n : 0xffff);
	put(&end, 4, small(size));
	put(&end, 4, small(offset));
	put(&end, 2, 0);
	return status ? status : ql_writer_put(w, end.at, end.n);
}

static enum ql_status check_tensor(struct ql_ctx *ctx, const struct ql_named_list *list, int64_t i)
{
	const char *name = list->at[i].name;
	char reason[sizeof(ctx->err)];
	size_t n = strlen(name);
	enum ql_status status;

	if ((n == 0 && list->n > 1) || n > 65000 || !ql_utf8_valid(name, n))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "wanted names in UTF-8 of 1 to 65000 bytes, got '%.80s'", name);
	status = ql_npy_check(ctx, list->at[i].tensor);
	if (status) {
		memcpy(reason, ctx->err, sizeof(reason));
		ql_fail(ctx, status, "'%.80s': %s", name, reason);
	}
	return status;
}

static enum ql_status save_entries(
	struct ql_writer *w, const struct ql_named_list *list, bool deflated, struct written *entries)
{
	uint64_t directory;
	enum ql_status status = QL_OK;

	for (int64_t i = 0; !status && i < list->n; i++) {
		/* np.savez calls an array without a name arr_0 */
		entries[i].name = list->at[i].name[0] ? list->at[i].name : "arr_0";
		status = put_entry(w, list->at[i].tensor, deflated, &entries[i]);
	}
	directory = w->at;
	for (int64_t i = 0; !status && i < list->n; i++)
		status = put_directory_record(w, &entries[i], deflated);
	return status ? status : put_end(w, (uint64_t)list->n, directory);
}

static enum ql_status save(struct ql_writer *w, const struct ql_named_list *list, unsigned flags)
{
	struct written *entries;
	enum ql_status status = ql_named_check(w->ctx, list);

	for (int64_t i = 0; !status && i < list->n; i++)
		status = check_tensor(w->ctx, list, i);
	if (status)
		return status;
	entries = ql_alloc_array(w->ctx, list->n, sizeof(*entries));
	if (!entries)
		return QL_ERR_MEMORY;
	status = save_entries(w, list, flags & QL_SAVE_COMPRESS, entries);
	ql_free(w->ctx, entries);
	return status;
}

const struct ql_format ql_format_npz = {
	.doc = {.name = "npz",
		.usage = "tensor.save('x.npz', {a=x, b=y})",
		.text = "Named tensors as NumPy's np.savez writes them, and np.savez_compressed with "
			"{compress=true}. The same dtypes as .npy.",
		.example = "file = os.tmpname() .. '.npz'\n"
			   "tensor.save(file, {a=tensor.ones(2), b=tensor.zeros(3)}, {compress=true})\n"
			   "print(tensor.load(file).b:size(1))  --> 3"},
	.extensions = ".npz",
	.flags = QL_SAVE_COMPRESS,
	.load = load,
	.save = save,
};
