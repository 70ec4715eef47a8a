/* SPDX-License-Identifier: MIT
 * Sums of products by index letters. Every operand is reduced to distinct letters (diagonals for repeated ones) and
 * summed over letters that occur nowhere else. Two operands are then (batch, rows, summed) and (batch, summed,
 * columns) of one matrix product, whose result is permuted. More operands are multiplied from left to right, two at a
 * time; nn/graph/expand.lua makes the same steps.
 */
#include <string.h>

#include "tensor/equation.h"
#include "tensor/ops/ops.h"
#include "tensor/loops/reduce.h"
#include "tensor/view.h"

/* ---- steps; each replaces the tensor that *t owns ---- */

static void put(struct ql_ctx *ctx, struct ql_tensor **t, struct ql_tensor *next)
{
	ql_tensor_release(ctx, *t);
	*t = next;
}

/* Takes the diagonal of repeated letters. Sizes of 1 broadcast. */
static enum ql_status take_diagonals(
	struct ql_ctx *ctx, const struct ql_equation *e, struct ql_term *term, struct ql_tensor **t)
{
	struct ql_tensor *view;
	struct ql_term left = {0};
	enum ql_status status = ql_tensor_alias(ctx, *t, &view);

	if (status)
		return status;
	view->rank = 0;
	for (int d = 0; d < term->n; d++) {
		int label = term->label[d], at = ql_term_find(&left, label);
		int64_t stride = (*t)->shape[d] == 1 ? 0 : (*t)->stride[d];

		if (at >= 0) {
			view->stride[at] += stride;
			continue;
		}
		left.label[left.n++] = label;
		view->shape[view->rank] = e->size[label];
		view->stride[view->rank++] = stride;
	}
	*term = left;
	put(ctx, t, view);
	return QL_OK;
}

/* Sums over the letters that are in neither of the other terms. */
static enum ql_status sum_alone(struct ql_ctx *ctx, const struct ql_term *other, const struct ql_term *out,
	struct ql_term *term, struct ql_tensor **t)
{
	int64_t axes[QL_MAX_RANK];
	struct ql_value attr[2] = {{.set = true, .ints = {.at = axes}}};
	struct ql_call call = {.op = &ql_op_sum, .in = t, .n_in = 1, .attr = attr};
	struct ql_term left = {0};
	enum ql_status status;

	for (int d = 0; d < term->n; d++) {
		int label = term->label[d];

		if (ql_term_find(out, label) >= 0 || (other && ql_term_find(other, label) >= 0))
			left.label[left.n++] = label;
		else
			axes[attr[0].ints.n++] = d + 1;
	}
	if (attr[0].ints.n == 0)
		return QL_OK;
	status = ql_op_apply(ctx, &call);
	if (status)
		return status;
	*term = left;
	put(ctx, t, call.out[0]);
	return QL_OK;
}

static enum ql_status permute_to(
	struct ql_ctx *ctx, const struct ql_term *from, const struct ql_term *to, struct ql_tensor **t)
{
	int order[QL_MAX_RANK];
	struct ql_tensor *view;
	enum ql_status status;

	for (int d = 0; d < to->n; d++)
		order[d] = ql_term_find(from, to->label[d]);
	status = ql_view_permute(ctx, "einsum", *t, order, &view);
	if (!status)
		put(ctx, t, view);
	return status;
}

static enum ql_status reshape(struct ql_ctx *ctx, int rank, const int64_t *shape, struct ql_tensor **t)
{
	struct ql_tensor *next;
	enum ql_status status;

	if (!ql_view_can_reshape(*t, rank, shape)) {
		status = ql_tensor_clone(ctx, *t, &next);
		if (status)
			return status;
		put(ctx, t, next);
	}
	status = ql_view_reshape(ctx, "einsum", *t, rank, shape, &next);
	if (!status)
		put(ctx, t, next);
	return status;
}

/* ---- two operands ---- */

enum { BATCH, ROWS, SUMMED, COLUMNS, GROUPS };

static void sort_labels(const struct ql_equation *e, struct ql_term *group)
{
	for (int i = 0; i < 2; i++)
		for (int d = 0; d < e->in[i].n; d++) {
			int label = e->in[i].label[d];
			bool both = ql_term_find(&e->in[1 - i], label) >= 0, kept = ql_term_find(&e->out, label) >= 0;
			struct ql_term *g = &group[both ? kept ? BATCH : SUMMED : i ? COLUMNS : ROWS];

			if (!(both && i))
				g->label[g->n++] = label;
		}
}

