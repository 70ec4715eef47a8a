/* SPDX-License-Identifier: MIT
 * Tiles of products of 16-bit floats, for the kernel gemm_f16_mma: how operands lie in shared memory, how they get there and
 * how they become registers of mma.m16n8k16.
 *
 * k is taken in panels of 32, two products each. Both operands number k in the same way, that of the lanes: lane 4 g + t has,
 * of a panel, numbers 8 t to 8 t + 7 of a line. So they are 16 bytes of floats, 8 bytes of codes of 8 bits or 4 bytes of codes
 * of 4 bits, read at once; of lines that lie across k, ldmatrix.trans turns the rows that the lanes name.
 *
 * Codes stay codes in shared memory. One becomes a float by being put into the mantissa of 1024 (float16), 128 (bfloat16, 4
 * bits) or 2^23; what that adds and the zero point are subtracted, all of it exact. Scales are applied to sums in float32,
 * but those that vary along k and not along the lines: they are multiplied into the number, which is rounded to 16 bits.
 */
#ifndef QUOLL_GPU_KERNELS_GEMM_F16_H
#define QUOLL_GPU_KERNELS_GEMM_F16_H

#include "gpu/kernels/float_product.h"
#include "gpu/kernels/ptx.h"

#define THREADS 256
#define WARPS (THREADS / 32)
#define PANEL 32
#define STAGES 4
#define COLUMNS 128 /* of a tile */

/* ALONG: floats, k in order in memory, or in no order. DOWN: floats whose neighbours are in different lines. */
enum form { ALONG, DOWN, CODES_8, CODES_4, CODES_8_DOWN };

template <int F> struct of {
	static constexpr int BITS = F == CODES_4 ? 4 : F == CODES_8 || F == CODES_8_DOWN ? 8 : 16;
	static constexpr bool CODES = F >= CODES_8, ACROSS = F == DOWN || F == CODES_8_DOWN, SCALES = CODES && !ACROSS;
	static constexpr int EACH = 128 / BITS;        /* elements in 16 bytes */
	static constexpr int BYTES = PANEL * BITS / 8; /* of a line of a panel */
};

struct job {
	ql_float_product x; /* of a and b as they are multiplied; b may be codes */
	bool turned;        /* its transposed form is the result */
	enum form a, b;
	bool wide_a, wide_b; /* 16 bytes can be read at once */
	int64_t part;        /* length of k */
	int32_t parts;
	float *sums;   /* (parts, batches, m, n); NULL: results are finished */
	uint32_t flip; /* in each byte or each half word of codes: makes signed codes unsigned */
	int32_t above; /* what that adds to them */
	int32_t group; /* CODES_8, CODES_4: 2^group panels of a stage are under one scale */
	bool varies;   /* scales vary along k */
};

/* Operand of LINES lines of a stage: panels of lines of bytes; or, across, rows of k, of which 16 bytes at c are at
 * c ^ swizzle. */
template <int F, int LINES, int PANELS> struct side {
	unsigned char at[PANELS * LINES * of<F>::BYTES];
};
/* The scales of a stage, and what is subtracted from codes: of each column in each group, or of each k. */
template <int N> struct parameters {
	float scale[N];
	uint32_t base[N]; /* a pair of floats of 16 bits, or a float32 */
};
template <> struct parameters<0> {
};

/* ROWS x COLUMNS results by warps of DOWN x (COLUMNS / ACROSS); I x J products of a warp. */
template <bool BF, int FA, int FB, int R, int P> struct tiling {
	static constexpr bool BF16 = BF;
	static constexpr int A = FA, B = FB, ROWS = R, PANELS = P, DEEP = P * PANEL;
	static constexpr int WARPS_DOWN = R > 32 ? 2 : 1, WARPS_ACROSS = WARPS / WARPS_DOWN;
	static constexpr int I = R / WARPS_DOWN / 16, J = COLUMNS / WARPS_ACROSS / 8;
	static constexpr int SCALES = !of<FB>::CODES ? 0 : of<FB>::ACROSS ? P * PANEL : COLUMNS * P;
	struct stage {
		alignas(128) side<FA, R, P> a;
		alignas(128) side<FB, COLUMNS, P> b;
		parameters<SCALES> p;
	};
	struct memory {
		union {
			stage stages[STAGES];
			float product[R][COLUMNS + 4]; /* afterwards */
		};
	};
};

/* ---- from global to shared memory ---- */

/* The rows that lanes name together, and those that are copied together, then lie in different banks. */
QL_DEVICE int swizzle(int k)
{
	return (k & 1) | (k >> 3 & 3) << 1;
}

