/* SPDX-License-Identifier: MIT
 * Row walking over broadcast operands.
 */
#include "tensor/walk.h"

void ql_walk_start(struct ql_walk *w, int rank, const int64_t *shape)
{
	*w = (struct ql_walk){.rank = rank};
	for (int d = 0; d < rank; d++)
		w->shape[d] = shape[d];
}

void ql_walk_add(struct ql_walk *w, const struct ql_tensor *t)
{
	int64_t *stride = w->stride[w->operands];
	int shift = w->rank - t->rank;

	for (int d = 0; d < w->rank; d++)
		stride[d] = d < shift || (t->shape[d - shift] == 1 && w->shape[d] != 1) ? 0 : t->stride[d - shift];
	w->offset[w->operands++] = t->offset;
}

static bool mergeable(const struct ql_walk *w, int d)
{
	for (int k = 0; k < w->operands; k++)
		if (w->stride[k][d] != w->stride[k][d + 1] * w->shape[d + 1])
			return false;
	return true;
}

static void remove_axis(struct ql_walk *w, int d)
{
	w->rank--;
	for (int i = d; i < w->rank; i++) {
		w->shape[i] = w->shape[i + 1];
		for (int k = 0; k < w->operands; k++)
			w->stride[k][i] = w->stride[k][i + 1];
	}
}

/* Merges axis d + 1 into d: d takes the inner strides. */
static void merge(struct ql_walk *w, int d)
{
	w->shape[d] *= w->shape[d + 1];
	for (int k = 0; k < w->operands; k++)
		w->stride[k][d] = w->stride[k][d + 1];
	remove_axis(w, d + 1);
}

void ql_walk_finish(struct ql_walk *w, bool keep_last)
{
	int last = keep_last ? w->rank - 2 : w->rank - 1;

	for (int d = last; d >= 0; d--)
		if (w->shape[d] == 1 && w->rank > 1)
			remove_axis(w, d);
	last = keep_last ? w->rank - 2 : w->rank - 1;
	for (int d = last - 1; d >= 0; d--)
		if (mergeable(w, d))
			merge(w, d);
	w->row = w->rank ? w->shape[w->rank - 1] : 1;
	w->rows = 1;
	for (int d = 0; d < w->rank - 1; d++)
		w->rows *= w->shape[d];
	if (w->row == 0)
		w->rows = 0;
}

void ql_walk_lengthen(struct ql_walk *w, int64_t least)
{
	int last = w->rank - 1, best = last;

	if (w->rank < 2 || w->rows == 0 || w->row >= least)
		return;
	for (int d = 0; d < last; d++)
		best = w->shape[d] > w->shape[best] ? d : best;
	if (best == last)
		return;
	w->row = w->shape[best];
	w->shape[best] = w->shape[last];
	w->shape[last] = w->row;
	w->rows = w->rows / w->row * w->shape[best];
	for (int k = 0; k < w->operands; k++) {
		int64_t stride = w->stride[k][best];

		w->stride[k][best] = w->stride[k][last];
		w->stride[k][last] = stride;
	}
}

void ql_walk_row(const struct ql_walk *w, int64_t r, int64_t *offset)
{
	for (int k = 0; k < w->operands; k++)
		offset[k] = w->offset[k];
	for (int d = w->rank - 2; d >= 0; d--) {
		int64_t i = r % w->shape[d];

		r /= w->shape[d];
		for (int k = 0; k < w->operands; k++)
			offset[k] += i * w->stride[k][d];
	}
}
