/* SPDX-License-Identifier: MIT
 * Describes a call to a plug-in.
 */
#include "gpu/call.h"

#include <string.h>

#include "tensor/grid.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/map.h"
#include "tensor/remote.h"
#include "tensor/scratch.h"

static const char *const NO_MEMORY = "no memory for the description of the call";

static const char *pack_tensor(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_gpu_tensor *out);

/* ---- formats ---- */

static const char *pack_level(struct ql_ctx *ctx, const struct ql_tensor *t, const struct ql_gpu_tensor **out)
{
	struct ql_gpu_tensor *level;

	*out = NULL;
	if (!t)
		return NULL;
	level = ql_scratch_take(ctx, sizeof(*level));
	if (!level)
		return NO_MEMORY;
	*out = level;
	return pack_tensor(ctx, t, level);
}

static const char *pack_grid(struct ql_ctx *ctx, const struct ql_grid_table *t, const struct ql_gpu_grid **out)
{
	struct ql_gpu_grid *grid = ql_scratch_take(ctx, sizeof(*grid));

	if (!grid)
		return NO_MEMORY;
	*grid = (struct ql_gpu_grid){.n = t->n,
		.ranks = t->ranks,
		.zero = t->zero,
		.nan = t->nan,
		.unit = t->unit,
		.least = t->least,
		.reciprocal = t->reciprocal,
		.value = t->value,
		.edge = t->edge,
		.code = t->code};
	if (t->minifloat) {
		grid->exponent = t->minifloat->exponent;
		grid->mantissa = t->minifloat->mantissa;
		grid->bias = t->minifloat->bias;
		grid->most = t->minifloat->most;
		grid->infinity = t->minifloat->infinity;
	}
	*out = grid;
	return NULL;
}

static const char *pack_codes(struct ql_ctx *ctx, const struct ql_qparams *q, const struct ql_gpu_codes **out)
{
	struct ql_gpu_codes *codes = ql_scratch_take(ctx, sizeof(*codes));
	const char *why = NULL;

	if (!codes)
		return NO_MEMORY;
	if (q->bits)
		return "channels differ in bits";
	if (q->scheme->host)
		return "the codes are made by Lua functions";
	*codes = (struct ql_gpu_codes){.size = sizeof(*codes),
		.flags = (q->codes.overflow ? QL_GPU_OVERFLOW : 0) | (q->scheme->affine ? QL_GPU_AFFINE : 0),
		.scheme = q->scheme->doc.name,
		.from = ql_dtype_name(q->from),
		.bits = q->codes.bits,
		.lo = q->codes.lo,
		.hi = q->codes.hi,
		.scaling = q->codes.scaling,
		.axis = q->axis,
		.block_axis = q->block_axis,
		.block = q->block,
		.octaves = q->codes.octaves};
	if (q->codes.grid)
		why = pack_grid(ctx, q->codes.grid, &codes->grid);
	if (!why)
		why = pack_level(ctx, q->scale, &codes->scale);
	if (!why)
		why = pack_level(ctx, q->zero_point, &codes->zero_point);
	if (!why)
		why = pack_level(ctx, q->shift, &codes->shift);
	if (q->counts && q->counts->storage->remote)
		codes->counts = q->counts->storage->remote->at;
	*out = codes;
	return why;
}

/* ---- tensors ---- */

static const char *pack_number(const struct ql_tensor *t, struct ql_gpu_tensor *out)
{
	const int64_t none[QL_MAX_RANK] = {0};

	out->flags = QL_GPU_NUMBER;
	out->f = ql_tensor_get_f64(t, none);
	if (!ql_dtype_is_float(t->dtype)) {
		out->flags |= QL_GPU_INTEGER;
		out->i = ql_tensor_get_i64(t, none);
	}
	return NULL;
}

/* A tensor of the device, or a number of the host. */
static const char *pack_tensor(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_gpu_tensor *out)
{
	*out = (struct ql_gpu_tensor){.dtype = ql_dtype_name(t->dtype), .rank = t->rank};
	memcpy(out->shape, t->shape, sizeof(out->shape));
	memcpy(out->stride, t->stride, sizeof(out->stride));
	if (!ql_is_remote(t))
		return t->rank == 0 && !t->q ? pack_number(t, out) : "an operand is in the host's memory";
	out->base = t->storage->remote->at;
	out->bytes = t->storage->bytes;
	out->at = (char *)out->base + (size_t)t->offset * ql_dtypes[t->dtype].bits / 8; /* size: within the storage */
	return t->q ? pack_codes(ctx, t->q, &out->codes) : NULL;
}

/* A result that is not allocated yet. */
static void pack_result(const struct ql_result *r, struct ql_gpu_tensor *out)
{
	int64_t stride = 1;

	*out = (struct ql_gpu_tensor){.dtype = ql_dtype_name(r->dtype), .rank = r->rank};
	for (int d = r->rank - 1; d >= 0; d--) {
		out->shape[d] = r->shape[d];
		out->stride[d] = stride;
		stride *= ql_max64(1, r->shape[d]);
	}
}

/* ---- options ---- */

/* Axes of the caller, from 1 or from the end, as a mask. */
static int64_t axes_mask(const struct ql_ints *axes, int rank)
{
	int64_t mask = 0;

	for (int i = 0; i < axes->n; i++)
		mask |= 1LL << (axes->at[i] < 0 ? axes->at[i] + rank : axes->at[i] - 1);
	return mask;
}

