/* SPDX-License-Identifier: MIT
 * Elementwise functions of one quantized tensor with out=: every possible code is decoded, the op is computed in
 * float32, and its result is rounded to a code; then every element is looked up. The result is bit-identical to
 * decoding, computing and quantizing. Scalar operands (q * 0.5) are part of the function. Tables of 8-bit codes are kept
 * (quant/integer/tables.h).
 *
 * 16-bit codes have a table of all 65536 results, without interpolation: it is exact and takes 128 KiB. For a tensor
 * with fewer elements than codes the elements are computed instead, with the same bits.
 *
 * With rounding='double' the codes of some functions are computed in fixed point (quant/integer/functions.h).
 */
#include <float.h>

#include "quant/integer/functions.h"
#include "quant/integer/rescale.h"
#include "quant/integer/tables.h"
#include "quant/ranges/quantize.h"
#include "tensor/codec.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/map.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/walk.h"

#define ATTRS 8 /* maximum of an elementwise op */
#define ROW 256
#define CHUNK 65536 /* elements claimed at a time */

static bool match(struct ql_call *call, const char **reason)
{
	const struct ql_value *out = ql_call_attr(call, "out");
	int i;

	if (!(call->op->flags & QL_ELEMENTWISE) || !out)
		return false;
	*reason = "out= is not a spec of codes with one scale";
	if (!out->spec->scheme || out->spec->stochastic || out->spec->axis || out->spec->block ||
		ql_dtype_is_binary(out->spec->dtype))
		return false;
	*reason = "act= needs two quantized operands";
	if (ql_call_attr(call, "act"))
		return false;
	*reason = "operands other than one quantized tensor and numbers";
	i = ql_call_one_quantized(call);
	if (i < 0)
		return false;
	*reason = "codes of functions: only these can decode them";
	if (out->spec->scheme->host || call->in[i]->q->scheme->host)
		return false;
	*reason = "scale varies: each scale would need its own table";
	return call->in[i]->q->axis < 0 && !call->in[i]->q->block && !ql_dtype_is_binary(call->in[i]->dtype);
}

/* ---- the function of codes ---- */

/* Gives the op's float results for the decoded codes. */
static enum ql_status apply(
	struct ql_ctx *ctx, const struct ql_call *call, int at, struct ql_tensor *codes, struct ql_tensor **y)
{
	struct ql_tensor *in[QL_MAP_MAX], *x = NULL;
	struct ql_value attr[ATTRS];
	struct ql_call plain = *call;
	const struct ql_attr *list = call->op->doc.attrs;
	enum ql_status status = ql_decode(ctx, codes, &x);

	for (int i = 0; i < call->n_in; i++)
		in[i] = i == at ? x : call->in[i];
	for (int i = 0; call->attr && i < ATTRS && list[i].type != QL_ATTR_END; i++) {
		attr[i] = call->attr[i];
		attr[i].set = attr[i].set && list[i].type != QL_ATTR_SPEC;
	}
	plain.in = in;
	plain.attr = call->attr ? attr : NULL;
	plain.into = NULL;
	plain.out[0] = NULL;
	if (!status)
		status = plain.op->infer(ctx, &plain);
	if (!status && !plain.op->allocates)
		status = ql_tensor_new(
			ctx, plain.result[0].dtype, plain.result[0].rank, plain.result[0].shape, &plain.out[0]);
	if (!status)
		status = plain.op->eval(ctx, &plain);
	ql_tensor_release(ctx, x);
	*y = plain.out[0];
	return status;
}

/* Gives every code of x's dtype, in order of bit patterns, with the params of x. Only affine schemes have codes
 * beyond their range. */
static enum ql_status all_codes(struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor **out)
{
	const struct ql_dtype_info *d = &ql_dtypes[x->dtype];
	int64_t n = INT64_C(1) << d->bits, row[ROW];
	enum ql_status status = ql_tensor_new(ctx, x->dtype, 1, &n, out);

	for (int64_t first = 0; !status && first < n; first += ROW) {
		int64_t count = ql_min64(ROW, n - first);

		for (int64_t i = 0; i < count; i++)
			row[i] = first + i > d->hi ? first + i - n : first + i;
		for (int64_t i = 0; i < count && !x->q->scheme->affine; i++)
			row[i] = ql_max64(x->q->codes.lo, ql_min64(x->q->codes.hi, row[i]));
		d->from_i64((*out)->storage->data, first, 1, count, row);
	}
	if (!status)
		(*out)->q = ql_qparams_keep(x->q);
	return status;
}

/* ---- looking up ---- */

struct job {
	struct ql_walk walk;
	int64_t pieces;
	const struct ql_tensor *x;
	struct ql_tensor *out;
	const uint8_t *bytes; /* 8-bit codes to 8-bit codes; else NULL */
	const int64_t *table;
	float *range; /* NULL: write codes; else find the range of the `values` that occur */
	const float *values;
};

