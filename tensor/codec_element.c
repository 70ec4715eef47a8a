/* SPDX-License-Identifier: MIT
 * Decodes single elements, and fills the tables of schemes that have one.
 */
#include "tensor/codec.h"
#include "tensor/codec_functions.h"
#include "tensor/qparams.h"
#include "tensor/scratch.h"

enum ql_status ql_codes_table(struct ql_ctx *ctx, const struct ql_scheme *scheme, struct ql_codes *codes)
{
	float *table;

	codes->table = NULL;
	if (!scheme->table_length)
		return QL_OK;
	table = ql_scratch_array(ctx, (int64_t)scheme->table_length(codes), sizeof(*table));
	if (!table)
		return QL_ERR_MEMORY;
	scheme->table_fill(codes, table);
	codes->table = table;
	return QL_OK;
}

/* Converts the index of an element to that of its scale. */
static void scale_index(const struct ql_qparams *q, int rank, const int64_t *index, int64_t *out)
{
	if (!q->block) {
		out[0] = q->axis >= 0 ? index[q->axis] : 0;
		return;
	}
	for (int d = 0; d < rank; d++)
		out[d] = d == q->block_axis ? index[d] / q->block : index[d];
}

/* Reads a scale or shift, which may be quantized itself. */
static enum ql_status number_at(struct ql_ctx *ctx, const struct ql_tensor *t, const int64_t *index, float *value)
{
	if (t->q)
		return ql_decode_element(ctx, t, index, value);
	*value = (float)ql_tensor_get_f64(t, index);
	return QL_OK;
}

static enum ql_status decode_one(
	struct ql_ctx *ctx, const struct ql_codes *codes, unsigned dtype, const void *code, float scale, float *value)
{
	struct ql_codec_rows rows = {
		codes->host, ql_grain_of(0, NULL, dtype, -1, -1, 0), dtype, codes->lo, codes->hi, &scale};

	return ql_codec_functions_decode(ctx, &rows, code, value);
}

enum ql_status ql_decode_element(struct ql_ctx *ctx, const struct ql_tensor *t, const int64_t *index, float *value)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	const struct ql_qparams *q = t->q;
	struct ql_codes codes = q->codes;
	int32_t code = (int32_t)ql_tensor_get_i64(t, index), zero;
	int64_t at[QL_MAX_RANK] = {0};
	float scale = 0, shift = 0;
	enum ql_status status = ql_codes_table(ctx, q->scheme, &codes);

	scale_index(q, t->rank, index, at);
	zero = q->zero_point ? (int32_t)ql_tensor_get_i64(q->zero_point, at) : 0;
	if (!status)
		status = number_at(ctx, q->scale, at, &scale);
	if (!status && q->shift)
		status = number_at(ctx, q->shift, at, &shift);
	if (!status && q->scheme->host)
		status = decode_one(ctx, &codes, QL_int32, &code, scale, value);
	else if (!status)
		q->scheme->decode(&code, 1, scale, zero, &codes, value);
	if (!status && q->shift)
		*value += shift;
	ql_scratch_release(ctx, mark);
	return status;
}
