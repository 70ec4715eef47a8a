/* SPDX-License-Identifier: MIT
 * Part of the template reduce_rows.h: the memory of a tile, and loading elements into it.
 */
struct FN(tile) {
	T acc[2][QL_REDUCE_LANES * TILE]; /* (lane, column) */
	T buffer[QL_REDUCE_BLOCK];
	double shift[TILE];
	const T *x; /* row mode: the block's elements, dense */
};

/* Elements p .. p + n - 1 of the result whose first input element is `at`, dense. */
static const T *FN(dense)(const struct reduce_job *j, int64_t at, int64_t p, int64_t n, T *buffer)
{
	const struct ql_walk *w = &j->along;
	int64_t stride = ql_walk_stride(w, 0), row = p / w->row, column = p % w->row, offset;

	ql_walk_row(w, row, &offset);
	if (j->direct && stride == 1 && column + n <= w->row)
		return (const T *)j->base + at + offset + column;
	for (int64_t done = 0; done < n; column = 0) {
		int64_t m = ql_min64(w->row - column, n - done);

		j->dtype->CONVERT(j->base, at + offset + column * stride, stride, m, buffer + done);
		done += m;
		if (done < n)
			ql_walk_row(w, ++row, &offset);
	}
	return buffer;
}

/* One element of each of `width` neighbouring results. */
static inline const T *FN(columns)(const struct reduce_job *j, int64_t at, int64_t width, T *buffer)
{
	const T *x;
	uintptr_t next;

	if (!j->direct) {
		j->dtype->CONVERT(j->base, at, j->neighbour, width, buffer);
		return buffer;
	}
	x = (const T *)j->base + at;
	/* size: an address to fetch ahead, which may wrap */
	next = (uintptr_t)x + (uintptr_t)(AHEAD * ql_walk_stride(&j->along, 0)) * sizeof(T);
	for (uintptr_t byte = 0; byte < (uintptr_t)width * sizeof(T); byte += 64) /* size: x has width elements */
		__builtin_prefetch((const void *)(next + byte));
	return x;
}
