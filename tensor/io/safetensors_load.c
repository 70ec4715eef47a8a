/* SPDX-License-Identifier: MIT
 * Loading safetensors: elements by the checked header, then packed dtypes and quantization parameters by the notes
 * in the metadata. safetensors.c describes how those are stored.
 */
#include "tensor/io/safetensors.h"

#include <string.h>

#include "tensor/io/note.h"

#define LEVELS 1 /* scales of quantized tensors may be quantized, the scales of those not */

/* Every row of a packed tensor must be padded with zero bits: bit counting relies on it. */
static bool padding_is_zero(const struct ql_tensor *t)
{
	unsigned bits = ql_dtypes[t->dtype].bits;
	int64_t row = t->rank ? t->shape[t->rank - 1] : 1;
	uint64_t used = (uint64_t)row * bits,
		 pitch = t->rank ? ql_rows_bytes(1, row, t->dtype) : 1; /* size: in memory */
	const uint8_t *data = t->storage->data;

	for (uint64_t at = 0; used % 8 && at < t->storage->bytes; at += pitch)
		if (data[at + used / 8] >> used % 8)
			return false;
	for (uint64_t at = 0; at < t->storage->bytes; at += pitch)
		for (uint64_t i = (used + 7) / 8; i < pitch; i++)
			if (data[at + i])
				return false;
	return true;
}

/* The bytes of a packed tensor, stored as U8 with a shape that must match. */
static enum ql_status read_packed(struct ql_safetensors *f, struct ql_stream *s,
	const struct ql_safetensor_fields *fields, const struct ql_note *note, struct ql_tensor **out)
{
	int last = note->rank - 1;
	bool fits = fields->wire->dtype == QL_uint8 && fields->rank == note->rank;
	enum ql_status status;

	for (int d = 0; fits && d < note->rank; d++)
		fits = fields->shape[d] == (d < last ? note->shape[d] : ql_packed_size(note->shape[d], note->dtype));
	if (!fits)
		return ql_fail(f->ctx, QL_ERR_FORMAT,
			"packed %s: wanted U8 with a shape that the note explains, got another",
			ql_dtype_name(note->dtype));
	status = ql_tensor_new(f->ctx, note->dtype, note->rank, note->shape, out);
	if (status)
		return status;
	if ((*out)->storage->bytes != s->left)
		return ql_fail(f->ctx, QL_ERR_FORMAT, "packed %s: wanted %zu bytes, got %llu",
			ql_dtype_name(note->dtype), (*out)->storage->bytes, (unsigned long long)s->left);
	status = ql_stream_read(s, (*out)->storage->data, s->left, "data");
	if (!status && !padding_is_zero(*out))
		return ql_fail(f->ctx, QL_ERR_FORMAT,
			"packed %s: wanted zero bits after the end of every row, got others",
			ql_dtype_name(note->dtype));
	return status;
}

/* The bytes of channels that differ in bits. */
static enum ql_status read_rows(struct ql_safetensors *f, struct ql_stream *s,
	const struct ql_safetensor_fields *fields, struct ql_tensor **out)
{
	if (fields->wire->dtype != QL_uint8 || fields->rank != 1)
		return ql_fail(f->ctx, QL_ERR_FORMAT, "rows of channels: wanted U8 of one axis, got others");
	return ql_elements_read(s, fields->wire, fields->rank, fields->shape, out);
}

static bool same_shape(const struct ql_safetensor_fields *fields, const struct ql_note *note)
{
	return fields->rank == note->rank &&
	       !memcmp(fields->shape, note->shape, (size_t)note->rank * sizeof(note->shape[0]));
}

/* Gives the elements of one entry; *note describes them (dtype and shape are set even without a note).
 */
static enum ql_status read_elements(
	struct ql_safetensors *f, const struct ql_safetensor *e, struct ql_note *note, struct ql_tensor **out)
{
	struct ql_safetensor_fields fields;
	struct ql_stream s;
	enum ql_status status = ql_safetensors_fields(f, e, &fields);

	*note = (struct ql_note){0};
	*out = NULL;
	if (!status && e->note)
		status = ql_note_read(f->ctx, f->text + e->note, note);
	if (!status && !e->note && !fields.wire->is_unsigned)
		status = ql_elements_map(f->r, fields.wire->dtype, fields.rank, fields.shape, f->data + e->begin,
			e->end - e->begin, out);
	if (!status && !*out)
		status = ql_stream_open(&s, f->r, f->data + e->begin, e->end - e->begin, QL_STORED, 0);
	if (status || *out)
		return status;
	if (e->note && note->ragged)
		status = read_rows(f, &s, &fields, out);
	else if (e->note && ql_dtype_is_packed(note->dtype))
		status = read_packed(f, &s, &fields, note, out);
	else if (e->note &&
		 (fields.wire->is_unsigned || note->dtype != fields.wire->dtype || !same_shape(&fields, note)))
		status = ql_fail(f->ctx, QL_ERR_FORMAT,
			"quantization note: wanted the dtype and shape of the tensor, got others");
	else
		status = ql_elements_read(&s, fields.wire, fields.rank, fields.shape, out);
	ql_stream_close(&s);
	return status;
}

