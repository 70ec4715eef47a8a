/* SPDX-License-Identifier: MIT
 * Every elementwise op of the registry, on every pair of dtypes: views of any kind give the bits of their
 * contiguous copies, in-place forms those of the others, all instruction sets and thread counts agree, sizes
 * may be 0 and ranks 0 to 8. What an op does not take it refuses in one line that begins with its name, for
 * all these forms alike.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quant/ranges/quantize.h"
#include "tensor/assign.h"
#include "tensor/cpu.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/map.h"
#include "tensor/ops/ops.h"
#include "tensor/scratch.h"
#include "tensor/view.h"
#include "tests/check.h"

static struct ql_ctx *ctx;
static uint64_t state = 1;

static uint32_t draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

/* The test cannot go on without what it sets up. */
static void need(enum ql_status status)
{
	if (status) {
		printf("%s\n", ctx->err);
		exit(1);
	}
}

/* ---- values ---- */

static double draw_real(void)
{
	static const double special[] = {
		0, -0.0, 1, -1, 0.5, 2.5, -2.5, 1e-40, 3e38, -3e38, INFINITY, -INFINITY, NAN, 6, 100};
	uint32_t r = draw();

	if (r % 4 == 0)
		return special[r / 4 % (sizeof(special) / sizeof(special[0]))];
	return ldexp((double)draw() / 0x1p31 - 0.5, (int)(r / 4 % 12));
}

static int64_t draw_integer(const struct ql_dtype_info *d)
{
	uint32_t r = draw() % 8;

	if (r == 0)
		return d->lo;
	if (r == 1)
		return d->hi;
	if (r == 2 && d->bits == 64)
		return (int64_t)((uint64_t)draw() << 33 ^ (uint64_t)draw() << 10 ^ draw());
	return (int64_t)(draw() % 16) - (d->lo < 0 ? 8 : 0);
}

static void fill(struct ql_tensor *t)
{
	const struct ql_dtype_info *d = &ql_dtypes[t->dtype];
	struct ql_tensor *c;

	need(ql_tensor_new(ctx, t->dtype, t->rank, t->shape, &c));
	for (int64_t i = 0; i < ql_tensor_nelem(c); i++) {
		int64_t row = c->rank ? c->shape[c->rank - 1] : 1, pitch = c->rank > 1 ? c->stride[c->rank - 2] : row;
		int64_t at = i / row * pitch + i % row, integer = draw_integer(d);
		double real = draw_real();

		if (d->kind == QL_KIND_FLOAT)
			d->from_f64(c->storage->data, at, 1, 1, &real);
		else
			d->from_i64(c->storage->data, at, 1, 1, &integer);
	}
	need(ql_tensor_copy(ctx, t, c));
	ql_tensor_release(ctx, c);
}

/* ---- views ---- */

enum form { DENSE, REVERSED, INNER, STRIDED, EXPANDED, FORMS };

static const char *const form_names[] = {"dense", "reversed axes", "inner part", "strided", "expanded"};

/* Indices before an inner part: whole bytes of packed types on the last axis. */
static int64_t margin(int d, int rank)
{
	return d == rank - 1 ? 8 : 1;
}

/* gives a filled tensor of that shape */
static struct ql_tensor *view_of(enum form form, unsigned dtype, int rank, const int64_t *shape)
{
	bool packed = ql_dtype_is_packed(dtype);
	int64_t s[QL_MAX_RANK];
	struct ql_tensor *t, *v;

	memcpy(s, shape, (size_t)rank * sizeof(*s));
	if (form == REVERSED)
		for (int d = 0; d < rank; d++)
			s[d] = shape[rank - 1 - d];
	for (int d = 0; d < rank && form == INNER; d++)
		s[d] = shape[d] + margin(d, rank) + 1;
	if (form == STRIDED && (packed || rank == QL_MAX_RANK))
		form = DENSE;
	s[rank < QL_MAX_RANK ? rank : 0] = form == STRIDED ? 3 : s[rank < QL_MAX_RANK ? rank : 0];
	if (form == EXPANDED && rank > 0)
		s[0] = 1;
	need(ql_tensor_new(ctx, dtype, rank + (form == STRIDED), s, &t));
	v = ql_tensor_keep(t);
	for (int d = 0; d < rank; d++) {
		static const int order[] = {7, 6, 5, 4, 3, 2, 1, 0};
		struct ql_tensor *next = v;

		if (form == INNER)
			need(ql_view_narrow(ctx, "test", v, d, margin(d, rank), shape[d], &next));
		else if (form == REVERSED && d == 0)
			need(ql_view_permute(ctx, "test", v, order + QL_MAX_RANK - rank, &next));
		if (next != v)
			ql_tensor_release(ctx, v);
		v = next;
	}
	if (form == STRIDED) {
		ql_tensor_release(ctx, v);
		need(ql_view_select(ctx, "test", t, rank, 1, &v));
	}
	fill(form == EXPANDED ? t : v);
	if (form == EXPANDED) {
		ql_tensor_release(ctx, v);
		need(ql_view_expand(ctx, "test", t, rank, shape, &v));
	}
	ql_tensor_release(ctx, t);
	return v;
}