/* INT64_MAX on overflow: reshape then fails, because no tensor has that size. */
static int64_t size_of(const struct ql_equation *e, const struct ql_term *group)
{
	int64_t n = 1;

	for (int i = 0; i < group->n; i++)
		if (__builtin_mul_overflow(n, e->size[group->label[i]], &n))
			return INT64_MAX;
	return n;
}

static void append(struct ql_term *t, const struct ql_term *more)
{
	for (int i = 0; i < more->n; i++)
		t->label[t->n++] = more->label[i];
}

/* Operand i as (batch, first, second), where first and second are groups. */
static enum ql_status matrices(struct ql_ctx *ctx, const struct ql_equation *e, int i, const struct ql_term *group,
	int first, int second, struct ql_tensor **t)
{
	struct ql_term order = {0};
	int64_t shape[3] = {size_of(e, &group[BATCH]), size_of(e, &group[first]), size_of(e, &group[second])};
	enum ql_status status;

	append(&order, &group[BATCH]);
	append(&order, &group[first]);
	append(&order, &group[second]);
	status = permute_to(ctx, &e->in[i], &order, t);
	return status ? status : reshape(ctx, 3, shape, t);
}

static enum ql_status multiply(
	struct ql_ctx *ctx, struct ql_call *call, struct ql_equation *e, struct ql_tensor **t, struct ql_tensor **out)
{
	struct ql_term group[GROUPS] = {{0}}, order = {0};
	struct ql_call product = {.op = &ql_op_matmul, .in = t, .n_in = 2};
	int64_t shape[QL_MAX_RANK];
	enum ql_status status;

	sort_labels(e, group);
	status = matrices(ctx, e, 0, group, ROWS, SUMMED, &t[0]);
	if (!status)
		status = matrices(ctx, e, 1, group, SUMMED, COLUMNS, &t[1]);
	if (!status)
		status = ql_op_apply(ctx, &product);
	if (status)
		return status;
	call->path = product.path;
	call->kernel = product.kernel;
	*out = product.out[0];
	append(&order, &group[BATCH]);
	append(&order, &group[ROWS]);
	append(&order, &group[COLUMNS]);
	for (int d = 0; d < order.n; d++)
		shape[d] = e->size[order.label[d]];
	status = reshape(ctx, order.n, shape, out);
	return status ? status : permute_to(ctx, &order, &e->out, out);
}

static enum ql_status contract(
	struct ql_ctx *ctx, struct ql_call *call, struct ql_equation *e, struct ql_tensor **t, struct ql_tensor **out)
{
	bool two = e->operands > 1;
	int n = two ? 2 : 1;
	enum ql_status status = QL_OK;

	for (int i = 0; i < n && !status; i++)
		status = take_diagonals(ctx, e, &e->in[i], &t[i]);
	for (int i = 0; i < n && !status; i++)
		status = sum_alone(ctx, two ? &e->in[1 - i] : NULL, &e->out, &e->in[i], &t[i]);
	if (status)
		return status;
	if (two)
		return multiply(ctx, call, e, t, out);
	*out = ql_tensor_keep(t[0]);
	return permute_to(ctx, &e->in[0], &e->out, out);
}

static enum ql_status eval_two(struct ql_ctx *ctx, struct ql_call *call, struct ql_equation *e)
{
	struct ql_tensor *t[2] = {ql_tensor_keep(call->in[0]), NULL}, *out = NULL;
	enum ql_status status;

	if (e->operands > 1)
		t[1] = ql_tensor_keep(call->in[1]);
	status = contract(ctx, call, e, t, &out);
	if (!status)
		status = ql_tensor_clone(ctx, out, &call->out[0]); /* never a view of an operand */
	for (int i = 0; i < 2; i++)
		ql_tensor_release(ctx, t[i]);
	ql_tensor_release(ctx, out);
	return status;
}

/* ---- equations as text ---- */

#define LETTERS 52
#define TEXT (QL_TERMS * (QL_MAX_RANK + 1) + QL_MAX_RANK + 4)

struct written {
	char text[TEXT], letter_of[QL_LABELS];
	int n, letters;
};

/* Appends the term, with a letter for each label in the order of their first use; false: there are not enough letters. */
static bool write_term(struct written *w, const struct ql_term *t)
{
	for (int d = 0; d < t->n; d++) {
		char *letter = &w->letter_of[t->label[d]];

		if (!*letter) {
			if (w->letters == LETTERS)
				return false;
			*letter = (char)(w->letters < 26 ? 'a' + w->letters : 'A' + w->letters - 26);
			w->letters++;
		}
		w->text[w->n++] = *letter;
	}
	return true;
}

