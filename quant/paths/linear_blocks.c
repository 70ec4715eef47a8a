/* SPDX-License-Identifier: MIT
 * linear of 8-bit codes x and codes w whose scales change in blocks along k, with or without minimums, or whose values are a table of
 * small integers (FP4, FP6 E2M3, IQ4_NL): exact integer sums of each block, scaled in float32 in the order of the blocks
 * (tensor/gemm/blocks.h):
 * y = (sum over b of (float)(sum of (x - zx) * (w - zw)) * sw_b [+ (float)(sum of (x - zx)) * min_b]) * sx [+ bias], each step rounded.
 * Of a table w - zw is the value of a code in units of a power of two, by which sx is multiplied, exactly unless it leaves float32.
 */
#include "quant/integer/rescale.h"
#include "quant/ranges/quantize.h"
#include "tensor/closed.h"
#include "tensor/gemm/blocks.h"
#include "tensor/grid.h"
#include "tensor/kernels/kernels.h"
#include "tensor/remote.h"
#include "tensor/scratch.h"
#include "tensor/view.h"

static bool x_fits(const struct ql_tensor *x)
{
	return x->q && ql_qparams_affine(x->q) && (x->dtype == QL_int8 || x->dtype == QL_uint8) && !x->q->block &&
	       !x->q->bits && (x->q->axis < 0 || (x->q->axis == 0 && x->rank == 2));
}

#define CODES 64 /* of a table, at most */

/* Integers for the codes of a table: above `least`, times `unit`. */
struct whole {
	uint8_t look[CODES];
	int32_t least;
	float unit;
};

/* False: w has no table of integers. Codes beyond the table are decoded as its last one. */
static bool take_whole(const struct ql_tensor *w, struct whole *to)
{
	const struct ql_grid_table *t = w->q->codes.grid;
	int8_t value[QL_GRID_MAX];

	*to = (struct whole){.unit = 1};
	if (!t || ql_dtypes[w->dtype].bits > 6 || t->n > CODES || !ql_grid_whole(t, value, &to->unit))
		return false;
	for (int i = 0; i < t->n; i++)
		to->least = value[i] < to->least ? value[i] : to->least;
	for (int i = 0; i < CODES; i++)
		to->look[i] = (uint8_t)(value[i < t->n ? i : t->n - 1] - to->least);
	return true;
}

static bool match(struct ql_call *call, const char **reason)
{
	const struct ql_tensor *x = call->in[0], *w = call->in[1];
	bool matrix = w->q && w->rank == 2;
	bool blocks = matrix && (w->q->block || w->q->shift) && w->q->scheme->affine && !ql_dtype_is_binary(w->dtype);
	int64_t block = matrix && w->q->block ? w->q->block : w->shape[w->rank - 1];
	struct whole unused;

	*reason = "not codes of 8 bits and codes with scales in blocks along k, or a table of integers";
	return !ql_is_remote(w) && x_fits(x) && matrix && (blocks || take_whole(w, &unused)) &&
	       block <= QL_GEMM_BLOCKS_MOST && ql_strips_take(w);
}

static enum ql_status read_x(struct ql_ctx *ctx, const struct ql_tensor *x, float unit, struct ql_gemm_blocks *p)
{
	enum ql_status status;
	int64_t n = ql_tensor_nelem(x->q->scale);
	float *scale = ql_scratch_array(ctx, n, sizeof(*scale));
	int32_t *zero = x->q->zero_point ? ql_scratch_array(ctx, n, sizeof(*zero)) : NULL;

	if (!scale || (x->q->zero_point && !zero))
		return QL_ERR_MEMORY;
	if (zero)
		ql_qparams_zeros(x->q->zero_point, zero);
	p->m = x->shape[0];
	p->scale = scale;
	p->scale_step = x->q->axis == 0;
	p->a = (struct ql_matrix_int){.data = (const char *)x->storage->data + x->offset,
		.dtype = x->dtype,
		.row = x->stride[0],
		.column = x->stride[1],
		.zero = zero,
		.zero_step = p->scale_step};
	status = ql_qparams_scales(ctx, x->q->scale, scale);
	for (int64_t i = 0; i < n && !status; i++)
		scale[i] *= unit;
	return status;
}

/* Why w has no strips: zero points that were written into its params may be anything. */
static enum ql_status fail_strips(struct ql_ctx *ctx, const struct ql_tensor *w)
{
	const struct ql_tensor *zero = w->q->zero_point;
	int64_t n = zero ? ql_tensor_nelem(zero) : 0;
	int32_t lo = w->q->codes.lo, hi = w->q->codes.hi, *z = ql_scratch_array(ctx, n, sizeof(*z));

	if (z && n)
		ql_qparams_zeros(zero, z);
	for (int64_t i = 0; z && i < n; i++)
		if (z[i] < lo || z[i] > hi)
			return ql_fail(ctx, QL_ERR_ARGUMENT, "linear: zero points of w: wanted %d to %d, got %d",
				(int)lo, (int)hi, (int)z[i]);
	return ql_fail(ctx, QL_ERR_MEMORY, "linear: out of memory for the codes of w in strips");
}

/* x is read by the address of its codes. */
static enum ql_status compute(struct ql_ctx *ctx, struct ql_call *call, struct ql_tensor *x)
{
	struct ql_strips strips;
	struct whole whole;
	struct ql_gemm_blocks p = {.b = &strips, .y = ql_tensor_data(call->out[0])};
	struct ql_tensor *bias = NULL;
	bool table = take_whole(call->in[1], &whole);
	enum ql_status status = read_x(ctx, x, whole.unit, &p);

	if (!status)
		status = ql_epilogue_of(ctx, call, call->in[1]->shape[0], &p.e, &bias);
	if (!status)
		status = ql_strips_keep(ctx, call->in[1], true, &strips);
	if (!status && !strips.codes)
		status = fail_strips(ctx, call->in[1]);
	if (table) {
		strips.form.look = whole.look;
		strips.form.middle = -whole.least;
	}
	if (!status)
		status = ql_gemm_blocks(ctx, &p);
	ql_tensor_release(ctx, bias);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_result *r = &call->result[0];
	const struct ql_value *v = ql_call_attr(call, "out");
	struct ql_tensor *x = NULL, *w = NULL;
	enum ql_status status = v ? ql_rescale_float_only(ctx, call) : QL_OK;

	if (!status)
		status = ql_tensor_new(ctx, QL_float32, r->rank, r->shape, &call->out[0]);

	call->kernel = ctx->kernels->gemm_coded->name;
	if (!status)
		status = ql_linear_operands(ctx, call, &x, &w);
	if (!status)
		status = ql_closed_open(ctx, x->storage);
	if (!status) {
		status = compute(ctx, call, x);
		ql_closed_close(ctx, x->storage);
	}
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, w);
	return status ? status : ql_quantize_result(ctx, call, v ? v->spec : NULL);
}

extern const struct ql_path ql_path_linear_blocks;
const struct ql_path ql_path_linear_blocks = {
	.op = "linear",
	.name = "int8",
	.codes = "",
	.text = "exact integer sums of the blocks of w, scaled in float32 in order",
	.match = match,
	.eval = eval,
	.closed = true,
};
