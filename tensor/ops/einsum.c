/* SPDX-License-Identifier: MIT
 * Sums of products by index letters. Every operand is brought to distinct letters (a repeated one takes the
 * diagonal) and summed over letters that nobody else has; two operands then are (batch, rows, summed) and
 * (batch, summed, columns) of one matrix product, whose result is permuted into the wanted order.
 */
#include <ctype.h>
#include <string.h>

#include "tensor/ops/ops.h"
#include "tensor/reduce.h"
#include "tensor/view.h"

#define ELLIPSIS 256 /* labels from here on are the axes of "...", counted from its last one */
#define LEGAL "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ,.->"
#define LABELS (ELLIPSIS + QL_MAX_RANK)

struct term {
	int n;
	int label[QL_MAX_RANK];
};

struct equation {
	struct term in[2], out;
	int operands;
	int64_t size[LABELS]; /* of a label; 0 while unknown */
	bool known[LABELS];
};

static int find(const struct term *t, int label)
{
	for (int i = 0; i < t->n; i++)
		if (t->label[i] == label)
			return i;
	return -1;
}

/* ---- reading the equation ---- */

static enum ql_status bad(struct ql_ctx *ctx, const char *text, const char *wanted)
{
	return ql_fail(ctx, QL_ERR_ARGUMENT, "einsum: equation: wanted %s, got '%.60s'", wanted, text);
}

/* One term up to ',', '-' or the end; `dots` is the number of axes that "..." stands for, or -1: not known.
 */
static enum ql_status read_term(
	struct ql_ctx *ctx, const char *text, const char **at, int dots, struct term *t)
{
	const char *s = *at;

	t->n = 0;
	for (; *s && *s != ',' && *s != '-'; s++) {
		int more = 1;

		if (*s == ' ')
			continue;
		if (strncmp(s, "...", 3) == 0) {
			more = dots;
			s += 2;
		} else if (!isalpha((unsigned char)*s)) {
			return bad(ctx, text, "letters, ',', '...' and '->'");
		}
		if (more < 0 || t->n + more > QL_MAX_RANK)
			return bad(ctx, text, "as many letters as each operand has axes");
		for (int k = 0; k < more; k++)
			t->label[t->n++] = *s == '.' ? ELLIPSIS + more - 1 - k : *s;
	}
	*at = s;
	return QL_OK;
}

/* letters of a term, and whether it has "..." */
static int count_letters(const char *s, bool *dots)
{
	int n = 0;

	*dots = false;
	for (; *s && !strchr(",->", *s); s++) {
		n += isalpha((unsigned char)*s) != 0;
		*dots = *dots || *s == '.';
	}
	return n;
}

/* Without "->": the axes of "..." and then the letters that occur once, in alphabetical order. */
static void implicit_output(struct equation *e, int dots)
{
	e->out.n = 0;
	for (int k = dots - 1; k >= 0; k--)
		e->out.label[e->out.n++] = ELLIPSIS + k;
	for (int label = 0; label < ELLIPSIS; label++) {
		int count = 0;

		for (int i = 0; i < e->operands; i++)
			for (int k = 0; k < e->in[i].n; k++)
				count += e->in[i].label[k] == label;
		if (count == 1 && e->out.n < QL_MAX_RANK)
			e->out.label[e->out.n++] = label;
	}
}

static enum ql_status check_output(struct ql_ctx *ctx, const char *text, const struct equation *e)
{
	for (int i = 0; i < e->out.n; i++) {
		int label = e->out.label[i];
		bool known = find(&e->in[0], label) >= 0 || (e->operands > 1 && find(&e->in[1], label) >= 0);

		if (!known)
			return bad(ctx, text, "every letter of the result in an operand");
		for (int k = 0; k < i; k++)
			if (e->out.label[k] == label)
				return bad(ctx, text, "every letter of the result once");
	}
	return QL_OK;
}

static enum ql_status read_equation(struct ql_ctx *ctx, const struct ql_call *call, struct equation *e)
{
	const char *text = ql_call_string(call, "equation", ""), *s = text;
	int most = 0;
	enum ql_status status = QL_OK;

