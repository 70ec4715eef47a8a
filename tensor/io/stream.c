/* SPDX-License-Identifier: MIT
 * Streams of stored, deflated and xz bytes.
 */
#include "tensor/io/stream.h"

#include <string.h>

#define CHUNK ((uint64_t)4 << 20) /* bytes between two polls of the interrupt flag */

void *ql_zlib_alloc(void *ctx, unsigned items, unsigned size)
{
	uint64_t bytes;

	return ql_size_mul(items, size, &bytes) ? ql_alloc(ctx, (size_t)bytes) : NULL;
}

void ql_zlib_free(void *ctx, void *block)
{
	ql_free(ctx, block);
}

static void *xz_alloc(void *ctx, size_t items, size_t size)
{
	uint64_t bytes;

	return ql_size_mul(items, size, &bytes) ? ql_alloc(ctx, (size_t)bytes) : NULL;
}

static void xz_free(void *ctx, void *block)
{
	ql_free(ctx, block);
}

static uint64_t most_unpacked(uint64_t bytes, uint64_t ratio)
{
	return bytes > QL_INFLATE_MAX / ratio ? QL_INFLATE_MAX : bytes * ratio;
}

static enum ql_status inflate_start(struct ql_stream *s, uint64_t bytes, uint64_t inflated)
{
	struct ql_ctx *ctx = s->reader->ctx;
	int bits = s->coding == QL_GZIP ? 15 + 16 : -15, code;

	s->left = most_unpacked(bytes, QL_INFLATE_RATIO);
	if (s->coding == QL_DEFLATE) {
		if (inflated > s->left)
			return ql_fail(ctx, QL_ERR_FORMAT,
				"compressed data: wanted at most %llu bytes out of %llu (limits: %d to 1 and "
				"%llu GiB), got %llu "
				"declared",
				(unsigned long long)s->left, (unsigned long long)bytes, QL_INFLATE_RATIO,
				(unsigned long long)(QL_INFLATE_MAX >> 30), (unsigned long long)inflated);
		s->left = inflated;
	}
	s->z = (z_stream){.zalloc = ql_zlib_alloc, .zfree = ql_zlib_free, .opaque = ctx};
	code = inflateInit2(&s->z, bits);
	if (code == Z_MEM_ERROR)
		return QL_ERR_MEMORY;
	if (code != Z_OK)
		return ql_fail(ctx, QL_ERR_UNSUPPORTED, "compressed data: zlib cannot start (%s)", zError(code));
	s->open = true;
	return QL_OK;
}

static enum ql_status xz_error(struct ql_stream *s, lzma_ret code)
{
	static const char *const texts[] = {[LZMA_MEMLIMIT_ERROR] = "unpacking needs too much memory (limit 80 MiB)",
		[LZMA_FORMAT_ERROR] = "not in the xz format",
		[LZMA_OPTIONS_ERROR] = "unknown options of the xz format",
		[LZMA_DATA_ERROR] = "damaged (a check of the xz format fails)"};
	const char *text = (size_t)code < sizeof(texts) / sizeof(texts[0]) ? texts[code] : NULL;

	if (code == LZMA_MEM_ERROR)
		return QL_ERR_MEMORY;
	return ql_fail(s->reader->ctx, code == LZMA_MEMLIMIT_ERROR ? QL_ERR_UNSUPPORTED : QL_ERR_FORMAT,
		"compressed data: %s", text ? text : "liblzma cannot unpack them");
}

static enum ql_status xz_start(struct ql_stream *s, uint64_t bytes)
{
	uint32_t flags = LZMA_CONCATENATED;
	lzma_ret code;

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	flags |= LZMA_IGNORE_CHECK;
#endif
	s->left = most_unpacked(bytes, QL_XZ_RATIO);
	s->x_memory = (lzma_allocator){.alloc = xz_alloc, .free = xz_free, .opaque = s->reader->ctx};
	s->x = (lzma_stream)LZMA_STREAM_INIT;
	s->x.allocator = &s->x_memory;
	code = lzma_stream_decoder(&s->x, QL_XZ_MEMORY, flags);
	if (code != LZMA_OK)
		return xz_error(s, code);
	s->open = true;
	return QL_OK;
}

