/* SPDX-License-Identifier: MIT
 * The pool of a backward, and the functions it is written with.
 */
#include "tensor/autograd/back.h"

#include <string.h>

#include "tensor/codec.h"
#include "tensor/ops.h"
#include "tensor/loops/reduce.h"
#include "tensor/view.h"

#define MAX_ATTRS 24

struct ql_tensor *ql_back_own(struct ql_back *b, struct ql_tensor *t, enum ql_status status)
{
	if (!status && b->n_pool == QL_BACK_MAX)
		status = ql_fail(b->ctx, QL_ERR_UNSUPPORTED, "backward: %s: wanted at most %d intermediate tensors",
			b->node->op->doc.name, QL_BACK_MAX);
	if (status) {
		ql_tensor_release(b->ctx, t);
		b->status = b->status ? b->status : status;
		return NULL;
	}
	b->pool[b->n_pool++] = t;
	return t;
}

bool ql_back_wants(const struct ql_back *b, int i)
{
	return i < b->node->n_in && b->node->edge[i].node;
}

struct ql_tensor *ql_back_grad(struct ql_back *b, int i)
{
	if (b->status)
		return NULL;
	return b->node->grad[i] ? b->node->grad[i] : ql_back_zeros(b, &b->node->result[i].is);
}

struct ql_tensor *ql_back_in(struct ql_back *b, int i)
{
	return b->status ? NULL : b->node->edge[i].value;
}

struct ql_tensor *ql_back_out(struct ql_back *b, int i)
{
	return b->status ? NULL : b->node->result[i].value;
}

struct ql_tensor *ql_back_real(struct ql_back *b, struct ql_tensor *t)
{
	struct ql_tensor *real = NULL;
	enum ql_status status;

	if (b->status || !t->q)
		return b->status ? NULL : t;
	status = ql_decode(b->ctx, t, &real);
	return ql_back_own(b, real, status);
}

const struct ql_result *ql_back_shape(const struct ql_back *b, int i)
{
	return &b->node->edge[i].is;
}

/* `recorded`: the call whose attributes are taken over; NULL: none */
static bool set_attrs(
	struct ql_value *attr, const struct ql_op *op, const struct ql_call *recorded, const struct ql_named *named)
{
	const struct ql_attr *a = op->doc.attrs;

	memset(attr, 0, MAX_ATTRS * sizeof(*attr));
	for (int i = 0; recorded && a && a[i].type != QL_ATTR_END && i < MAX_ATTRS; i++) {
		const struct ql_value *v = ql_call_attr(recorded, a[i].name);

		if (v)
			attr[i] = *v;
	}
	for (; named && named->name; named++) {
		int i = 0;

		while (a && a[i].type != QL_ATTR_END && strcmp(a[i].name, named->name))
			i++;
		if (!a || a[i].type == QL_ATTR_END || i >= MAX_ATTRS)
			return false;
		attr[i] = named->value;
		attr[i].set = true;
	}
	return true;
}

static struct ql_tensor *no_attribute(struct ql_back *b, const struct ql_op *op)
{
	return ql_back_own(b, NULL, ql_fail(b->ctx, QL_ERR_ARGUMENT, "%s: no such attribute", op->doc.name));
}

/* False after a failure; an operand that one should have made is then NULL. */
static bool may_run(const struct ql_back *b, struct ql_tensor *const *in, int n_in)
{
	for (int i = 0; i < n_in; i++)
		if (!in[i])
			return false;
	return !b->status;
}

/* Runs the call and owns its result `which`. */
static struct ql_tensor *apply_call(struct ql_back *b, struct ql_call *call, int which)
{
	struct ql_tensor *t = NULL;
	enum ql_status status;

	if (!may_run(b, call->in, call->n_in))
		return NULL;
	status = ql_op_apply(b->ctx, call);
	for (int i = 0; i < QL_MAX_OUT && !status; i++) {
		if (i == which)
			t = call->out[i];
		else
			ql_tensor_release(b->ctx, call->out[i]);
	}
	return ql_back_own(b, t, status);
}

static struct ql_tensor *apply(struct ql_back *b, const struct ql_op *op, struct ql_tensor **in, int n_in,
	const struct ql_named *named, int which)
{
	struct ql_value attr[MAX_ATTRS];
	struct ql_call call = {.op = op, .in = in, .n_in = n_in, .attr = attr};

	if (b->status)
		return NULL;
	if (!set_attrs(attr, op, NULL, named))
		return no_attribute(b, op);
	return apply_call(b, &call, which);
}

struct ql_tensor *ql_back_run(struct ql_back *b, const struct ql_op *op, struct ql_tensor *a, struct ql_tensor *c)
{
	return ql_back_with(b, op, a, c, NULL);
}

