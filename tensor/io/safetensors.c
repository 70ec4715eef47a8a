/* SPDX-License-Identifier: MIT
 * Saving safetensors (the header is described in safetensors_header.c).
 *
 * Extensions for what the format lacks:
 *  - packed dtypes (int4, uint3, binary with a set bit for +1) are stored as U8, a stream of fields with the low bits
 *    first, every row of the last axis padded with zero bits to whole groups (ql_dtype_group), so the last size of the
 *    U8 shape is that of a row in memory; the real dtype and shape are in the metadata under "name::quoll" (note.h);
 *  - a quantized tensor is its codes under the name, the tensors "name::scale", "name::zero_point" and
 *    "name::minimum", and the rest of its parameters in that same note. A scale that is quantized itself has a
 *    note and a "name::scale::scale" of its own. Loading joins the parts;
 *  - where channels differ in bits, the codes are U8 of one axis, the rows of tensor/ragged.h, and "name::bits" has
 *    the bits of each channel.
 *
 * The header lists the tensors in the caller's order. Their data are ordered by descending element size, so that
 * each is aligned to its own size without gaps, which the format forbids.
 */
#include "tensor/io/safetensors.h"

#include <string.h>

#include "tensor/io/format.h"
#include "tensor/io/note.h"
#include "tensor/ragged.h"
#include "tensor/utf8.h"

/* The tensors of the file: those of the caller's list, their parts, and the data offset of each. */
struct plan {
	struct ql_named_list list;
	uint64_t *begin;
};

static enum ql_status check_name(struct ql_ctx *ctx, const char *name)
{
	if (!*name)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "wanted a name for every tensor, got an empty one");
	if (!strcmp(name, "__metadata__"))
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "wanted another name than '__metadata__', which the format reserves");
	if (!ql_utf8_valid(name, strlen(name)))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "wanted names in UTF-8, got other bytes in '%.80s'", name);
	return QL_OK;
}

static enum ql_status plan_tensor(struct ql_ctx *ctx, struct plan *p, const char *name, struct ql_tensor *t);

static enum ql_status plan_part(
	struct ql_ctx *ctx, struct plan *p, const char *name, const char *tail, struct ql_tensor *t)
{
	struct ql_text joined = {.ctx = ctx};
	enum ql_status status = QL_ERR_MEMORY;

	if (!t)
		return QL_OK;
	ql_text_add(&joined, "%s%s", name, tail);
	if (!joined.failed)
		status = plan_tensor(ctx, p, joined.at, t);
	ql_free(ctx, joined.at);
	return status;
}

/* NOLINTNEXTLINE(misc-no-recursion): scales that are quantized themselves have plain scales */
static enum ql_status plan_tensor(struct ql_ctx *ctx, struct plan *p, const char *name, struct ql_tensor *t)
{
	enum ql_status status = check_name(ctx, name);

	if (!status)
		status = ql_named_add(ctx, &p->list, name, t);
	if (!status && t->q)
		status = plan_part(ctx, p, name, QL_SCALE_TAIL, t->q->scale);
	if (!status && t->q)
		status = plan_part(ctx, p, name, QL_ZERO_TAIL, t->q->zero_point);
	if (!status && t->q)
		status = plan_part(ctx, p, name, QL_SHIFT_TAIL, t->q->shift);
	if (!status && t->q)
		status = plan_part(ctx, p, name, QL_BITS_TAIL, t->q->bits);
	if (!status && t->q)
		status = plan_part(ctx, p, name, QL_VALUES_TAIL, t->q->values);
	return status;
}

static enum ql_status check_metadata(struct ql_ctx *ctx, const struct ql_metadata *m)
{
	size_t tail = strlen(QL_NOTE_TAIL);

	for (int64_t i = 0; i < m->n; i++) {
		const struct ql_metadata_value *v = &m->at[i];
		size_t n = strlen(v->key);

		if (v->list || v->numbers || !ql_utf8_valid(v->text, strlen(v->text)) || strlen(v->text) != v->end[0])
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"metadata: %.80s: wanted a text in UTF-8, got another value", v->key);
		if (!ql_utf8_valid(v->key, n) || (n >= tail && !strcmp(v->key + n - tail, QL_NOTE_TAIL)))
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"metadata: wanted a key in UTF-8 that does not end in " QL_NOTE_TAIL ", got '%.80s'",
				v->key);
	}
	return ql_metadata_check(ctx, m);
}

static enum ql_status make_plan(struct ql_ctx *ctx, struct plan *p, const struct ql_named_list *list)
{
	bool lone = list->n == 1 && !list->at[0].name[0];
	enum ql_status status = check_metadata(ctx, &list->metadata);

	p->list.metadata = list->metadata;
	for (int64_t i = 0; !status && i < list->n; i++)
		if (!ql_safetensors_type(list->at[i].tensor->dtype))
			status =
				ql_fail(ctx, QL_ERR_UNSUPPORTED, "'%.80s': wanted a dtype that safetensors has, got %s",
					list->at[i].name, ql_dtype_name(list->at[i].tensor->dtype));
	for (int64_t i = 0; !status && i < list->n; i++)
		status = plan_tensor(ctx, p, lone ? "tensor" : list->at[i].name, list->at[i].tensor);
	if (!status)
		status = ql_named_check(ctx, &p->list);
	if (status)
		return status;
	p->begin = ql_alloc_array(ctx, p->list.n, sizeof(*p->begin));
	return p->begin ? QL_OK : QL_ERR_MEMORY;
}

static unsigned element_bytes(const struct ql_tensor *t)
{
	return ql_dtype_is_packed(t->dtype) || ql_ragged_wanted(t) ? 1 : ql_dtypes[t->dtype].bits / 8u;
}

