/* SPDX-License-Identifier: MIT
 * Lines of 8-bit codes in shared memory, and their products by dp4a. Include it behind THREADS, TILE (lines), SIDE (threads of a row
 * of the block), EACH (results of a thread on a side), WORDS (of a line, four codes each).
 */
/* Codes k0 .. k0 + 3 of a line, 0 beyond its end. */
QL_DEVICE uint32_t four(const ql_code_matrix &l, const uint8_t *line, int64_t k0, int64_t k)
{
	uint32_t word = 0;

	for (int i = 0; i < 4; i++)
		if (k0 + i < k + QL_BUG(dp4a_tail))
			word |= (uint32_t)line[(k0 + i) * l.step] << 8 * i;
	return word;
}

QL_DEVICE void fetch(uint32_t (*to)[WORDS + 1], const ql_code_matrix &l, const uint8_t *from, int64_t first,
	int64_t lines, int64_t k0, int64_t k)
{
	for (int c = (int)threadIdx.x; c < TILE * WORDS / 4; c += THREADS) {
		int line = c / (WORDS / 4), at = c % (WORDS / 4) * 4;
		const uint8_t *source = from + (first + line) * l.line;
		int64_t begin = k0 + at * 4;
		uint4 v = {0, 0, 0, 0};

		if (first + line < lines && l.wide && begin + 16 <= k)
			v = ql_load_16(source + begin);
		else if (first + line < lines)
			v = {four(l, source, begin, k), four(l, source, begin + 4, k), four(l, source, begin + 8, k),
				four(l, source, begin + 12, k)};
		to[line][at] = v.x;
		to[line][at + 1] = v.y;
		to[line][at + 2] = v.z;
		to[line][at + 3] = v.w;
	}
}

struct sums {
	int32_t product[EACH][EACH], a[EACH], b[EACH];
};

template <bool A, bool B> QL_DEVICE void multiply(const uint32_t (*line)[TILE][WORDS + 1], bool zeros, sums &s)
{
	int column = (int)threadIdx.x % SIDE, row = (int)threadIdx.x / SIDE;

	for (int k = 0; k < WORDS; k++) {
		uint32_t a[EACH], b[EACH];

		QL_UNROLL
		for (int i = 0; i < EACH; i++) {
			a[i] = line[0][row + i * SIDE][k];
			b[i] = line[1][column + i * SIDE][k];
		}
		QL_UNROLL
		for (int i = 0; i < EACH; i++) {
			QL_UNROLL
			for (int j = 0; j < EACH; j++)
				s.product[i][j] = ql_dp4a<A, B>(a[i], b[j], s.product[i][j]);
			s.a[i] = zeros ? ql_dp4a<A, false>(a[i], 0x01010101u, s.a[i]) : 0;
			s.b[i] = zeros ? ql_dp4a<B, false>(b[i], 0x01010101u, s.b[i]) : 0;
		}
	}
}
