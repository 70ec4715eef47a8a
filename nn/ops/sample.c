/* SPDX-License-Identifier: MIT
 * nn.sample: numbers of classes drawn by their logits. Weights are exp((x - max) / temperature); topk, topp and minp, in this order as in
 * transformers, leave out small ones by a cut: a weight, and at that weight the last class that stays. So sums follow the order of the
 * classes, and a draw depends on nothing but its row.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/loops/dense.h"
#include "tensor/loops/exponentials.h"
#include "tensor/ops/ops.h"
#include "tensor/scratch.h"

#define BINS 192 /* of weights, by their exponents: 2^0 to 2^-191 below the largest */

/* Class i stays if its weight is above `weight`, or is equal and i <= last. */
struct cut {
	float weight;
	int64_t last;
};

struct item {
	float weight;
	int64_t i;
};

struct row {
	int variant;
	int64_t n;
	const float *x;
	float *w;
	struct item *item; /* n */
	double temperature, topp, minp;
	int64_t topk;
};

static int larger(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->i < y->i ? -1 : x->i > y->i;
}

static int bin_of(float w, float most)
{
	int e, top;

	frexpf(w, &e);
	frexpf(most, &top);
	return top - e < BINS - 1 ? top - e : BINS - 1;
}

/* Sorts the classes in the bins 0..last; returns their number. */
static int64_t sorted(const struct row *r, float most, int last)
{
	int64_t count = 0;

	for (int64_t i = 0; i < r->n; i++)
		if (r->w[i] > 0 && bin_of(r->w[i], most) <= last)
			r->item[count++] = (struct item){r->w[i], i};
	qsort(r->item, (size_t)count, sizeof(*r->item), larger);
	return count;
}

struct bins {
	double sum[BINS];
	int64_t count[BINS];
};

static void fill_bins(const struct row *r, float most, struct bins *bins)
{
	memset(bins, 0, sizeof(*bins));
	for (int64_t i = 0; i < r->n; i++) {
		int b = r->w[i] > 0 ? bin_of(r->w[i], most) : BINS - 1;

		bins->sum[b] += (double)r->w[i];
		bins->count[b]++;
	}
}

/* The bins that have the k largest, or, if all may stay, the share topp. */
static int bins_needed(const struct row *r, const struct bins *bins)
{
	double total = 0, part = 0;
	int64_t have = 0;
	int b = 0;

	for (int i = 0; i < BINS; i++)
		total += bins->sum[i];
	if (r->topk < r->n)
		for (; b < BINS - 1 && have + bins->count[b] < r->topk; b++)
			have += bins->count[b];
	else /* with room for another rounding of the sum */
		for (; b < BINS - 1 && part + bins->sum[b] < r->topp * total * (1 + 1e-9); b++)
			part += bins->sum[b];
	return b;
}

/* The number of the first of n sorted classes that have the share topp of `total`. */
static int64_t share(const struct row *r, int64_t n, double total)
{
	double part = 0;

	for (int64_t i = 0; i < n; i++) {
		part += (double)r->item[i].weight;
		if (part >= r->topp * total)
			return i + 1;
	}
	return n;
}

/* The cut after the k largest, and after the fewest of these whose weights reach the share topp. */
static struct cut cut_of(const struct row *r, float most)
{
	struct bins bins;
	double total = 0;
	int64_t n;

	fill_bins(r, most, &bins);
	n = ql_min64(r->topk, sorted(r, most, bins_needed(r, &bins)));
	if (r->topk < r->n)
		for (int64_t i = 0; i < n; i++)
			total += (double)r->item[i].weight;
	else
		for (int b = 0; b < BINS; b++)
			total += bins.sum[b];
	if (r->topp < 1)
		n = share(r, n, total);
	return (struct cut){r->item[n - 1].weight, r->item[n - 1].i};
}

static bool stays(const struct row *r, const struct cut *cut, float least, int64_t i)
{
	return r->w[i] >= least && (r->w[i] > cut->weight || (r->w[i] == cut->weight && i <= cut->last));
}

static void fill_weights(const struct row *r, float most)
{
	for (int64_t i = 0; i < r->n; i++)
		r->w[i] = (float)((double)(r->x[i] - most) / r->temperature);
	ql_row_exp(r->variant, r->n, r->w, r->w, 0);
	for (int64_t i = 0; i < r->n; i++)
		if (r->x[i] == -INFINITY) /* clamped, and so not quite 0 */
			r->w[i] = 0;
}

/* The class, from 1, at the share u of the weights that stay; 0: all logits are -inf. */
static int64_t draw(const struct row *r, double u)
{
	float most = ql_row_largest(r->variant, r->x, r->n), least;
	struct cut cut = {0, r->n};
	double total = 0, part = 0;
	int64_t found = 0;

	if (most == -INFINITY)
		return 0;
	fill_weights(r, most);
	most = ql_row_largest(r->variant, r->w, r->n);
	if (r->topk < r->n || r->topp < 1)
		cut = cut_of(r, most);
	least = (float)r->minp * most;
	for (int64_t i = 0; i < r->n; i++)
		if (stays(r, &cut, least, i))
			total += (double)r->w[i];
	for (int64_t i = 0; i < r->n && (!found || part <= u * total); i++)
		if (r->w[i] > 0 && stays(r, &cut, least, i)) {
			found = i + 1;
			part += (double)r->w[i];
		}
	return found;
}

