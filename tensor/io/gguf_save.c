/* SPDX-License-Identifier: MIT
 * Saving GGUF, version 3: blocks of quantized tensors are interleaved again, so that a file that was loaded keeps every bit.
 */
#include <string.h>

#include "tensor/closed.h"
#include "tensor/codes.h"
#include "tensor/io/elements.h"
#include "tensor/io/format.h"
#include "tensor/io/gguf.h"
#include "tensor/op.h"
#include "tensor/qparams.h"
#include "tensor/ragged.h"

#define MOST_NAME 63 /* bytes of a tensor's name: GGML_MAX_NAME less one */
#define GROUP 8      /* blocks packed at a time */

enum { UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, TEXT, ARRAY, UINT64, INT64, FLOAT64 };

static enum ql_status put(struct ql_writer *w, uint64_t value, unsigned bytes)
{
	uint8_t raw[8];

	for (unsigned i = 0; i < bytes; i++)
		raw[i] = (uint8_t)(value >> 8 * i);
	return ql_writer_put(w, raw, bytes);
}

static enum ql_status put_text(struct ql_writer *w, const char *text, size_t n)
{
	enum ql_status status = put(w, n, 8);

	return status ? status : ql_writer_put(w, text, n);
}

static enum ql_status pad(struct ql_writer *w, uint64_t alignment)
{
	enum ql_status status = QL_OK;

	while (!status && w->at % alignment)
		status = put(w, 0, 1);
	return status;
}

/* ---- metadata ---- */

/* The type of integers as narrow as 32 bits if all fit, unsigned first: what readers of GGUF expect of counts and sizes. */
static int integer_kind(const struct ql_tensor *t)
{
	const int64_t *value = t->storage->data;
	bool low = true, positive = true;

	for (int64_t i = 0; i < ql_tensor_nelem(t); i++) {
		positive = positive && value[i] >= 0 && value[i] <= UINT32_MAX;
		low = low && value[i] >= INT32_MIN && value[i] <= INT32_MAX;
	}
	return positive ? UINT32 : low ? INT32 : INT64;
}

/* The type of numbers; -1: GGUF has none. */
static int kind_of(const struct ql_tensor *t)
{
	if (!t->q && ql_dtype_is_bool(t->dtype))
		return BOOL;
	switch (t->q ? QL_binary : t->dtype) {
	case QL_uint8: return UINT8;
	case QL_int8: return INT8;
	case QL_uint16: return UINT16;
	case QL_int16: return INT16;
	case QL_int32: return INT32;
	case QL_int64: return integer_kind(t);
	case QL_float32: return FLOAT32;
	case QL_float64: return FLOAT64;
	default: return -1;
	}
}

static enum ql_status put_numbers(struct ql_writer *w, const struct ql_metadata_value *v, int kind)
{
	const struct ql_tensor *t = v->numbers;
	uint64_t n = (uint64_t)ql_tensor_nelem(t);
	const int64_t *wide = t->storage->data;
	enum ql_status status = v->list ? put(w, ARRAY, 4) : QL_OK;

	if (!status)
		status = put(w, (uint64_t)kind, 4);
	if (!status && v->list)
		status = put(w, n, 8);
	if (!status && (kind == UINT32 || (kind == INT32 && t->dtype == QL_int64))) {
		for (uint64_t i = 0; i < n && !status; i++)
			status = put(w, (uint64_t)wide[i], 4);
		return status;
	}
	return status ? status : ql_writer_put(w, t->storage->data, n * ql_dtypes[t->dtype].bits / 8);
}

static enum ql_status put_texts(struct ql_writer *w, const struct ql_metadata_value *v)
{
	enum ql_status status = v->list ? put(w, ARRAY, 4) : QL_OK;

	if (!status)
		status = put(w, TEXT, 4);
	if (!status && v->list)
		status = put(w, (uint64_t)v->n, 8);
	for (int64_t i = 0; i < v->n && !status; i++) {
		size_t n;
		const char *text = ql_metadata_text(v, i, &n);

		status = put_text(w, text, n);
	}
	return status;
}

