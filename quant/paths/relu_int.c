/* SPDX-License-Identifier: MIT
 * relu on codes: max(q, zero_point) with the same params, bit-identical to the fallback. Works for every scheme whose
 * codes increase with their values and whose zero point represents 0.
 */
#include <string.h>

#include "tensor/grain.h"
#include "tensor/op.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/vmath/simd.h"

static bool match(struct ql_call *call, const char **reason)
{
	const struct ql_tensor *t = call->in[0];

	*reason = "plain operand";
	if (!t->q)
		return false;
	*reason = "other params are wanted";
	if (ql_call_attr(call, "out"))
		return false;
	*reason = "codes without order or without a zero";
	return ql_qparams_monotone(t->q) && t->q->scheme->zero_code;
}

struct job {
	struct ql_grain g;
	const struct ql_tensor *in, *out;
	const struct ql_tensor *zero;
	int variant;
};

#define PIECE 512

/* Whole-byte codes under one scale. */
#define RAISE(name, type) \
	QL_SIMD(void, name, (int64_t n, const type *restrict in, type *restrict out, type zero), { \
		for (int64_t i = 0; i < n; i++) \
			out[i] = in[i] > zero ? in[i] : zero; \
	})
RAISE(raise_u8, uint8_t)
RAISE(raise_i8, int8_t)

static void bytes_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const char *in = (const char *)j->in->storage->data + j->in->offset;
	char *out = j->out->storage->data;
	int64_t zero = j->zero ? (int64_t)ql_tensor_at_f64(j->zero, 0) : 0;

	if (j->in->dtype == QL_uint8)
		raise_u8[j->variant](end - begin, (const uint8_t *)in + begin, (uint8_t *)out + begin, (uint8_t)zero);
	else
		raise_i8[j->variant](end - begin, (const int8_t *)in + begin, (int8_t *)out + begin, (int8_t)zero);
}

static void run_row(const struct job *j, int64_t r)
{
	const struct ql_dtype_info *d = &ql_dtypes[j->in->dtype];
	int64_t row[PIECE], run;

	for (int64_t c = 0; c < j->g.row;) {
		int64_t s = ql_grain_scale(&j->g, r, c, &run), n = ql_min64(run, PIECE);
		int64_t zero;

		if (j->g.kind >= QL_GRAIN_COLUMN && j->zero)
			n = 1;
		zero = j->zero ? (int64_t)ql_tensor_at_f64(j->zero, s) : 0;
		d->to_i64(j->in->storage->data, j->in->offset + r * j->g.pitch + c, 1, n, row);
		for (int64_t i = 0; i < n; i++)
			row[i] = row[i] > zero ? row[i] : zero;
		d->from_i64(j->out->storage->data, r * j->g.pitch + c, 1, n, row);
		c += n;
	}
}

static void body(void *arg, int64_t begin, int64_t end)
{
	for (int64_t r = begin; r < end; r++)
		run_row(arg, r);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *in = call->in[0], *dense = NULL;
	struct job j;
	enum ql_status status;

	call->kernel = "relu_int";
	status = ql_tensor_contiguous(ctx, in, &dense);
	if (!status)
		status = ql_tensor_new(ctx, in->dtype, in->rank, in->shape, &call->out[0]);
	if (!status) {
		call->out[0]->q = ql_qparams_keep(in->q);
		j.g = ql_grain_of(in->rank, in->shape, in->dtype, in->q->axis, in->q->block_axis, in->q->block);
		j.in = dense;
		j.out = call->out[0];
		j.zero = in->q->zero_point;
		j.variant = ctx->kernels->simd->variant;
		if (in->q->axis < 0 && !in->q->block && (in->dtype == QL_uint8 || in->dtype == QL_int8))
			status = ql_parallel_for(
				ctx, ql_tensor_nelem(in), 1 << 18, ql_tensor_nelem(in) / 16, bytes_body, &j);
		else if (j.g.row)
			status = ql_parallel_for(
				ctx, j.g.rows, ql_max64(1, 65536 / j.g.row), j.g.rows * j.g.row, body, &j);
	}
	ql_tensor_release(ctx, dense);
	return status;
}

extern const struct ql_path ql_path_relu_int;
const struct ql_path ql_path_relu_int = {
	.op = "relu",
	.name = "integer",
	.codes = "8 16 packed",
	.text = "max(q, zero_point)",
	.match = match,
	.eval = eval,
	.keeps = true,
};