/* Bytes of the 16 at chunk c of line (across: of row) `line`. */
template <int F, int LINES> QL_DEVICE int place_of(int line, int c)
{
	const int chunks = of<F>::BYTES / 16;

	if (of<F>::ACROSS)
		return line * LINES * of<F>::BITS / 8 + (c ^ swizzle(line)) * 16;
	return (c / chunks * LINES + line) * of<F>::BYTES + c % chunks * 16;
}

/* n elements from element `at` on, `step` apart, and zeros behind them, one by one. */
template <int F> QL_DEVICE void gather(unsigned char *to, const uint8_t *from, int64_t at, int64_t step, int n)
{
	QL_ROLLED
	for (int i = 0; i < 16; i++) {
		uint8_t byte = 0;

		if (of<F>::BITS == 16 && i / 2 < n)
			byte = from[(at + i / 2 * step) * 2 + i % 2];
		if (of<F>::BITS == 8 && i < n)
			byte = from[at + i * step];
		if (of<F>::BITS == 4 && 2 * i < n)
			byte = from[at / 2 + i];
		to[i] = byte;
	}
}

/* k from `begin` to below `end` of lines first .. first + LINES - 1; 0 beyond the ends. */
template <int F, int LINES, int PANELS>
QL_DEVICE void fetch(side<F, LINES, PANELS> &to, const ql_float_lines &l, bool wide, int64_t batch, int32_t first,
	int32_t lines, int32_t begin, int32_t end)
{
	const bool across = of<F>::ACROSS;
	const int deep = PANELS * PANEL, each = of<F>::EACH;
	const int chunks = (across ? LINES : deep) / each, all = (across ? deep : LINES) * chunks;
	const uint8_t *from = static_cast<const uint8_t *>(l.at);

	QL_ROLLED
	for (int i = 0; i < (all + THREADS - 1) / THREADS; i++) {
		int e = (int)threadIdx.x + i * THREADS, row = e / chunks, c = e % chunks;
		int32_t line = first + (across ? c * each : row), k = begin + (across ? row : c * each);
		int32_t left = across ? lines - line : end - k, n = left < 0 ? 0 : left < each ? left : each;
		int64_t at = batch + line * l.line + k * l.step;
		unsigned char *place = &to.at[place_of<F, LINES>(row, c)];

		if (all % THREADS && e >= all)
			break;
		if (across ? k >= end : line >= lines && !QL_BUG(half_line_bound))
			n = 0;
		if (QL_BUG(half_tail))
			n = n ? each : 0;
		if (wide)
			ql_async_16(place, n ? from + at * of<F>::BITS / 8 : from, (n * of<F>::BITS + 7) / 8);
		else
			gather<F>(place, from, n ? at : 0, across ? l.line : l.step, n);
	}
}

/* ---- scales ---- */

/* What is subtracted from codes that have been put into a mantissa, with the zero point. */
template <bool BF16, int F> QL_DEVICE uint32_t base_of(int32_t zero)
{
	if (F == CODES_8 && !BF16)
		return ql_pair<false>((float)(-1024 - zero), (float)(-1024 - zero));
	if (F == CODES_4)
		return ql_pair<BF16>((float)((BF16 ? -128 : -1024) - zero), (float)((BF16 ? -128 : -1024) - zero));
	return ql_bits_of(-0x1p23f - (float)zero);
}

struct scale_of_thread {
	float scale;
	uint32_t base;
};

/* Entry e of the parameters of the stage at k0. */
template <typename X>
QL_DEVICE scale_of_thread scale_at(const job &w, int64_t first_scale, int e, int32_t j0, int32_t k0, int32_t end)
{
	const ql_float_lines &b = w.x.b;
	const bool across = of<X::B>::ACROSS;
	int32_t line = across ? j0 : j0 + e % COLUMNS, k = across ? k0 + e : k0 + (e / COLUMNS << w.group) * PANEL;
	int64_t at;

	if (line >= w.x.n || k >= end)
		return {0, base_of<X::BF16, X::B>(0)};
	at = first_scale + (across ? 0 : ql_scale_step(b.scale_line, (uint32_t)line)) +
	     ql_scale_step(b.scale_step, (uint32_t)k);
	return {across && !w.varies ? 1 : ql_scale_at(b.scales, at),
		base_of<X::BF16, X::B>(ql_zero_at(b.scales, at) + w.above)};
}

/* How many parameters a stage has in use, and at most for each thread. */
template <typename X> QL_DEVICE int parameters_in(const job &w)
{
	return of<X::B>::ACROSS ? X::SCALES : X::SCALES >> w.group;
}
template <typename X> struct scales_of_thread {
	static constexpr int MOST = (X::SCALES + THREADS - 1) / THREADS;
	scale_of_thread of[MOST > 1 ? MOST : 1];
};

