/* SPDX-License-Identifier: MIT
 * Helpers of the file tests: bytes to build files from, a folder of their own, and the checks that hold for
 * every malformed file: an error, in one line that names the file and the reason, soon, without memory that
 * the file's size does not justify, and nothing kept.
 */
#ifndef QUOLL_TESTS_TENSOR_IO_FILES_H
#define QUOLL_TESTS_TENSOR_IO_FILES_H

#include <errno.h>
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "quant/ranges/quantize.h"
#include "tensor/io/format.h"
#include "tests/check.h"

#define ROOM ((size_t)64 << 10) /* bytes allowed above the file's size */

static struct ql_ctx *ctx;
static char folder[64];
static int cases; /* malformed files tried */

struct bytes {
	uint8_t *at;
	size_t n;
};

static inline void add(struct bytes *b, const void *data, size_t n)
{
	b->at = realloc(b->at, b->n + n + 1);
	if (n)
		memcpy(b->at + b->n, data, n);
	b->n += n;
}

static inline void add_text(struct bytes *b, const char *text)
{
	add(b, text, strlen(text));
}

static inline void add_le(struct bytes *b, unsigned bytes, uint64_t value)
{
	for (unsigned i = 0; i < bytes; i++)
		add(b, &(uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}

static inline void add_be(struct bytes *b, unsigned bytes, uint64_t value)
{
	for (unsigned i = bytes; i-- > 0;)
		add(b, &(uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}

static inline void add_zeros(struct bytes *b, size_t n)
{
	b->at = realloc(b->at, b->n + n + 1);
	memset(b->at + b->n, 0, n);
	b->n += n;
}

static inline void set_le(struct bytes *b, size_t at, unsigned bytes, uint64_t value)
{
	for (unsigned i = 0; i < bytes && at + i < b->n; i++)
		b->at[at + i] = (uint8_t)(value >> 8 * i);
}

static inline struct bytes copy_of(const struct bytes *b)
{
	struct bytes copy = {0};

	add(&copy, b->at, b->n);
	return copy;
}

/* A folder in memory where the system has one: flushing to a disk takes milliseconds per file. Returns the
 * bytes in use, with the scratch memory of the first quantization, which the context keeps. */
static inline size_t start(void)
{
	struct ql_spec spec;
	struct ql_tensor *x, *q;

	strcpy(folder, "/dev/shm/quoll-test-XXXXXX");
	if (!mkdtemp(folder)) {
		strcpy(folder, "/tmp/quoll-test-XXXXXX");
		if (!mkdtemp(folder))
			exit(2);
	}
	ctx = ql_ctx_new(1);
	ctx->quant = &ql_quant_default;
	ql_tensor_of_f32(ctx, 1, &x);
	ql_spec_parse(ctx, "int8", &spec);
	ql_quantize(ctx, x, &spec, &q);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, q);
	return ctx->memory.now;
}

/* Removes the folder; the test fails when memory is still held. */
static inline int finish(size_t before)
{
	DIR *list = opendir(folder);
	struct dirent *entry;
	char path[400];

	CASE("nothing is kept");
	CHECK(ctx->memory.now == before, "%zu bytes, %zu at the start", ctx->memory.now, before);
	while (list && (entry = readdir(list))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		unlink(path);
	}
	closedir(list);
	rmdir(folder);
	ql_ctx_free(ctx);
	return check_end();
}

/* Path of a file in the folder; the next call but three overwrites it. */
static inline const char *path_of(const char *name)
{
	static char text[4][160];
	static int next;

	next = (next + 1) % 4;
	snprintf(text[next], sizeof(text[next]), "%s/%s", folder, name);
	return text[next];
}

static inline const char *write_file(const char *name, const void *data, size_t n)
{
	const char *path = path_of(name);
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(data, 1, n, f) != n || fclose(f))
		exit(2);
	return path;
}

static inline struct bytes read_file(const char *path)
{
	struct bytes b = {0};
	FILE *f = fopen(path, "rb");
	uint8_t part[4096];
	size_t n;

	while (f && (n = fread(part, 1, sizeof(part), f)) > 0)
		add(&b, part, n);
	if (f)
		fclose(f);
	return b;
}

static inline double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The file must be refused with a message that contains `reason`, using at most `memory` bytes. */
static inline void refuse_within(const char *name, const struct bytes *b, size_t memory, const char *reason)
{
	const char *path = write_file(name, b->at, b->n);
	struct ql_named_list list = {0};
	size_t before = ctx->memory.now;
	double began = seconds();
	enum ql_status status;

	cases++;
	ctx->memory.limit = before + memory;
	ctx->err[0] = '\0';
	status = ql_file_load(ctx, path, &list, NULL);
	ctx->memory.limit = 0;
	CHECK(status && status != QL_ERR_MEMORY, "status %d: %s", status, ctx->err);
	CHECK(strstr(ctx->err, path), "the file is not named: %s", ctx->err);
	CHECK(strstr(ctx->err, reason), "wanted '%s' in: %s", reason, ctx->err);
	CHECK(!strpbrk(ctx->err, "\n\r\x1b"), "more than plain text of one line: %s", ctx->err);
	CHECK(seconds() - began < 2, "%.1f s", seconds() - began);
	CHECK(ctx->memory.now == before && list.n == 0, "%zu bytes kept", ctx->memory.now - before);
	ql_named_clear(ctx, &list);
	unlink(path);
}

static inline void refuse(const char *name, const struct bytes *b, const char *reason)
{
	refuse_within(name, b, b->n + ROOM, reason);
}

/* Every proper beginning of the file must be refused. */
static inline void refuse_truncated(const char *name, const struct bytes *b)
{
	for (size_t n = 0; n < b->n; n++)
		refuse(name, &(struct bytes){b->at, n}, "");
}

/* Every byte changed in some ways: whatever the file then means, nothing may break or be kept. */
static inline void mutate(const char *name, const struct bytes *b)
{
	static const uint8_t flips[] = {0x01, 0x80, 0xff, 0x30};
	struct bytes copy = copy_of(b);
	size_t before = ctx->memory.now;

	for (size_t i = 0; i < b->n; i++)
		for (size_t k = 0; k < sizeof(flips); k++) {
			struct ql_named_list list = {0};
			enum ql_status status;

			copy.at[i] = b->at[i] ^ flips[k];
			status = ql_file_load(ctx, write_file(name, copy.at, copy.n), &list, NULL);
			CHECK(!status || list.n == 0, "byte %zu", i);
			CHECK(!status || !strpbrk(ctx->err, "\n\r\x1b"), "byte %zu: %s", i, ctx->err);
			ql_named_clear(ctx, &list);
			CHECK(ctx->memory.now == before, "byte %zu: %zu bytes kept", i, ctx->memory.now - before);
			copy.at[i] = b->at[i];
			cases++;
		}
	free(copy.at);
}

/* Loads what must be loadable; the caller clears the list. */
static inline struct ql_named_list load_path(const char *path)
{
	struct ql_named_list list = {0};

	errno = ENOTTY; /* what an earlier call left must not matter */
	CHECK(!ql_file_load(ctx, path, &list, NULL), "%s", ctx->err);
	return list;
}

static inline struct ql_named_list load_bytes(const char *name, const struct bytes *b)
{
	return load_path(write_file(name, b->at, b->n));
}

static inline bool save_list(const char *path, const struct ql_named_list *list, unsigned flags)
{
	return CHECK(!ql_file_save(ctx, path, list, flags), "%s", ctx->err);
}

static inline enum ql_status save_named(const char *path, const char *name, struct ql_tensor *t, unsigned flags)
{
	struct ql_named_list list = {0};
	enum ql_status status = ql_named_add(ctx, &list, name, t);

	if (!status)
		status = ql_file_save(ctx, path, &list, flags);
	ql_named_clear(ctx, &list);
	return status;
}

static inline bool save_one(const char *path, struct ql_tensor *t)
{
	return CHECK(!save_named(path, "", t, 0), "%s", ctx->err);
}

/* Every allocation of a load and of a save fails in turn: an error each time, and nothing kept. */
static inline void sweep_memory(const char *path, const char *copy)
{
	struct ql_named_list list = {0};
	size_t before = ctx->memory.now;
	enum ql_status status = QL_ERR_MEMORY;
	int n;

	for (n = 1; status && n < 10000; n++) {
		ctx->memory.fail_after = (uint64_t)n;
		status = ql_file_load(ctx, path, &list, NULL);
		CHECK(!status || (status == QL_ERR_MEMORY && ctx->memory.now == before && !list.n), "load %d: %s", n,
			ctx->err);
	}
	ctx->memory.fail_after = 0;
	CHECK(n > 2 && !status, "%d allocations", n - 1);
	before = ctx->memory.now;
	status = copy ? QL_ERR_MEMORY : QL_OK;
	for (n = 1; status && n < 10000; n++) {
		ctx->memory.fail_after = (uint64_t)n;
		status = ql_file_save(ctx, copy, &list, strstr(copy, ".npz") ? QL_SAVE_COMPRESS : 0);
		CHECK(ctx->memory.now == before && (!status || status == QL_ERR_MEMORY), "save %d: %s", n, ctx->err);
		CHECK(!status == !access(copy, F_OK), "save %d: half a file", n);
	}
	ctx->memory.fail_after = 0;
	ql_named_clear(ctx, &list);
}

/* gives a tensor with every byte different, so that a wrong order of elements shows */
static inline struct ql_tensor *counting(unsigned dtype, int rank, const int64_t *shape)
{
	struct ql_tensor *t, *numbers;
	int64_t n;

	ql_tensor_new(ctx, QL_int64, rank, shape, &numbers);
	n = ql_tensor_nelem(numbers);
	for (int64_t i = 0; i < n; i++)
		((int64_t *)numbers->storage->data)[i] = dtype == QL_bool     ? i % 3 == 0
							 : dtype == QL_binary ? (i * 7 % 5 < 2 ? -1 : 1)
							 : dtype == QL_int4   ? i * 5 % 15 - 7
							 : dtype == QL_uint4  ? i * 5 % 16
									      : i * 37 % 101;
	ql_tensor_cast(ctx, numbers, dtype, &t);
	ql_tensor_release(ctx, numbers);
	return t;
}

static inline bool same_elements(const struct ql_tensor *a, const struct ql_tensor *b)
{
	int64_t n = ql_tensor_nelem(a);

	if (a->dtype != b->dtype || !ql_tensor_same_shape(a, b))
		return false;
	for (int64_t i = 0; i < n; i++) {
		double x = ql_tensor_at_f64(a, i), y = ql_tensor_at_f64(b, i);

		if (x != y && !(isnan(x) && isnan(y)))
			return false;
	}
	return true;
}

/* Whether NumPy has a dtype for these elements. */
static inline bool numpy_has(unsigned dtype)
{
	bool small_float = ql_dtype_is_float(dtype) && ql_dtypes[dtype].bits < 32 && dtype != QL_float16;

	return !small_float && !ql_dtype_is_packed(dtype);
}

#endif
