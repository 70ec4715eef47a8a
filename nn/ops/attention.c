/* SPDX-License-Identifier: MIT
 * nn.attention: shapes and layouts; the work is done in nn/attention_f32.c and nn/attention_f64.c. Operands are
 * read in place if their last axis is dense, so heads are split from (batch, time, heads * d) without a copy.
 */
#include <math.h>
#include <string.h>

#include "nn/attention.h"
#include "tensor/kernels/kernels.h"
#include "tensor/autograd/back.h"
#include "tensor/loops/dense.h"
#include "tensor/ops/ops.h"

#define WIDEST 65536 /* maximum width of a head */

enum { Q, K, V, OPERANDS = 5 };

/* Where the mask and the lengths are among the operands, 0: not given. Both are optional: their dtypes tell which is which. */
struct optional {
	int mask, lengths;
};

static struct optional optional_of(const struct ql_call *call)
{
	struct optional o = {0, 0};

	for (int i = 3; i < call->n_in; i++) {
		unsigned dtype = call->in[i]->dtype;
		bool mask = call->in[i]->q || ql_dtype_is_float(dtype) || ql_dtype_is_bool(dtype);

		*(mask ? &o.mask : &o.lengths) = i;
	}
	return o;
}

static int64_t heads_of(const struct ql_call *call)
{
	return ql_call_int(call, "heads", 0);
}

static enum ql_status mismatch(struct ql_ctx *ctx, const struct ql_call *call, const char *wanted)
{
	char q[QL_SHAPE_TEXT], k[QL_SHAPE_TEXT], v[QL_SHAPE_TEXT];

	return ql_fail(ctx, QL_ERR_SHAPE, "attention: wanted %s, got q %s, k %s and v %s", wanted,
		ql_shape_text(call->in[Q]->rank, call->in[Q]->shape, q),
		ql_shape_text(call->in[K]->rank, call->in[K]->shape, k),
		ql_shape_text(call->in[V]->rank, call->in[V]->shape, v));
}

/* Reads the sizes of (batch, heads, time, width) operands. */
static enum ql_status split_sizes(struct ql_ctx *ctx, const struct ql_call *call, struct ql_attention *a)
{
	const int64_t *q = call->in[Q]->shape, *k = call->in[K]->shape, *v = call->in[V]->shape;

	for (int i = 0; i < 3; i++)
		if (call->in[i]->rank != 4)
			return mismatch(ctx, call,
				"q, k and v of shape (batch, heads, time, d), or heads= and (batch, time, heads * d)");
	if (k[0] != q[0] || v[0] != q[0] || k[3] != q[3] || v[1] != k[1] || v[2] != k[2])
		return mismatch(ctx, call, "k (b, h, s, d) and v (b, h, s, e) that go with q (b, heads, t, d)");
	*a = (struct ql_attention){
		.batches = q[0], .heads = q[1], .shared = k[1], .queries = q[2], .keys = k[2], .d = q[3], .e = v[3]};
	return QL_OK;
}

/* Reads the sizes of (batch, time, heads * width) operands. */
static enum ql_status joined_sizes(struct ql_ctx *ctx, const struct ql_call *call, struct ql_attention *a)
{
	const int64_t *q = call->in[Q]->shape, *k = call->in[K]->shape, *v = call->in[V]->shape;
	int64_t heads = heads_of(call), d;

	if (heads < 1)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "attention: heads: wanted 1 or more, got %lld", (long long)heads);
	for (int i = 0; i < 3; i++)
		if (call->in[i]->rank != 3)
			return mismatch(ctx, call, "with heads= q, k and v of shape (batch, time, heads * d)");
	d = q[2] / heads;
	if (q[2] % heads || d == 0 || k[2] % d || k[2] == 0)
		return mismatch(ctx, call, "widths of q and k that are multiples of one head");
	*a = (struct ql_attention){
		.batches = q[0], .heads = heads, .shared = k[2] / d, .queries = q[1], .keys = k[1], .d = d};
	if (k[0] != q[0] || v[0] != q[0] || v[1] != k[1] || v[2] % a->shared)
		return mismatch(ctx, call, "k (b, s, h * d) and v (b, s, h * e) that go with q (b, t, heads * d)");
	a->e = v[2] / a->shared;
	return QL_OK;
}

