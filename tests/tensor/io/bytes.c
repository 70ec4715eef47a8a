/* SPDX-License-Identifier: MIT
 * The bytes of whole files, plain, gzip and xz, and what damaged ones and bombs do.
 */
#include <lzma.h>

#include "tensor/io/bytes.h"
#include "tests/tensor/io/deflate.h"

#define UNPACKING ((size_t)9 << 20) /* xz takes its dictionary at once, whatever the file holds */

static struct bytes xz(const struct bytes *from, bool delta)
{
	struct bytes b = {0};
	lzma_options_lzma options;
	lzma_options_delta by_one = {.type = LZMA_DELTA_TYPE_BYTE, .dist = 1};
	lzma_filter filters[3] = {
		{LZMA_FILTER_DELTA, &by_one}, {LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};

	lzma_lzma_preset(&options, 6);
	add_zeros(&b, lzma_stream_buffer_bound(from->n));
	options.dict_size = 1 << 20;
	{
		size_t n = 0;

		if (lzma_stream_buffer_encode(
			    filters + !delta, LZMA_CHECK_CRC64, NULL, from->at, from->n, b.at, &n, b.n) != LZMA_OK)
			exit(2);
		b.n = n;
	}
	return b;
}

/* Must give these bytes, both ways. */
static void good(const char *what, const struct bytes *file, const struct bytes *content)
{
	const char *path = write_file("x", file->at, file->n);

	CASE("%s, %zu bytes", what, content->n);
	for (int exact = 0; exact < 2; exact++) {
		struct ql_tensor *t = NULL;
		enum ql_status status = ql_bytes_load(ctx, path, content->n, exact, &t);

		if (CHECK(!status, "%s", ctx->err)) {
			CHECK(t->dtype == QL_uint8 && t->rank == 1 && t->shape[0] == (int64_t)content->n, "%d", exact);
			CHECK(!memcmp(ql_tensor_data(t), content->at, content->n), "%d", exact);
		}
		ql_tensor_release(ctx, t);
	}
}

/* Must fail with a message of one line that names the file and the reason, and keep nothing; `most` bytes of memory. */
static void bad(const struct bytes *file, uint64_t size, bool exact, size_t most, const char *reason)
{
	const char *path = write_file("x", file->at, file->n);
	struct ql_tensor *t = NULL;
	size_t before = ctx->memory.now;
	enum ql_status status;

	cases++;
	ctx->memory.limit = before + most;
	status = ql_bytes_load(ctx, path, size, exact, &t);
	ctx->memory.limit = 0;
	CHECK(status && status != QL_ERR_MEMORY && !t, "status %d: %s", status, ctx->err);
	CHECK(strstr(ctx->err, path) && strstr(ctx->err, reason), "wanted '%s' in: %s", reason, ctx->err);
	CHECK(!strpbrk(ctx->err, "\n\r\x1b"), "%s", ctx->err);
	CHECK(ctx->memory.now == before, "%zu bytes kept", ctx->memory.now - before);
}

static void every_damage(struct bytes file, const struct bytes *content)
{
	struct bytes b = copy_of(&file);

	CASE("every beginning of %zu bytes", file.n);
	for (size_t n = 6; n < file.n; n++) {
		bad(&(struct bytes){file.at, n}, content->n, true, UNPACKING, "");
		bad(&(struct bytes){file.at, n}, content->n, false, UNPACKING, "");
	}
	CASE("every byte of %zu changed", file.n);
	for (size_t i = 6; i < file.n; i++) {
		struct ql_tensor *t = NULL;

		b.at[i] ^= 0x21;
		if (!ql_bytes_load(ctx, write_file("x", b.at, b.n), content->n, true, &t))
			CHECK(!memcmp(ql_tensor_data(t), content->at, content->n), "byte %zu: other content", i);
		ql_tensor_release(ctx, t);
		b.at[i] ^= 0x21;
		cases++;
	}
	CASE("something behind the end of %zu bytes", file.n);
	add_text(&b, "more");
	bad(&b, content->n, true, UNPACKING, "compressed data");
	free(b.at);
}

static void bombs(void)
{
	struct bytes zeros = {0}, packed;

	add_zeros(&zeros, (size_t)50 << 20);
	for (int kind = 0; kind < 2; kind++) {
		packed = kind ? gzip(&zeros) : xz(&zeros, false);
		CASE("a bomb of zeros, %s: %zu bytes", kind ? "gzip" : "xz", packed.n);
		bad(&packed, 1000, true, UNPACKING, "got more");
		bad(&packed, 100000, false, UNPACKING, "wanted at most 100000 bytes");
		bad(&packed, (uint64_t)1 << 40, true, UNPACKING, "bytes of file hold at most");
		free(packed.at);
	}
	free(zeros.at);
}

int main(void)
{
	size_t before = start();
	struct bytes text = {0}, none = {0}, large = {0}, packed, two;

	add_zeros(&text, 300);
	for (int i = 0; i < 300; i++)
		text.at[i] = (uint8_t)(i * i % 251);
	add_zeros(&large, 1600000);
	for (unsigned i = 0; i < 400000; i++)
		set_le(&large, 4 * i, 4, i * 2654435761u >> 7);
	add(&none, "", 0);
	good("plain", &text, &text);
	good("plain", &none, &none);
	good("plain", &large, &large);
	for (int delta = 0; delta < 2; delta++) {
		packed = xz(&text, delta);
		good(delta ? "xz with delta" : "xz", &packed, &text);
		every_damage(packed, &text);
		bad(&packed, text.n - 1, true, UNPACKING, "got more");
		bad(&packed, text.n + 1, true, UNPACKING, "too early");
		free(packed.at);
		packed = xz(&large, delta);
		good(delta ? "xz with delta" : "xz", &packed, &large);
		free(packed.at);
	}
	packed = xz(&none, false);
	good("xz", &packed, &none);
	free(packed.at);
	two = xz(&text, false);
	packed = xz(&text, true);
	add(&two, packed.at, packed.n);
	free(packed.at);
	packed = copy_of(&text);
	add(&packed, text.at, text.n);
	good("two xz streams", &two, &packed);
	free(two.at);
	free(packed.at);
	packed = gzip(&text);
	good("gzip", &packed, &text);
	every_damage(packed, &text);
	free(packed.at);
	CASE("sizes of a plain file");
	bad(&text, text.n + 1, true, ROOM, "bytes of file hold at most");
	bad(&text, text.n - 1, true, ROOM, "1 bytes more");
	bad(&text, text.n - 1, false, (size_t)1 << 20, "wanted at most 299 bytes");
	bombs();
	free(text.at);
	free(none.at);
	free(large.at);
	printf("%d malformed files\n", cases);
	return finish(before);
}
