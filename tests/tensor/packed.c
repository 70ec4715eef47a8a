/* SPDX-License-Identifier: MIT
 * Views of packed tensors against the same views of an int64 copy: random chains of narrow, select, permute, reshape,
 * expand, clone, casts and writes; slices at every offset, which only a multiple of a group may begin; neighbours and
 * padding stay as they are. An argument: the seconds that the random chains take.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tensor/base.h"
#include "tensor/codes.h"
#include "tensor/tensor.h"
#include "tensor/view.h"
#include "tests/check.h"

static struct ql_ctx *ctx;
static uint64_t state = 5;

static int64_t draw(int64_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)((state >> 33) % (uint64_t)below);
}

static int64_t draw_code(unsigned dtype)
{
	const struct ql_dtype_info *d = &ql_dtypes[dtype];

	return d->kind == QL_KIND_BINARY ? draw(2) * 2 - 1 : d->lo + draw(d->hi - d->lo + 1);
}

/* A packed tensor and its copy. */
struct pair {
	struct ql_tensor *packed, *copy;
};

static void replace(struct ql_tensor **t, struct ql_tensor *by)
{
	ql_tensor_release(ctx, *t);
	*t = by;
}

static bool same(const struct pair *p)
{
	int64_t n = ql_tensor_nelem(p->copy);

	if (!ql_tensor_same_shape(p->packed, p->copy))
		return false;
	for (int64_t i = 0; i < n; i++)
		if (ql_tensor_at_f64(p->packed, i) != ql_tensor_at_f64(p->copy, i))
			return false;
	return true;
}

static struct pair new_pair(unsigned dtype, int rank, const int64_t *shape)
{
	struct pair p;
	int64_t *value;

	CHECK(!ql_tensor_new(ctx, QL_int64, rank, shape, &p.copy), "%s", ctx->err);
	value = ql_tensor_data(p.copy);
	for (int64_t i = 0; i < ql_tensor_nelem(p.copy); i++)
		value[i] = draw_code(dtype);
	CHECK(!ql_tensor_cast(ctx, p.copy, dtype, &p.packed), "%s", ctx->err);
	CHECK(same(&p), "%s: as it was made", ql_dtype_name(dtype));
	return p;
}

static void release(struct pair *p)
{
	ql_tensor_release(ctx, p->packed);
	ql_tensor_release(ctx, p->copy);
}

/* Takes the two views, or neither: only the packed one may be refused. */
static bool take(
	struct pair *p, enum ql_status status, struct ql_tensor **packed, enum ql_status other, struct ql_tensor **copy)
{
	if (!CHECK(!other && (!status || status == QL_ERR_UNSUPPORTED || status == QL_ERR_SHAPE), "%s", ctx->err) ||
		status) {
		ql_tensor_release(ctx, *copy);
		return false;
	}
	replace(&p->packed, *packed);
	replace(&p->copy, *copy);
	return true;
}

/* ---- every slice ---- */

static void check_slice(const struct pair *p, int64_t start, int64_t n)
{
	int group = ql_dtype_group(p->packed->dtype);
	struct pair part = {NULL, NULL}, clone;
	enum ql_status status = ql_view_narrow(ctx, "test", p->packed, 1, start, n, &part.packed);
	bool fits = start % group == 0;

	CHECK(fits == !status, "%s: %lld elements from %lld on: %s", ql_dtype_name(p->packed->dtype), (long long)n,
		(long long)start, status ? ctx->err : "accepted");
	if (status)
		return;
	CHECK(!ql_view_narrow(ctx, "test", p->copy, 1, start, n, &part.copy), "%s", ctx->err);
	CHECK(same(&part), "%s: %lld elements from %lld on", ql_dtype_name(p->packed->dtype), (long long)n,
		(long long)start);
	clone.copy = part.copy;
	CHECK(!ql_tensor_clone(ctx, part.packed, &clone.packed), "%s", ctx->err);
	CHECK(same(&clone), "a clone of it");
	/* written back, it changes nothing beside it */
	CHECK(!ql_tensor_copy(ctx, part.packed, clone.packed) && same(p), "%s: written",
		ql_dtype_name(p->packed->dtype));
	ql_tensor_release(ctx, clone.packed);
	release(&part);
}

