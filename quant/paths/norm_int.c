/* SPDX-License-Identifier: MIT
 * layernorm, rmsnorm, groupnorm and instancenorm of codes with out=. For a row (of a group of channels) of n codes q minus the zero point, with scale s:
 *   S = sum of q (rmsnorm: 0), c = n q - S, V = n sum of q^2 - S^2, all exact in 64 bits;
 *   D = 2^p V + rint(2^p eps n^2 / s^2), with an even p up to 32 as large as 61 bits allow;
 *   D is shifted by an even number of bits 2k to 2^62 or more, R = floor of its root, f = (float)(2^(k + p/2) / R);
 *   y = sat(rint(((float)c * f) * w' + b') + zero), w' = (float)(w / s_out), b' = (float)(b / s_out).
 * Weight and bias of groupnorm and instancenorm are those of the channel. This holds because V = n^2 variance / s^2, so that c f = (x - mean) / sqrt(variance + eps). Mean and variance are
 * exact.
 */
#include <math.h>
#include <string.h>

#include "quant/integer/inverse_root.h"
#include "quant/integer/rescale.h"
#include "quant/integer/rounding.h"
#include "quant/spec.h"
#include "tensor/dtype.h"
#include "tensor/loops/lines.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define LARGEST 0x1p61 /* of the two parts of D */
#define MOST_BITS 32   /* p */

struct job {
	int32_t zero; /* of x */
	bool centred;
	int bits;           /* p */
	uint64_t epsilon;   /* of D */
	const float *w, *b; /* w', b' */
	struct ql_rounding r;
};

/* Of a row */
struct moments {
	int64_t n, sum, square;
	float factor; /* f */
};

static void add_codes(const struct job *j, struct moments *m, const int64_t *q, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		int64_t v = q[i] - j->zero;

		m->sum += v;
		m->square += v * v;
	}
}

static void find_factor(const struct job *j, struct moments *m)
{
	if (!j->centred)
		m->sum = 0;
	m->factor = ql_inverse_root(((uint64_t)(m->n * m->square - m->sum * m->sum) << j->bits) + j->epsilon, j->bits);
}

static inline int64_t code_of(const struct job *j, const struct moments *m, int64_t q, float w, float b)
{
	float h = (float)(m->n * (q - j->zero) - m->sum) * m->factor;

	return ql_round(h * w + b, j->r.lo, j->r.hi, j->r.zero);
}

static void row_of_codes(const struct ql_line *l)
{
	const struct job *j = l->args;
	const int64_t *q = l->in;
	int64_t *y = l->out;
	struct moments m = {.n = l->n};

	add_codes(j, &m, q, l->n);
	find_factor(j, &m);
	for (int64_t i = 0; i < l->n; i++)
		y[i] = code_of(j, &m, q[i], j->w[i], j->b[i]);
}

static const struct ql_lines lines = {.i64 = row_of_codes, .ns_per_element = 3};

/* ---- rows ---- */

/* By the name of the op: a path serves ops of other layers. */
static bool is_grouped(const struct ql_call *call)
{
	return !strcmp(call->op->doc.name, "groupnorm") || !strcmp(call->op->doc.name, "instancenorm");
}

/* x (n, channels, inner) in groups of `per` channels, which are rows; each number of a row of several axes is a channel */
struct groups {
	int64_t groups, per, inner;
};

static struct groups groups_of(const struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	struct groups g = {.groups = 1, .per = 1, .inner = 1};

	if (!is_grouped(call)) {
		for (int d = x->rank - (int)ql_call_int(call, "axes", 1); d < x->rank; d++)
			g.per *= x->shape[d];
		return g;
	}
	g.groups = call->op->doc.name[0] == 'i' ? x->shape[1] : ql_call_int(call, "groups", 1);
	g.per = g.groups ? x->shape[1] / g.groups : 0;
	for (int d = 2; d < x->rank; d++)
		g.inner *= x->shape[d];
	return g;
}

/* Numbers of a row */
static int64_t row_length(const struct ql_call *call)
{
	struct groups g = groups_of(call);

	return g.per * g.inner;
}