enum ql_status ql_stream_coding(const struct ql_reader *r, enum ql_coding *coding)
{
	static const uint8_t xz[6] = {0xfd, '7', 'z', 'X', 'Z', 0};
	uint8_t head[6] = {0};
	size_t n = r->size < sizeof(head) ? (size_t)r->size : sizeof(head);
	enum ql_status status = ql_reader_at(r, 0, n, head, "start of the file");

	*coding = head[0] == 0x1f && head[1] == 0x8b ? QL_GZIP : !memcmp(head, xz, sizeof(xz)) ? QL_XZ : QL_STORED;
	return status;
}

enum ql_status ql_stream_open(struct ql_stream *s, const struct ql_reader *r, uint64_t offset, uint64_t bytes,
	enum ql_coding coding, uint64_t inflated)
{
	enum ql_status status = ql_reader_check(r, offset, bytes, "data");

	s->open = false;
	if (status)
		return status;
	s->reader = r;
	s->coding = coding;
	s->at = offset;
	s->end = offset + bytes;
	s->left = bytes;
	s->summed = false;
	s->crc = 0;
	s->ended = false;
	s->begin = s->filled = 0;
	if (coding == QL_STORED)
		return QL_OK;
	return coding == QL_XZ ? xz_start(s, bytes) : inflate_start(s, bytes, inflated);
}

void ql_stream_close(struct ql_stream *s)
{
	if (s->open && s->coding == QL_XZ)
		lzma_end(&s->x);
	else if (s->open)
		inflateEnd(&s->z);
	s->open = false;
}

/* Reads the next piece of the file; *n is 0 at its end. */
static enum ql_status fetch(struct ql_stream *s, size_t *n)
{
	uint64_t have = s->end - s->at;
	enum ql_status status;

	*n = have < QL_STREAM_BUFFER ? (size_t)have : QL_STREAM_BUFFER;
	if (*n == 0)
		return QL_OK;
	status = ql_reader_at(s->reader, s->at, *n, s->buffer, "data");
	s->at += *n;
	return status;
}

static enum ql_status data_error(struct ql_stream *s, int code)
{
	if (code == Z_MEM_ERROR)
		return QL_ERR_MEMORY;
	return ql_fail(s->reader->ctx, QL_ERR_FORMAT, "compressed data: %s", s->z.msg ? s->z.msg : zError(code));
}

/* Continues with the next member of a gzip file, or sets the end. */
static enum ql_status member_end(struct ql_stream *s)
{
	if (s->coding == QL_GZIP && (s->z.avail_in > 0 || s->at < s->end))
		return inflateReset(&s->z) == Z_OK ? QL_OK : data_error(s, Z_STREAM_ERROR);
	s->ended = true;
	return QL_OK;
}

/* Inflates up to n bytes; fewer only at the end of the data. */
static enum ql_status inflate_some(struct ql_stream *s, uint8_t *to, size_t n, size_t *got)
{
	enum ql_status status = QL_OK;
	size_t fetched;
	int code;

	s->z.next_out = to;
	s->z.avail_out = (uInt)n;
	while (!status && s->z.avail_out > 0 && !s->ended) {
		if (s->z.avail_in == 0) {
			status = fetch(s, &fetched);
			if (status)
				break;
			s->z.next_in = s->buffer;
			s->z.avail_in = (uInt)fetched;
		}
		code = inflate(&s->z, Z_NO_FLUSH);
		if (code == Z_STREAM_END)
			status = member_end(s);
		else if (code == Z_BUF_ERROR && s->z.avail_in == 0 && s->at == s->end)
			break;
		else if (code != Z_OK && code != Z_BUF_ERROR)
			status = data_error(s, code);
	}
	*got = n - s->z.avail_out;
	return status;
}

/* The same for xz. */
static enum ql_status xz_some(struct ql_stream *s, uint8_t *to, size_t n, size_t *got)
{
	enum ql_status status = QL_OK;
	size_t fetched;
	lzma_ret code;

	s->x.next_out = to;
	s->x.avail_out = n;
	while (!status && s->x.avail_out > 0 && !s->ended) {
		if (s->x.avail_in == 0) {
			status = fetch(s, &fetched);
			if (status)
				break;
			s->x.next_in = s->buffer;
			s->x.avail_in = fetched;
		}
		code = lzma_code(&s->x, s->at == s->end ? LZMA_FINISH : LZMA_RUN);
		if (code == LZMA_STREAM_END)
			s->ended = true;
		else if (code == LZMA_BUF_ERROR)
			break;
		else if (code != LZMA_OK)
			status = xz_error(s, code);
	}
	*got = n - s->x.avail_out;
	return status;
}

