/* SPDX-License-Identifier: MIT
 * Constructors: constant values, ranges, the identity.
 */
#include "tensor/ops/construct.h"

#include <math.h>
#include <string.h>

#include "tensor/parallel.h"

const struct ql_attr ql_construct_attrs[] = {QL_CONSTRUCT_ATTRS, {NULL, QL_ATTR_END, 0, NULL, NULL}};

enum ql_status ql_construct_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_value *size = ql_call_attr(call, "size");

	if (size && size->ints.n > QL_MAX_RANK)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted at most %d sizes, got %d", call->op->doc.name,
			QL_MAX_RANK, size->ints.n);
	ql_result_set(call, 0, (unsigned)ql_call_int(call, "dtype", QL_float32), size ? size->ints.n : 0,
		size ? size->ints.at : NULL);
	return QL_OK;
}

enum ql_status ql_construct_base(struct ql_ctx *ctx, struct ql_call *call, unsigned dtype, struct ql_tensor **out)
{
	return ql_tensor_new(ctx, dtype, call->result[0].rank, call->result[0].shape, out);
}

enum ql_status ql_construct_finish(struct ql_ctx *ctx, struct ql_call *call, struct ql_tensor *t, enum ql_status status)
{
	unsigned dtype = call->result[0].dtype;

	if (!status && t->dtype == dtype) {
		call->out[0] = t;
		return QL_OK;
	}
	if (!status)
		status = ql_tensor_cast(ctx, t, dtype, &call->out[0]);
	ql_tensor_release(ctx, t);
	return status;
}

#define CONSTRUCTOR(op_name, op_usage, op_text, op_example, op_attrs, op_infer, op_eval) \
	const struct ql_op ql_op_##op_name = { \
		.doc = {.name = #op_name, \
			.usage = op_usage, \
			.text = op_text, \
			.example = op_example, \
			.attrs = op_attrs}, \
		.flags = QL_FUNCTION | QL_NATIVE, \
		.infer = op_infer, \
		.eval = op_eval, \
		.allocates = true, \
	}

/* ---- constant values ---- */

static enum ql_status zeros(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_result *r = &call->result[0];

	return ql_tensor_zeros(ctx, r->dtype, r->rank, r->shape, &call->out[0]);
}

CONSTRUCTOR(zeros, "tensor.zeros(2, 3)  tensor.zeros{2, 3, dtype='int8'}", "A tensor of zeros.",
	"print(tensor.zeros(2))  --> float32(2)  0  0", ql_construct_attrs, ql_construct_infer, zeros);

CONSTRUCTOR(empty, "tensor.empty(2, 3)",
	"A tensor to be filled. Its elements are 0, so that a forgotten one shows; it costs no more than the memory.",
	"print(tensor.empty(2, 3):size())  --> 2\t3", ql_construct_attrs, ql_construct_infer, zeros);

struct fill {
	void *data;
	unsigned char bytes[8];
	size_t size;
};

static void fill_body(void *arg, int64_t begin, int64_t end)
{
	const struct fill *f = arg;
	char *to = (char *)f->data + (size_t)begin * f->size;
	size_t room = (size_t)(end - begin) * f->size /* size: it is allocated */, done = f->size;

	memcpy(to, f->bytes, f->size);
	for (; done < room; done *= 2) /* append a copy of the filled part */
		memcpy(to + done, to, done < room - done ? done : room - done);
}

/* Sets every element to a value that is converted once; packed types by a copy from an expanded view. */
static enum ql_status fill(struct ql_ctx *ctx, struct ql_call *call, double real, int64_t integer, bool exact)
{
	const struct ql_result *r = &call->result[0];
	const struct ql_dtype_info *d = &ql_dtypes[r->dtype];
	struct ql_storage storage = {
		.refs = 1, .bytes = 8, .data = exact ? (void *)&integer : (void *)&real, .device = &ql_device_cpu};
	struct ql_tensor one = {.refs = 1, .dtype = exact ? QL_int64 : QL_float64, .storage = &storage};
	struct fill f = {.size = d->bits / 8};
	enum ql_status status = ql_tensor_new(ctx, r->dtype, r->rank, r->shape, &call->out[0]);

