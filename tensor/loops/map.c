/* SPDX-License-Identifier: MIT
 * The elementwise engine. Rows are divided into pieces of MAP_BLOCK elements; dense float32 rows are used in place,
 * others are converted in a buffer that stays in L1. A scalar operand is converted once. Non-temporal stores of
 * large results do not pay: with two threads an addition of 16 Mi elements took as long (3.4 to 4.1 against 3.7 to
 * 3.8 ms), and functions with more arithmetic took longer.
 */
#include "tensor/loops/map.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/walk.h"

#define MAP_BLOCK 1024
#define MAP_CHUNK 32768 /* elements claimed at a time */
#define MAP_SHORT 64    /* rows of fewer elements are swapped for a longer axis */
#define MAP_SOON_NS 3e8 /* work too short to interrupt */

/* The promoted dtype of the operands; literal numbers adapt to the tensors. */
static unsigned promoted(const struct ql_call *call)
{
	bool have = false;
	unsigned dtype = QL_float32;

	for (int i = 0; i < call->n_in; i++) {
		if (call->weak >> i & 1)
			continue;
		dtype = have ? ql_dtype_promote(dtype, ql_operand_dtype(call->in[i])) : ql_operand_dtype(call->in[i]);
		have = true;
	}
	for (int i = 0; i < call->n_in; i++) {
		unsigned number = call->in[i]->dtype; /* int64 or float64 */

		if (!(call->weak >> i & 1))
			continue;
		if (!have) {
			dtype = number == QL_int64 ? QL_int64 : QL_float32;
			have = true;
		} else if (number == QL_float64 && ql_dtype_is_integer(dtype)) {
			dtype = QL_float32;
		}
	}
	return dtype;
}

/* A literal integer combined with an integer tensor must be in the range of that tensor's dtype. */
static enum ql_status check_literals(struct ql_ctx *ctx, const struct ql_call *call, unsigned dtype)
{
	const struct ql_dtype_info *info = &ql_dtypes[dtype];

	for (int i = 0; i < call->n_in; i++) {
		int64_t v;

		if (!(call->weak >> i & 1) || call->in[i]->dtype != QL_int64 || ql_dtype_is_float(dtype) ||
			info->kind == QL_KIND_BOOL || info->kind == QL_KIND_BINARY)
			continue;
		v = *(const int64_t *)call->in[i]->storage->data;
		if (v < info->lo || v > info->hi)
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"%s: wanted a number that fits %s (%lld to %lld), got %lld", call->op->doc.name,
				info->name, (long long)info->lo, (long long)info->hi, (long long)v);
	}
	return QL_OK;
}

enum ql_status ql_map_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_map *map = call->op->impl;
	unsigned dtype = promoted(call);
	enum ql_status status = ql_infer_broadcast(ctx, call);

	if (!status && map->i64 && map->result != QL_MAP_BOOL)
		status = check_literals(ctx, call, dtype);
	if (status)
		return status;
	if (map->result == QL_MAP_BOOL)
		dtype = QL_bool;
	else if (ql_dtype_is_integer(dtype) && (map->result == QL_MAP_FLOAT || !map->i64))
		dtype = QL_float32;
	else if (ql_dtype_is_bool(dtype) || ql_dtype_is_binary(dtype))
		dtype = QL_int64;
	call->result[0].dtype = dtype;
	return QL_OK;
}

enum domain { F32, F64, I64 };

static bool wide_integer(const struct ql_tensor *t)
{
	return t->dtype == QL_int32 || t->dtype == QL_int64;
}

/* Integers of more than 24 bits combined with a float: comparisons are exact, other ops compute in float32. */
static enum domain domain_of(const struct ql_call *call)
{
	const struct ql_map *map = call->op->impl;
	unsigned dtype = promoted(call);
	bool wide = false;

	for (int i = 0; i < call->n_in; i++)
		wide = wide || (wide_integer(call->in[i]) && !(call->weak >> i & 1));
	if (dtype == QL_float64)
		return F64;
	if (ql_dtype_is_float(dtype))
		return wide && map->result == QL_MAP_BOOL ? F64 : F32;
	if (map->i64 && (map->result != QL_MAP_FLOAT || ql_dtype_is_integer(call->result[0].dtype)))
		return I64;
	return wide ? F64 : F32;
}

static int cost(const struct ql_map *map)
{
	return map->ns_per_16 ? map->ns_per_16 : 8;
}

static double work_ns(const struct ql_map *map, enum domain domain, int64_t n)
{
	return (double)n * cost(map) / 16 * (domain == F32 ? 1 : 4);
}