static void write_text(struct written *w, const char *text)
{
	memcpy(w->text + w->n, text, strlen(text));
	w->n += (int)strlen(text);
}

/* ---- more operands ---- */

static bool is_needed(const struct ql_equation *e, int from, int label)
{
	bool needed = ql_term_find(&e->out, label) >= 0;

	for (int i = from; i < e->operands; i++)
		needed = needed || ql_term_find(&e->in[i], label) >= 0;
	return needed;
}

/* The labels of a product of two terms that operands from `next` on or the result use: axes of "..." first. */
static enum ql_status joined(struct ql_ctx *ctx, const struct ql_equation *e, const struct ql_term *a,
	const struct ql_term *b, int next, struct ql_term *out)
{
	const struct ql_term *both[] = {a, b};

	out->n = 0;
	for (int dots = 1; dots >= 0; dots--)
		for (int i = 0; i < 2; i++)
			for (int d = 0; d < both[i]->n; d++) {
				int label = both[i]->label[d];

				if ((label >= QL_LABEL_DOTS) != dots || ql_term_find(out, label) >= 0 ||
					!is_needed(e, next, label))
					continue;
				if (out->n == QL_MAX_RANK)
					return ql_fail(ctx, QL_ERR_SHAPE,
						"einsum: wanted products of at most %d axes, got more from operands 1 to %d",
						QL_MAX_RANK, next);
				out->label[out->n++] = label;
			}
	return QL_OK;
}

/* Replaces *left, whose axes are *term, by its product with operand i. */
static enum ql_status multiply_next(struct ql_ctx *ctx, struct ql_call *call, const struct ql_equation *e, int i,
	struct ql_term *term, struct ql_tensor **left)
{
	struct ql_tensor *in[2] = {*left, call->in[i]};
	struct written w = {.n = 0};
	struct ql_value text = {.set = true, .s = w.text};
	struct ql_call pair = {.op = &ql_op_einsum, .in = in, .n_in = 2, .attr = &text};
	struct ql_term result = e->out;
	enum ql_status status = QL_OK;

	if (i + 1 < e->operands)
		status = joined(ctx, e, term, &e->in[i], i + 1, &result);
	write_term(&w, term); /* there are fewer labels than letters: three terms */
	write_text(&w, ",");
	write_term(&w, &e->in[i]);
	write_text(&w, "->");
	write_term(&w, &result);
	if (!status)
		status = ql_op_apply(ctx, &pair);
	if (status)
		return status;
	put(ctx, left, pair.out[0]);
	*term = result;
	call->path = pair.path;
	call->kernel = pair.kernel;
	return QL_OK;
}

static enum ql_status eval_many(struct ql_ctx *ctx, struct ql_call *call, const struct ql_equation *e)
{
	struct ql_tensor *left = ql_tensor_keep(call->in[0]);
	struct ql_term term = e->in[0];
	enum ql_status status = QL_OK;

	for (int i = 1; i < call->n_in && !status; i++)
		status = multiply_next(ctx, call, e, i, &term, &left);
	if (status)
		ql_tensor_release(ctx, left);
	else
		call->out[0] = left;
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_equation e = {.operands = 0};
	enum ql_status status = ql_equation_read(ctx, call, &e);

	if (status)
		return status;
	return e.operands > 2 ? eval_many(ctx, call, &e) : eval_two(ctx, call, &e);
}

/* ---- gradients ---- */

/* Whether another operand than i, or the result, has the label. */
static bool is_elsewhere(const struct ql_equation *e, int i, int label)
{
	bool found = ql_term_find(&e->out, label) >= 0;

	for (int k = 0; k < e->operands; k++)
		found = found || (k != i && ql_term_find(&e->in[k], label) >= 0);
	return found;
}

/* Einsum of the gradient and the other operands, summed to the labels of operand i that occur in them; `left`
 * receives these. */
static struct ql_tensor *rearranged(struct ql_back *b, const struct ql_equation *e, int i, struct ql_term *left)
{
	struct ql_tensor *in[QL_TERMS] = {ql_back_grad(b, 0)};
	struct written w = {.n = 0};
	struct ql_named attrs[] = {{"equation", {.s = w.text}}, {NULL, {.set = false}}};
	bool fits = write_term(&w, &e->out);
	int n = 1;