static enum ql_status sizes(struct ql_ctx *ctx, const struct ql_call *call, struct ql_attention *a)
{
	enum ql_status status = ql_call_attr(call, "heads") ? joined_sizes(ctx, call, a) : split_sizes(ctx, call, a);

	if (status)
		return status;
	a->causal = ql_call_bool(call, "causal", false);
	a->scale = ql_call_float(call, "scale", 1 / sqrt((double)a->d));
	a->window = ql_min64(ql_call_int(call, "window", 0), a->keys + a->queries);
	a->softcap = ql_call_float(call, "softcap", 0);
	if (a->d == 0 || a->keys == 0 || a->shared == 0)
		return mismatch(ctx, call, "at least one key of at least one number");
	if (a->heads % a->shared)
		return mismatch(ctx, call, "heads of q that are a multiple of those of k and v");
	if (a->causal && a->keys < a->queries)
		return mismatch(ctx, call, "with causal at least as many keys as queries");
	if (a->d > WIDEST || a->e > WIDEST)
		return mismatch(ctx, call, "heads of at most 65536 numbers");
	if (!isfinite(a->scale))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "attention: scale: wanted a finite number, got %g", a->scale);
	if (ql_call_attr(call, "window") && a->window < 1)
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "attention: window: wanted 1 or more, got %lld", (long long)a->window);
	if (ql_call_attr(call, "softcap") && !(a->softcap > 0 && isfinite(a->softcap)))
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "attention: softcap: wanted a finite number above 0, got %g", a->softcap);
	return QL_OK;
}

/* A mask is broadcast to (batch, heads, queries, keys), from the last axis on. */
static enum ql_status check_mask(struct ql_ctx *ctx, const struct ql_tensor *mask, const struct ql_attention *a)
{
	int64_t scores[4] = {a->batches, a->heads, a->queries, a->keys};
	char got[QL_SHAPE_TEXT], want[QL_SHAPE_TEXT];
	bool fits = mask->rank <= 4;

	if (mask->q || (!ql_dtype_is_bool(mask->dtype) && !ql_dtype_is_float(mask->dtype)))
		return ql_fail(
			ctx, QL_ERR_DTYPE, "attention: mask: wanted bool or floats, got %s", ql_tensor_text(mask, got));
	for (int i = 1; fits && i <= mask->rank; i++)
		fits = mask->shape[mask->rank - i] == 1 || mask->shape[mask->rank - i] == scores[4 - i];
	if (!fits)
		return ql_fail(ctx, QL_ERR_SHAPE,
			"attention: mask: wanted a shape that is broadcast to (batch, heads, queries, keys) = %s, got %s",
			ql_shape_text(4, scores, want), ql_shape_text(mask->rank, mask->shape, got));
	return QL_OK;
}

static enum ql_status check_optional(struct ql_ctx *ctx, const struct ql_call *call, const struct ql_attention *a)
{
	struct optional o = optional_of(call);
	const struct ql_tensor *lengths = o.lengths ? call->in[o.lengths] : NULL;
	char text[QL_SHAPE_TEXT];

