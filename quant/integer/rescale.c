/* SPDX-License-Identifier: MIT
 * Computes add, sub, mul and cat with out=, and requantize in fixed point. Scales and zero points are broadcast
 * operands of the walk, so any mix of per-tensor and per-axis operands uses the same loop.
 */
#include "quant/integer/rescale.h"

#include "quant/ranges/quantize.h"
#include "quant/integer/rounding.h"
#include "tensor/parallel.h"
#include "tensor/view.h"
#include "tensor/walk.h"

bool ql_rescale_fits(const struct ql_call *call, const char **reason)
{
	const struct ql_value *v = ql_call_attr(call, "out");
	const struct ql_spec *spec = v ? v->spec : NULL;

	*reason = "the result is float32 without out=";
	if (!spec)
		return false;
	*reason = "out= is not an affine spec with one scale";
	if (!spec->scheme || !spec->scheme->affine || spec->scheme->shift || spec->stochastic ||
		ql_dtype_is_binary(spec->dtype) || spec->axis || spec->block)
		return false;
	for (int i = 0; i < call->n_in; i++) {
		const struct ql_qparams *q = call->in[i]->q;

		*reason = "an operand is not quantized";
		if (!q)
			return false;
		*reason = "an operand has blocks or is not affine";
		if (q->block || !ql_qparams_affine(q))
			return false;
	}
	return true;
}

/* ---- one operand ---- */

static float one_real(const struct ql_rescale_rows *r, int64_t i)
{
	return (float)r->q[0][i] * r->scale[0][i];
}

static float one_units(const struct ql_rescale_rows *r, int64_t i, double unit)
{
	return (float)r->q[0][i] * (float)((double)r->scale[0][i] / unit);
}

static void one_multipliers(struct ql_rescale_fixed *f, double unit)
{
	f->m[0] = ql_fixed_of((double)f->scale[0] / unit);
}

static int64_t one_fixed(const struct ql_rescale_fixed *f, int32_t a, int32_t b)
{
	(void)b;
	return ql_fixed_times(f->rule, false, a, f->m[0]);
}

const struct ql_rescale ql_rescale_one = {one_real, one_units, one_multipliers, one_fixed, false};

bool ql_rescale_out_fits(const struct ql_call *call, const char **reason)
{
	const struct ql_value *v = ql_call_attr(call, "out");
	const struct ql_spec *spec = v ? v->spec : NULL;

	*reason = "the result is float32 without out=";
	if (!spec)
		return false;
	*reason = "out= is not an affine spec with one given scale";
	return spec->scheme && spec->scheme->affine && !spec->scheme->shift && !spec->stochastic &&
	       !ql_dtype_is_binary(spec->dtype) && !spec->axis && !spec->block && spec->has_scale;
}

bool ql_rescale_one_scale(const struct ql_tensor *t, const char **reason)
{
	*reason = "an operand is not quantized";
	if (!t->q)
		return false;
	*reason = "an operand has several scales, or is not affine";
	return t->q->axis < 0 && !t->q->block && ql_qparams_affine(t->q) && !ql_dtype_is_binary(t->dtype);
}

enum ql_status ql_rescale_float_only(struct ql_ctx *ctx, const struct ql_call *call)
{
	enum ql_requant rule = ql_call_attr(call, "out")->spec->requant;

	return rule ? ql_fail(ctx, QL_ERR_ARGUMENT,
			      "%s: out: rounding: wanted 'float', the only rule of this op, got '%s'",
			      call->op->doc.name, ql_requant_name(rule))
		    : QL_OK;
}

enum ql_status ql_rescale_codes(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_spec *spec = ql_call_attr(call, "out")->spec;
	const struct ql_result *r = &call->result[0];
	const float nothing[2] = {0, 0};
	enum ql_status status = ql_tensor_new(ctx, spec->dtype, r->rank, r->shape, &call->out[0]);

	return status ? status : ql_rescale_params(ctx, spec, nothing, r->rank, r->shape, &call->out[0]->q);
}

enum ql_status ql_rescale_result(struct ql_ctx *ctx, struct ql_call *call)
{
	enum ql_status status = ql_rescale_float_only(ctx, call);

	return status ? status : ql_rescale_codes(ctx, call);
}

/* ---- operands in a walk: codes, scale, zero point ---- */