static enum ql_status read_quantized(struct ql_safetensors *f, const struct ql_safetensor *e,
	const struct ql_note *note, int levels, struct ql_tensor **t);

/* Gives one part; NULL without an error if the file has none. levels: how often its scale may be quantized. */
static enum ql_status read_part(
	struct ql_safetensors *f, const struct ql_safetensor *e, const char *tail, int levels, struct ql_tensor **out)
{
	const struct ql_safetensor *part = ql_safetensors_find(f, e->name, strlen(e->name), tail);
	struct ql_note note;
	enum ql_status status;

	*out = NULL;
	if (!part)
		return QL_OK;
	status = read_elements(f, part, &note, out);
	if (!status && note.quantized)
		status = levels && !note.ragged ? read_quantized(f, part, &note, levels - 1, out)
						: ql_fail(f->ctx, QL_ERR_FORMAT,
							  "%s: wanted plain numbers, got a quantized tensor", tail + 2);
	return status;
}

/* NOLINTNEXTLINE(misc-no-recursion): `levels` bounds it */
static enum ql_status read_quantized(struct ql_safetensors *f, const struct ql_safetensor *e,
	const struct ql_note *note, int levels, struct ql_tensor **t)
{
	struct ql_note_parts parts = {0};
	enum ql_status status = read_part(f, e, QL_SCALE_TAIL, levels, &parts.scale);

	if (!status && !parts.scale)
		status = ql_fail(f->ctx, QL_ERR_FORMAT,
			"scale: wanted a tensor '%.80s" QL_SCALE_TAIL "', the file has none", e->name);
	if (!status)
		status = read_part(f, e, QL_ZERO_TAIL, 0, &parts.zero_point);
	if (!status)
		status = read_part(f, e, QL_SHIFT_TAIL, levels, &parts.shift);
	if (!status)
		status = read_part(f, e, QL_BITS_TAIL, 0, &parts.bits);
	if (!status && note->ragged) {
		parts.rows = *t;
		status = ql_note_room(f->ctx, note, &parts, t);
	}
	if (!status)
		status = read_part(f, e, QL_VALUES_TAIL, 0, &parts.values);
	if (!status)
		status = ql_note_apply(f->ctx, note, *t, &parts);
	ql_tensor_release(f->ctx, parts.rows);
	ql_tensor_release(f->ctx, parts.scale);
	ql_tensor_release(f->ctx, parts.zero_point);
	ql_tensor_release(f->ctx, parts.shift);
	ql_tensor_release(f->ctx, parts.bits);
	ql_tensor_release(f->ctx, parts.values);
	return status;
}

static enum ql_status load_entry(struct ql_safetensors *f, const struct ql_safetensor *e, struct ql_named_list *out)
{
	struct ql_note note;
	struct ql_tensor *t;
	enum ql_status status = read_elements(f, e, &note, &t);

	if (!status && note.quantized)
		status = read_quantized(f, e, &note, LEVELS, &t);
	if (status)
		status = ql_safetensors_where(f, e, status);
	else
		status = ql_named_add(f->ctx, out, e->name, t);
	ql_tensor_release(f->ctx, t);
	return status;
}

/* A tensor that cannot be read does not hide the others; a file with nothing else is an error. */
static enum ql_status load_or_refuse(struct ql_safetensors *f, const struct ql_safetensor *e, struct ql_named_list *out)
{
	enum ql_status status = load_entry(f, e, out);

	return status == QL_ERR_FORMAT || status == QL_ERR_UNSUPPORTED ? ql_named_refuse(f->ctx, out, e->name) : status;
}

enum ql_status ql_safetensors_load(const struct ql_reader *r, struct ql_named_list *out)
{
	struct ql_safetensors f = {.r = r, .ctx = r->ctx, .other = &out->metadata};
	enum ql_status status = ql_safetensors_open(&f);

	for (uint32_t i = 0; !status && i < f.n; i++)
		if (!f.entry[i].part)
			status = load_or_refuse(&f, &f.entry[i], out);
	ql_safetensors_close(&f);
	if (!status && out->n == 0 && out->n_refused > 0)
		return ql_fail(r->ctx, QL_ERR_FORMAT, "%s", out->refused[0].why);
	return status;
}