	if (call->n_in - 3 != (o.mask > 0) + (o.lengths > 0))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"attention: wanted a mask (bool or floats) and lengths (integers), got two of the same kind");
	if (lengths && (lengths->rank != 1 || lengths->shape[0] != a->batches))
		return ql_fail(ctx, QL_ERR_SHAPE,
			"attention: lengths: wanted integers (%lld), one for each row of the batch, got %s",
			(long long)a->batches, ql_tensor_text(lengths, text));
	return o.mask ? check_mask(ctx, call->in[o.mask], a) : QL_OK;
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_attention a;
	unsigned dtype = QL_bool;
	char text[QL_SHAPE_TEXT];
	enum ql_status status = sizes(ctx, call, &a);

	if (!status)
		status = check_optional(ctx, call, &a);
	if (status)
		return status;
	for (int i = 0; i < 3; i++) {
		if (!ql_dtype_is_float(ql_operand_dtype(call->in[i])))
			return ql_fail(ctx, QL_ERR_DTYPE,
				"attention: operand %d: wanted floats or a quantized tensor, got %s", i + 1,
				ql_tensor_text(call->in[i], text));
		dtype = ql_dtype_promote(dtype, ql_operand_dtype(call->in[i]));
	}
	if (call->in[Q]->rank == 4)
		ql_result_set(call, 0, dtype, 4, (const int64_t[]){a.batches, a.heads, a.queries, a.e});
	else
		ql_result_set(call, 0, dtype, 3, (const int64_t[]){a.batches, a.queries, a.heads * a.e});
	return QL_OK;
}

/* The heads of t, (b, h, n, width) or (b, n, h * width). */
static struct ql_heads heads_in(const struct ql_tensor *t, int64_t width)
{
	if (t->rank == 4)
		return (struct ql_heads){ql_tensor_data(t), t->stride[0], t->stride[1], t->stride[2]};
	return (struct ql_heads){ql_tensor_data(t), t->stride[0], width, t->stride[1]};
}

/* Gives t itself if it has the dtype and its last axis is dense, else a contiguous copy. */
static enum ql_status as_rows(struct ql_ctx *ctx, struct ql_tensor *t, unsigned dtype, struct ql_tensor **out)
{
	int last = t->rank - 1;

	if (t->q || t->dtype != dtype || (t->stride[last] != 1 && t->shape[last] != 1))
		return ql_dense_of(ctx, t, dtype, out);
	*out = ql_tensor_keep(t);
	return QL_OK;
}

/* Operands of the job; the caller releases o->t. */
struct operands {
	struct ql_tensor *t[OPERANDS];
};

/* The mask, of the dtype of the computation or bool, with strides of 0 where it is broadcast. */
static enum ql_status start_mask(
	struct ql_ctx *ctx, struct ql_tensor *mask, unsigned dtype, struct ql_tensor **kept, struct ql_attention *a)
{
	struct ql_attention_mask *m = &a->mask;
	int64_t *stride[4] = {&m->batch, &m->head, &m->row, &m->key};
	enum ql_status status = QL_OK;

	m->kind = ql_dtype_is_bool(mask->dtype) ? QL_MASK_SEEN : QL_MASK_ADDED;
	if (m->kind == QL_MASK_SEEN || mask->dtype == dtype)
		*kept = ql_tensor_keep(mask);
	else
		status = ql_dense_of(ctx, mask, dtype, kept);
	if (status)
		return status;
	m->data = ql_tensor_data(*kept);
	for (int i = 1; i <= mask->rank; i++)
		*stride[4 - i] = (*kept)->shape[mask->rank - i] == 1 ? 0 : (*kept)->stride[mask->rank - i];
	return QL_OK;
}

static enum ql_status start_lengths(
	struct ql_ctx *ctx, struct ql_tensor *lengths, struct ql_tensor **kept, struct ql_attention *a)
{
	enum ql_status status = ql_dense_of(ctx, lengths, QL_int64, kept);

	if (status)
		return status;
	a->lengths = ql_tensor_data(*kept);
	for (int64_t i = 0; i < a->batches; i++)
		if (a->lengths[i] < 0 || a->lengths[i] > a->keys)
			return ql_fail(ctx, QL_ERR_ARGUMENT, "attention: lengths: wanted 0 to %lld keys, got %lld",
				(long long)a->keys, (long long)a->lengths[i]);
	return QL_OK;
}

static enum ql_status start(struct ql_ctx *ctx, const struct ql_call *call, struct ql_tensor *const *in, unsigned dtype,
	struct operands *o, struct ql_attention *a)
{
	struct optional with = optional_of(call);
	enum ql_status status = sizes(ctx, call, a);