static enum ql_status put_metadata(struct ql_writer *w, const struct ql_metadata *m)
{
	enum ql_status status = QL_OK;

	for (int64_t i = 0; i < m->n && !status; i++) {
		const struct ql_metadata_value *v = &m->at[i];
		int kind = v->numbers ? kind_of(v->numbers) : TEXT;

		if (kind < 0)
			return ql_fail(w->ctx, QL_ERR_UNSUPPORTED,
				"metadata: %.80s: wanted integers, float32, float64 or bool, got %s", v->key,
				ql_dtype_name(v->numbers->dtype));
		status = put_text(w, v->key, strlen(v->key));
		if (!status)
			status = v->numbers ? put_numbers(w, v, kind) : put_texts(w, v);
	}
	return status;
}

/* ---- tensors ---- */

static uint64_t bytes_of(const struct ql_gguf_type *type, const struct ql_tensor *t)
{
	/* size: a tensor has less than 2^63 elements, and the bytes of each in memory are no fewer */
	return (uint64_t)ql_tensor_nelem(t) / type->elements * type->bytes;
}

static enum ql_status check(struct ql_ctx *ctx, const struct ql_named_tensor *item)
{
	char text[QL_SHAPE_TEXT];

	if (!item->name[0] || strlen(item->name) > MOST_NAME)
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "wanted names of 1 to %d bytes, got '%.80s'", MOST_NAME, item->name);
	if (item->tensor->rank > QL_GGUF_RANK)
		return ql_fail(ctx, QL_ERR_UNSUPPORTED, "'%s': wanted at most %d axes, got %d", item->name,
			QL_GGUF_RANK, item->tensor->rank);
	if (!ql_gguf_type_of(ctx, item->tensor))
		return ql_fail(ctx, QL_ERR_UNSUPPORTED,
			"'%s': wanted floats, int8 to int64, or a format of GGUF with blocks along the last axis (q8_0, q4_0, q4_k …), "
			"got %s",
			item->name, ql_tensor_text(item->tensor, text));
	return QL_OK;
}

static enum ql_status put_entry(struct ql_writer *w, const struct ql_named_tensor *item, uint64_t offset)
{
	const struct ql_tensor *t = item->tensor;
	enum ql_status status = put_text(w, item->name, strlen(item->name));

	if (!status)
		status = put(w, t->rank, 4);
	for (int d = t->rank - 1; d >= 0 && !status; d--)
		status = put(w, (uint64_t)t->shape[d], 8);
	if (!status)
		status = put(w, ql_gguf_type_of(w->ctx, t)->id, 4);
	return status ? status : put(w, offset, 8);
}

/* Copies n numbers, a byte each, from element `at` on. */
static void get(const struct ql_tensor *t, int64_t at, int64_t n, uint8_t *code)
{
	if (ql_dtype_is_packed(t->dtype))
		ql_codes_get(t->dtype, t->storage->data, at + t->offset, n, (int8_t *)code);
	else
		memcpy(code, (const uint8_t *)t->storage->data + at + t->offset, (size_t)n);
}

/* Scales, or shifts, that lie in order: codes and outer scale, or scale alone. */
struct scales {
	struct ql_tensor *inner, *outer; /* inner: NULL without codes */
	int64_t block;
};

static enum ql_status open_scales(struct ql_ctx *ctx, struct ql_tensor *t, struct scales *s)
{
	enum ql_status status;

	if (!t)
		return QL_OK;
	if (!t->q)
		return ql_tensor_contiguous(ctx, t, &s->outer);
	s->block = t->q->block;
	status = ql_tensor_contiguous(ctx, t, &s->inner);
	return status ? status : ql_tensor_contiguous(ctx, t->q->scale, &s->outer);
}

static void close_scales(struct ql_ctx *ctx, struct scales *s)
{
	ql_tensor_release(ctx, s->inner);
	ql_tensor_release(ctx, s->outer);
}