/* ---- running and comparing ---- */

static enum ql_status run(const struct ql_op *op, struct ql_tensor **in, struct ql_tensor *into, struct ql_tensor **out)
{
	struct ql_call call = {.op = op, .in = in, .n_in = op->arity_max, .into = into};
	enum ql_status status = ql_op_apply(ctx, &call);

	*out = status ? NULL : call.out[0];
	return status;
}

static bool refused_well(const struct ql_op *op)
{
	size_t n = strlen(op->doc.name);

	return !strncmp(ctx->err, op->doc.name, n) && (ctx->err[n] == ':' || ctx->err[n] == '_') &&
	       strstr(ctx->err, "wanted") && !strchr(ctx->err, '\n');
}

/* Equal bits, but that one NaN is as good as another. */
static bool same(const struct ql_tensor *a, const struct ql_tensor *b)
{
	if (!a || !b || a->dtype != b->dtype || !ql_tensor_same_shape(a, b))
		return a == b;
	for (int64_t i = 0; i < ql_tensor_nelem(a); i++) {
		int64_t index[QL_MAX_RANK], k = i;
		double x, y;

		for (int d = a->rank - 1; d >= 0; d--, k /= a->shape[d + 1])
			index[d] = k % a->shape[d];
		if (!ql_dtype_is_float(a->dtype)) {
			if (ql_tensor_get_i64(a, index) != ql_tensor_get_i64(b, index))
				return false;
			continue;
		}
		x = ql_tensor_get_f64(a, index);
		y = ql_tensor_get_f64(b, index);
		if (isnan(x) ? !isnan(y) : x != y || signbit(x) != signbit(y))
			return false;
	}
	return true;
}

static void check_same(enum ql_status status, enum ql_status expected, const struct ql_op *op,
	const struct ql_tensor *got, const struct ql_tensor *want, const char *what)
{
	CHECK(status == expected, "%s: status %d, of contiguous copies %d: %s", what, (int)status, (int)expected,
		ctx->err);
	CHECK(!status || refused_well(op), "%s: message '%s'", what, ctx->err);
	CHECK(same(got, want), "%s: other elements", what);
}

/* ---- one set of operands ---- */

static void check_levels(
	const struct ql_op *op, struct ql_tensor **in, enum ql_status expected, const struct ql_tensor *want)
{
	static const char *const levels[] = {"ref", "avx2"};
	struct ql_tensor *got;
	enum ql_status status;

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		ql_kernels_force(levels[i]);
		status = run(op, in, NULL, &got);
		check_same(status, expected, op, got, want, levels[i]);
		ql_tensor_release(ctx, got);
	}
	ql_kernels_force("native");
}

/* The in-place form on a copy with the layout of the first operand: the result cast to its dtype, or refused
 * and left as it was. */
static void check_in_place(const struct ql_op *op, struct ql_tensor **in, enum form form, const struct ql_tensor *want)
{
	struct ql_tensor *target = view_of(form, in[0]->dtype, in[0]->rank, in[0]->shape), *before, *cast = NULL, *got;
	struct ql_tensor *operands[3] = {target, op->arity_max > 1 ? in[1] : NULL, op->arity_max > 2 ? in[2] : NULL};
	uint64_t version = target->storage->version;
	enum ql_status status;

	need(ql_tensor_copy(ctx, target, in[0]));
	need(ql_tensor_clone(ctx, target, &before));
	status = run(op, operands, target, &got);
	if (status) {
		CHECK(same(target, before), "in place, refused: the tensor changed");
		CHECK(refused_well(op), "in place: message '%s'", ctx->err);
	} else if (CHECK(want, "in place: done, but refused out of place")) {
		need(ql_tensor_cast(ctx, want, target->dtype, &cast));
		CHECK(same(target, cast), "in place on %s: other elements", form_names[form]);
		CHECK(ql_tensor_nelem(target) == 0 || target->storage->version > version,
			"in place: the version stayed");
	}
	CHECK(!status || !want || want->dtype != target->dtype || !ql_tensor_same_shape(want, target),
		"in place refused: %s", ctx->err);
	ql_tensor_release(ctx, got);
	ql_tensor_release(ctx, cast);
	ql_tensor_release(ctx, before);
	ql_tensor_release(ctx, target);
}