static const char *pack_option(const struct ql_attr *a, const struct ql_value *v, int rank, struct ql_gpu_option *out)
{
	*out = (struct ql_gpu_option){.name = a->name};
	switch (a->type) {
	case QL_ATTR_INT: out->i = v->i; return NULL;
	case QL_ATTR_BOOL: out->i = v->b; return NULL;
	case QL_ATTR_AXIS: out->i = v->i < 0 ? v->i + rank : v->i - 1; return NULL;
	case QL_ATTR_FLOAT:
		out->type = QL_GPU_OPTION_NUMBER;
		out->f = v->f;
		return NULL;
	case QL_ATTR_STRING:
		out->type = QL_GPU_OPTION_TEXT;
		out->s = v->s;
		return NULL;
	case QL_ATTR_DTYPE:
		out->type = QL_GPU_OPTION_TEXT;
		out->s = ql_dtype_name((unsigned)v->i);
		return NULL;
	case QL_ATTR_INTS:
		out->type = strcmp(a->name, "axis") ? QL_GPU_OPTION_INTEGERS : QL_GPU_OPTION_AXES;
		if (out->type == QL_GPU_OPTION_AXES)
			out->i = axes_mask(&v->ints, rank);
		out->n = v->ints.n;
		out->ints = v->ints.at;
		return NULL;
	case QL_ATTR_NUMBERS:
		out->type = QL_GPU_OPTION_NUMBERS;
		out->n = v->numbers.n;
		out->numbers = v->numbers.at;
		return NULL;
	case QL_ATTR_SPEC: /* the result has its codes */
		out->type = QL_GPU_OPTION_TEXT;
		out->s = "";
		return NULL;
	default: return "an option is a tensor";
	}
}

/* Of an elementwise op: what its prepare makes of the attributes, and the domain (tensor/loops/map.h). */
static const char *pack_row(struct ql_ctx *ctx, const struct ql_call *call, struct ql_gpu_packed *out)
{
	struct ql_gpu_option *o = out->option;
	const char *domain;

	if (ql_map_describe(ctx, call, &domain, &out->args))
		return "the op refuses its options";
	o[0] = (struct ql_gpu_option){.name = "domain", .type = QL_GPU_OPTION_TEXT, .s = domain};
	o[1] = (struct ql_gpu_option){.name = "p", .type = QL_GPU_OPTION_NUMBERS, .n = 4, .numbers = out->args.p};
	o[2] = (struct ql_gpu_option){.name = "i", .type = QL_GPU_OPTION_INTEGERS, .n = 2, .ints = out->args.i};
	out->call.n_options = 3;
	return NULL;
}

static const char *pack_options(const struct ql_call *call, struct ql_gpu_packed *out)
{
	const struct ql_attr *a = call->op->doc.attrs;
	const char *why = NULL;

	for (int i = 0; a && call->attr && a[i].type != QL_ATTR_END && !why; i++) {
		if (!call->attr[i].set)
			continue;
		if (out->call.n_options == QL_GPU_OPTIONS)
			return "too many options";
		why = pack_option(
			&a[i], &call->attr[i], call->n_in ? call->in[0]->rank : 0, &out->option[out->call.n_options++]);
	}
	return why;
}

/* ---- calls ---- */

/* A result; the kernel may have to find its scales. */
static const char *pack_output(
	struct ql_ctx *ctx, const struct ql_call *call, const struct ql_tensor *t, struct ql_gpu_tensor *out)
{
	const char *why = pack_tensor(ctx, t, out);
	struct ql_gpu_codes *codes;

	if (why || !out->codes)
		return why;
	codes = (struct ql_gpu_codes *)(uintptr_t)out->codes; /* of scratch memory, made by pack_tensor */
	if (call->fit == QL_FIT_SINGLE || call->fit == QL_FIT_DOUBLE) {
		codes->rounding = (int32_t)call->fit - QL_FIT_SINGLE + 1; /* the numbers of enum ql_requant */
	} else if (call->fit != QL_FIT_OTHER) {
		codes->flags |= QL_GPU_FIND;
		codes->fit = (int32_t)call->fit; /* the numbers of enum ql_gpu_fit */
	}
	if (call->op->flags & QL_ENCODES && call->op->draws && call->op->draws(call))
		codes->flags |= QL_GPU_STOCHASTIC;
	return NULL;
}

/* Elementwise ops of codes have rules of their own, with the attributes as given. */
const char *ql_gpu_pack(struct ql_ctx *ctx, const struct ql_call *call, struct ql_gpu_packed *out)
{
	const char *why = NULL;

	out->call = (struct ql_gpu_call){.size = sizeof(out->call),
		.op = call->op->doc.name,
		.n_in = call->n_in,
		.n_out = call->n_out,
		.seed = call->random.seed,
		.first = call->random.first,
		.flags = ctx->kernels->gemm_f32->ordered ? QL_GPU_ORDERED : 0, /* also at the level ref */
		.in = out->operand,
		.out = out->operand + call->n_in,
		.options = out->option};
	if (call->n_in + call->n_out > QL_GPU_OPERANDS || call->n_out > QL_MAX_OUT)
		return "too many operands";
	for (int i = 0; i < call->n_in && !why; i++)
		why = pack_tensor(ctx, call->in[i], &out->operand[i]);
	for (int i = 0; i < call->n_out && !why; i++) {
		if (call->out[i])
			why = pack_output(ctx, call, call->out[i], &out->operand[call->n_in + i]);
		else
			pack_result(&call->result[i], &out->operand[call->n_in + i]);
	}
	if (why)
		return why;
	return ql_map_of(call->op) && !ql_call_quantized(call) ? pack_row(ctx, call, out) : pack_options(call, out);
}