template <typename X>
QL_DEVICE void read_scales(
	scales_of_thread<X> &to, const job &w, int64_t first_scale, int32_t j0, int32_t k0, int32_t end)
{
	QL_UNROLL
	for (int i = 0; i < scales_of_thread<X>::MOST; i++) {
		int e = (int)threadIdx.x + i * THREADS;

		if (e < parameters_in<X>(w))
			to.of[i] = scale_at<X>(w, first_scale, e, j0, k0, end);
	}
}
template <typename X>
QL_DEVICE void put_scales(parameters<X::SCALES> &to, const job &w, const scales_of_thread<X> &from)
{
	QL_UNROLL
	for (int i = 0; i < scales_of_thread<X>::MOST; i++) {
		int e = (int)threadIdx.x + i * THREADS;

		if (e < parameters_in<X>(w)) {
			to.scale[e] = from.of[i].scale;
			to.base[e] = from.of[i].base;
		}
	}
}

/* ---- from shared memory to registers ---- */

template <typename V> QL_DEVICE V read(const unsigned char *at)
{
	return *reinterpret_cast<const V *>(at);
}

/* Of two products: numbers of rows `row` + g and + 8. */
template <int F, int LINES, int PANELS>
QL_DEVICE void load_a(uint32_t (*to)[4], const side<F, LINES, PANELS> &from, int panel, int row)
{
	int lane = (int)threadIdx.x % 32, r = lane % 8, m = lane / 8;

	if (of<F>::ACROSS) {
		QL_UNROLL
		for (int h = 0; h < 2; h++) {
			int k = panel * PANEL + r / 2 * 8 + r % 2 + m / 2 * 2 + h * 4;

			ql_load_turned(to[h], &from.at[place_of<F, LINES>(k, row / 8 + m % 2)]);
		}
	} else {
		const unsigned char *at = &from.at[(panel * LINES + row + lane / 4) * of<F>::BYTES + lane % 4 * 16];
		uint4 low = read<uint4>(at), high = read<uint4>(at + 8 * of<F>::BYTES);

		to[0][0] = low.x, to[0][1] = high.x, to[0][2] = low.y, to[0][3] = high.y;
		to[1][0] = low.z, to[1][1] = high.z, to[1][2] = low.w, to[1][3] = high.w;
	}
}

/* Byte i of codes as 2^23 plus it */
QL_DEVICE float magic_of(uint32_t codes, int i)
{
	return ql_float_of(ql_permute(codes, 0x4b000000u, 0x7540u | (uint32_t)i));
}

/* Bytes i and i + 2 of codes, each with its own scale. */
template <bool BF16> QL_DEVICE uint32_t decode_bytes(uint32_t codes, int i, const float base[2], const float scale[2])
{
	return ql_pair<BF16>((magic_of(codes, i) + base[0]) * scale[0], (magic_of(codes, i + 2) + base[1]) * scale[1]);
}

/* Eight codes in the order of k. */
template <bool BF16> QL_DEVICE void decode_8(uint32_t to[4], uint2 codes, uint32_t flip, uint32_t base)
{
	QL_UNROLL
	for (int i = 0; i < 4; i++) {
		uint32_t word = (i < 2 ? codes.x : codes.y) ^ flip;

		if (BF16) {
			float first = magic_of(word, i % 2 * 2) + ql_float_of(base);
			float second = magic_of(word, i % 2 * 2 + 1) + ql_float_of(base);

			/* whole numbers to 256: the other bits are 0 */
			to[i] = ql_permute(ql_bits_of(first), ql_bits_of(second), 0x7632);
		} else {
			to[i] = ql_fma_pair<false>(
				ql_permute(word, 0x64646464u, i % 2 ? 0x4342u : 0x4140u), 0x3c003c00u, base);
		}
	}
}
template <bool BF16> QL_DEVICE void decode_4(uint32_t to[4], uint32_t codes, uint32_t flip, uint32_t base)
{
	const uint32_t magic = BF16 ? 0x43004300u : 0x64006400u, one = BF16 ? 0x3f803f80u : 0x3c003c00u;
	uint32_t odd = codes >> 4;

	QL_UNROLL
	for (int i = 0; i < 4; i++) {
		uint32_t pair = ql_permute(codes, odd, 0x4400u + (uint32_t)i * 0x1111u);

		to[i] = ql_fma_pair<BF16>((pair & 0x000f000fu) ^ (magic | flip), one, base);
	}
}

/* Of two products for all columns of a warp: numbers of column g of each 8. CODES_8_DOWN: the eights are the even and the odd
 * ones of 16 columns. */