static void every_slice(unsigned dtype)
{
	struct pair p = new_pair(dtype, 2, (const int64_t[]){3, 29});

	CASE("slices of %s at every offset", ql_dtype_name(dtype));
	for (int64_t start = 0; start < 29; start++)
		for (int64_t n = 0; n <= 29 - start; n++)
			check_slice(&p, start, n);
	release(&p);
}

/* ql_codes_get and ql_codes_put at every place of a row. */
static void every_place(unsigned dtype)
{
	enum { N = 70 };
	const struct ql_dtype_info *d = &ql_dtypes[dtype];
	uint8_t *q = malloc((size_t)ql_rows_bytes(1, N, dtype)), given[N];
	int64_t want[N], got[N];
	int8_t code[N];
	bool good = true;

	CASE("codes of %s at every place", ql_dtype_name(dtype));
	for (int at = 0; at < N; at++)
		for (int n = 0; n <= N - at; n++) {
			memset(q, 0xa5, (size_t)ql_rows_bytes(1, N, dtype));
			d->to_i64(q, 0, 1, N, want);
			for (int i = 0; i < n; i++)
				given[i] = (uint8_t)(want[at + i] = draw_code(dtype));
			ql_codes_put(dtype, q, at, n, given);
			d->to_i64(q, 0, 1, N, got);
			good = good && !memcmp(got, want, sizeof(got));
			ql_codes_get(dtype, q, at, n, code);
			for (int i = 0; i < n; i++)
				good = good && code[i] == want[at + i];
		}
	CHECK(good, "%s", d->name);
	free(q);
}

/* ---- random chains ---- */

static void narrow(struct pair *p)
{
	int axis = (int)draw(p->copy->rank);
	int64_t size = p->copy->shape[axis], start = draw(size + 1), n = draw(size - start + 1);
	struct ql_tensor *a = NULL, *b = NULL;

	if (draw(3)) /* mostly where a group begins */
		start -= start % ql_dtype_group(p->packed->dtype);
	take(p, ql_view_narrow(ctx, "test", p->packed, axis, start, n, &a), &a,
		ql_view_narrow(ctx, "test", p->copy, axis, start, n, &b), &b);
}

static void pick(struct pair *p)
{
	int axis = (int)draw(p->copy->rank);
	struct ql_tensor *a = NULL, *b = NULL;
	int64_t i;

	if (p->copy->shape[axis] == 0)
		return;
	i = draw(p->copy->shape[axis]);
	take(p, ql_view_select(ctx, "test", p->packed, axis, i, &a), &a,
		ql_view_select(ctx, "test", p->copy, axis, i, &b), &b);
}

static void permute(struct pair *p)
{
	int order[QL_MAX_RANK] = {0};
	struct ql_tensor *a = NULL, *b = NULL;

	for (int d = 0; d < p->copy->rank; d++) {
		int other = (int)draw(d + 1);

		order[d] = order[other];
		order[other] = d;
	}
	take(p, ql_view_permute(ctx, "test", p->packed, order, &a), &a,
		ql_view_permute(ctx, "test", p->copy, order, &b), &b);
}

/* Two axes as one, or one as two. Both tensors are dense, as other strides of theirs allow other shapes. */
static void reshape(struct pair *p)
{
	int64_t shape[QL_MAX_RANK], *size = p->copy->shape;
	int rank = 0, at = (int)draw(p->copy->rank);
	bool join = draw(2) && at + 1 < p->copy->rank;
	struct ql_tensor *a = NULL, *b = NULL;

	for (int d = 0; d < p->copy->rank; d++)
		if (d == at && join) {
			shape[rank++] = size[d] * size[d + 1];
			d++;
		} else if (d == at && p->copy->rank < QL_MAX_RANK && size[d] % 2 == 0) {
			shape[rank++] = 2;
			shape[rank++] = size[d] / 2;
		} else {
			shape[rank++] = size[d];
		}
	CHECK(!ql_tensor_contiguous(ctx, p->copy, &b), "%s", ctx->err);
	replace(&p->copy, b);
	b = NULL;
	take(p, ql_view_reshape(ctx, "test", p->packed, rank, shape, &a), &a,
		ql_view_reshape(ctx, "test", p->copy, rank, shape, &b), &b);
}