static void check_operands(const struct ql_op *op, struct ql_tensor **in, const enum form *form)
{
	struct ql_tensor *dense[3] = {NULL}, *want, *got;
	enum ql_status status, expected;
	char what[128] = "";

	for (int k = 0; k < op->arity_max; k++) {
		char text[QL_SHAPE_TEXT];

		need(ql_tensor_clone(ctx, in[k], &dense[k]));
		snprintf(what + strlen(what), sizeof(what) - strlen(what), " %s %.40s", form_names[form[k]],
			ql_tensor_text(in[k], text));
	}
	expected = run(op, dense, NULL, &want);
	status = run(op, in, NULL, &got);
	check_same(status, expected, op, got, want, what);
	ql_tensor_release(ctx, got);
	check_levels(op, in, expected, want);
	if (op->flags & QL_INPLACE && form[0] != EXPANDED)
		check_in_place(op, in, form[0], want);
	ql_tensor_release(ctx, want);
	for (int k = 0; k < op->arity_max; k++)
		ql_tensor_release(ctx, dense[k]);
}

/* Operands of one shape, or the last two with size 1 here and there. */
static void check_shape(const struct ql_op *op, const unsigned *dtype, int rank, const int64_t *shape)
{
	struct ql_tensor *in[3] = {NULL};
	enum form form[3];

	for (int k = 0; k < op->arity_max; k++) {
		int64_t own[QL_MAX_RANK] = {0};
		int cut = k > 0 && rank > 0 ? (int)(draw() % (uint32_t)rank) : 0;

		for (int d = cut; d < rank; d++)
			own[d - cut] = k > 0 && draw() % 4 == 0 ? 1 : shape[d];
		form[k] = draw() % FORMS;
		in[k] = view_of(form[k], dtype[k], rank - cut, own);
	}
	check_operands(op, in, form);
	for (int k = 0; k < op->arity_max; k++)
		ql_tensor_release(ctx, in[k]);
}

/* ---- all ops ---- */

/* One case of so many is run where each allocation is slow; the other builds run all. */
#if defined(__SANITIZE_ADDRESS__)
#define ONE_OF 10
#else
#define ONE_OF 1
#endif

static void check_dtypes(const struct ql_op *op)
{
	static const int64_t shapes[][3] = {{3, 5, 9}, {1, 17, 2}, {40, 1, 1}, {2, 0, 3}, {1, 2, 33}};
	int seconds = op->arity_max > 1 ? QL_DTYPE_COUNT : 1;

	for (unsigned a = 0; a < QL_DTYPE_COUNT; a++)
		for (int b = 0; b < seconds; b++)
			for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
				const unsigned dtype[3] = {op->arity_max == 3 ? QL_bool : a,
					op->arity_max == 3 ? a : (unsigned)b, (unsigned)b};

				if ((a + (unsigned)b + i) % ONE_OF == 0)
					check_shape(op, dtype, 3, shapes[i]);
			}
}

static void check_ranks(const struct ql_op *op)
{
	static const unsigned dtypes[] = {QL_float32, QL_int8, QL_bool, QL_float64};

	for (int round = 0; round < 40 / ONE_OF; round++)
		for (int rank = 0; rank <= QL_MAX_RANK; rank++) {
			unsigned dtype[3] = {dtypes[draw() % 4], dtypes[draw() % 4], dtypes[draw() % 4]};
			int64_t shape[QL_MAX_RANK] = {0};

			for (int d = 0; d < rank; d++)
				shape[d] = draw() % 20 == 0 ? 0 : 1 + draw() % (rank > 4 ? 2 : 4);
			check_shape(op, dtype, rank, shape);
		}
}