static void bytes_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const uint8_t *x = (const uint8_t *)j->x->storage->data + j->x->offset;
	uint8_t *out = j->out->storage->data;

	for (int64_t i = begin; i < end; i++)
		out[i] = j->bytes[x[i]];
}

static void rows_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int64_t row[ROW], mask = (INT64_C(1) << ql_dtypes[j->x->dtype].bits) - 1;

	for (int64_t p = begin; p < end; p++) {
		int64_t column = p % j->pieces * ROW, n = ql_min64(ROW, j->walk.row - column), offset[QL_MAX_WALK];
		int64_t step = ql_walk_stride(&j->walk, 0);

		ql_walk_row(&j->walk, p / j->pieces, offset);
		ql_dtypes[j->x->dtype].to_i64(j->x->storage->data, offset[0] + column * step, step, n, row);
		for (int64_t i = 0; i < n && j->range; i++) {
			float v = j->values[row[i] & mask];

			j->range[0] = v < j->range[0] && v >= -FLT_MAX ? v : j->range[0];
			j->range[1] = v > j->range[1] && v <= FLT_MAX ? v : j->range[1];
		}
		if (j->range)
			continue;
		for (int64_t i = 0; i < n; i++)
			row[i] = j->table[row[i] & mask];
		step = ql_walk_stride(&j->walk, 1);
		ql_dtypes[j->out->dtype].from_i64(j->out->storage->data, offset[1] + column * step, step, n, row);
	}
}

static enum ql_status run_rows(struct ql_ctx *ctx, struct job *j)
{
	bool packed = j->out && ql_dtype_is_packed(j->out->dtype);
	int64_t n;

	ql_walk_start(&j->walk, j->x->rank, j->x->shape);
	ql_walk_add(&j->walk, j->x);
	if (j->out)
		ql_walk_add(&j->walk, j->out);
	ql_walk_finish(&j->walk, packed || ql_dtype_is_packed(j->x->dtype));
	j->pieces = j->walk.rows ? ql_ceil_div(j->walk.row, ROW) : 0;
	n = j->walk.rows * j->pieces;
	/* one thread for a range; rows of packed codes may share bytes */
	return ql_parallel_for(ctx, n, packed || j->range ? ql_max64(1, n) : 64, j->range ? 0 : n * ROW, rows_body, j);
}

static bool in_bytes(const struct ql_tensor *x, const struct ql_tensor *out)
{
	return ql_dtypes[x->dtype].bits == 8 && ql_dtypes[out->dtype].bits == 8 && ql_tensor_is_contiguous(x);
}

static enum ql_status look_up_bytes(
	struct ql_ctx *ctx, const struct ql_tensor *x, const uint8_t *table, struct ql_tensor *out)
{
	struct job j = {.x = x, .out = out, .bytes = table};

	return ql_parallel_for(ctx, ql_tensor_nelem(x), CHUNK, ql_tensor_nelem(x) / 2, bytes_body, &j);
}

static enum ql_status look_up(
	struct ql_ctx *ctx, const struct ql_tensor *x, const struct ql_tensor *table, struct ql_tensor *out)
{
	int64_t n = ql_tensor_nelem(table), *wide;
	struct job j = {.x = x, .out = out};

	if (in_bytes(x, out))
		return look_up_bytes(ctx, x, ql_tensor_data(table), out);
	wide = ql_scratch_array(ctx, n, sizeof(*wide));
	if (!wide)
		return QL_ERR_MEMORY;
	ql_dtypes[table->dtype].to_i64(table->storage->data, table->offset, 1, n, wide);
	j.table = wide;
	return run_rows(ctx, &j);
}

/* ---- the path ---- */

/* Gives the params of out=: explicit, or fitted to the values of the codes that occur in x. `values` are those of
 * `codes`. */
static enum ql_status params_of(struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_tensor *x,
	const struct ql_tensor *values, bool whole, struct ql_qparams **out)
{
	float range[2] = {0, 0};
	struct job j = {.x = x, .range = range, .values = ql_tensor_data(values)};
	enum ql_status status = QL_OK;

	if (!spec->has_scale && !whole)
		status = run_rows(ctx, &j);
	for (int64_t i = 0; !spec->has_scale && whole && i < ql_tensor_nelem(values); i++) {
		float v = j.values[i];

		range[0] = v < range[0] && v >= -FLT_MAX ? v : range[0];
		range[1] = v > range[1] && v <= FLT_MAX ? v : range[1];
	}
	return status ? status : ql_rescale_params(ctx, spec, range, x->rank, x->shape, out);
}

/* Whether the codes are those of a function in fixed point. */
static bool in_fixed_point(const struct ql_call *call)
{
	return ql_call_attr(call, "out")->spec->requant == QL_REQUANT_DOUBLE && ql_function_int_has(call->op) &&
	       call->n_in == 1;
}