	if (status)
		return status;
	one.rank = (uint8_t)r->rank;
	memcpy(one.shape, r->shape, sizeof(one.shape));
	if (f.size == 0)
		return ql_tensor_copy(ctx, call->out[0], &one);
	if (exact)
		d->from_i64(f.bytes, 0, 1, 1, &integer);
	else
		d->from_f64(f.bytes, 0, 1, 1, &real);
	f.data = call->out[0]->storage->data;
	return ql_parallel_for(
		ctx, ql_tensor_nelem(call->out[0]), 32768, ql_tensor_nelem(call->out[0]) / 4, fill_body, &f);
}

static enum ql_status ones(struct ql_ctx *ctx, struct ql_call *call)
{
	return fill(ctx, call, 1, 1, true);
}

CONSTRUCTOR(ones, "tensor.ones(2, 3)", "A tensor of ones.", "print(tensor.ones(2))  --> float32(2)  1  1",
	ql_construct_attrs, ql_construct_infer, ones);

static const struct ql_attr full_attrs[] = {
	QL_CONSTRUCT_ATTRS,
	{"value", QL_ATTR_FLOAT, QL_REQUIRED, NULL, "the value of every element"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status infer_full(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_value *v = ql_call_attr(call, "value");
	const struct ql_dtype_info *d;
	enum ql_status status = ql_construct_infer(ctx, call);

	if (status)
		return status;
	d = &ql_dtypes[call->result[0].dtype];
	if (d->kind != QL_KIND_FLOAT && d->kind != QL_KIND_BOOL &&
		(v->f != nearbyint(v->f) || v->f < (double)d->lo || v->f > (double)d->hi))
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "full: value: wanted an integer that fits %s, got %.14g", d->name, v->f);
	return QL_OK;
}

static enum ql_status full(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_value *v = ql_call_attr(call, "value");
	bool exact = v->integer && fabs(v->f) < 0x1p53;

	return fill(ctx, call, v->f, exact ? (int64_t)v->f : 0, exact);
}

CONSTRUCTOR(full, "tensor.full{2, 3, value=7}", "A tensor whose elements all have the given value.",
	"print(tensor.full{2, value = 7})  --> float32(2)  7  7", full_attrs, infer_full, full);

/* ---- ranges ---- */

static const struct ql_attr arange_attrs[] = {
	{"first", QL_ATTR_FLOAT, QL_POSITIONAL | QL_REQUIRED, NULL, "first value"},
	{"last", QL_ATTR_FLOAT, QL_POSITIONAL | QL_REQUIRED, NULL, "last value, included when a step hits it"},
	{"step", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "difference of neighbours (default 1)"},
	QL_CONSTRUCT_OPTIONS,
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static bool whole(const struct ql_value *v)
{
	return !v || v->integer;
}

static enum ql_status infer_arange(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_value *a = ql_call_attr(call, "first"), *b = ql_call_attr(call, "last"),
			      *s = ql_call_attr(call, "step");
	double step = s ? s->f : 1, steps = (b->f - a->f) / step;
	int64_t n;

	if (!isfinite(a->f) || !isfinite(b->f) || !isfinite(step) || step == 0 || steps > 0x1p50)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"arange: wanted finite numbers and a step other than 0, got %g, %g and %g", a->f, b->f, step);
	/* include a last element that is missed only by rounding */
	n = steps < 0 ? 0 : (int64_t)floor(steps + (whole(a) && whole(s) ? 0 : 1e-9)) + 1;
	ql_result_set(
		call, 0, (unsigned)ql_call_int(call, "dtype", whole(a) && whole(s) ? QL_int64 : QL_float32), 1, &n);
	return QL_OK;
}

static enum ql_status arange(struct ql_ctx *ctx, struct ql_call *call)
{
	double first = ql_call_float(call, "first", 0), step = ql_call_float(call, "step", 1);
	struct ql_tensor *t;
	enum ql_status status = ql_construct_base(ctx, call, QL_float64, &t);
	int64_t n = status ? 0 : t->shape[0];

	for (int64_t i = 0; i < n; i++)
		((double *)ql_tensor_data(t))[i] = first + (double)i * step;
	return status ? status : ql_construct_finish(ctx, call, t, QL_OK);
}

CONSTRUCTOR(arange, "tensor.arange(first, last, step)",
	"Evenly spaced numbers. The last value is included, as in all ranges here (and in Lua's for); integers give int64, "
	"otherwise float32.",
	"print(tensor.arange(1, 4))  --> int64(4)  1  2  3  4", arange_attrs, infer_arange, arange);

static const struct ql_attr linspace_attrs[] = {
	{"first", QL_ATTR_FLOAT, QL_POSITIONAL | QL_REQUIRED, NULL, "first value"},
	{"last", QL_ATTR_FLOAT, QL_POSITIONAL | QL_REQUIRED, NULL, "last value"},
	{"n", QL_ATTR_INT, QL_POSITIONAL | QL_REQUIRED, NULL, "how many values"},
	QL_CONSTRUCT_OPTIONS,
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status infer_linspace(struct ql_ctx *ctx, struct ql_call *call)
{
	int64_t n = ql_call_int(call, "n", 0);

	if (n < 0)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "linspace: n: wanted 0 or more, got %lld", (long long)n);
	ql_result_set(call, 0, (unsigned)ql_call_int(call, "dtype", QL_float32), 1, &n);
	return QL_OK;
}

static enum ql_status linspace(struct ql_ctx *ctx, struct ql_call *call)
{
	double first = ql_call_float(call, "first", 0), last = ql_call_float(call, "last", 0);
	struct ql_tensor *t;
	enum ql_status status = ql_construct_base(ctx, call, QL_float64, &t);
	int64_t n = status ? 0 : t->shape[0];

	/* from both ends, so that both are exact */
	for (int64_t i = 0; i < n; i++) {
		double share = n > 1 ? (double)i / (double)(n - 1) : 0;

		((double *)ql_tensor_data(t))[i] =
			share < 0.5 ? first + (last - first) * share : last - (last - first) * (1 - share);
	}
	return status ? status : ql_construct_finish(ctx, call, t, QL_OK);
}

CONSTRUCTOR(linspace, "tensor.linspace(first, last, n)", "n evenly spaced numbers from first to last, both included.",
	"print(tensor.linspace(0, 1, 3))  --> float32(3)  0.0000  0.5000  1.0000", linspace_attrs, infer_linspace,
	linspace);

/* ---- the identity ---- */

static const struct ql_attr eye_attrs[] = {
	{"n", QL_ATTR_INT, QL_POSITIONAL | QL_REQUIRED, NULL, "rows"},
	{"m", QL_ATTR_INT, QL_POSITIONAL, NULL, "columns (default n)"},
	{"diagonal", QL_ATTR_INT, 0, NULL, "0: the main diagonal; positive: above it (default 0)"},
	QL_CONSTRUCT_OPTIONS,
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status infer_eye(struct ql_ctx *ctx, struct ql_call *call)
{
	int64_t n = ql_call_int(call, "n", 0), shape[2] = {n, ql_call_int(call, "m", n)};

	(void)ctx;
	ql_result_set(call, 0, (unsigned)ql_call_int(call, "dtype", QL_float32), 2, shape);
	return QL_OK;
}

static enum ql_status eye(struct ql_ctx *ctx, struct ql_call *call)
{
	enum ql_status status = zeros(ctx, call);
	struct ql_tensor *t = call->out[0];
	int64_t one = 1, k = ql_call_int(call, "diagonal", 0), m = status ? 0 : t->shape[0],
		n = status ? 0 : t->shape[1];
	int64_t first = k < 0 ? (k < -m ? m : -k) : 0;

	for (int64_t i = first; i < m && k < n && i + k < n; i++)
		ql_dtypes[t->dtype].from_i64(t->storage->data, i * t->stride[0] + i + k, 1, 1, &one);
	return status;
}

CONSTRUCTOR(eye, "tensor.eye(n)  tensor.eye(n, m)  tensor.eye(n, {diagonal=1})",
	"The identity matrix: 1 where row and column are equal, else 0; with diagonal=k where column - row is k.",
	"print(tensor.eye(2):sum():item())  --> 2.0", eye_attrs, infer_eye, eye);