static void copies(struct pair *p)
{
	struct ql_tensor *a = NULL, *b = NULL;
	unsigned through = draw(2) ? QL_int8 : QL_float32;

	if (draw(2)) {
		CHECK(!ql_tensor_clone(ctx, p->packed, &a), "%s", ctx->err);
	} else {
		CHECK(!ql_tensor_cast(ctx, p->packed, through, &b), "%s", ctx->err);
		CHECK(!ql_tensor_cast(ctx, b, p->packed->dtype, &a), "%s", ctx->err);
		ql_tensor_release(ctx, b);
	}
	replace(&p->packed, a);
	CHECK(!ql_tensor_clone(ctx, p->copy, &b), "%s", ctx->err);
	replace(&p->copy, b);
}

/* Other numbers into both, by way of a third dtype. */
static void writes(struct pair *p)
{
	struct ql_tensor *from;

	if (ql_tensor_overlaps_itself(p->packed) || ql_tensor_overlaps_itself(p->copy))
		return;
	CHECK(!ql_tensor_new(ctx, QL_int16, p->copy->rank, p->copy->shape, &from), "%s", ctx->err);
	for (int64_t i = 0; i < ql_tensor_nelem(from); i++)
		((int16_t *)ql_tensor_data(from))[i] = (int16_t)draw_code(p->packed->dtype);
	CHECK(!ql_tensor_copy(ctx, p->packed, from) && !ql_tensor_copy(ctx, p->copy, from), "%s", ctx->err);
	ql_tensor_release(ctx, from);
}

static void expand(struct pair *p)
{
	int64_t shape[QL_MAX_RANK];
	struct ql_tensor *a = NULL, *b = NULL;

	for (int d = 0; d < p->copy->rank; d++)
		shape[d] = p->copy->shape[d] == 1 && draw(2) ? 3 : p->copy->shape[d];
	take(p, ql_view_expand(ctx, "test", p->packed, p->copy->rank, shape, &a), &a,
		ql_view_expand(ctx, "test", p->copy, p->copy->rank, shape, &b), &b);
}

static void chain(unsigned dtype)
{
	static void (*const steps[])(struct pair *) = {narrow, pick, permute, reshape, copies, writes, expand};
	int64_t shape[4];
	int rank = 1 + (int)draw(4), step = 0;
	struct pair first, p;

	for (int d = 0; d < rank; d++)
		shape[d] = 1 + draw(d == rank - 1 ? 40 : 6);
	first = new_pair(dtype, rank, shape);
	p = (struct pair){ql_tensor_keep(first.packed), ql_tensor_keep(first.copy)};
	for (int i = 0; i < 8 && p.copy->rank > 0; i++) {
		step = (int)draw((int64_t)(sizeof(steps) / sizeof(steps[0])));
		if (step == 4 || step == 3) { /* the views part from the first pair */
			release(&first);
			first = (struct pair){ql_tensor_keep(p.packed), ql_tensor_keep(p.copy)};
		}
		steps[step](&p);
		CHECK(same(&p), "%s after step %d", ql_dtype_name(dtype), step);
	}
	release(&p);
	release(&first);
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 0);
	int64_t chains = 0;

	ctx = ql_ctx_new(2);
	for (unsigned d = 0; d < QL_DTYPE_COUNT; d++) {
		if (!ql_dtype_is_packed(d))
			continue;
		every_slice(d);
		if (!ql_dtype_is_binary(d))
			every_place(d);
		CASE("chains of views of %s", ql_dtype_name(d));
		for (int i = 0; i < 1000; i++)
			chain(d);
	}
	CASE("chains until the end of the time");
	for (; time(NULL) < end; chains++) {
		unsigned d = (unsigned)draw(QL_DTYPE_COUNT);

		if (ql_dtype_is_packed(d))
			chain(d);
	}
	if (chains)
		printf("%lld more chains\n", (long long)chains);
	ql_ctx_free(ctx);
	return check_end();
}