static enum ql_status check(struct ql_ctx *ctx, const struct ql_call *call)
{
	double t = ql_call_float(call, "temperature", 1), topp = ql_call_float(call, "topp", 1),
	       minp = ql_call_float(call, "minp", 0);
	int64_t topk = ql_call_int(call, "topk", 1);

	if (!(t > 0 && isfinite(t)))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "sample: temperature: wanted a number above 0, got %g", t);
	if (topk < 1)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "sample: topk: wanted 1 or more, got %lld", (long long)topk);
	if (!(topp > 0 && topp <= 1))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "sample: topp: wanted a number above 0, at most 1, got %g", topp);
	if (!(minp >= 0 && minp <= 1))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "sample: minp: wanted a number from 0 to 1, got %g", minp);
	return QL_OK;
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0], *u = call->in[1];
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	enum ql_status status = check(ctx, call);

	if (status)
		return status;
	if (x->rank != 2 || u->rank != 1 || u->shape[0] != x->shape[0] || x->shape[1] < 1)
		return ql_fail(ctx, QL_ERR_SHAPE, "sample: wanted logits (n, classes) and shares u (n), got %s and %s",
			ql_shape_text(x->rank, x->shape, a), ql_shape_text(u->rank, u->shape, b));
	if (!ql_dtype_is_float(ql_operand_dtype(x)) || !ql_dtype_is_float(ql_operand_dtype(u)))
		return ql_fail(ctx, QL_ERR_DTYPE, "sample: wanted floats, got %s and %s", ql_tensor_text(x, a),
			ql_tensor_text(u, b));
	ql_result_set(call, 0, QL_int64, 1, x->shape);
	return QL_OK;
}

static enum ql_status draw_rows(
	struct ql_ctx *ctx, struct ql_call *call, struct row *r, const float *x, const double *u)
{
	int64_t *out = ql_tensor_data(call->out[0]);

	for (int64_t i = 0; i < call->in[0]->shape[0]; i++) {
		r->x = x + i * r->n;
		for (int64_t k = 0; k < r->n; k++)
			if (isnan(r->x[k]) || r->x[k] == INFINITY)
				return ql_fail(ctx, QL_ERR_ARGUMENT,
					"sample: logits: wanted finite numbers or -inf, got %g for class %lld",
					(double)r->x[k], (long long)k + 1);
		if (!(u[i] >= 0 && u[i] < 1))
			return ql_fail(
				ctx, QL_ERR_ARGUMENT, "sample: u: wanted shares from 0 to below 1, got %g", u[i]);
		out[i] = draw(r, u[i]);
		if (!out[i])
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"sample: logits: wanted one class at least that is not -inf, got none");
	}
	return QL_OK;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_tensor *x = NULL, *u = NULL;
	int64_t n = call->in[0]->shape[1];
	struct row r = {.variant = ctx->kernels->simd->variant,
		.n = n,
		.temperature = ql_call_float(call, "temperature", 1),
		.topp = ql_call_float(call, "topp", 1),
		.minp = ql_call_float(call, "minp", 0),
		.topk = ql_min64(n, ql_call_int(call, "topk", n))};
	enum ql_status status = ql_dense_of(ctx, call->in[0], QL_float32, &x);

	if (!status)
		status = ql_dense_of(ctx, call->in[1], QL_float64, &u);
	r.w = ql_scratch_array(ctx, n, sizeof(*r.w));
	r.item = ql_scratch_array(ctx, n, sizeof(*r.item));
	if (!status && (!r.w || !r.item))
		status = QL_ERR_MEMORY;
	call->path = "float32";
	call->kernel = ctx->kernels->simd->name;
	if (!status)
		status = draw_rows(ctx, call, &r, ql_tensor_data(x), ql_tensor_data(u));
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, u);
	ql_scratch_release(ctx, mark);
	return status;
}

static const struct ql_attr attrs[] = {
	{"temperature", QL_ATTR_FLOAT, 0, NULL, "the logits are divided by it (default 1)"},
	{"topk", QL_ATTR_INT, 0, NULL, "draw among so many of the likeliest (default: all)"},
	{"topp", QL_ATTR_FLOAT, 0, NULL,
		"draw among the fewest of the likeliest that have this share of what topk leaves (default 1)"},
	{"minp", QL_ATTR_FLOAT, 0, NULL,
		"leave out what is less than this times as likely as the likeliest (default 0)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

extern const struct ql_op ql_op_sample;
const struct ql_op ql_op_sample = {
	.doc = {.name = "sample",
		.usage = "nn.sample(logits, u, {temperature=1, topk=, topp=1, minp=0})",
		.text = "One class for each row of logits (n, classes), int64 (n), drawn with the probabilities softmax(logits / temperature), "
			"after topk, topp and minp have left out unlikely ones; of equal ones the first stays. u (n), from 0 to below 1, says which: "
			"the class at the share u of the probabilities, in the order of the classes. m:generate draws so.",
		.example = "print(nn.sample(tensor{{0, 3, 1}}, tensor{0.9}))  --> int64(1)  3\n"
			   "print(nn.sample(tensor{{0, 3, 1}}, tensor{0.9}, {topp=0.8}))  --> int64(1)  2",
		.attrs = attrs},
	.arity_min = 2,
	.arity_max = 2,
	.flags = QL_FUNCTION,
	.infer = infer,
	.eval = eval,
};
