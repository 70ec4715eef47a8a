/* SPDX-License-Identifier: MIT
 * Template, included once per domain: one block of a reduction. The includer (reduce.c) defines T (the domain's
 * type), D (its suffix), SAME(v, a), START(r, k), FOLD(j, k) -> function or NULL, fold_both_D, and prepare_D, which modifies a
 * block's elements in place and returns true, or returns false if there is nothing to modify.
 */
#define QL_CAT2(a, b) a##_##b
#define QL_CAT(a, b) QL_CAT2(a, b)
#define FN(name) QL_CAT(name, D)
#define CONVERT FN(to)

#include "tensor/loops/reduce_fetch.h"

static void FN(fold_row)(const struct reduce_job *j, struct FN(tile) * t, int64_t at, int64_t p, int64_t n)
{
	int64_t whole = n / QL_REDUCE_LANES, rest = n % QL_REDUCE_LANES;

	t->x = FN(dense)(j, at, p, n, t->buffer);
	t->shift[0] = j->r->shift ? (double)t->x[0] : 0;
	if (FN(prepare)(j, t->x, n, 1, t->shift, t->buffer))
		t->x = t->buffer;
	for (int k = 0; k < 2 && FOLD(j, k); k++) {
		if (k == 0 && FN(fold_both)(j, t->acc, t->x, whole))
			k++;
		else
			FOLD(j, k)(t->acc[k], t->x, QL_REDUCE_LANES, whole, QL_REDUCE_LANES);
	}
	for (int k = 0; k < 2 && FOLD(j, k) && rest; k++)
		FOLD(j, k)(t->acc[k], t->x + whole * QL_REDUCE_LANES, 0, 1, rest);
}

/* Folds row i of the block into lane i mod QL_REDUCE_LANES of every column. */
static void FN(fold_columns)(
	const struct reduce_job *j, struct FN(tile) * t, int64_t at, int64_t p, int64_t n, int64_t width)
{
	struct row_walk w;

	for (row_start(&w, j, p); w.i < n; row_next(&w)) {
		const T *x = FN(columns)(j, at + w.offset, width, t->buffer);

		if (w.i == 0)
			for (int64_t c = 0; c < width; c++)
				t->shift[c] = j->r->shift ? (double)x[c] : 0;
		if (FN(prepare)(j, x, width, 0, t->shift, t->buffer))
			x = t->buffer;
		for (int k = 0; k < 2 && FOLD(j, k); k++)
			FOLD(j, k)(t->acc[k] + w.i % QL_REDUCE_LANES * width, x, 0, 1, width);
	}
}

static void FN(close_column)(
	const struct reduce_job *j, const struct FN(tile) * t, int64_t c, int64_t width, struct ql_block *b)
{
	for (int k = 0; k < 2 && FOLD(j, k); k++)
		for (int64_t l = 0; l < b->lanes; l++) {
			if (b->integer)
				b->i[k][l] = (int64_t)t->acc[k][l * width + c];
			else
				b->f[k][l] = (double)t->acc[k][l * width + c];
		}
	b->shift = t->shift[c];
}

/* Locates the extremes that this block has improved: the first element equal to each. */
static void FN(locate)(const struct reduce_job *j, struct FN(tile) * t, int64_t at, int64_t p, int64_t n, int64_t width,
	struct ql_part *part)
{
	struct row_walk w;

	if (!j->columns) {
		T a = VALUE(part);
		int64_t i = 0;

		while (i < n - 1 && !SAME(t->x[i], a))
			i++;
		part->at = p + i;
		return;
	}
	for (row_start(&w, j, p); w.i < n; row_next(&w)) {
		const T *x = FN(columns)(j, at + w.offset, width, t->buffer);

		for (int64_t c = 0; c < width; c++) {
			T a = VALUE(&part[c]);

			if (part[c].at == QL_PENDING && SAME(x[c], a))
				part[c].at = p + w.i;
		}
	}
}

static void FN(begin)(const struct reduce_job *j, struct FN(tile) * t, int64_t lanes, int64_t width)
{
	for (int k = 0; k < 2 && FOLD(j, k); k++)
		for (int64_t i = 0; i < lanes * width; i++)
			t->acc[k][i] = START(j->r, k);
}

static void FN(fold)(const struct reduce_job *j, struct FN(tile) * t, int64_t at, int64_t p, int64_t n, int64_t width)
{
	if (j->columns)
		FN(fold_columns)(j, t, at, p, n, width);
	else
		FN(fold_row)(j, t, at, p, n);
}

/* Closes the lanes of n elements of each of `width` neighbouring results and adds them to their parts. */
static bool FN(end)(
	const struct reduce_job *j, const struct FN(tile) * t, int64_t n, int64_t width, struct ql_part *part)
{
	struct ql_block b; /* mostly uninitialized: short rows use few lanes */
	bool pending = false;

	b.integer = j->domain == I64;
	b.n = n;
	b.lanes = ql_min64(n, QL_REDUCE_LANES);
	for (int64_t c = 0; c < width; c++) {
		struct ql_part of_block = {0};

		FN(close_column)(j, t, c, width, &b);
		j->r->close(&b, &of_block);
		of_block.n = n;
		join(j->r, &part[c], &of_block);
		pending = pending || (j->r->locate && part[c].at == QL_PENDING);
	}
	return pending;
}

/* Adds elements begin .. end - 1 of `width` neighbouring results to their parts. */
static void FN(add_range)(
	const struct reduce_job *j, int64_t at, int64_t begin, int64_t end, int64_t width, struct ql_part *part)
{
	struct FN(tile) tile;
	int64_t n, step = j->r->whole && dense_row(j) ? QL_REDUCE_PART : QL_REDUCE_BLOCK;

	if (j->r->whole)
		FN(begin)(j, &tile, ql_min64(end - begin, QL_REDUCE_LANES), width);
	for (int64_t p = begin; p < end; p += step) {
		n = ql_min64(step, end - p);
		if (!j->r->whole)
			FN(begin)(j, &tile, ql_min64(n, QL_REDUCE_LANES), width);
		FN(fold)(j, &tile, at, p, n, width);
		if (!j->r->whole && FN(end)(j, &tile, n, width, part))
			FN(locate)(j, &tile, at, p, n, width, part);
	}
	if (j->r->whole)
		FN(end)(j, &tile, end - begin, width, part);
}

#undef QL_CAT
#undef QL_CAT2
#undef FN
#undef CONVERT
#undef T
#undef D
#undef SAME
#undef START
#undef FOLD
#undef VALUE
