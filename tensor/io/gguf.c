/* SPDX-License-Identifier: MIT
 * GGUF: models of ggml and llama.cpp (the layout is in gguf.h).
 */
#include "tensor/io/gguf.h"

#include <stdio.h>
#include <string.h>

#include "tensor/io/format.h"
#include "tensor/io/json.h"

#define SHOWN 600 /* bytes of a message that name tensors */
#define TYPES 64  /* types that a message names */

static const char *type_name(uint32_t id, char text[16])
{
	const struct ql_gguf_type *type = ql_gguf_type_by_id(id);

	if (type)
		return type->name;
	snprintf(text, 16, "type %u", id);
	return text;
}

/* "IQ2_XXS: 'a', 'b'" for the tensors of one type, as far as there is room; `hidden` counts the others. */
static void name_tensors(const struct ql_gguf_file *f, uint32_t id, struct ql_text *text, int64_t *hidden)
{
	const char *before = "";
	char number[16];

	ql_text_add(text, "%s%s: ", text->n ? "; " : "", type_name(id, number));
	for (int64_t i = 0; i < f->n; i++) {
		if (f->at[i].id != id)
			continue;
		if (text->n < SHOWN)
			ql_text_add(text, "%s'%.60s'", before, f->at[i].name);
		else
			++*hidden;
		before = ", ";
	}
}

/* Appends the id unless it is in the list. */
static bool is_new(uint32_t ids[TYPES], int *n, uint32_t id)
{
	for (int i = 0; i < *n; i++)
		if (ids[i] == id)
			return false;
	if (*n == TYPES)
		return false;
	ids[(*n)++] = id;
	return true;
}

/* One error for all tensors whose types have no format here. */
static enum ql_status check_types(struct ql_ctx *ctx, const struct ql_gguf_file *f)
{
	struct ql_text text = {.ctx = ctx};
	enum ql_status status = QL_OK;
	int64_t hidden = 0;
	uint32_t ids[TYPES];
	int n = 0;

	for (int64_t i = 0; i < f->n && text.n < SHOWN; i++)
		if (!ql_gguf_type_known(ql_gguf_type_by_id(f->at[i].id)) && is_new(ids, &n, f->at[i].id))
			name_tensors(f, f->at[i].id, &text, &hidden);
	if (text.failed)
		status = QL_ERR_MEMORY;
	else if (text.n && hidden)
		status = ql_fail(ctx, QL_ERR_UNSUPPORTED, "wanted types that have a format here, got %s and %lld more",
			text.at, (long long)hidden);
	else if (text.n)
		status = ql_fail(ctx, QL_ERR_UNSUPPORTED, "wanted types that have a format here, got %s", text.at);
	ql_free(ctx, text.at);
	return status;
}

static enum ql_status load(const struct ql_reader *r, struct ql_named_list *out)
{
	struct ql_gguf_file f = {.n = 0};
	enum ql_status status = ql_gguf_header(r, &out->metadata, &f);
	struct ql_tensor *t;

	if (!status)
		status = check_types(r->ctx, &f);
	for (int64_t i = 0; i < f.n && !status; i++) {
		status = ql_gguf_read(r, &f.at[i], &t);
		if (!status)
			status = ql_named_add(r->ctx, out, f.at[i].name, t);
		ql_tensor_release(r->ctx, t);
	}
	ql_gguf_clear(r->ctx, &f);
	return status;
}

static bool sniff(const uint8_t *head, size_t n)
{
	return n >= 4 && !memcmp(head, "GGUF", 4);
}

const struct ql_format ql_format_gguf = {
	.doc = {.name = "gguf",
		.usage = "tensors, metadata = tensor.load('m.gguf', {metadata=true})",
		.text = "Models of llama.cpp (versions 2 and 3). Tensors keep their types bit for bit: floats, integers, and quantized "
			"ones as 'q4_0', 'q4_1', 'q5_0', 'q5_1', 'q8_0', 'q2_k' to 'q6_k', 'iq4_nl', 'tq1_0', 'tq2_0' and 'gguf.mxfp4'; "
			"a file with other types is an error that names them. The second result is a table of the keys: numbers, "
			"texts, lists of texts, and tensors for lists of numbers. tensor.save('m.gguf', t, {metadata=}) writes integers as "
			"uint32, int32 or int64, the first that fits, and other numbers as float32; tensors keep their dtype.",
		.example =
			"file = data.find 'models/stories260K/stories260K-Q4_0.gguf'\n"
			"if file then\n  t, metadata = tensor.load(file, {metadata=true})\n  assert(metadata['general.architecture'] == 'llama')\nend"},
	.extensions = ".gguf",
	.metadata = true,
	.load = load,
	.save = ql_gguf_save,
	.sniff = sniff,
};