static bool same_view(const struct ql_tensor *a, const struct ql_tensor *b)
{
	if (a->offset != b->offset || a->dtype != b->dtype || !ql_tensor_same_shape(a, b))
		return false;
	for (int d = 0; d < a->rank; d++)
		if (a->stride[d] != b->stride[d])
			return false;
	return true;
}

bool ql_map_may_overwrite(const struct ql_call *call)
{
	const struct ql_tensor *into = call->into;
	const struct ql_map *map = call->op->impl;
	const struct ql_result *r = &call->result[0];

	if (into->q || into->dtype != r->dtype || into->rank != r->rank || (map->trouble && domain_of(call) == I64))
		return false;
	for (int d = 0; d < r->rank; d++)
		if (into->shape[d] != r->shape[d])
			return false;
	for (int i = 0; i < call->n_in; i++)
		if (call->in[i]->storage == into->storage && !same_view(call->in[i], into))
			return false;
	return work_ns(map, domain_of(call), ql_tensor_nelem(into)) < MAP_SOON_NS;
}

struct map_job {
	struct ql_walk walk;
	const struct ql_map *map;
	struct ql_map_args args;
	enum domain domain;
	int variant, n_in;
	bool overwrite;                 /* the result is one of the operands */
	int64_t pieces;                 /* per row */
	unsigned dtype[1 + QL_MAP_MAX]; /* output, then operands */
	void *base[1 + QL_MAP_MAX];
	const void *constant[1 + QL_MAP_MAX]; /* a piece of a scalar operand; else NULL */
	atomic_bool trouble;
};

static bool dense_f32(const struct map_job *j, int k)
{
	return j->dtype[k] == QL_float32 && ql_walk_stride(&j->walk, k) == 1;
}

/* A repeated number is converted once. */
static void load_f32(const struct map_job *j, int k, int64_t offset, int64_t n, float *out)
{
	int64_t stride = ql_walk_stride(&j->walk, k);

	ql_dtypes[j->dtype[k]].to_f32(j->base[k], offset, stride, stride ? n : 1, out);
	for (int64_t i = 1; i < n && !stride; i++)
		out[i] = out[0];
}

static void piece_f32(const struct map_job *j, const int64_t *offset, int64_t n)
{
	_Alignas(64) float buffer[1 + QL_MAP_MAX][MAP_BLOCK];
	const float *in[QL_MAP_MAX] = {NULL};
	float *out = buffer[0], *dense = dense_f32(j, 0) ? (float *)j->base[0] + offset[0] : NULL;

	for (int k = 1; k <= j->n_in; k++) {
		in[k - 1] = j->constant[k] ? j->constant[k] : buffer[k];
		if (dense_f32(j, k))
			in[k - 1] = (const float *)j->base[k] + offset[k];
		else if (!j->constant[k])
			load_f32(j, k, offset[k], n, buffer[k]);
	}
	if (dense && !j->overwrite)
		out = dense;
	j->map->f32[j->variant](n, out, in, &j->args);
	if (!dense)
		ql_dtypes[j->dtype[0]].from_f32(j->base[0], offset[0], ql_walk_stride(&j->walk, 0), n, out);
	else if (j->overwrite)
		memcpy(dense, out, (size_t)n * sizeof(*out));
}

static void piece_f64(const struct map_job *j, const int64_t *offset, int64_t n)
{
	double buffer[1 + QL_MAP_MAX][MAP_BLOCK];
	const double *in[QL_MAP_MAX];

	for (int k = 1; k <= j->n_in; k++) {
		in[k - 1] = j->constant[k] ? j->constant[k] : buffer[k];
		if (!j->constant[k])
			ql_dtypes[j->dtype[k]].to_f64(j->base[k], offset[k], ql_walk_stride(&j->walk, k), n, buffer[k]);
	}
	j->map->f64(n, buffer[0], in, &j->args);
	ql_dtypes[j->dtype[0]].from_f64(j->base[0], offset[0], ql_walk_stride(&j->walk, 0), n, buffer[0]);
}

static bool piece_i64(const struct map_job *j, const int64_t *offset, int64_t n)
{
	int64_t buffer[1 + QL_MAP_MAX][MAP_BLOCK];
	const int64_t *in[QL_MAP_MAX];

	for (int k = 1; k <= j->n_in; k++) {
		in[k - 1] = j->constant[k] ? j->constant[k] : buffer[k];
		if (!j->constant[k])
			ql_dtypes[j->dtype[k]].to_i64(j->base[k], offset[k], ql_walk_stride(&j->walk, k), n, buffer[k]);
	}
	if (!j->map->i64(n, buffer[0], in, &j->args))
		return false;
	ql_dtypes[j->dtype[0]].from_i64(j->base[0], offset[0], ql_walk_stride(&j->walk, 0), n, buffer[0]);
	return true;
}

