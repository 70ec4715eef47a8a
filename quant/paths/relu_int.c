/* SPDX-License-Identifier: MIT
 * relu on codes: max(q, zero_point) with the same params, bit-identical to the fallback. Works for every scheme whose
 * codes increase with their values and whose zero point represents 0.
 */
#include "tensor/codes.h"
#include "tensor/grain.h"
#include "tensor/images.h"
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
	unsigned dtype;
	const char *in; /* in dtype; of packed codes the first one is `offset` */
	int64_t offset;
	char *out;
	const struct ql_tensor *zero;
	int variant;
	int64_t pieces; /* per row */
};

#define PIECE 4096 /* codes: a multiple of 8, so that pieces of packed rows never share a byte */

/* Codes under one zero point. */
#define RAISE(name, type) \
	QL_SIMD(void, name, (int64_t n, const void *from, void *to, int32_t zero), { \
		const type *in = from; \
		type *out = to; \
		for (int64_t i = 0; i < n; i++) \
			out[i] = in[i] > (type)zero ? in[i] : (type)zero; \
	})
RAISE(raise_u8, uint8_t)
RAISE(raise_i8, int8_t)
RAISE(raise_u16, uint16_t)
RAISE(raise_i16, int16_t)

/* n whole codes; n <= PIECE packed ones, whose range is within that of bytes. */
static void raise_run(const struct job *j, int64_t from, int64_t to, int64_t n, int32_t zero)
{
	const char *in = j->in;
	char *out = j->out;
	unsigned dtype = j->dtype;
	int v = j->variant;
	int8_t code[PIECE], raised[PIECE];

	if (ql_dtype_is_packed(dtype)) {
		ql_codes_get(dtype, in, from, n, code);
		raise_i8[v](n, code, raised, zero);
		ql_codes_put(dtype, out, to, n, (const uint8_t *)raised);
		return;
	}
	switch (dtype) {
	case QL_uint8: raise_u8[v](n, in + from, out + to, zero); break;
	case QL_int8: raise_i8[v](n, in + from, out + to, zero); break;
	case QL_uint16: raise_u16[v](n, (const uint16_t *)in + from, (uint16_t *)out + to, zero); break;
	default: raise_i16[v](n, (const int16_t *)in + from, (int16_t *)out + to, zero); break;
	}
}

static void run_piece(const struct job *j, int64_t i)
{
	int64_t r = i / j->pieces, c = i % j->pieces * PIECE, end = ql_min64(c + PIECE, j->g.row), run;

	while (c < end) {
		int64_t s = ql_grain_scale(&j->g, r, c, &run), n = ql_min64(run, end - c), at = r * j->g.pitch + c;

		if (j->g.kind >= QL_GRAIN_COLUMN && j->zero)
			n = 1;
		raise_run(j, j->offset + at, at, n, j->zero ? (int32_t)ql_tensor_at_f64(j->zero, s) : 0);
		c += n;
	}
}

static void body(void *arg, int64_t begin, int64_t end)
{
	for (int64_t i = begin; i < end; i++)
		run_piece(arg, i);
}

/* Codes under one zero point may be in any order. */
static bool keeps_order(const struct ql_tensor *in)
{
	return ql_is_closed(in) && ql_images_last(in) && in->q->axis < 0 && !in->q->block;
}

static enum ql_status run(struct ql_ctx *ctx, const struct ql_tensor *in, const struct ql_tensor *out, bool images)
{
	int64_t n = ql_tensor_nelem(in);
	struct job j = {.dtype = in->dtype,
		.in = images ? (const char *)ql_images_data(in) : in->storage->data,
		.offset = images ? 0 : in->offset,
		.out = out->storage->data,
		.zero = in->q->zero_point,
		.variant = ctx->kernels->simd->variant};

	j.g = images ? ql_grain_of(1, &n, in->dtype, -1, -1, 0)
		     : ql_grain_of(in->rank, in->shape, in->dtype, in->q->axis, in->q->block_axis, in->q->block);
	if (!j.g.row)
		return QL_OK;
	j.pieces = ql_ceil_div(j.g.row, PIECE);
	return ql_parallel_for(
		ctx, j.g.rows * j.pieces, ql_max64(1, 16 * PIECE / ql_min64(PIECE, j.g.row)), n / 16, body, &j);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *in = call->in[0], *dense = NULL;
	bool images = keeps_order(in);
	enum ql_status status = QL_OK;

	call->kernel = "relu_int";
	if (ql_is_closed(in) && !images)
		status = ql_closed_open(ctx, in->storage);
	if (!status && !images)
		status = ql_tensor_contiguous(ctx, in, &dense);
	if (!status)
		status = ql_tensor_new(ctx, in->dtype, in->rank, in->shape, &call->out[0]);
	if (!status) {
		call->out[0]->q = ql_qparams_keep(in->q);
		status = run(ctx, images ? in : dense, call->out[0], images);
	}
	ql_tensor_release(ctx, dense);
	return status || !images ? status : ql_images_declare(ctx, call->out[0]);
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
	.images = true,
};