/* The bits of scale i, with its codes. */
static uint16_t get_scale(const struct scales *s, int64_t i, uint8_t *code)
{
	const struct ql_tensor *t = s->outer;

	if (!t)
		return 0;
	if (s->inner)
		get(s->inner, i * s->block, s->block, code);
	if (ql_dtypes[t->dtype].bits == 8)
		return ((const uint8_t *)t->storage->data)[t->offset + i];
	return ((const uint16_t *)t->storage->data)[t->offset + i];
}

static enum ql_status put_blocks(
	struct ql_writer *w, const struct ql_gguf_type *type, const struct ql_tensor *t, const struct scales s[2])
{
	int64_t blocks = ql_tensor_nelem(t) / type->elements;
	uint8_t code[GROUP * QL_GGUF_ELEMENTS], block[QL_GGUF_ELEMENTS + 64];
	struct ql_gguf_scales of = {0};
	enum ql_status status = QL_OK;

	for (int64_t i = 0; i < blocks && !status; i++) {
		if (i % GROUP == 0)
			get(t, i * type->elements, ql_min64(GROUP, blocks - i) * type->elements, code);
		of.scale = get_scale(&s[0], i, of.scale_code);
		of.shift = get_scale(&s[1], i, of.shift_code);
		type->pack(code + i % GROUP * type->elements, &of, block);
		status = ql_writer_put(w, block, type->bytes);
	}
	return status;
}

static enum ql_status put_quantized(struct ql_writer *w, const struct ql_gguf_type *type, struct ql_tensor *t)
{
	struct scales s[2] = {{0}};
	struct ql_tensor *flat = NULL;
	enum ql_status status = ql_tensor_contiguous(w->ctx, t, &flat);

	if (!status)
		status = open_scales(w->ctx, t->q->scale, &s[0]);
	if (!status)
		status = open_scales(w->ctx, t->q->shift, &s[1]);
	if (!status)
		status = ql_closed_open(w->ctx, flat->storage);
	if (!status) {
		status = put_blocks(w, type, flat, s);
		ql_closed_close(w->ctx, flat->storage);
	}
	close_scales(w->ctx, &s[0]);
	close_scales(w->ctx, &s[1]);
	ql_tensor_release(w->ctx, flat);
	return status;
}

static enum ql_status put_head(struct ql_writer *w, const struct ql_named_list *list, uint64_t alignment)
{
	uint64_t offset = 0;
	enum ql_status status = ql_writer_put(w, "GGUF\3\0\0", 8);

	if (!status)
		status = put(w, (uint64_t)list->n, 8);
	if (!status)
		status = put(w, (uint64_t)list->metadata.n, 8);
	if (!status)
		status = put_metadata(w, &list->metadata);
	for (int64_t i = 0; i < list->n && !status; i++) {
		const struct ql_named_tensor *item = &list->at[i];

		status = put_entry(w, item, offset);
		offset += bytes_of(ql_gguf_type_of(w->ctx, item->tensor), item->tensor);
		offset = (offset + alignment - 1) & ~(alignment - 1);
	}
	return status ? status : pad(w, alignment);
}

enum ql_status ql_gguf_save(struct ql_writer *w, const struct ql_named_list *list, unsigned flags)
{
	uint64_t alignment;
	enum ql_status status = ql_gguf_alignment(w->ctx, &list->metadata, &alignment);

	(void)flags;
	for (int64_t i = 0; i < list->n && !status; i++)
		status = check(w->ctx, &list->at[i]);
	if (!status)
		status = ql_named_check(w->ctx, list);
	if (!status)
		status = put_head(w, list, alignment);
	for (int64_t i = 0; i < list->n && !status; i++) {
		struct ql_tensor *t = list->at[i].tensor;

		status = t->q ? put_quantized(w, ql_gguf_type_of(w->ctx, t), t) : ql_elements_write(w, t);
		if (!status)
			status = pad(w, alignment);
	}
	return status;
}