/* A NULL operand has failed, unless the op takes fewer operands. */
struct ql_tensor *ql_back_with(struct ql_back *b, const struct ql_op *op, struct ql_tensor *a, struct ql_tensor *c,
	const struct ql_named *attrs)
{
	struct ql_tensor *in[2] = {a, c};

	return apply(b, op, in, c || op->arity_min > 1 ? 2 : 1, attrs, 0);
}

struct ql_tensor *ql_back_again(struct ql_back *b, const struct ql_op *op, struct ql_tensor *a, struct ql_tensor *c)
{
	struct ql_tensor *in[2] = {a, c};
	struct ql_value attr[MAX_ATTRS];
	struct ql_call call = {
		.op = op, .in = in, .n_in = c || op->arity_min > 1 ? 2 : 1, .attr = attr, .random = b->node->random};

	set_attrs(attr, op, &b->call, NULL);
	return apply_call(b, &call, 0);
}

struct ql_tensor *ql_back_nth(
	struct ql_back *b, const struct ql_op *op, struct ql_tensor *a, const struct ql_named *attrs, int which)
{
	return apply(b, op, &a, 1, attrs, which);
}

struct ql_tensor *ql_back_many(
	struct ql_back *b, const struct ql_op *op, struct ql_tensor **in, int n_in, const struct ql_named *attrs)
{
	return apply(b, op, in, n_in, attrs, 0);
}

struct ql_tensor *ql_back_all(struct ql_back *b, const struct ql_op *op, struct ql_tensor **in, int n_in,
	const struct ql_named *attrs, struct ql_tensor **out)
{
	struct ql_tensor *only[QL_MAX_OUT];
	struct ql_value attr[MAX_ATTRS];
	struct ql_call call = {.op = op, .in = in, .n_in = n_in, .attr = attr};
	enum ql_status status;

	out = out ? out : only;
	memset(out, 0, QL_MAX_OUT * sizeof(*out));
	if (!may_run(b, in, n_in))
		return NULL;
	if (!set_attrs(attr, op, &b->call, attrs))
		return no_attribute(b, op);
	status = ql_op_apply(b->ctx, &call);
	for (int i = 0; i < QL_MAX_OUT; i++)
		if (i == 0 || call.out[i])
			out[i] = ql_back_own(b, call.out[i], status ? status : b->status);
	return out[0];
}

struct ql_call ql_back_forward(const struct ql_call *call, const struct ql_op *op)
{
	return (struct ql_call){.op = op, .in = call->in + 1, .n_in = call->n_in - 1, .attr = call->attr};
}

struct ql_tensor *ql_back_run3(
	struct ql_back *b, const struct ql_op *op, struct ql_tensor *a, struct ql_tensor *c, struct ql_tensor *d)
{
	struct ql_tensor *in[3] = {a, c, d};

	return apply(b, op, in, 3, NULL, 0);
}

struct ql_tensor *ql_back_number(struct ql_back *b, double value, const struct ql_tensor *like)
{
	struct ql_tensor *t;
	enum ql_status status;

	if (b->status || !like)
		return NULL;
	status = ql_tensor_new(b->ctx, ql_operand_dtype(like), 0, NULL, &t);
	if (!status)
		ql_dtypes[t->dtype].from_f64(t->storage->data, 0, 1, 1, &value);
	return ql_back_own(b, t, status);
}

/* a op value; the number adapts to a's dtype like a literal. */
static struct ql_tensor *with_number(struct ql_back *b, const struct ql_op *op, struct ql_tensor *a, double value)
{
	struct ql_storage storage = {.refs = 1, .bytes = sizeof(value), .data = &value, .device = &ql_device_cpu};
	struct ql_tensor number = {.refs = 1, .dtype = QL_float64, .storage = &storage};
	struct ql_tensor *in[2] = {a, &number};
	struct ql_call call = {.op = op, .in = in, .n_in = 2, .weak = 2};

	return apply_call(b, &call, 0);
}

struct ql_tensor *ql_back_scaled(struct ql_back *b, struct ql_tensor *a, double by)
{
	return by == 1 ? a : with_number(b, &ql_op_mul, a, by);
}

struct ql_tensor *ql_back_plus(struct ql_back *b, struct ql_tensor *a, double number)
{
	return with_number(b, &ql_op_add, a, number);
}

struct ql_tensor *ql_back_reshape(struct ql_back *b, struct ql_tensor *a, int rank, const int64_t *shape)
{
	struct ql_named attrs[] = {{"size", {.ints = {rank, (int64_t *)(uintptr_t)shape}}}, {NULL, {.set = false}}};

	return ql_back_with(b, &ql_op_reshape, a, NULL, attrs);
}

struct ql_tensor *ql_back_expand(struct ql_back *b, struct ql_tensor *a, int rank, const int64_t *shape)
{
	struct ql_tensor *t = NULL;
	enum ql_status status;