	if (strspn(text, LEGAL) != strlen(text) || (strchr(text, '>') && !strstr(text, "->")))
		return bad(ctx, text, "letters, ',', '...' and '->'");
	e->operands = call->n_in;
	for (int i = 0; i < e->operands && !status; i++) {
		bool dots;
		int rank = call->in[i]->rank, letters = count_letters(s, &dots);

		if (i > 0 && *s++ != ',')
			return bad(ctx, text, "one term for each operand");
		if (i > 0)
			letters = count_letters(s, &dots);
		if (letters > rank || (!dots && letters < rank))
			return ql_fail(ctx, QL_ERR_SHAPE,
				"einsum: operand %d: wanted %d axes for '%.60s', got %d", i + 1, letters,
				text, rank);
		most = dots && rank - letters > most ? rank - letters : most;
		status = read_term(ctx, text, &s, dots ? rank - letters : -1, &e->in[i]);
	}
	if (status)
		return status;
	if (*s == ',')
		return bad(ctx, text, "one term for each operand");
	if (*s == '\0') {
		implicit_output(e, most);
		return QL_OK;
	}
	if (s[1] != '>')
		return bad(ctx, text, "'->' before the result");
	s += 2;
	status = read_term(ctx, text, &s, most, &e->out);
	if (!status && *s)
		status = bad(ctx, text, "one term after '->'");
	return status ? status : check_output(ctx, text, e);
}

/* Equal sizes for equal letters; 1 is stretched. */
static enum ql_status find_sizes(struct ql_ctx *ctx, const struct ql_call *call, struct equation *e)
{
	for (int i = 0; i < e->operands; i++)
		for (int k = 0; k < e->in[i].n; k++) {
			int label = e->in[i].label[k];
			int64_t size = call->in[i]->shape[k];

			if (e->known[label] && e->size[label] != size && e->size[label] != 1 && size != 1)
				return ql_fail(ctx, QL_ERR_SHAPE,
					"einsum: operand %d, axis %d: wanted size %lld, as where its letter "
					"stands before, got %lld",
					i + 1, k + 1, (long long)e->size[label], (long long)size);
			if (!e->known[label] || e->size[label] == 1)
				e->size[label] = size;
			e->known[label] = true;
		}
	return QL_OK;
}

/* ---- steps; each replaces *t, of which it owns a reference ---- */

static void put(struct ql_ctx *ctx, struct ql_tensor **t, struct ql_tensor *next)
{
	ql_tensor_release(ctx, *t);
	*t = next;
}

/* Letters that stand twice: their diagonal. Sizes of 1 beside larger ones are stretched. */
static enum ql_status take_diagonals(
	struct ql_ctx *ctx, const struct equation *e, struct term *term, struct ql_tensor **t)
{
	struct ql_tensor *view;
	struct term left = {0};
	enum ql_status status = ql_tensor_alias(ctx, *t, &view);