	for (int d = 0; d < e->in[i].n; d++) {
		int label = e->in[i].label[d];

		if (is_elsewhere(e, i, label) && ql_term_find(left, label) < 0)
			left->label[left->n++] = label;
	}
	for (int k = 0; k < e->operands; k++) {
		if (k == i)
			continue;
		in[n++] = ql_back_in(b, k);
		write_text(&w, ",");
		fits = fits && write_term(&w, &e->in[k]);
	}
	write_text(&w, "->");
	if (!fits || !write_term(&w, left))
		return ql_back_own(b, NULL,
			ql_fail(b->ctx, QL_ERR_UNSUPPORTED, "backward: einsum: wanted at most %d different axes",
				LETTERS));
	return ql_back_many(b, &ql_op_einsum, in, n, attrs);
}

/* g, whose axes are `left`, broadcast along the labels of operand i that only it had: one axis per label. */
static struct ql_tensor *with_all_labels(
	struct ql_back *b, const struct ql_equation *e, int i, const struct ql_term *left, struct ql_tensor *g)
{
	struct ql_term seen = {0};
	int64_t size[QL_MAX_RANK], full[QL_MAX_RANK];

	for (int d = 0; g && d < e->in[i].n; d++) {
		int label = e->in[i].label[d], at = ql_term_find(left, label);

		if (ql_term_find(&seen, label) >= 0)
			continue;
		size[seen.n] = at >= 0 ? g->shape[at] : 1;
		full[seen.n] = e->size[label];
		seen.label[seen.n++] = label;
	}
	return ql_back_expand(b, ql_back_reshape(b, g, seen.n, size), seen.n, full);
}

/* g on the diagonal of zeros, for a repeated letter of operand i */
static struct ql_tensor *on_diagonal(struct ql_back *b, const struct ql_equation *e, int i, struct ql_tensor *g)
{
	struct ql_result shape = {.dtype = ql_back_shape(b, i)->dtype, .rank = e->in[i].n};
	struct ql_term term = e->in[i];
	struct ql_tensor *zeros, *view = NULL;
	enum ql_status status;

	for (int d = 0; d < term.n; d++)
		shape.shape[d] = e->size[term.label[d]];
	zeros = ql_back_zeros(b, &shape);
	if (!zeros)
		return NULL;
	view = ql_tensor_keep(zeros);
	status = take_diagonals(b->ctx, e, &term, &view);
	ql_back_put(b, ql_back_own(b, view, status), g);
	return zeros;
}

static enum ql_status backward(struct ql_back *b)
{
	struct ql_equation e = {.operands = 0};

	if (!b->status)
		b->status = ql_equation_read(b->ctx, &b->call, &e);
	for (int i = 0; i < e.operands && !b->status; i++) {
		struct ql_term left = {0};
		struct ql_tensor *g;

		if (!ql_back_wants(b, i))
			continue;
		g = rearranged(b, &e, i, &left);
		g = with_all_labels(b, &e, i, &left, g);
		ql_back_give(b, i, g && g->rank < e.in[i].n ? on_diagonal(b, &e, i, g) : g);
	}
	return b->status;
}

static uint32_t saves(const struct ql_call *call)
{
	if (call->n_in == 2)
		return ql_saves_other(call);
	return call->n_in > 2 ? QL_SAVE_ALL : 0;
}

static const struct ql_attr attrs[] = {
	{"equation", QL_ATTR_STRING, QL_POSITIONAL | QL_REQUIRED, NULL, "letters for the axes, as 'ij,jk->ik'"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

const struct ql_op ql_op_einsum = {
	.doc = {.name = "einsum",
		.usage = "tensor.einsum('ij,jk->ik', a, b)",
		.text = "Sum of products by index letters, one letter for each axis of one to eight operands: letters "
			"that are missing in the result are summed over, a letter twice in one operand takes the "
			"diagonal, '...' matches any further axes, which broadcast. Without '->' the result has "
			"the letters that occur once, in alphabetical order. Two operands are multiplied by matmul, "
			"with its dtype rules; more of them from left to right, two at a time.",
		.example = "a = tensor{{1,2},{3,4}}\n"
			   "print(tensor.einsum('ij,jk->ik', a, a):view(4))  --> float32(4)   7  10  15  22\n"
			   "print(tensor.einsum('ii', a):item())  --> 5.0\n"
			   "print(tensor.einsum('i,ij,j->', a[1], a, a[2]):item())  --> 61.0",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = QL_TERMS,
	.flags = QL_FUNCTION | QL_ANYWHERE,
	.eval = eval,
	.allocates = true,
	.backward = backward,
	.saves_for = saves,
};