static void place_data(struct plan *p)
{
	uint64_t at = 0;

	for (unsigned bytes = 8; bytes > 0; bytes /= 2)
		for (int64_t i = 0; i < p->list.n; i++)
			if (element_bytes(p->list.at[i].tensor) == bytes) {
				p->begin[i] = at;
				at += ql_elements_bytes(p->list.at[i].tensor);
			}
}

static enum ql_status put_data(struct ql_writer *w, const struct plan *p)
{
	enum ql_status status = QL_OK;

	for (unsigned bytes = 8; bytes > 0; bytes /= 2)
		for (int64_t i = 0; !status && i < p->list.n; i++)
			if (element_bytes(p->list.at[i].tensor) == bytes)
				status = ql_elements_write(w, p->list.at[i].tensor);
	return status;
}

/* The caller's metadata, which must be texts, and the notes. */
static void add_metadata(struct ql_ctx *ctx, const struct ql_named_list *list, struct ql_text *text)
{
	bool any = false;

	for (int64_t i = 0; i < list->metadata.n; i++) {
		ql_text_add(text, any ? ",\"" : "\"__metadata__\":{\"");
		ql_text_add_escaped(text, list->metadata.at[i].key);
		ql_text_add(text, "\":\"");
		ql_text_add_escaped(text, list->metadata.at[i].text);
		ql_text_add(text, "\"");
		any = true;
	}

	for (int64_t i = 0; i < list->n; i++) {
		if (!ql_note_needed(list->at[i].tensor))
			continue;
		ql_text_add(text, any ? ",\"" : "\"__metadata__\":{\"");
		ql_text_add_escaped(text, list->at[i].name);
		ql_text_add(text, QL_NOTE_TAIL "\":\"");
		ql_note_write(ctx, list->at[i].tensor, text);
		ql_text_add(text, "\"");
		any = true;
	}
	if (any)
		ql_text_add(text, "},");
}

static void add_entry(const struct ql_named_tensor *item, uint64_t begin, struct ql_text *text)
{
	const struct ql_tensor *t = item->tensor;
	bool packed = ql_dtype_is_packed(t->dtype);

	ql_text_add(text, "\"");
	ql_text_add_escaped(text, item->name);
	ql_text_add(text, "\":{\"dtype\":\"%s\",\"shape\":[",
		ql_safetensors_type(ql_ragged_wanted(t) ? QL_uint8 : t->dtype));
	if (ql_ragged_wanted(t))
		ql_text_add(text, "%llu", (unsigned long long)ql_elements_bytes(t));
	for (int d = 0; d < t->rank && !ql_ragged_wanted(t); d++) {
		int64_t size = packed && d == t->rank - 1 ? ql_packed_size(t->shape[d], t->dtype) : t->shape[d];

		ql_text_add(text, d ? ",%lld" : "%lld", (long long)size);
	}
	ql_text_add(text, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin,
		(unsigned long long)(begin + ql_elements_bytes(t)));
}

/* Length and JSON, padded with spaces to a multiple of 8. */
static enum ql_status put_header(struct ql_writer *w, const struct plan *p, struct ql_text *text)
{
	uint8_t length[8];
	enum ql_status status;

	ql_text_add(text, "{");
	add_metadata(w->ctx, &p->list, text);
	for (int64_t i = 0; i < p->list.n; i++) {
		if (i)
			ql_text_add(text, ",");
		add_entry(&p->list.at[i], p->begin[i], text);
	}
	ql_text_add(text, "}");
	ql_text_add(text, "%*s", (int)((8 - text->n % 8) % 8), "");
	if (text->failed)
		return QL_ERR_MEMORY;
	if (text->n > QL_SAFETENSORS_HEADER_MAX)
		return ql_fail(w->ctx, QL_ERR_UNSUPPORTED,
			"header: wanted at most 100 MB of names and shapes, got %zu bytes", text->n);
	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)((uint64_t)text->n >> 8 * i);
	status = ql_writer_put(w, length, 8);
	return status ? status : ql_writer_put(w, text->at, text->n);
}

static enum ql_status save(struct ql_writer *w, const struct ql_named_list *list, unsigned flags)
{
	struct plan p = {.begin = NULL};
	struct ql_text text = {.ctx = w->ctx};
	enum ql_status status = make_plan(w->ctx, &p, list);

	(void)flags;
	if (!status) {
		place_data(&p);
		status = put_header(w, &p, &text);
	}
	if (!status)
		status = put_data(w, &p);
	ql_free(w->ctx, text.at);
	ql_free(w->ctx, p.begin);
	p.list.metadata = (struct ql_metadata){0}; /* the caller's */
	ql_named_clear(w->ctx, &p.list);
	return status;
}

const struct ql_format ql_format_safetensors = {
	.doc = {.name = "safetensors",
		.usage = "tensor.save('w.safetensors', {w=t, b=u})",
		.text = "Named tensors of every dtype. Quantized tensors keep scale, zero_point, minimum, scheme and "
			"format; other programs see their codes under the name and the rest as name::scale, "
			"name::zero_point, name::minimum and metadata. Packed dtypes are U8 for others. uint32 and uint64 "
			"are read as int64.",
		.example = "file = os.tmpname() .. '.safetensors'\n"
			   "tensor.save(file, {w=tensor.ones(2, 3):quantize 'int4:2'})\n"
			   "print(tensor.load(file).w:dtype())  --> int4"},
	.extensions = ".safetensors",
	.metadata = true,
	.load = ql_safetensors_load,
	.save = save,
};