	if (b->status || !a)
		return NULL;
	status = ql_view_expand(b->ctx, "expand", a, rank, shape, &t);
	return ql_back_own(b, t, status);
}

struct ql_tensor *ql_back_permute(struct ql_back *b, struct ql_tensor *a, const int *order)
{
	struct ql_tensor *t = NULL;
	enum ql_status status;

	if (b->status || !a)
		return NULL;
	status = ql_view_permute(b->ctx, "permute", a, order, &t);
	return ql_back_own(b, t, status);
}

struct ql_tensor *ql_back_transpose(struct ql_back *b, struct ql_tensor *a, int axis, int other)
{
	int order[QL_MAX_RANK];

	for (int d = 0; d < QL_MAX_RANK; d++)
		order[d] = d == axis ? other : d == other ? axis : d;
	return ql_back_permute(b, a, order);
}

struct ql_tensor *ql_back_sum(struct ql_back *b, struct ql_tensor *a, unsigned mask, bool keep)
{
	int64_t axes[QL_MAX_RANK];
	struct ql_named attrs[] = {{"axis", {.ints = {0, axes}}}, {"keep", {.b = keep}}, {NULL, {.set = false}}};

	if (!mask || !a)
		return a;
	for (int d = 0; d < a->rank; d++)
		if (mask >> d & 1)
			axes[attrs[0].value.ints.n++] = d + 1;
	return ql_back_with(b, &ql_op_sum, a, NULL, attrs);
}

struct ql_tensor *ql_back_zeros(struct ql_back *b, const struct ql_result *shape)
{
	struct ql_tensor *t = NULL;
	enum ql_status status;

	if (b->status)
		return NULL;
	status = ql_tensor_zeros_on(b->ctx, b->node->result[0].device, shape->dtype, shape->rank, shape->shape, &t);
	return ql_back_own(b, t, status);
}

void ql_back_put(struct ql_back *b, struct ql_tensor *view, struct ql_tensor *t)
{
	enum ql_status status;

	if (b->status || !view || !t)
		return;
	status = ql_tensor_copy(b->ctx, view, t);
	b->status = status;
}

struct ql_tensor *ql_back_narrow(struct ql_back *b, struct ql_tensor *a, int axis, int64_t start, int64_t length)
{
	struct ql_tensor *t = NULL;
	enum ql_status status;

	if (b->status || !a)
		return NULL;
	status = ql_view_narrow(b->ctx, "narrow", a, axis, start, length, &t);
	return ql_back_own(b, t, status);
}

struct ql_tensor *ql_back_select(struct ql_back *b, struct ql_tensor *a, int axis, int64_t index)
{
	struct ql_tensor *t = NULL;
	enum ql_status status;

	if (b->status || !a)
		return NULL;
	status = ql_view_select(b->ctx, "select", a, axis, index, &t);
	return ql_back_own(b, t, status);
}

void ql_back_forget(struct ql_back *b, int n_pool)
{
	while (b->n_pool > n_pool)
		ql_tensor_release(b->ctx, b->pool[--b->n_pool]);
}

/* ---- reductions ---- */

unsigned ql_back_axes(struct ql_back *b)
{
	unsigned mask = 0;
	enum ql_status status;

	if (b->status)
		return 0;
	status = ql_reduce_axes(b->ctx, &b->call, &mask);
	b->status = status;
	return mask;
}

struct ql_tensor *ql_back_spread(struct ql_back *b, struct ql_tensor *t)
{
	const struct ql_result *in = ql_back_shape(b, 0);
	int64_t shape[QL_MAX_RANK];
	unsigned mask = ql_back_axes(b);

	for (int d = 0; d < in->rank; d++)
		shape[d] = mask >> d & 1 ? 1 : in->shape[d];
	return ql_back_expand(b, ql_back_reshape(b, t, in->rank, shape), in->rank, in->shape);
}

/* The axes of operand 0 with the reduced ones last; returns the number of kept axes. */
static int lines_order(struct ql_back *b, int *order)
{
	unsigned mask = ql_back_axes(b);
	int n = 0, kept = 0;

	for (unsigned pass = 0; pass < 2; pass++)
		for (int d = 0; d < ql_back_shape(b, 0)->rank; d++)
			if ((mask >> d & 1) == pass) {
				order[n++] = d;
				kept += pass == 0;
			}
	return kept;
}

struct ql_tensor *ql_back_lines(struct ql_back *b, struct ql_tensor *t)
{
	int order[QL_MAX_RANK], kept = lines_order(b, order);
	int64_t shape[QL_MAX_RANK + 1], n = 1;

	if (b->status || !t)
		return NULL;
	for (int d = 0; d < t->rank; d++) {
		shape[d] = t->shape[order[d]];
		n *= d < kept ? 1 : shape[d];
	}
	shape[kept] = n;
	return ql_back_reshape(b, ql_back_permute(b, t, order), kept + 1, shape);
}

