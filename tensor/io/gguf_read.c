/* SPDX-License-Identifier: MIT
 * Tensors of GGUF files: plain elements, and blocks, whose codes and scales are separated.
 */
#include <string.h>

#include "tensor/codes.h"
#include "tensor/io/elements.h"
#include "tensor/io/gguf.h"
#include "tensor/io/note.h"
#include "tensor/op.h"
#include "tensor/parallel.h"
#include "tensor/qparams.h"

#define CHUNK ((uint64_t)4 << 20) /* bytes of blocks in memory */
#define GROUP 8                   /* blocks unpacked at a time: their fields of any width are whole bytes */

struct job {
	const struct ql_gguf_type *type;
	const uint8_t *in;
	int64_t first, n; /* blocks */
	struct ql_tensor *t;
};

/* Puts n numbers of a byte each from element `at` on. */
static void put(const struct ql_tensor *t, int64_t at, int64_t n, const uint8_t *code)
{
	if (ql_dtype_is_packed(t->dtype))
		ql_codes_put(t->dtype, t->storage->data, at, n, code);
	else
		memcpy((uint8_t *)t->storage->data + at, code, (size_t)n);
}

/* Puts the scales, or shifts, of block i. */
static void put_scale(const struct ql_tensor *t, int64_t i, uint16_t value, const uint8_t *code)
{
	if (t->q) {
		put(t, i * t->q->block, t->q->block, code);
		t = t->q->scale;
	}
	if (ql_dtypes[t->dtype].bits == 8)
		((uint8_t *)t->storage->data)[i] = (uint8_t)value;
	else
		((uint16_t *)t->storage->data)[i] = value;
}

static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int elements = j->type->elements;
	uint8_t code[GROUP * QL_GGUF_ELEMENTS];
	struct ql_gguf_scales s;

	for (int64_t g = begin; g < end; g++) {
		int64_t first = g * GROUP, n = ql_min64(GROUP, j->n - first);

		for (int64_t i = 0; i < n; i++) {
			int64_t at = j->first + first + i;

			j->type->unpack(j->in + (first + i) * j->type->bytes, code + i * elements, &s);
			put_scale(j->t->q->scale, at, s.scale, s.scale_code);
			if (j->t->q->shift)
				put_scale(j->t->q->shift, at, s.shift, s.shift_code);
		}
		put(j->t, (j->first + first) * elements, n * elements, code);
	}
}

static enum ql_status read_blocks(const struct ql_reader *r, const struct ql_gguf_entry *e, struct job *j)
{
	int64_t blocks = (int64_t)(e->bytes / j->type->bytes), most = (int64_t)(CHUNK / j->type->bytes) & -GROUP;
	uint8_t *chunk = ql_alloc_array(r->ctx, ql_min64(most, blocks), j->type->bytes);
	enum ql_status status = chunk ? QL_OK : QL_ERR_MEMORY;

	j->in = chunk;
	for (j->first = 0; j->first < blocks && !status; j->first += j->n) {
		uint64_t begin = e->offset + (uint64_t)j->first * j->type->bytes; /* size: within the file */

		j->n = ql_min64(most, blocks - j->first);
		status = ql_reader_at(r, begin, (uint64_t)j->n * j->type->bytes, chunk, e->name);
		if (!status)
			status = ql_parallel_for(
				r->ctx, ql_ceil_div(j->n, GROUP), 16, j->n * j->type->elements, body, j);
	}
	ql_free(r->ctx, chunk);
	return status;
}

static enum ql_status named_fail(struct ql_ctx *ctx, enum ql_status status, const char *name)
{
	char reason[sizeof(ctx->err)];

	memcpy(reason, ctx->err, sizeof(reason));
	return ql_fail(ctx, status, "'%.80s': %.800s", name, reason);
}

static enum ql_status read_quantized(const struct ql_reader *r, const struct ql_gguf_entry *e,
	const struct ql_gguf_type *type, struct ql_tensor **out)
{
	struct job j = {.type = type};
	enum ql_status status = r->ctx->quant->formats->room(r->ctx, type->format, e->rank, e->shape, out);

	j.t = *out;
	if (!status)
		status = read_blocks(r, e, &j);
	if (status)
		return status;
	status = r->ctx->quant->formats->check_scales(r->ctx, (*out)->dtype, (*out)->q);
	if (!status)
		status = ql_note_check_codes(r->ctx, *out);
	return status == QL_ERR_FORMAT ? named_fail(r->ctx, status, e->name) : status;
}

enum ql_status ql_gguf_read(const struct ql_reader *r, const struct ql_gguf_entry *e, struct ql_tensor **out)
{
	const struct ql_gguf_type *type = ql_gguf_type_by_id(e->id);
	enum ql_status status;

	*out = NULL;
	if (type->format) {
		status = read_quantized(r, e, type, out);
	} else {
		status = ql_elements_map(r, type->dtype, e->rank, e->shape, e->offset, e->bytes, out);
		if (!status && *out)
			return QL_OK;
		if (!status)
			status = ql_tensor_new(r->ctx, type->dtype, e->rank, e->shape, out);
		if (!status)
			status = ql_reader_at(r, e->offset, e->bytes, (*out)->storage->data, e->name);
	}
	if (status) {
		ql_tensor_release(r->ctx, *out);
		*out = NULL;
	}
	return status;
}