static enum ql_status unpack_some(struct ql_stream *s, uint8_t *to, size_t n, size_t *got)
{
	return s->coding == QL_XZ ? xz_some(s, to, n, got) : inflate_some(s, to, n, got);
}

static enum ql_status read_unpacked(struct ql_stream *s, uint8_t *to, size_t n, const char *what)
{
	size_t got;
	enum ql_status status = unpack_some(s, to, n, &got);

	if (!status && got < n)
		status = ql_fail(s->reader->ctx, QL_ERR_FORMAT, "%s: the compressed data end %zu bytes too early", what,
			n - got);
	return status;
}

/* Small reads through the buffer, large ones directly. */
static enum ql_status read_stored(struct ql_stream *s, uint8_t *to, size_t n, const char *what)
{
	enum ql_status status = QL_OK;
	size_t part;

	while (!status && n > 0) {
		if (s->begin == s->filled) {
			if (n >= QL_STREAM_BUFFER) {
				status = ql_reader_at(s->reader, s->at, n, to, what);
				s->at += n;
				return status;
			}
			s->begin = 0;
			status = fetch(s, &s->filled);
		}
		part = s->filled - s->begin < n ? s->filled - s->begin : n;
		if (status)
			break;
		memcpy(to, s->buffer + s->begin, part);
		s->begin += part;
		to += part;
		n -= part;
	}
	return status;
}

enum ql_status ql_stream_read(struct ql_stream *s, void *to, uint64_t n, const char *what)
{
	enum ql_status status = QL_OK;
	uint8_t *at = to;
	size_t part;

	if (n > s->left)
		return ql_fail(s->reader->ctx, QL_ERR_FORMAT, "%s: wanted %llu bytes, got only %llu", what,
			(unsigned long long)n, (unsigned long long)s->left);
	s->left -= n;
	for (; !status && n > 0; n -= part, at += part) {
		part = (size_t)(n < CHUNK ? n : CHUNK);
		if (s->reader->ctx->interrupted)
			return ql_fail(s->reader->ctx, QL_ERR_INTERRUPTED, "interrupted");
		status = s->coding == QL_STORED ? read_stored(s, at, part, what) : read_unpacked(s, at, part, what);
		if (!status && s->summed)
			s->crc = (uint32_t)crc32(s->crc, at, (uInt)part);
	}
	return status;
}

enum ql_status ql_stream_some(struct ql_stream *s, void *to, size_t n, size_t *got)
{
	enum ql_status status = QL_OK;
	uint8_t *at = to;
	size_t part = 0, wanted;

	*got = 0;
	for (n = n < s->left ? n : (size_t)s->left; !status && n > 0; n -= part) {
		wanted = part = n < CHUNK ? n : (size_t)CHUNK;
		if (s->reader->ctx->interrupted)
			return ql_fail(s->reader->ctx, QL_ERR_INTERRUPTED, "interrupted");
		status = s->coding == QL_STORED ? read_stored(s, at + *got, part, "data")
						: unpack_some(s, at + *got, part, &part);
		*got += part;
		s->left -= part;
		if (part < wanted)
			break;
	}
	return status;
}

enum ql_status ql_stream_finish(struct ql_stream *s)
{
	struct ql_ctx *ctx = s->reader->ctx;
	enum ql_status status = QL_OK;
	uint8_t more;
	size_t got = 0;

	if ((s->coding == QL_STORED || s->coding == QL_DEFLATE) && s->left > 0)
		return ql_fail(ctx, QL_ERR_FORMAT, "data: wanted none after the elements, got %llu bytes more",
			(unsigned long long)s->left);
	if (s->coding == QL_STORED)
		return QL_OK;
	status = unpack_some(s, &more, 1, &got);
	if (status)
		return status;
	if (got)
		return ql_fail(ctx, QL_ERR_FORMAT, "data: wanted none after the elements, got more");
	if (!s->ended)
		return ql_fail(ctx, QL_ERR_FORMAT, "compressed data: the end is missing");
	if (s->z.avail_in > 0 || s->at < s->end)
		return ql_fail(ctx, QL_ERR_FORMAT, "compressed data: wanted nothing after their end, got %llu bytes",
			(unsigned long long)(s->z.avail_in + (s->end - s->at)));
	return QL_OK;
}
