/* SPDX-License-Identifier: MIT
 * File formats: one descriptor each, in its own file, and one line in formats.def. The extension of a path selects
 * the format.
 */
#ifndef QUOLL_TENSOR_IO_FORMAT_H
#define QUOLL_TENSOR_IO_FORMAT_H

#include "tensor/attr.h"
#include "tensor/io/named.h"
#include "tensor/io/reader.h"
#include "tensor/io/writer.h"

/* flags of ql_file_save */
#define QL_SAVE_COMPRESS 1u /* .npz: deflate the entries */

/* Appends the tensors of the file. On failure the list may be incomplete; the caller clears it. Load and save
 * functions do not put the path into messages. */
typedef enum ql_status ql_load_fn(const struct ql_reader *r, struct ql_named_list *out);
typedef enum ql_status ql_save_fn(struct ql_writer *w, const struct ql_named_list *list, unsigned flags);

struct ql_format {
	struct ql_doc doc;
	const char *extensions; /* space-separated ends of file names, lower case: ".npy" */
	bool single;            /* the format has one unnamed tensor */
	bool metadata;          /* save accepts metadata */
	unsigned flags;         /* flags of ql_file_save that save accepts */
	ql_load_fn *load;
	ql_save_fn *save; /* NULL: read-only format */
	/* Recognizes a file with another extension by its first n bytes (up to QL_SNIFF); NULL: never. */
	bool (*sniff)(const uint8_t *head, size_t n);
};

#define QL_SNIFF 16

extern const struct ql_format *const ql_formats[]; /* NULL-terminated */
/* The format for the extension of the path; NULL if there is none. */
const struct ql_format *ql_format_of(const char *path);

/* Loads all tensors of a file into the empty list `out`, in the file's order; a format for one tensor gives one
 * entry with the name "". *format (may be NULL) receives the format. Errors leave the list empty and are one line
 * that names the file. */
enum ql_status ql_file_load(
	struct ql_ctx *ctx, const char *path, struct ql_named_list *out, const struct ql_format **format);
/* The same, with large plain tensors of formats that store them so (.safetensors, .gguf) in the mapped file (tensor/mapping.h). */
enum ql_status ql_file_load_mapped(
	struct ql_ctx *ctx, const char *path, struct ql_named_list *out, const struct ql_format **format);
/* Saves atomically. A single entry with the name "" is an unnamed tensor: formats for several tensors call it
 * "arr_0" (.npz, as NumPy does) or "tensor" (.safetensors). */
enum ql_status ql_file_save(struct ql_ctx *ctx, const char *path, const struct ql_named_list *list, unsigned flags);
/* Prefixes the message with "verb: 'path': " and replaces control characters; returns status. */
enum ql_status ql_file_fail(struct ql_ctx *ctx, enum ql_status status, const char *verb, const char *path);

#endif