/* Short rows are processed together: their elements may be interleaved. */
static void map_body(void *arg, int64_t begin, int64_t end)
{
	struct map_job *j = arg;
	bool beside = j->walk.rows < j->pieces;

	for (int64_t i = begin; i < end; i++) {
		int64_t row = beside ? i % j->walk.rows : i / j->pieces;
		int64_t column = (beside ? i / j->walk.rows : i % j->pieces) * MAP_BLOCK;
		int64_t n = ql_min64(MAP_BLOCK, j->walk.row - column), offset[QL_MAX_WALK];

		ql_walk_row(&j->walk, row, offset);
		for (int k = 0; k <= j->n_in; k++)
			offset[k] += column * ql_walk_stride(&j->walk, k);
		if (j->domain == F32)
			piece_f32(j, offset, n);
		else if (j->domain == F64)
			piece_f64(j, offset, n);
		else if (!piece_i64(j, offset, n))
			j->trouble = true;
	}
}

static bool is_constant(const struct ql_walk *w, int k)
{
	for (int d = 0; d < w->rank; d++)
		if (w->stride[k][d] != 0)
			return false;
	return w->rank > 0;
}

/* Fills the pieces of scalar operands by the domain's converter. */
static enum ql_status fill_constants(struct ql_ctx *ctx, struct map_job *j)
{
	for (int k = 1; k <= j->n_in; k++) {
		const struct ql_dtype_info *d = &ql_dtypes[j->dtype[k]];
		int64_t at = j->walk.offset[k], n = ql_min64(MAP_BLOCK, j->walk.row);
		void *piece;

		j->constant[k] = NULL;
		if (!is_constant(&j->walk, k))
			continue;
		piece = ql_scratch_array(ctx, n, sizeof(double));
		if (!piece)
			return QL_ERR_MEMORY;
		if (j->domain == F32)
			d->to_f32(j->base[k], at, 0, n, piece);
		else if (j->domain == F64)
			d->to_f64(j->base[k], at, 0, n, piece);
		else
			d->to_i64(j->base[k], at, 0, n, piece);
		j->constant[k] = piece;
	}
	return QL_OK;
}

static enum ql_status start(struct ql_ctx *ctx, const struct ql_call *call, struct map_job *j)
{
	struct ql_tensor *out = call->out[0];

	ql_walk_start(&j->walk, out->rank, out->shape);
	for (int k = 0; k <= call->n_in; k++) {
		const struct ql_tensor *t = k ? call->in[k - 1] : out;

		ql_walk_add(&j->walk, t);
		j->dtype[k] = t->dtype;
		j->base[k] = t->storage->data;
	}
	ql_walk_finish(&j->walk, ql_dtype_is_packed(out->dtype));
	if (!ql_dtype_is_packed(out->dtype))
		ql_walk_lengthen(&j->walk, MAP_SHORT);
	j->overwrite = out == call->into;
	j->pieces = ql_ceil_div(j->walk.row, MAP_BLOCK);
	return j->walk.rows ? fill_constants(ctx, j) : QL_OK;
}

static const char *const paths[] = {"float32", "float64", "int64"};

const struct ql_map *ql_map_of(const struct ql_op *op)
{
	return op->eval == ql_map_eval || op->flags & QL_MAPPED ? op->impl : NULL;
}

enum ql_status ql_map_describe(
	struct ql_ctx *ctx, const struct ql_call *call, const char **domain, struct ql_map_args *args)
{
	const struct ql_map *map = call->op->impl;

	*domain = paths[domain_of(call)];
	*args = (struct ql_map_args){.p = {0}};
	return map->prepare ? map->prepare(ctx, call, args) : QL_OK;
}

enum ql_status ql_map_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_map *map = call->op->impl;
	struct map_job j = {
		.map = map, .domain = domain_of(call), .variant = ctx->kernels->simd->variant, .n_in = call->n_in};
	enum ql_status status = map->prepare ? map->prepare(ctx, call, &j.args) : QL_OK;

	if (!status)
		status = start(ctx, call, &j);
	if (status)
		return status;
	call->path = paths[j.domain];
	call->kernel = j.domain == F32 ? ctx->kernels->simd->name : "ref";
	if (j.walk.rows == 0)
		return QL_OK;
	ctx->finishing = j.overwrite; /* else an interrupt would leave a tensor half changed */
	status = ql_parallel_for(ctx, j.walk.rows * j.pieces, ql_max64(1, MAP_CHUNK / ql_min64(MAP_BLOCK, j.walk.row)),
		(int64_t)fmin(work_ns(map, j.domain, ql_tensor_nelem(call->out[0])), 1e18), map_body, &j);
	ctx->finishing = false;
	if (!status && j.trouble)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: %s", call->op->doc.name, map->trouble);
	return status;
}
