/* SPDX-License-Identifier: MIT
 * conv2d of 8-bit codes, for the kernels conv_i8_*: an implicit product of unfolded codes, in tiles of PIXELS pixels and
 * OUTPUTS outputs, with DEEP codes of k = (channel, tap) at a time in two stages of shared memory. The padding is the zero
 * point of x, which adds nothing (quant/integer/conv_unfold.c); what becomes of an exact sum is in product.h. A thread
 * gathers four codes of a pixel at a time, neighbours those of neighbouring pixels.
 *
 * Include it once and define `struct products` (the sums of a thread), multiply<A, B>(stage, products) and
 * keep(tiles, products) behind it, then include conv_i8_run.h. A, B: the codes of x and w are unsigned.
 */
#ifndef QUOLL_GPU_KERNELS_CONV_I8_H
#define QUOLL_GPU_KERNELS_CONV_I8_H

#include "gpu/kernels/conv.h"
#include "gpu/kernels/product.h"
#include "gpu/kernels/ptx.h"

#define THREADS 256
#define PIXELS 128
#define OUTPUTS 64
#define DEEP 64
#define PITCH (DEEP + 16) /* the rows of ldmatrix then lie in different banks */
#define WORDS (DEEP / 4)
#define A_WORDS (PIXELS * WORDS / THREADS) /* of a thread */
#define B_WORDS (OUTPUTS * WORDS / THREADS)

struct job {
	ql_conv_shape s;
	ql_code_product x; /* a: the pixels, b: the outputs of all groups */
	bool words;        /* four codes of an output can be read at once */
};

struct stage {
	uint8_t a[PIXELS][PITCH], b[OUTPUTS][PITCH];
};
struct tiles {
	union {
		struct stage stage[2];
		int32_t product[OUTPUTS][PIXELS + 4]; /* afterwards */
	};
	int32_t sum[PIXELS + OUTPUTS]; /* of the codes of each line */
	ql_tap tap[2][DEEP];           /* of the codes of a stage */
	ql_pixel pixel[PIXELS];
};

/* Codes of a stage on their way. */
struct on_the_way {
	uint32_t a[A_WORDS], b[B_WORDS];
};

/* The first `left` codes of the stage; 0 behind them. */
QL_DEVICE uint32_t four_of_pixel(
	const job &w, const ql_tap *tap, const ql_pixel &p, int64_t from, int32_t pad, int64_t left)
{
	const uint8_t *x = w.x.a.at + from;
	uint32_t word = 0;

	QL_UNROLL
	for (int e = 0; e < 4; e++) {
		int32_t code = 0;

		if (e < left)
			code = p.to >= 0 && ql_is_inside(w.s, p.y + tap[e].y, p.x + tap[e].x) ? x[tap[e].source] : pad;
		word |= (uint32_t)(code & 0xff) << 8 * e;
	}
	return word;
}

QL_DEVICE uint32_t four_of_output(const job &w, const ql_tap *tap, int64_t from, int64_t left)
{
	const uint8_t *b = w.x.b.at + from;
	uint32_t word = 0;

	if (w.words && left >= 4)
		return *reinterpret_cast<const uint32_t *>(b + tap[0].weight);
	QL_UNROLL
	for (int e = 0; e < 4; e++)
		if (e < left)
			word |= (uint32_t)b[tap[e].weight] << 8 * e;
	return word;
}

QL_DEVICE void fetch(const tiles &t, const job &w, const ql_tap *taps, int64_t group, int64_t j0, int32_t pad,
	int64_t left, on_the_way &to)
{
	const ql_pixel &p = t.pixel[threadIdx.x % PIXELS];
	int64_t from = p.from + group * w.s.channels * w.s.source.stride[1];

	QL_UNROLL
	for (int i = 0; i < A_WORDS; i++) {
		int k = ((int)threadIdx.x / PIXELS + i * (THREADS / PIXELS)) * 4;

		to.a[i] = four_of_pixel(w, taps + k, p, from, pad, left - k - QL_BUG(conv_i8_tail));
	}
	QL_UNROLL
	for (int i = 0; i < B_WORDS; i++) {
		int64_t line = j0 + (int)threadIdx.x / WORDS + i * (THREADS / WORDS);
		int k = (int)threadIdx.x % WORDS * 4;

		to.b[i] = line < w.s.rows ? four_of_output(w, taps + k, group * w.s.apart + line * w.s.line, left - k)
					  : 0;
	}
}

QL_DEVICE void put(struct stage &to, const on_the_way &from)
{
	QL_UNROLL
	for (int i = 0; i < A_WORDS; i++)
		*reinterpret_cast<uint32_t *>(
			&to.a[threadIdx.x % PIXELS][((int)threadIdx.x / PIXELS + i * (THREADS / PIXELS)) * 4]) =
			from.a[i];
	QL_UNROLL
	for (int i = 0; i < B_WORDS; i++)
		*reinterpret_cast<uint32_t *>(
			&to.b[(int)threadIdx.x / WORDS + i * (THREADS / WORDS)][(int)threadIdx.x % WORDS * 4]) =
			from.b[i];
}

QL_DEVICE void list_taps(tiles &t, const job &w, const ql_phase &phase, int now, int64_t k0)
{
	if ((int)threadIdx.x < DEEP && k0 + (int)threadIdx.x < w.x.k)
		t.tap[now][threadIdx.x] = ql_tap_of(w.s, phase, k0 + (int)threadIdx.x);
}

/* Adds the codes of one line of the stage: thread i has pixel i, thread PIXELS + j output j. */
template <bool A, bool B> QL_DEVICE int32_t add_line(const struct stage &s, int32_t sum)
{
	int line = (int)threadIdx.x;

	for (int k = 0; k < DEEP && line < PIXELS + OUTPUTS; k += 4) {
		uint32_t word =
			*reinterpret_cast<const uint32_t *>(line < PIXELS ? &s.a[line][k] : &s.b[line - PIXELS][k]);

		sum = line < PIXELS ? ql_dp4a<A, false>(word, 0x01010101u, sum)
				    : ql_dp4a<B, false>(word, 0x01010101u, sum);
	}
	return sum;
}

#endif
