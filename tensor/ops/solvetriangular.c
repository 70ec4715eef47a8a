/* SPDX-License-Identifier: MIT
 * Systems of equations with a triangular matrix, solved in float64. Each becomes a forward substitution by a lower triangle: transposed
 * and upper ones by the strides of the matrix, those from the right by transposing the other side.
 */
#include "tensor/gemm/matmul.h"
#include "tensor/gemm/triangular.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ops/ops.h"
#include "tensor/parallel.h"

struct job {
	const struct ql_ctx *ctx;
	struct ql_matmul plan; /* of the product whose result is b: x times the unknowns, or the unknowns times x */
	const struct ql_tensor *x, *b;
	double *work; /* (n, m) for each batch: the other side, then the unknowns */
	int64_t n, m;
	bool left, upper, transpose, unit;
};

/* ---- shapes ---- */

static enum ql_status plan(
	struct ql_ctx *ctx, const struct ql_tensor *x, const struct ql_tensor *b, bool left, struct ql_matmul *p)
{
	char s[QL_SHAPE_TEXT], t[QL_SHAPE_TEXT];

	if (x->rank < 2 || b->rank < 2 || x->shape[x->rank - 1] != x->shape[x->rank - 2])
		return ql_fail(ctx, QL_ERR_SHAPE,
			"solvetriangular: wanted square matrices (…, n, n) and b %s, got %s and %s",
			left ? "(…, n, m)" : "(…, m, n)", ql_shape_text(x->rank, x->shape, s),
			ql_shape_text(b->rank, b->shape, t));
	return left ? ql_matmul_plan(ctx, "solvetriangular", x, b, p) : ql_matmul_plan(ctx, "solvetriangular", b, x, p);
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0], *b = call->in[1];
	unsigned dtype = ql_dtype_promote(ql_operand_dtype(x), ql_operand_dtype(b));
	struct ql_matmul p;
	enum ql_status status = plan(ctx, x, b, ql_call_bool(call, "left", true), &p);

	if (!status)
		ql_result_set(call, 0, ql_dtype_is_float(dtype) ? dtype : QL_float32, p.rank, p.shape);
	return status;
}

/* The last two axes of a header, swapped. */
static void swap(struct ql_tensor *t)
{
	int64_t *shape = t->shape + t->rank - 2, *stride = t->stride + t->rank - 2, n = shape[0], step = stride[0];

	shape[0] = shape[1];
	shape[1] = n;
	stride[0] = stride[1];
	stride[1] = step;
}

/* b as it is broadcast, in the layout of the work matrices. */
static struct ql_tensor expanded(const struct job *j)
{
	const int64_t *batch = j->left ? j->plan.b_batch : j->plan.a_batch;
	struct ql_tensor t = *j->b;

	t.rank = (uint8_t)j->plan.rank;
	for (int d = 0; d < j->plan.rank; d++) {
		int from_end = j->plan.rank - d;

		t.shape[d] = j->plan.shape[d];
		t.stride[d] = from_end > 2 ? batch[d] : j->b->stride[j->b->rank - from_end];
	}
	if (!j->left)
		swap(&t);
	return t;
}

/* ---- solving ---- */

/* The lower triangle by which the work matrix of a batch is substituted, forwards; *x is its first row, *ldx the way to the next. An upper
 * triangle is one with rows and columns in reverse. */
static struct ql_matrix_f64 triangle(const struct job *j, int64_t batch, double **x, int64_t *ldx)
{
	const struct ql_tensor *t = j->x;
	bool swapped = j->transpose == j->left, upper = j->upper != swapped;
	int64_t row = t->stride[t->rank - 2], column = t->stride[t->rank - 1], a, b;
	struct ql_matrix_f64 l = {t->storage->data, swapped ? column : row, swapped ? row : column};

	ql_matmul_batch(&j->plan, j->left ? t : j->b, j->left ? j->b : t, batch, &a, &b);
	l.data += j->left ? a : b;
	*x = j->work + batch * j->n * j->m;
	*ldx = j->m;
	if (upper) {
		l.data += (j->n - 1) * (row + column);
		l.row = -l.row;
		l.column = -l.column;
		*x += (j->n - 1) * j->m;
		*ldx = -j->m;
	}
	return l;
}

static void solve_small(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t i = begin; i < end; i++) {
		double *x;
		int64_t ldx;
		struct ql_matrix_f64 l = triangle(j, i, &x, &ldx);

		ql_triangular_solve_small(j->ctx, j->n, j->m, &l, j->unit, x, ldx);
	}
}

static enum ql_status solve(struct ql_ctx *ctx, struct job *j)
{
	enum ql_status status = QL_OK;

	if (j->n == 0 || j->m == 0)
		return QL_OK;
	if (j->n <= QL_TRIANGULAR_SMALL && j->plan.batches > 1)
		return ql_parallel_for(ctx, j->plan.batches, 1, j->plan.batches * j->n * j->n * j->m, solve_small, j);
	for (int64_t i = 0; i < j->plan.batches && !status; i++) {
		double *x;
		int64_t ldx;
		struct ql_matrix_f64 l = triangle(j, i, &x, &ldx);

		status = ql_triangular_solve(ctx, j->n, j->m, &l, j->unit, x, ldx);
	}
	return status;
}