template <typename X>
QL_DEVICE void load_b(uint32_t (*to)[4], const typename X::stage &s, const job &w, int panel, int column)
{
	const auto &from = s.b;
	int lane = (int)threadIdx.x % 32, r = lane % 8, m = lane / 8, t = lane % 4;

	if constexpr (X::B == DOWN) {
		QL_UNROLL
		for (int q = 0; q < X::J; q++) { /* 16 columns of a product */
			int k = panel * PANEL + r / 2 * 8 + r % 2 + m % 2 * 2 + q % 2 * 4;
			uint32_t got[4];

			ql_load_turned(got, &from.at[place_of<X::B, COLUMNS>(k, column / 8 + q / 2 * 2 + m / 2)]);
			to[q / 2 * 2][q % 2 * 2] = got[0], to[q / 2 * 2][q % 2 * 2 + 1] = got[1];
			to[q / 2 * 2 + 1][q % 2 * 2] = got[2], to[q / 2 * 2 + 1][q % 2 * 2 + 1] = got[3];
		}
	} else if constexpr (X::B == CODES_8_DOWN) {
		uint32_t got[X::J / 2][4];

		QL_UNROLL
		for (int j = 0; j < X::J / 2; j++) {
			int k = panel * PANEL + r / 2 * 8 + r % 2 + m * 2;

			ql_load_turned(got[j], &from.at[place_of<X::B, COLUMNS>(k, column / 16 + j)]);
		}
		QL_UNROLL
		for (int i = 0; i < 4; i++) {
			int k = panel * PANEL + t * 8 + 2 * i;
			float base[2] = {ql_float_of(s.p.base[k]), ql_float_of(s.p.base[k + 1])};
			float scale[2] = {s.p.scale[k], s.p.scale[k + 1]};

			QL_UNROLL
			for (int j = 0; j < X::J; j++)
				to[j][i] = decode_bytes<X::BF16>(got[j / 2][i] ^ w.flip, j % 2, base, scale);
		}
	} else {
		QL_UNROLL
		for (int j = 0; j < X::J; j++) {
			int line = column + j * 8 + lane / 4;
			const unsigned char *at =
				&from.at[(panel * COLUMNS + line) * of<X::B>::BYTES + t * of<X::B>::BITS];

			if constexpr (X::B == ALONG) {
				uint4 v = read<uint4>(at);

				to[j][0] = v.x, to[j][1] = v.y, to[j][2] = v.z, to[j][3] = v.w;
			} else {
				uint32_t base = s.p.base[(panel >> w.group) * COLUMNS + line];

				if constexpr (X::B == CODES_8)
					decode_8<X::BF16>(to[j], read<uint2>(at), w.flip, base);
				else
					decode_4<X::BF16>(to[j], read<uint32_t>(at), w.flip, base);
			}
		}
	}
}

/* Adds the products of a panel. */
template <typename X>
QL_DEVICE void multiply(const typename X::stage &s, const job &w, int panel, int row, int column, float (*sum)[X::J][4])
{
	uint32_t b[X::J][4];

	load_b<X>(b, s, w, panel, column);
	QL_UNROLL
	for (int i = 0; i < X::I; i++) {
		uint32_t a[2][4];

		load_a(a, s.a, panel, row + i * 16);
		QL_UNROLL
		for (int h = 0; h < 2; h++) {
			QL_UNROLL
			for (int j = 0; j < X::J; j++)
				ql_mma_16<X::BF16>(sum[i][j], a[h], &b[j][2 * h]);
		}
	}
}

/* Column, of those of the warp, of sum e of product j. */
template <typename X> QL_DEVICE int column_of(int j, int e)
{
	int c = (int)threadIdx.x % 4 * 2 + e % 2;

	return X::B == CODES_8_DOWN ? j / 2 * 16 + c * 2 + j % 2 : j * 8 + c;
}

/* Adds the sums of a group, times its scales. */
template <typename X>
QL_DEVICE void add_group(
	const typename X::stage &s, int group, int column, float (*part)[X::J][4], float (*sum)[X::J][4])
{
	QL_UNROLL
	for (int j = 0; j < X::J; j++) {
		QL_UNROLL
		for (int e = 0; e < 2; e++) {
			float scale = s.p.scale[group * COLUMNS + column + column_of<X>(j, e)];

			QL_UNROLL
			for (int i = 0; i < X::I; i++) {
				sum[i][j][e] = __fmaf_rn(scale, part[i][j][e], sum[i][j][e]);
				sum[i][j][e + 2] = __fmaf_rn(scale, part[i][j][e + 2], sum[i][j][e + 2]);
				part[i][j][e] = part[i][j][e + 2] = 0;
			}
		}
	}
}

#endif