	if (status)
		return status;
	view->rank = 0;
	for (int d = 0; d < term->n; d++) {
		int label = term->label[d], at = find(&left, label);
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
static enum ql_status sum_alone(struct ql_ctx *ctx, const struct term *other, const struct term *out,
	struct term *term, struct ql_tensor **t)
{
	int64_t axes[QL_MAX_RANK];
	struct ql_value attr[2] = {{.set = true, .ints = {.at = axes}}};
	struct ql_call call = {.op = &ql_op_sum, .in = t, .n_in = 1, .attr = attr};
	struct term left = {0};
	enum ql_status status;

	for (int d = 0; d < term->n; d++) {
		int label = term->label[d];

		if (find(out, label) >= 0 || (other && find(other, label) >= 0))
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
	struct ql_ctx *ctx, const struct term *from, const struct term *to, struct ql_tensor **t)
{
	int order[QL_MAX_RANK];
	struct ql_tensor *view;
	enum ql_status status;

	for (int d = 0; d < to->n; d++)
		order[d] = find(from, to->label[d]);
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

static void sort_labels(const struct equation *e, struct term *group)
{
	for (int i = 0; i < 2; i++)
		for (int d = 0; d < e->in[i].n; d++) {
			int label = e->in[i].label[d];
			bool both = find(&e->in[1 - i], label) >= 0, kept = find(&e->out, label) >= 0;
			struct term *g = &group[both ? kept ? BATCH : SUMMED : i ? COLUMNS : ROWS];

			if (!(both && i))
				g->label[g->n++] = label;
		}
}

/* INT64_MAX where it does not fit: no tensor can have that size, as reshape finds. */
static int64_t size_of(const struct equation *e, const struct term *group)
{
	int64_t n = 1;

	for (int i = 0; i < group->n; i++)
		if (__builtin_mul_overflow(n, e->size[group->label[i]], &n))
			return INT64_MAX;
	return n;
}

static void append(struct term *t, const struct term *more)
{
	for (int i = 0; i < more->n; i++)
		t->label[t->n++] = more->label[i];
}

/* Operand i as (batch, first, second), where first and second are groups. */
static enum ql_status matrices(struct ql_ctx *ctx, const struct equation *e, int i, const struct term *group,
	int first, int second, struct ql_tensor **t)
{
	struct term order = {0};
	int64_t shape[3] = {size_of(e, &group[BATCH]), size_of(e, &group[first]), size_of(e, &group[second])};
	enum ql_status status;

	append(&order, &group[BATCH]);
	append(&order, &group[first]);
	append(&order, &group[second]);
	status = permute_to(ctx, &e->in[i], &order, t);
	return status ? status : reshape(ctx, 3, shape, t);
}

static enum ql_status multiply(struct ql_ctx *ctx, struct ql_call *call, struct equation *e,
	struct ql_tensor **t, struct ql_tensor **out)
{
	struct term group[GROUPS] = {{0}}, order = {0};
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

static enum ql_status contract(struct ql_ctx *ctx, struct ql_call *call, struct equation *e,
	struct ql_tensor **t, struct ql_tensor **out)
{
	bool two = e->operands > 1;
	enum ql_status status = QL_OK;

	for (int i = 0; i < e->operands && !status; i++)
		status = take_diagonals(ctx, e, &e->in[i], &t[i]);
	for (int i = 0; i < e->operands && !status; i++)
		status = sum_alone(ctx, two ? &e->in[1 - i] : NULL, &e->out, &e->in[i], &t[i]);
	if (status)
		return status;
	if (two)
		return multiply(ctx, call, e, t, out);
	*out = ql_tensor_keep(t[0]);
	return permute_to(ctx, &e->in[0], &e->out, out);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct equation e = {.operands = 0};
	struct ql_tensor *t[2] = {NULL, NULL}, *out = NULL;
	enum ql_status status = read_equation(ctx, call, &e);

	if (!status)
		status = find_sizes(ctx, call, &e);
	if (status)
		return status;
	for (int i = 0; i < call->n_in; i++)
		t[i] = ql_tensor_keep(call->in[i]);
	status = contract(ctx, call, &e, t, &out);
	if (!status)
		status = ql_tensor_clone(ctx, out, &call->out[0]); /* never a view of an operand */
	for (int i = 0; i < 2; i++)
		ql_tensor_release(ctx, t[i]);
	ql_tensor_release(ctx, out);
	return status;
}

static const struct ql_attr attrs[] = {
	{"equation", QL_ATTR_STRING, QL_POSITIONAL | QL_REQUIRED, NULL,
		"letters for the axes, as 'ij,jk->ik'"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

const struct ql_op ql_op_einsum = {
	.doc = {.name = "einsum",
		.usage = "tensor.einsum('ij,jk->ik', a, b)",
		.text = "Sum of products by index letters, one letter for each axis of one or two operands: letters "
			"that are missing in the result are summed over, a letter twice in one operand takes the "
			"diagonal, '...' stands for any further axes, which broadcast. Without '->' the result has "
			"the letters that occur once, in alphabetical order. Two operands are multiplied by matmul, "
			"with its dtype rules.",
		.example = "a = tensor{{1,2},{3,4}}\n"
			"print(tensor.einsum('ij,jk->ik', a, a):view(4))  --> float32(4)   7  10  15  22\n"
			"print(tensor.einsum('ii', a):item())  --> 5.0",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 2,
	.flags = QL_FUNCTION,
	.eval = eval,
	.allocates = true,
};