/* Gives the work matrices: out itself where they are laid out like it. */
static enum ql_status work_for(struct ql_ctx *ctx, const struct job *j, struct ql_tensor *out, struct ql_tensor **work)
{
	struct ql_tensor shape = *out;

	if (j->left && out->dtype == QL_float64) {
		*work = ql_tensor_keep(out);
		return QL_OK;
	}
	if (!j->left)
		swap(&shape);
	return ql_tensor_new(ctx, QL_float64, shape.rank, shape.shape, work);
}

static enum ql_status run(struct ql_ctx *ctx, struct job *j, struct ql_tensor *out)
{
	struct ql_tensor *work = NULL, header;
	enum ql_status status = work_for(ctx, j, out, &work);

	if (!status) {
		header = expanded(j);
		status = ql_tensor_copy(ctx, work, &header);
	}
	if (!status) {
		j->work = ql_tensor_data(work);
		status = solve(ctx, j);
	}
	if (!status && work != out) {
		header = *out;
		if (!j->left)
			swap(&header);
		status = ql_tensor_copy(ctx, &header, work);
	}
	ql_tensor_release(ctx, work);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct job j = {.ctx = ctx,
		.b = call->in[1],
		.left = ql_call_bool(call, "left", true),
		.upper = ql_call_bool(call, "upper", false),
		.transpose = ql_call_bool(call, "transpose", false),
		.unit = ql_call_bool(call, "unit", false)};
	struct ql_tensor *x = NULL, *given = call->in[0];
	enum ql_status status = QL_OK;

	call->path = ql_dtype_name(QL_float64);
	call->kernel = ctx->kernels->simd->name;
	if (given->dtype == QL_float64)
		x = ql_tensor_keep(given);
	else
		status = ql_tensor_cast(ctx, given, QL_float64, &x);
	j.x = x;
	if (!status)
		status = plan(ctx, x, j.b, j.left, &j.plan);
	if (!status) {
		j.n = j.left ? j.plan.m : j.plan.n;
		j.m = j.left ? j.plan.n : j.plan.m;
		status = run(ctx, &j, call->out[0]);
	}
	ql_tensor_release(ctx, x);
	return status;
}

/* ---- gradients ---- */

static struct ql_tensor *transposed(struct ql_back *b, struct ql_tensor *t)
{
	return t ? ql_back_transpose(b, t, t->rank - 2, t->rank - 1) : NULL;
}

/* With X = op(x)^-1 b and its gradient g: gb = op(x)^-T g, and that of op(x) is -gb X', within the triangle; from the right -X' gb. */
static enum ql_status backward(struct ql_back *b)
{
	bool upper = ql_call_bool(&b->call, "upper", false), transpose = ql_call_bool(&b->call, "transpose", false),
	     left = ql_call_bool(&b->call, "left", true), unit = ql_call_bool(&b->call, "unit", false);
	struct ql_named other[] = {{"transpose", {.b = !transpose}}, {NULL, {.set = false}}};
	struct ql_named strict[] = {{"diagonal", {.i = !unit ? 0 : upper ? 1 : -1}}, {NULL, {.set = false}}};
	struct ql_tensor *in[] = {ql_back_in(b, 0), ql_back_grad(b, 0)}, *y = ql_back_out(b, 0), *g, *t;

	g = ql_back_all(b, &ql_op_solvetriangular, in, 2, other, NULL);
	ql_back_give(b, 1, g);
	if (!ql_back_wants(b, 0))
		return b->status;
	t = left ? ql_back_run(b, &ql_op_matmul, g, transposed(b, y))
		 : ql_back_run(b, &ql_op_matmul, transposed(b, y), g);
	t = transpose ? transposed(b, t) : t;
	t = ql_back_with(b, upper ? &ql_op_triu : &ql_op_tril, t, NULL, strict);
	ql_back_give(b, 0, ql_back_scaled(b, t, -1));
	return b->status;
}

static const struct ql_attr attrs[] = {
	{"upper", QL_ATTR_BOOL, 0, NULL, "the upper triangle of x is read (default false: the lower one)"},
	{"transpose", QL_ATTR_BOOL, 0, NULL, "x is transposed after its triangle was read: x' X = b (default false)"},
	{"left", QL_ATTR_BOOL, 0, NULL, "x X = b; false: X x = b, b is (…, m, n) (default true)"},
	{"unit", QL_ATTR_BOOL, 0, NULL, "the diagonal of x is not read and counts as 1 (default false)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

const struct ql_op ql_op_solvetriangular = {
	.doc = {.name = "solvetriangular",
		.usage = "x:solvetriangular(b, {upper=, transpose=, left=, unit=})",
		.text = "X with x X = b, for triangular matrices x (…, n, n), of which one triangle is read, and b (…, n, m); leading axes "
			"broadcast. Solved by substitution in float64, products in the order of the substitution, with the same bits on every "
			"processor. A 0 on the diagonal is no error: it gives inf or nan.",
		.example =
			"l = tensor{{2,0},{1,3}}\nprint(l:solvetriangular(tensor{{4},{8}}):view(2))  --> float32(2)  2 2",
		.attrs = attrs},
	.arity_min = 2,
	.arity_max = 2,
	.infer = infer,
	.eval = eval,
	.backward = backward,
	.saves = QL_SAVE(0) | QL_SAVE_RESULT,
};