struct source {
	const struct ql_tensor *codes;
	struct ql_tensor scale, zero; /* headers that broadcast against the codes */
	bool has_zero;
};

/* A tensor header over the per-axis values, with the shape (1, …, size, …, 1). */
static struct ql_tensor spread(const struct ql_tensor *values, const struct ql_tensor *codes)
{
	struct ql_tensor t = *values;
	int axis = codes->q->axis;

	if (axis < 0)
		return t;
	t.rank = codes->rank;
	for (int d = 0; d < codes->rank; d++) {
		t.shape[d] = d == axis ? values->shape[0] : 1;
		t.stride[d] = d == axis ? values->stride[0] : 0;
	}
	return t;
}

static struct source source_of(const struct ql_tensor *t)
{
	struct source s = {.codes = t, .scale = spread(t->q->scale, t), .has_zero = t->q->zero_point != NULL};

	if (s.has_zero)
		s.zero = spread(t->q->zero_point, t);
	return s;
}

struct job {
	const struct ql_rescale *f;
	struct ql_walk walk;
	struct source source[2];
	int sources, first; /* first: walk operand of source 0 */
	int64_t pieces;
	struct ql_tensor *out; /* NULL: range only */
	double unit;
	struct ql_rounding r;
	struct ql_rescale_fixed fixed;
	float *range; /* per chunk pair, or NULL */
};

static void read_rows(const struct job *j, const int64_t *offset, int64_t n, struct ql_rescale_rows *r)
{
	int64_t wide[QL_RESCALE_ROW], zero[QL_RESCALE_ROW];
	int k = j->first;

	for (int s = 0; s < j->sources; s++) {
		const struct source *src = &j->source[s];

		ql_dtypes[src->codes->dtype].to_i64(
			src->codes->storage->data, offset[k], ql_walk_stride(&j->walk, k), n, wide);
		k++;
		ql_dtypes[src->scale.dtype].to_f32(
			src->scale.storage->data, offset[k], ql_walk_stride(&j->walk, k), n, r->scale[s]);
		k++;
		if (src->has_zero) {
			ql_dtypes[src->zero.dtype].to_i64(
				src->zero.storage->data, offset[k], ql_walk_stride(&j->walk, k), n, zero);
			k++;
		}
		for (int64_t i = 0; i < n; i++)
			r->q[s][i] = (int32_t)(wide[i] - (src->has_zero ? zero[i] : 0));
	}
}

/* Computes codes in fixed point. Neighbours mostly have the same scales, so their multipliers are computed once. */
static void fixed_codes(const struct job *j, const struct ql_rescale_rows *r, int64_t n, int64_t *code)
{
	struct ql_rescale_fixed f = j->fixed;

	for (int64_t i = 0; i < n; i++) {
		float a = r->scale[0][i], b = j->sources > 1 ? r->scale[1][i] : 1;
		int64_t v;

		if (i == 0 || a != f.scale[0] || b != f.scale[1]) {
			f.scale[0] = a;
			f.scale[1] = b;
			j->f->multipliers(&f, j->unit);
		}
		v = j->f->fixed(&f, r->q[0][i], j->sources > 1 ? r->q[1][i] : 0);
		v = v < (int64_t)j->r.lo ? (int64_t)j->r.lo : v;
		code[i] = (v > (int64_t)j->r.hi ? (int64_t)j->r.hi : v) + j->r.zero;
	}
}

static void write_codes(const struct job *j, const struct ql_rescale_rows *r, int64_t offset, int64_t n)
{
	int64_t wide[QL_RESCALE_ROW];

	if (j->fixed.rule)
		fixed_codes(j, r, n, wide);
	for (int64_t i = 0; i < n && !j->fixed.rule; i++)
		wide[i] = ql_round(j->f->units(r, i, j->unit), j->r.lo, j->r.hi, j->r.zero);
	ql_dtypes[j->out->dtype].from_i64(j->out->storage->data, offset, ql_walk_stride(&j->walk, 0), n, wide);
}