struct ql_tensor *ql_back_unlines(struct ql_back *b, struct ql_tensor *t)
{
	const struct ql_result *in = ql_back_shape(b, 0);
	int order[QL_MAX_RANK], back[QL_MAX_RANK] = {0};
	int64_t shape[QL_MAX_RANK];

	lines_order(b, order);
	for (int d = 0; d < in->rank; d++) {
		shape[d] = in->shape[order[d]];
		back[order[d]] = d;
	}
	return ql_back_permute(b, ql_back_reshape(b, t, in->rank, shape), back);
}

struct ql_tensor *ql_back_ends(struct ql_back *b, struct ql_tensor *t)
{
	const struct ql_result *in = ql_back_shape(b, 0);
	int order[QL_MAX_RANK], kept = lines_order(b, order);
	int64_t shape[QL_MAX_RANK + 1];

	for (int d = 0; d < kept; d++)
		shape[d] = in->shape[order[d]];
	shape[kept] = 1;
	return ql_back_reshape(b, t, kept + 1, shape);
}

/* ---- giving ---- */

/* The axes along which `shape` was broadcast to t's shape. */
static unsigned repeated(const struct ql_tensor *t, const struct ql_result *shape)
{
	int extra = t->rank - shape->rank;
	unsigned mask = 0;

	for (int d = 0; d < t->rank; d++)
		if (d < extra || (shape->shape[d - extra] == 1 && t->shape[d] != 1))
			mask |= 1u << d;
	return mask;
}

static struct ql_tensor *as_dtype(struct ql_back *b, struct ql_tensor *t, unsigned dtype)
{
	struct ql_tensor *out = NULL;
	enum ql_status status;

	if (!t || t->dtype == dtype)
		return t;
	status = ql_tensor_cast(b->ctx, t, dtype, &out);
	return ql_back_own(b, out, status);
}

/* A sum is never rounded to fewer bits than its operand has, e.g. the gradient of a float32 bias with float16
 * results. */
static struct ql_tensor *fitted(struct ql_back *b, struct ql_tensor *t, const struct ql_result *shape)
{
	unsigned mask = repeated(t, shape);

	if (mask && ql_dtypes[t->dtype].bits < ql_dtypes[shape->dtype].bits)
		t = as_dtype(b, t, shape->dtype);
	if (mask && t)
		t = ql_back_reshape(b, ql_back_sum(b, t, mask, true), shape->rank, shape->shape);
	return as_dtype(b, t, shape->dtype);
}

void ql_back_give(struct ql_back *b, int i, struct ql_tensor *t)
{
	const struct ql_result *shape = &b->node->edge[i].is;

	if (!ql_back_wants(b, i) || !t || b->status)
		return;
	t = fitted(b, t, shape);
	if (t && b->give[i])
		t = ql_back_run(b, &ql_op_add, b->give[i], t);
	if (!t)
		return;
	ql_tensor_keep(t);
	ql_tensor_release(b->ctx, b->give[i]);
	b->give[i] = t;
}

enum ql_status ql_backward_none(struct ql_back *b)
{
	return b->status;
}

enum ql_status ql_backward_same(struct ql_back *b)
{
	for (int i = 0; i < b->node->n_in; i++)
		ql_back_give(b, i, ql_back_grad(b, 0));
	return b->status;
}

uint32_t ql_saves_other(const struct ql_call *call)
{
	return (call->in[1]->node ? QL_SAVE(0) : 0) | (call->in[0]->node ? QL_SAVE(1) : 0);
}

struct ql_tensor *ql_back_nonzero(struct ql_back *b, struct ql_tensor *x, struct ql_tensor **zeros)
{
	struct ql_tensor *is_zero = ql_back_run(b, &ql_op_eq, x, ql_back_number(b, 0, x)),
			 *one = ql_back_number(b, 1, x);

	*zeros = ql_back_run3(b, &ql_op_where, is_zero, one, ql_back_number(b, 0, x));
	return ql_back_run3(b, &ql_op_where, is_zero, one, x);
}

struct ql_tensor *ql_back_others(
	struct ql_back *b, struct ql_tensor *x, struct ql_tensor *product, struct ql_tensor *zeros)
{
	struct ql_tensor *none = ql_back_number(b, 0, product), *is_zero = ql_back_run(b, &ql_op_eq, x, none);
	struct ql_tensor *only = ql_back_run(b, &ql_op_eq, zeros, ql_back_number(b, 1, zeros));

	only = ql_back_run3(b, &ql_op_where, only, product, none);
	product = ql_back_run3(
		b, &ql_op_where, ql_back_run(b, &ql_op_eq, zeros, none), ql_back_run(b, &ql_op_div, product, x), none);
	return ql_back_run3(b, &ql_op_where, is_zero, only, product);
}
