/* SPDX-License-Identifier: MIT
 * Lines of 8-bit codes in shared memory, and their products by dp4a. Include it behind THREADS, TILE (lines), SIDE (threads of a row
 * of the block), EACH (results of a thread on a side), WORDS (of a line, four codes each).
 */
/* Codes k0 .. k0 + 3 of a line, unsigned ones less 128; 0 beyond its end. */
QL_DEVICE uint32_t four(const ql_code_matrix &l, const uint8_t *line, int64_t k0, int64_t k)
{
	uint32_t word = 0;

	for (int i = 0; i < 4; i++)
		if (k0 + i < k + QL_BUG(dp4a_tail))
			word |= (line[(k0 + i) * l.step] ^ (l.is_unsigned ? 128u : 0)) << 8 * i;
	return word;
}

/* Puts 16 codes of a line, the same, to `to`. */
QL_DEVICE void put_16(uint32_t *to, const ql_code_matrix &l, const uint8_t *line, int64_t k0, int64_t k)
{
	uint32_t flip = l.is_unsigned ? 0x80808080u : 0;
	uint4 v;

	if (l.wide && k0 + 16 <= k) {
		v = ql_load_16(line + k0);
		to[0] = v.x ^ flip;
		to[1] = v.y ^ flip;
		to[2] = v.z ^ flip;
		to[3] = v.w ^ flip;
		return;
	}
	QL_ROLLED
	for (int i = 0; i < 4; i++)
		to[i] = four(l, line, k0 + 4 * i, k);
}

struct sums {
	int32_t product[EACH][EACH], a[EACH], b[EACH];
};

QL_DEVICE void multiply(const uint32_t (*line)[TILE][WORDS + 1], bool lines, sums &s)
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
				s.product[i][j] = ql_dp4a<false, false>(a[i], b[j], s.product[i][j]);
			s.a[i] = lines ? ql_dp4a<false, false>(a[i], 0x01010101u, s.a[i]) : 0;
			s.b[i] = lines ? ql_dp4a<false, false>(b[i], 0x01010101u, s.b[i]) : 0;
		}
	}
}