/* eps n^2 / s^2 */
static double epsilon_of(const struct ql_call *call)
{
	double n = (double)row_length(call) / ql_tensor_at_f64(call->in[0]->q->scale, 0);

	return ql_call_float(call, "eps", 1e-5) * n * n;
}

/* p; -1 if a row is too long or eps too large */
static int bits_of(const struct ql_call *call)
{
	double most = (double)row_length(call) * ldexp(1, ql_dtypes[call->in[0]->dtype].bits);
	double larger = epsilon_of(call);
	int bits = MOST_BITS;

	larger = larger > most * most ? larger : most * most;
	while (bits >= 0 && !(ldexp(larger, bits) < LARGEST))
		bits -= 2;
	return bits < 0 ? -1 : bits;
}

static bool match(struct ql_call *call, const char **reason)
{
	const struct ql_tensor *x = call->in[0];

	if (!ql_rescale_out_fits(call, reason) || !ql_rescale_one_scale(x, reason))
		return false;
	*reason = "weight or bias is quantized";
	for (int i = 1; i < call->n_in; i++)
		if (call->in[i]->q)
			return false;
	*reason = "the squares of a row do not fit 64 bits";
	return bits_of(call) >= 0;
}

/* The n numbers of operand i divided by the scale of the result; `otherwise` for an absent operand. NULL: out of memory. */
static float *scaled(struct ql_ctx *ctx, const struct ql_call *call, int i, int64_t n, double otherwise, double scale)
{
	float *to = ql_scratch_array(ctx, n, sizeof(*to));

	for (int64_t k = 0; to && k < n; k++)
		to[k] = (float)((i < call->n_in ? (double)(float)ql_tensor_at_f64(call->in[i], k) : otherwise) / scale);
	return to;
}

/* Makes the result, and the job for vectors of n numbers. */
static enum ql_status start(struct ql_ctx *ctx, struct ql_call *call, int64_t n, struct job *j)
{
	const struct ql_tensor *x = call->in[0];
	double scale;
	enum ql_status status = ql_rescale_result(ctx, call);

	if (status)
		return status;
	*j = (struct job){.centred = strcmp(call->op->doc.name, "rmsnorm") != 0, .bits = bits_of(call)};
	j->epsilon = (uint64_t)rint(ldexp(epsilon_of(call), j->bits));
	scale = ql_tensor_at_f64(call->out[0]->q->scale, 0);
	j->zero = x->q->zero_point ? (int32_t)ql_tensor_at_f64(x->q->zero_point, 0) : 0;
	j->w = scaled(ctx, call, 1, n, 1, scale);
	j->b = scaled(ctx, call, 2, n, 0, scale);
	j->r = ql_rounding_of(call->out[0]);
	call->path = "integer";
	call->kernel = "norm_int";
	return j->w && j->b ? QL_OK : QL_ERR_MEMORY;
}

/* ---- groups of channels, rows of several axes ---- */

#define CHUNK 512 /* codes that are read at once */

struct group_job {
	struct job job;
	struct groups g;
	const struct ql_dtype_info *in, *out;
	const void *x;
	void *y;
	int64_t from; /* offset of x */
};

/* `count` codes from `at` on, of the channels from `channel` on, of which `done` codes are before them */
static void write_chunk(
	const struct group_job *k, const struct moments *m, int64_t *q, int64_t count, int64_t channel, int64_t done)
{
	for (int64_t i = 0; i < count; done = 0, channel++) {
		int64_t stop = ql_min64(count, i + k->g.inner - done);
		float w = k->job.w[channel], b = k->job.b[channel];

		for (; i < stop; i++)
			q[i] = code_of(&k->job, m, q[i], w, b);
	}
}