static void body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	struct ql_rescale_rows r;

	for (int64_t p = begin; p < end; p++) {
		int64_t column = p % j->pieces * QL_RESCALE_ROW, n = ql_min64(QL_RESCALE_ROW, j->walk.row - column);
		int64_t offset[QL_MAX_WALK];

		ql_walk_row(&j->walk, p / j->pieces, offset);
		for (int k = 0; k < j->walk.operands; k++)
			offset[k] += column * ql_walk_stride(&j->walk, k);
		read_rows(j, offset, n, &r);
		if (j->out) {
			write_codes(j, &r, offset[0], n);
			continue;
		}
		for (int64_t i = 0; i < n; i++) {
			float y = j->f->real(&r, i);

			j->range[0] = y < j->range[0] ? y : j->range[0];
			j->range[1] = y > j->range[1] ? y : j->range[1];
		}
	}
}

static void start(struct job *j, const struct ql_tensor *a, const struct ql_tensor *b, int rank, const int64_t *shape)
{
	j->source[0] = source_of(a);
	j->sources = 1;
	if (b)
		j->source[j->sources++] = source_of(b);
	ql_walk_start(&j->walk, rank, shape);
	j->first = j->out != NULL;
	if (j->out)
		ql_walk_add(&j->walk, j->out);
	for (int s = 0; s < j->sources; s++) {
		ql_walk_add(&j->walk, j->source[s].codes);
		ql_walk_add(&j->walk, &j->source[s].scale);
		if (j->source[s].has_zero)
			ql_walk_add(&j->walk, &j->source[s].zero);
	}
	ql_walk_finish(&j->walk, j->out && ql_dtype_is_packed(j->out->dtype));
	j->pieces = j->walk.rows ? ql_ceil_div(j->walk.row, QL_RESCALE_ROW) : 0;
}

struct ql_rounding ql_rescale_rounding(const struct ql_rescale *f, const struct ql_tensor *out)
{
	struct ql_rounding r = ql_rounding_of(out);

	if (f->relu && r.lo < 0)
		r.lo = 0;
	return r;
}

/* True if codes minus the zero point may need 17 bits. */
static bool is_wide(const struct ql_tensor *t)
{
	return t && ql_dtypes[t->dtype].bits > 8 && t->q->zero_point;
}

static bool is_short(const struct ql_tensor *t)
{
	return !t || ql_dtypes[t->dtype].bits <= 8;
}

enum ql_status ql_rescale_write(struct ql_ctx *ctx, const struct ql_rescale *f, enum ql_requant rule,
	const struct ql_tensor *a, const struct ql_tensor *b, struct ql_tensor *out)
{
	struct job j = {.f = f, .out = out, .unit = ql_tensor_at_f64(out->q->scale, 0)};
	bool packed = ql_dtype_is_packed(out->dtype);
	int64_t n;

	j.r = ql_rescale_rounding(f, out);
	j.fixed.rule = rule;
	j.fixed.wide = is_wide(a) || is_wide(b);
	j.fixed.left = is_short(a) && is_short(b) ? 20 : j.fixed.wide ? 14 : 15;
	start(&j, a, b, out->rank, out->shape);
	n = j.walk.rows * j.pieces;
	out->storage->version++;
	/* rows of packed types may share bytes if the view is not in row order */
	return ql_parallel_for(ctx, n, packed ? ql_max64(1, n) : 64, ql_mul64(ql_tensor_nelem(out), 4), body, &j);
}

enum ql_status ql_rescale_range(struct ql_ctx *ctx, const struct ql_rescale *f, const struct ql_tensor *a,
	const struct ql_tensor *b, int rank, const int64_t *shape, float range[2])
{
	struct job j = {.f = f, .range = range};
	int64_t n;

	start(&j, a, b, rank, shape);
	n = j.walk.rows * j.pieces;
	return ql_parallel_for(ctx, n, 256, 0, body, &j); /* one thread, because the range is shared */
}

enum ql_status ql_rescale_params(struct ql_ctx *ctx, const struct ql_spec *spec, const float range[2], int rank,
	const int64_t *shape, struct ql_qparams **out)
{
	struct ql_tensor *ends;
	enum ql_status status;

	if (spec->has_scale)
		return ql_quantize_params(ctx, spec, rank, shape, NULL, out);
	status = ql_tensor_new(ctx, QL_float32, 1, (const int64_t[]){2}, &ends);
	if (status)
		return status;
	((float *)ql_tensor_data(ends))[0] = range[0];
	((float *)ql_tensor_data(ends))[1] = range[1];
	status = ql_quantize_params(ctx, spec, 1, ends->shape, ends, out);
	ql_tensor_release(ctx, ends);
	return status;
}