/* The same for all codes of x, in fixed point. */
static enum ql_status fixed_results(
	struct ql_ctx *ctx, const struct ql_call *call, const struct ql_tensor *codes, struct ql_tensor **out)
{
	const struct ql_spec *spec = ql_call_attr(call, "out")->spec;
	const float nothing[2] = {0, 0};
	int64_t zero = codes->q->zero_point ? (int64_t)ql_tensor_at_f64(codes->q->zero_point, 0) : 0, row[ROW];
	struct ql_rounding r;
	struct ql_function_int f;
	enum ql_status status = ql_function_int_of(ctx, call, codes, &f);

	if (!status)
		status = ql_tensor_new(ctx, spec->dtype, 1, codes->shape, out);
	if (!status)
		status = ql_rescale_params(ctx, spec, nothing, call->in[0]->rank, call->in[0]->shape, &(*out)->q);
	if (status)
		return status;
	r = ql_rounding_of_params((*out)->q);
	for (int64_t first = 0; first < codes->shape[0]; first += ROW) {
		ql_dtypes[codes->dtype].to_i64(codes->storage->data, first, 1, ROW, row);
		for (int64_t i = 0; i < ROW; i++)
			row[i] = ql_max64((int64_t)r.lo, ql_min64((int64_t)r.hi, f.code(&f, row[i] - zero))) + r.zero;
		ql_dtypes[spec->dtype].from_i64((*out)->storage->data, first, 1, ROW, row);
	}
	return QL_OK;
}

/* Gives the codes of the result for `codes`, which are x itself (whole) or all possible codes. */
static enum ql_status results_of(struct ql_ctx *ctx, const struct ql_call *call, int at, struct ql_tensor *codes,
	bool whole, struct ql_tensor **out)
{
	const struct ql_spec *spec = ql_call_attr(call, "out")->spec;
	struct ql_tensor *values = NULL;
	enum ql_status status;

	if (in_fixed_point(call))
		return fixed_results(ctx, call, codes, out);
	status = ql_rescale_float_only(ctx, call);
	if (!status)
		status = apply(ctx, call, at, codes, &values);
	if (!status)
		status = ql_tensor_new(ctx, spec->dtype, values->rank, values->shape, out);
	if (!status)
		status = params_of(ctx, spec, call->in[at], values, whole, &(*out)->q);
	if (!status)
		status = ql_encode(ctx, values, *out, NULL, NULL);
	ql_tensor_release(ctx, values);
	return status;
}

/* Looks the elements up in a kept table, if they are bytes in order; else leaves *out. */
static enum ql_status by_kept(
	struct ql_ctx *ctx, const struct ql_call *call, const struct ql_table_key *key, struct ql_tensor **out)
{
	const struct ql_spec *spec = ql_call_attr(call, "out")->spec;
	struct ql_tensor *x = call->in[0];
	const uint8_t *table = ql_tensor_is_contiguous(x) ? ql_table_find(ctx, key) : NULL;
	const float nothing[2] = {0, 0};
	enum ql_status status;

	if (!table)
		return QL_OK;
	status = ql_tensor_new(ctx, spec->dtype, x->rank, x->shape, out);
	if (!status)
		status = ql_rescale_params(ctx, spec, nothing, x->rank, x->shape, &(*out)->q);
	return status ? status : look_up_bytes(ctx, x, table, *out);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	int at = ql_call_one_quantized(call);
	struct ql_tensor *x = call->in[at], *codes = NULL, *table = NULL;
	struct ql_table_key key;
	bool keeps;
	enum ql_status status;

	call->kernel = "function";
	if (ql_tensor_nelem(x) < INT64_C(1) << ql_dtypes[x->dtype].bits && ql_dtypes[x->dtype].bits > 8 &&
		!in_fixed_point(call))
		return results_of(ctx, call, at, x, true, &call->out[0]);
	call->kernel = "table";
	call->path = ql_requant_path(call->path, ql_call_attr(call, "out")->spec->requant);
	keeps = ql_table_key_of(call, &key);
	status = keeps ? by_kept(ctx, call, &key, &call->out[0]) : QL_OK;
	if (status || call->out[0])
		return status;
	status = all_codes(ctx, x, &codes);
	if (!status)
		status = results_of(ctx, call, at, codes, false, &table);
	if (!status)
		status = ql_tensor_new(ctx, table->dtype, x->rank, x->shape, &call->out[0]);
	if (!status)
		status = look_up(ctx, x, table, call->out[0]);
	if (!status)
		call->out[0]->q = ql_qparams_keep(table->q);
	if (!status && keeps)
		ql_table_keep(ctx, &key, ql_tensor_data(table));
	ql_tensor_release(ctx, codes);
	ql_tensor_release(ctx, table);
	return status;
}

extern const struct ql_path ql_path_table_int;
const struct ql_path ql_path_table_int = {
	.name = "integer",
	.codes = "8 16 packed",
	.text = "with out=: codes of the result are looked up by the codes of one operand",
	.match = match,
	.eval = eval,
};
