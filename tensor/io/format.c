/* SPDX-License-Identifier: MIT
 * Chooses a format, loads and saves. Only this file opens files and adds their names to messages.
 */
#include "tensor/io/format.h"

#include "tensor/remote.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define X(name) extern const struct ql_format ql_format_##name;
#include "tensor/io/formats.def"
#undef X

const struct ql_format *const ql_formats[] = {
#define X(name) &ql_format_##name,
#include "tensor/io/formats.def"
#undef X
	NULL};

/* Does the path end in one of the space-separated words? */
static bool ends_in(const char *path, const char *words)
{
	size_t n = strlen(path), length;

	for (; *words; words += length + (words[length] == ' ')) {
		length = strcspn(words, " ");
		if (n > length && !strncasecmp(path + n - length, words, length))
			return true;
	}
	return false;
}

const struct ql_format *ql_format_of(const char *path)
{
	for (const struct ql_format *const *f = ql_formats; *f; f++)
		if (ends_in(path, (*f)->extensions))
			return *f;
	return NULL;
}

static const struct ql_format *sniffed(const struct ql_reader *r)
{
	uint8_t head[QL_SNIFF];
	size_t n = r->size < QL_SNIFF ? (size_t)r->size : QL_SNIFF;

	if (ql_reader_at(r, 0, n, head, "start of the file"))
		return NULL;
	for (const struct ql_format *const *f = ql_formats; *f; f++)
		if ((*f)->sniff && (*f)->sniff(head, n))
			return *f;
	return NULL;
}

/* A file can contain names and texts that appear in messages: control characters, which could move the cursor or
 * break the line, become '?'. (C2 80 to C2 9F are the control characters U+0080 to U+009F in UTF-8.)
 */
static void tame(char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p; p++)
		if (*p < ' ' || *p == 127 || (*p >= 0x80 && *p < 0xa0 && p > (unsigned char *)text && p[-1] == 0xc2))
			*p = '?';
}

enum ql_status ql_file_fail(struct ql_ctx *ctx, enum ql_status status, const char *verb, const char *path)
{
	char reason[sizeof(ctx->err)];
	size_t n = strlen(path);
	bool cut = n > 300;

	memcpy(reason, ctx->err, sizeof(reason));
	ql_fail(ctx, status, "%s: '%s%s': %s", verb, cut ? "…" : "", cut ? path + n - 300 : path, reason);
	tame(ctx->err);
	return status;
}

static enum ql_status unknown(struct ql_ctx *ctx, bool writing)
{
	char names[256] = "";
	size_t n = 0;

	for (const struct ql_format *const *f = ql_formats; *f; f++)
		if (!writing || (*f)->save)
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? " " : "", (*f)->extensions);
	return ql_fail(ctx, QL_ERR_UNSUPPORTED, "wanted a file name that ends in one of %s", names);
}

static enum ql_status load_file(
	struct ql_ctx *ctx, const char *path, bool map, struct ql_named_list *out, const struct ql_format **format)
{
	const struct ql_format *f = ql_format_of(path);
	struct ql_reader r;
	enum ql_status status = ql_reader_open(ctx, path, &r);

	if (!status && !f) {
		f = sniffed(&r);
		if (!f)
			status = unknown(ctx, false);
	}
	if (!status && map)
		ql_reader_map(&r);
	if (!status)
		status = f->load(&r, out);
	ql_reader_close(&r);
	if (format)
		*format = f;
	if (!status)
		return QL_OK;
	ql_named_clear(ctx, out);
	return ql_file_fail(ctx, status, "load", path);
}

enum ql_status ql_file_load(
	struct ql_ctx *ctx, const char *path, struct ql_named_list *out, const struct ql_format **format)
{
	return load_file(ctx, path, false, out, format);
}

enum ql_status ql_file_load_mapped(
	struct ql_ctx *ctx, const char *path, struct ql_named_list *out, const struct ql_format **format)
{
	return load_file(ctx, path, true, out, format);
}

/* Checks before the file is written. */
static enum ql_status check_save(
	struct ql_ctx *ctx, const struct ql_format *f, const struct ql_named_list *list, unsigned flags)
{
	if (!f || !f->save)
		return unknown(ctx, true);
	if (flags & ~f->flags)
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "compress: wanted a name that ends in .npz, got %s", f->extensions);
	if (list->metadata.n && !f->metadata)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"metadata: wanted a name that ends in .gguf or .safetensors, got %s", f->extensions);
	if (f->single && (list->n != 1 || list->at[0].name[0]))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"wanted one tensor without a name, got %lld named ones; use .npz or .safetensors",
			(long long)list->n);
	return QL_OK;
}

/* The list with copies in the host's memory of tensors that are on a device; names and metadata are borrowed. */
static enum ql_status host_list(struct ql_ctx *ctx, const struct ql_named_list *list, struct ql_named_list *host)
{
	enum ql_status status;

	host->n = 0;
	host->metadata = list->metadata;
	host->at = ql_alloc_array(ctx, list->n, sizeof(*host->at));
	if (!host->at)
		return QL_ERR_MEMORY;
	for (; host->n < list->n; host->n++) {
		host->at[host->n].name = list->at[host->n].name;
		status = ql_tensor_host(ctx, list->at[host->n].tensor, &host->at[host->n].tensor);
		if (status)
			return status;
	}
	return QL_OK;
}

static void drop_list(struct ql_ctx *ctx, struct ql_named_list *host)
{
	for (int64_t i = 0; i < host->n; i++)
		ql_tensor_release(ctx, host->at[i].tensor);
	ql_free(ctx, host->at);
}

enum ql_status ql_file_save(struct ql_ctx *ctx, const char *path, const struct ql_named_list *given, unsigned flags)
{
	const struct ql_format *f = ql_format_of(path);
	enum ql_status status = check_save(ctx, f, given, flags);
	struct ql_named_list list = {.n = 0};
	struct ql_writer w;

	if (status)
		return ql_file_fail(ctx, status, "save", path);
	status = host_list(ctx, given, &list);
	if (!status) {
		status = ql_writer_open(ctx, path, &w);
		if (!status)
			status = f->save(&w, &list, flags);
		if (!status)
			status = ql_writer_commit(&w);
		ql_writer_close(&w);
	}
	drop_list(ctx, &list);
	return status ? ql_file_fail(ctx, status, "save", path) : QL_OK;
}