/* Long enough for several threads and pieces. */
static void check_long(const struct ql_op *op, int64_t rows, int64_t row)
{
	unsigned first = op->arity_max == 3                                   ? QL_bool
			 : op->impl && ((const struct ql_map *)op->impl)->f32 ? QL_float32
									      : QL_int32;
	unsigned other = first == QL_int32 ? QL_int32 : QL_float32;
	const int64_t shape[QL_MAX_RANK] = {rows, row};
	struct ql_tensor *in[3], *one, *two;
	int threads = ctx->threads;

	for (int k = 0; k < op->arity_max; k++)
		in[k] = view_of(DENSE, k ? other : first, 2 - (k == 1), shape + (k == 1));
	ctx->threads = 1;
	need(run(op, in, NULL, &one) == QL_OK || refused_well(op) ? QL_OK : QL_ERR_ARGUMENT);
	ctx->threads = 4;
	need(run(op, in, NULL, &two) == QL_OK || refused_well(op) ? QL_OK : QL_ERR_ARGUMENT);
	ctx->threads = threads;
	CHECK(same(one, two), "(%d, %d): other bits on 4 threads", (int)rows, (int)row);
	ql_tensor_release(ctx, one);
	ql_tensor_release(ctx, two);
	for (int k = 0; k < op->arity_max; k++)
		ql_tensor_release(ctx, in[k]);
}

/* An operand that shares storage with the result, in another order. */
static void check_aliased(const struct ql_op *op)
{
	static const int64_t shape[QL_MAX_RANK] = {9, 9};
	struct ql_tensor *x = view_of(DENSE, QL_float32, 2, shape), *turned, *want, *got;
	struct ql_tensor *in[2] = {x, NULL};

	need(ql_view_permute(ctx, "test", x, (const int[]){1, 0}, &turned));
	in[1] = turned;
	if (run(op, in, NULL, &want) == QL_OK) {
		need(run(op, in, x, &got));
		CHECK(same(x, want), "x:%s_(x:t()): other elements", op->doc.name);
		ql_tensor_release(ctx, got);
		ql_tensor_release(ctx, want);
	}
	ql_tensor_release(ctx, turned);
	ql_tensor_release(ctx, x);
}

/* Ctrl-C while a tensor is written to: it is whole, either way. */
static void check_interrupted(void)
{
	static const int64_t shape[QL_MAX_RANK] = {600, 700};
	struct ql_tensor *x = view_of(DENSE, QL_float32, 2, shape), *h = view_of(DENSE, QL_float16, 2, shape);
	struct ql_tensor *before, *want, *got, *in[2] = {x, x};

	CASE("interrupts");
	need(run(&ql_op_add, in, NULL, &want));
	ctx->interrupted = 1;
	CHECK(run(&ql_op_add, in, NULL, &got) == QL_ERR_INTERRUPTED && !got, "out of place: not interrupted");
	CHECK(run(&ql_op_add, in, x, &got) == QL_OK && same(x, want), "in place: not finished");
	ql_tensor_release(ctx, got);
	ctx->interrupted = 0;
	need(ql_tensor_clone(ctx, h, &before));
	in[0] = h;
	ctx->interrupted = 1;
	CHECK(run(&ql_op_add, in, h, &got) == QL_ERR_INTERRUPTED && same(h, before),
		"in place with a cast: half written");
	CHECK(ql_tensor_assign(ctx, "test", h, x) == QL_OK && !ctx->finishing, "assignment: not finished");
	ctx->interrupted = 0;
	ql_tensor_release(ctx, before);
	need(ql_tensor_cast(ctx, x, QL_float16, &before));
	CHECK(same(h, before), "assignment: other elements");
	ql_tensor_release(ctx, before);
	ql_tensor_release(ctx, want);
	ql_tensor_release(ctx, h);
	ql_tensor_release(ctx, x);
}

int main(void)
{
	ctx = ql_ctx_new(2);
	if (!ctx)
		return 1;
	if (!(ql_cpu()->features & QL_CPU_AVX512))
		SKIP("bits of AVX-512", "this CPU has none");
	for (int i = 0; ql_ops[i]; i++) {
		const struct ql_op *op = ql_ops[i];

		if (op->eval != ql_map_eval)
			continue;
		CASE("%s", op->doc.name);
		check_dtypes(op);
		check_ranks(op);
		check_long(op, 1, 300007);
		check_long(op, 40000, 7);
		if (op->flags & QL_INPLACE && op->arity_max == 2)
			check_aliased(op);
	}
	check_interrupted();
	ql_scratch_free(ctx);
	need(ql_scratch_init(ctx));
	CHECK(ctx->memory.now == 0, "%zu bytes were never freed", ctx->memory.now);
	ql_ctx_free(ctx);
	return check_end();
}