	for (int i = 0; i < 3 && !status; i++)
		status = as_rows(ctx, in[i], dtype, &o->t[i]);
	if (!status && with.mask)
		status = start_mask(ctx, in[with.mask], dtype, &o->t[with.mask], a);
	if (!status && with.lengths)
		status = start_lengths(ctx, in[with.lengths], &o->t[with.lengths], a);
	if (status)
		return status;
	a->q = heads_in(o->t[Q], a->d);
	a->k = heads_in(o->t[K], a->d);
	a->v = heads_in(o->t[V], a->e);
	return QL_OK;
}

static void release(struct ql_ctx *ctx, struct operands *o)
{
	for (int i = 0; i < OPERANDS; i++)
		ql_tensor_release(ctx, o->t[i]);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	unsigned dtype = ql_dense_dtype(call->result[0].dtype);
	struct operands o = {{NULL}};
	struct ql_attention a;
	struct ql_tensor *y = NULL;
	enum ql_status status = start(ctx, call, call->in, dtype, &o, &a);

	if (!status)
		status = ql_dense_result(ctx, call->out[0], dtype, &y);
	if (!status) {
		a.o = heads_in(y, a.e);
		call->path = ql_dtype_name(dtype);
		call->kernel = dtype == QL_float64 ? "ref" : ctx->kernels->tiles->name;
		status = dtype == QL_float64 ? ql_attention_f64(ctx, &a) : ql_attention_f32(ctx, &a);
	}
	release(ctx, &o);
	return ql_dense_finish(ctx, call->out[0], y, status);
}

#define ATTRS \
	{"causal", QL_ATTR_BOOL, 0, NULL, "a query sees no later keys; the last query sees all (default false)"}, \
		{"scale", QL_ATTR_FLOAT, 0, NULL, "factor of the scores (default 1 / sqrt(d))"}, \
		{"mask", QL_ATTR_TENSOR, QL_OPERAND, "bool float", \
			"bool: true for a key that is seen; floats: added to the scores; broadcast to (b, h, t, s)"}, \
		{"lengths", QL_ATTR_TENSOR, QL_OPERAND, "int", \
			"integers (b): keys of each row of the batch; later ones are hidden"}, \
		{"window", QL_ATTR_INT, 0, NULL, \
			"a query sees only keys that are less than this far away (default: all)"}, \
		{"softcap", QL_ATTR_FLOAT, 0, NULL, "scores become softcap * tanh(score / softcap), before the mask"}, \
		{"heads", QL_ATTR_INT, 0, NULL, "heads of q, when operands are (batch, time, heads * d)"}, \
	{ \
		"out", QL_ATTR_SPEC, 0, NULL, \
			"spec of a quantized result; of codes it stays in integers (default: float32)" \
	}

static const struct ql_attr attrs[] = {ATTRS, {NULL, QL_ATTR_END, 0, NULL, NULL}};

extern const struct ql_op ql_op_attention;

/* ---- gradients: an op in no table ---- */

/* Operands: the gradient of the result, q, k, v, and what there is of a mask and lengths. Results: the gradients of q, k and v and,
 * with add=true, of the mask as it is broadcast. */
static enum ql_status back_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	for (int i = 0; i < 3; i++) {
		const struct ql_tensor *t = call->in[1 + i];

		ql_result_set(call, i, ql_dense_dtype(call->in[0]->dtype), t->rank, t->shape);
	}
	call->n_out = 3;
	if (ql_call_bool(call, "add", false)) {
		struct ql_call forward = ql_back_forward(call, &ql_op_attention);
		struct ql_attention a;
		enum ql_status status = sizes(ctx, &forward, &a);

		if (status)
			return status;
		call->n_out = 4;
		ql_result_set(call, 3, ql_dense_dtype(call->in[0]->dtype), 4,
			(const int64_t[]){a.batches, a.heads, a.queries, a.keys});
	}
	return QL_OK;
}