/* item: a group of a row of x */
static void groups_body(void *arg, int64_t begin, int64_t end)
{
	const struct group_job *k = arg;
	int64_t q[CHUNK], n = k->g.per * k->g.inner;

	for (int64_t row = begin; row < end; row++) {
		struct moments m = {.n = n};
		int64_t first = row % k->g.groups * k->g.per;

		for (int64_t i = 0; i < n; i += CHUNK) {
			k->in->to_i64(k->x, k->from + row * n + i, 1, ql_min64(CHUNK, n - i), q);
			add_codes(&k->job, &m, q, ql_min64(CHUNK, n - i));
		}
		find_factor(&k->job, &m);
		for (int64_t i = 0; i < n; i += CHUNK) {
			int64_t count = ql_min64(CHUNK, n - i);

			k->in->to_i64(k->x, k->from + row * n + i, 1, count, q);
			write_chunk(k, &m, q, count, first + i / k->g.inner, i % k->g.inner);
			k->out->from_i64(k->y, row * n + i, 1, count, q);
		}
	}
}

/* Neighbouring rows of packed codes share bytes, so they are computed as int8 first. */
static enum ql_status run_groups(struct ql_ctx *ctx, struct group_job *k, int64_t rows, struct ql_tensor *y)
{
	int64_t n = k->g.per * k->g.inner;
	struct ql_tensor *wide = NULL;
	enum ql_status status =
		ql_dtype_is_packed(y->dtype) ? ql_tensor_new(ctx, QL_int8, y->rank, y->shape, &wide) : QL_OK;

	if (status)
		return status;
	k->out = &ql_dtypes[(wide ? wide : y)->dtype];
	k->y = (wide ? wide : y)->storage->data;
	status = ql_parallel_for(ctx, rows, 1, rows * n * 3, groups_body, k);
	if (wide && !status)
		status = ql_tensor_copy(ctx, y, wide);
	ql_tensor_release(ctx, wide);
	return status;
}

/* Packed codes, whose last axis is filled to whole bytes, are read as int8. */
static enum ql_status eval_groups(struct ql_ctx *ctx, struct ql_call *call)
{
	struct group_job k = {.g = groups_of(call)};
	struct ql_tensor codes = *call->in[0], *x = NULL, y;
	int64_t n = k.g.per * k.g.inner;
	enum ql_status status = start(ctx, call, k.g.groups * k.g.per, &k.job);

	codes.q = NULL;
	if (!status && ql_dtype_is_packed(codes.dtype))
		status = ql_tensor_cast(ctx, &codes, QL_int8, &x);
	else if (!status)
		status = ql_tensor_contiguous(ctx, &codes, &x);
	if (status)
		return status;
	y = *call->out[0];
	y.q = NULL;
	k.in = &ql_dtypes[x->dtype];
	k.x = x->storage->data;
	k.from = x->offset;
	status = run_groups(ctx, &k, n ? ql_tensor_nelem(x) / n : 0, &y);
	ql_tensor_release(ctx, x);
	return status;
}

/* ---- rows along the last axis ---- */

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	int last = call->in[0]->rank - 1;
	struct ql_tensor in = ql_line_axis(call->in[0], last), out;
	struct job j;
	enum ql_status status;

	if (ql_call_int(call, "axes", 1) > 1)
		return eval_groups(ctx, call);
	status = start(ctx, call, row_length(call), &j);
	if (status)
		return status;
	out = ql_line_axis(call->out[0], last);
	in.q = out.q = NULL;
	status = ql_lines_run(ctx, call, &lines, &in, &out, NULL, &j);
	call->path = "integer";
	call->kernel = "norm_int";
	return status;
}

#define NORM(path_name, op_name, eval_fn) \
	extern const struct ql_path ql_path_##path_name; \
	const struct ql_path ql_path_##path_name = { \
		.op = op_name, \
		.name = "integer", \
		.codes = "8 16 packed", \
		.text = "with out= of a given scale: exact sums and squares of codes, one square root per row", \
		.match = match, \
		.eval = eval_fn, \
	}

NORM(layernorm_int, "layernorm", eval);
NORM(rmsnorm_int, "rmsnorm", eval);
NORM(groupnorm_int, "groupnorm", eval_groups);
NORM(instancenorm_int, "instancenorm", eval_groups);
