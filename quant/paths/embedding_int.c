/* SPDX-License-Identifier: MIT
 * Rows of a quantized table: their codes and scales are copied into a small quantized tensor, which is decoded. The
 * rest of the table is not read. Bit-identical to decoding the table first. With out=, the decoded rows are quantized
 * as by quantize.
 */
#include "quant/ranges/quantize.h"
#include "tensor/codec.h"
#include "tensor/kernels/kernels.h"
#include "tensor/op.h"
#include "tensor/loops/rows.h"
#include "tensor/view.h"

static bool match(struct ql_call *call, const char **reason)
{
	*reason = "plain operand";
	return call->in[0]->q && !call->in[1]->q;
}

static enum ql_status params_of(struct ql_ctx *ctx, const struct ql_qparams *q, const int64_t *number, int64_t n,
	int64_t divisor, struct ql_qparams **out);

/* Replaces a tensor of scales, minimums or zero points, which may be quantized, with those of the rows. */
static enum ql_status take_into(
	struct ql_ctx *ctx, struct ql_tensor **t, const int64_t *number, int64_t n, int64_t divisor)
{
	struct ql_tensor *rows;
	enum ql_status status;

	if (!*t)
		return QL_OK;
	status = ql_rows_take(ctx, *t, number, n, divisor, &rows);
	if (!status && (*t)->q)
		status = params_of(ctx, (*t)->q, number, n, divisor, &rows->q);
	if (status) {
		ql_tensor_release(ctx, rows);
		return status;
	}
	ql_tensor_release(ctx, *t);
	*t = rows;
	return QL_OK;
}

/* Params of the rows (number[i] - 1) / divisor. Blocks along the rows become blocks of one row: each row has the scales
 * of its block. */
static enum ql_status params_of(struct ql_ctx *ctx, const struct ql_qparams *q, const int64_t *number, int64_t n,
	int64_t divisor, struct ql_qparams **out)
{
	bool down = q->block && q->block_axis == 0;
	struct ql_qparams *p = ql_qparams_copy(ctx, q);
	enum ql_status status = QL_OK;

	*out = p;
	if (!p)
		return QL_ERR_MEMORY;
	if (q->block || q->axis == 0) {
		struct ql_tensor **each[] = {&p->scale, &p->zero_point, &p->shift};

		divisor *= down ? q->block : 1;
		for (int i = 0; i < 3 && !status; i++)
			status = take_into(ctx, each[i], number, n, divisor);
	}
	if (down)
		p->block = 1;
	return status;
}

/* Gives the rows decoded, or quantized by out=. */
static enum ql_status decode_rows(
	struct ql_ctx *ctx, struct ql_call *call, const int64_t *number, int64_t n, struct ql_tensor **out)
{
	struct ql_tensor *table = call->in[0], *codes = NULL, *real = NULL;
	const struct ql_value *spec = ql_call_attr(call, "out");
	enum ql_status status = ql_rows_take(ctx, table, number, n, 1, &codes);

	if (!status)
		status = params_of(ctx, table->q, number, n, 1, &codes->q);
	if (!status)
		status = ql_decode(ctx, codes, spec ? &real : out);
	if (!status && spec)
		status = ql_quantize(ctx, real, spec->spec, out);
	ql_tensor_release(ctx, codes);
	ql_tensor_release(ctx, real);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *ids = NULL, *rows = NULL;
	enum ql_status status = ql_rows_numbers(ctx, "embedding", call->in[1], call->in[0]->shape[0], &ids);

	call->path = ql_dtype_name(call->in[0]->dtype);
	call->kernel = "rows";
	if (!status)
		status = decode_rows(ctx, call, ql_tensor_data(ids), ql_tensor_nelem(ids), &rows);
	if (!status)
		status = ql_view_reshape(
			ctx, "embedding", rows, call->result[0].rank, call->result[0].shape, &call->out[0]);
	ql_tensor_release(ctx, ids);
	ql_tensor_release(ctx, rows);
	return status;
}

extern const struct ql_path ql_path_embedding_int;
const struct ql_path ql_path_embedding_int = {
	.op = "embedding",
	.name = "rows",
	.codes = "8=* 16=* packed=* binary=*",
	.text = "only the selected rows are decoded; with out= they are quantized again",
	.match = match,
	.eval = eval,
	.closed = true,
};