static enum ql_status back_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_call forward = ql_back_forward(call, &ql_op_attention);
	unsigned dtype = call->result[0].dtype;
	struct operands o = {{NULL}};
	struct ql_attention a = {0};
	struct ql_tensor *g = NULL;
	enum ql_status status = start(ctx, &forward, forward.in, dtype, &o, &a);

	if (!status)
		status = as_rows(ctx, call->in[0], dtype, &g);
	if (!status) {
		a.g = heads_in(g, a.e);
		a.dq = heads_in(call->out[Q], a.d);
		a.dk = heads_in(call->out[K], a.d);
		a.dv = heads_in(call->out[V], a.e);
		a.dmask = call->n_out > 3 ? ql_tensor_data(call->out[3]) : NULL;
		call->path = ql_dtype_name(dtype);
		call->kernel = dtype == QL_float64 ? "ref" : ctx->kernels->tiles->name;
		status = dtype == QL_float64 ? ql_attention_f64_backward(ctx, &a) : ql_attention_f32_backward(ctx, &a);
	}
	ql_tensor_release(ctx, g);
	release(ctx, &o);
	return status;
}

/* As attrs, by which the forward's call is read. */
static const struct ql_attr back_attrs[] = {ATTRS,
	{"add", QL_ATTR_BOOL, 0, NULL, "the gradient of an added mask is wanted"}, {NULL, QL_ATTR_END, 0, NULL, NULL}};

static const struct ql_op attention_back = {
	.doc = {.name = "attention_back", .attrs = back_attrs},
	.arity_min = 4,
	.arity_max = 6,
	.outputs = 4,
	.flags = QL_NATIVE,
	.infer = back_infer,
	.eval = back_eval,
};

static enum ql_status backward(struct ql_back *b)
{
	struct ql_tensor *in[1 + OPERANDS] = {ql_back_grad(b, 0)};
	struct ql_tensor *out[QL_MAX_OUT] = {NULL};
	struct optional with = optional_of(&b->call);
	bool add = with.mask && !ql_dtype_is_bool(ql_back_shape(b, with.mask)->dtype) && ql_back_wants(b, with.mask);
	struct ql_named more[] = {{"add", {.set = true, .b = add}}, {NULL, {0}}};

	for (int i = 0; i < b->node->n_in; i++)
		in[1 + i] = ql_back_in(b, i);
	ql_back_all(b, &attention_back, in, 1 + b->node->n_in, more, out);
	for (int i = 0; i < 3; i++)
		ql_back_give(b, i, out[i]);
	if (add)
		ql_back_give(b, with.mask, out[3]);
	return b->status;
}

const struct ql_op ql_op_attention = {
	.doc = {.name = "attention",
		.usage = "nn.attention(q, k, v, {causal=, mask=, lengths=, window=, softcap=, scale=, out=spec})  "
			 "nn.attention(q, k, v, {heads=, …})  nn.attention(q, k, v, mask, lengths, {…})",
		.text = "softmax(scale * q kᵀ) v for each batch and head: q (b, h, t, d), k (b, h, s, d) and v (b, h, s, e) give (b, h, t, "
			"e). k and v may have fewer heads, which then serve h / their number neighbouring heads of q each (grouped "
			"queries). With heads= the operands are (b, time, heads * d) and the result is (b, t, heads * e). With causal, query "
			"i sees the keys up to i + s - t: s may be longer than t, as with a cache of keys. A mask of bool says which keys are seen (true, as in "
			"PyTorch's scaled_dot_product_attention), one of floats is added to the scores and has a gradient; lengths hide the "
			"padding behind the keys of each row of the batch; with window a query at i + s - t sees keys less than that far "
			"from it. A query that sees no key gets zeros. Blocks of queries are computed one "
			"after the other: no tensor of all scores exists, neither here nor in the gradient, but that of a mask.",
		.example =
			"q = tensor.ones(1, 1, 2, 4)\nv = tensor{1, 2, 3}:view(1, 1, 3, 1)\n"
			"print(nn.attention(q, tensor.ones(1, 1, 3, 4), v, {causal=true}):view(2))  --> float32(2)  1.5000  2.0000",
		.attrs = attrs},
	.arity_min = 3,
	.arity_max = OPERANDS,
	.flags = QL_FUNCTION,
	.infer = infer,
	.eval = eval,
	.backward = backward,
	.saves = QL_SAVE_ALL,
};
