/* SPDX-License-Identifier: MIT
 * Codes of numbers under known scales, by the arithmetic of the CPU: affine ones by tensor/kernels/quantize_ref.c, those of a
 * table by tensor/grid.c, rounded at random by tensor/stochastic.c. Packed codes are written eight by eight, which fill whole
 * bytes; the padding of a row is 0.
 */
#ifndef QUOLL_GPU_KERNELS_ENCODE_H
#define QUOLL_GPU_KERNELS_ENCODE_H

#include "gpu/kernels/launch.h"
#include "gpu/kernels/ptx.h"
#include "gpu/kernels/rng.h"
#include "gpu/kernels/scales.h"
#include "gpu/kernels/table.h"

#define QL_ENCODE_THREADS 256

enum ql_encode_kind { QL_ENCODE_NEAREST, QL_ENCODE_RANDOM, QL_ENCODE_TABLE, QL_ENCODE_TABLE_RANDOM };

struct ql_encoding {
	ql_strided walk; /* elements; of packed results: rows */
	ql_scales scales;
	const void *in;
	void *out;
	unsigned long long *counts; /* of NaN and infinite numbers; NULL: not wanted */
	int32_t from, to;
	uint64_t seed, first; /* of random rounding */
	/* of packed results */
	int64_t length, step; /* elements of a row; from one to the next in memory */
	int64_t scale_step;   /* the same of scales; 0: a row has one */
	int64_t block;        /* elements under a scale along the row; 1 without blocks there */
	int64_t bytes;        /* of a row of the result */
};

/* ---- one code ---- */

/* The random number of the element at `position` in row-major order. */
struct ql_encode_words {
	uint64_t counter; /* of the words */
	uint32_t word[4];
};
QL_DEVICE float ql_encode_uniform(const ql_encoding &c, ql_encode_words &w, int64_t position)
{
	uint64_t counter = c.first + (uint64_t)position / 4;

	if (w.counter != counter) {
		ql_random_words(c.seed, counter, w.word);
		w.counter = counter;
	}
	uint32_t low = position & 1 ? w.word[1] : w.word[0], high = position & 1 ? w.word[3] : w.word[2];

	return (float)((position & 2 ? high : low) >> 8) * 0x1p-24f;
}

/* v, a whole number of steps, as a code. */
QL_DEVICE int32_t ql_encode_clamped(const ql_scales &s, float v, int32_t zero)
{
	float lo = (float)(s.lo - zero), hi = (float)(s.hi - zero);

	if (v != v)
		return zero;
	v = v < lo ? lo : v;
	v = v > hi ? hi : v;
	return (int32_t)v + zero;
}

struct ql_encode_scale {
	float scale, shift;
	int32_t zero;
};
QL_DEVICE ql_encode_scale ql_encode_scale_at(const ql_scales &s, int64_t i)
{
	return {ql_scale_at(s, i), s.shift ? ql_load_float(s.shift_type, s.shift, i) : 0.0f, ql_zero_at(s, i)};
}

template <int KIND>
QL_DEVICE int32_t ql_encode_one(const ql_encoding &c, const ql_table &t, const ql_encode_scale &s, ql_encode_words &w,
	float x, int64_t position)
{
	if (KIND == QL_ENCODE_TABLE)
		return ql_table_nearest(t, x, s.scale);
	if (KIND == QL_ENCODE_TABLE_RANDOM)
		return ql_table_random(t, x / s.scale, ql_encode_uniform(c, w, position));
	if (KIND == QL_ENCODE_NEAREST)
		return ql_encode_clamped(c.scales, rintf(x / s.scale), s.zero);
	float q = x / s.scale, down = floorf(q), u = ql_encode_uniform(c, w, position);

	return ql_encode_clamped(c.scales, down + (u < q - down ? 1.0f : 0.0f), s.zero);
}

QL_DEVICE void ql_encode_count(const ql_encoding &c, float x)
{
	if (c.counts && x - x != 0)
		atomicAdd(&c.counts[x == x], 1ull);
}

/* ---- whole bytes ---- */

template <int KIND> QL_DEVICE void ql_encode_elements(const ql_encoding &c, const ql_table &t)
{
	for (int64_t i = ql_thread(); i < c.walk.count; i += ql_threads()) {
		ql_encode_words w = {~0ull, {}};
		int64_t at[QL_STRIDED_MOST];
		float x;

		ql_strided_at(c.walk, i, at);
		ql_encode_scale s = ql_encode_scale_at(c.scales, at[1]);
		x = ql_load_f32(c.from, c.in, at[0]);
		if (c.scales.shift)
			x -= s.shift;
		ql_store_i64(c.to, c.out, i, ql_encode_one<KIND>(c, t, s, w, x, i));
		ql_encode_count(c, x);
	}
}

/* ---- packed ---- */

/* n <= 8 numbers from element `at` on, `step` apart. */
QL_DEVICE void ql_encode_load(const ql_encoding &c, int64_t at, int n, float x[8])
{
	bool together = n == 8 && c.step == 1;

	if (together && c.from == QL_E_float32 && ((uintptr_t)c.in + (uint64_t)at * 4) % 16 == 0) {
		uint4 a = ql_load_16(static_cast<const float *>(c.in) + at);
		uint4 b = ql_load_16(static_cast<const float *>(c.in) + at + 4);
		const uint32_t word[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};

		QL_UNROLL
		for (int k = 0; k < 8; k++)
			x[k] = ql_float_of(word[k]);
		return;
	}
	QL_UNROLL
	for (int k = 0; k < 8; k++)
		x[k] = k < n ? ql_load_f32(c.from, c.in, at + k * c.step) : 0.0f;
}

/* A thread for eight codes of a row. */
template <int KIND> QL_DEVICE void ql_encode_groups(const ql_encoding &c, const ql_table &t)
{
	const int width = ql_bits_of_packed(c.to);
	const int64_t each = (c.length + 7) / 8;

	for (int64_t i = ql_thread(); i < c.walk.count * each; i += ql_threads()) {
		int64_t row = i / each, column = i % each * 8, at[QL_STRIDED_MOST], known = -1;
		int n = c.length - column < 8 ? (int)(c.length - column) : 8;
		ql_encode_words w = {~0ull, {}};
		ql_encode_scale s = {};
		uint64_t field = 0;
		float x[8];

		ql_strided_at(c.walk, row, at);
		ql_encode_load(c, at[0] + column * c.step, n, x);
		QL_UNROLL
		for (int k = 0; k < 8; k++) {
			int64_t scale = at[1] + (column + k) / c.block * c.scale_step;

			if (k >= n - QL_BUG(encode_tail))
				continue;
			if (scale != known)
				s = ql_encode_scale_at(c.scales, scale);
			known = scale;
			if (c.scales.shift)
				x[k] -= s.shift;
			ql_encode_count(c, x[k]);
			field |= (uint64_t)((uint32_t)ql_encode_one<KIND>(
						    c, t, s, w, x[k], row * c.length + column + k) &
					    ((1u << width) - 1))
				 << k * width;
		}
		uint8_t *to = static_cast<uint8_t *>(c.out) + row * c.bytes + column / 8 * width;
		int64_t left = c.bytes - column / 8 * width;

		if (width == 4 && left >= 4 && (uintptr_t)to % 4 == 0) {
			*reinterpret_cast<uint32_t *>(to) = (uint32_t)field;
			continue;
		}
		for (int b = 0; b < width && b < left; b++)
			to[b] = (uint8_t)(field >> 8 * b);
	}
}

QL_KERNEL(QL_ENCODE_THREADS) encode(ql_encoding c)
{
	ql_encode_elements<QL_ENCODE_NEAREST>(c, ql_table{});
}
QL_KERNEL(QL_ENCODE_THREADS) encode_random(ql_encoding c)
{
	ql_encode_elements<QL_ENCODE_RANDOM>(c, ql_table{});
}
template <int KIND> QL_KERNEL(QL_ENCODE_THREADS) encode_packed(ql_encoding c)
{
	ql_encode_groups<KIND>(c, ql_table{});
}
template <int KIND, bool PACKED> QL_KERNEL(QL_ENCODE_THREADS) encode_table(ql_encoding c, ql_table_numbers numbers)
{
	QL_SHARED(struct ql_table_numbers, shared);
	ql_table t = ql_table_take(numbers, &shared);

	if (PACKED)
		ql_encode_groups<KIND>(c, t);
	else
		ql_encode_elements<KIND>(c, t);
}

/* ---- the call ---- */

/* Bytes of a row of a tensor of packed elements. */
static inline int64_t ql_packed_bytes(const struct ql_gpu_tensor *t)
{
	int element = ql_element_of(t->dtype), bits = ql_element_get(element).bits;

	return t->rank ? ql_packed_pitch(element, t->shape[t->rank - 1]) * bits / 8 : (bits + 7) / 8;
}

/* All elements of the memory of t, packed, in row-major order, with padded rows. */
static inline bool ql_packed_dense(const struct ql_gpu_tensor *t)
{
	int element = ql_element_of(t->dtype);
	int64_t length = t->rank ? t->shape[t->rank - 1] : 1, next = ql_packed_pitch(element, length), rows = 1;

	if (ql_count(t) == 0)
		return true;
	if (t->rank && length != 1 && t->stride[t->rank - 1] != 1)
		return false;
	for (int d = t->rank - 2; d >= 0; d--) {
		if (t->shape[d] != 1 && t->stride[d] != next)
			return false;
		next *= t->shape[d];
		rows *= t->shape[d];
	}
	return (uint64_t)(rows * ql_packed_bytes(t)) == t->bytes;
}

/* Fills what depends on the layout: of packed results the walk goes over rows. */
static inline void ql_encoding_walk(
	ql_encoding *e, const struct ql_gpu_tensor *in, const struct ql_gpu_codes *c, bool packed)
{
	int last = in->rank - 1;

	e->walk = ql_scales_axes(in, c);
	e->length = e->block = 1;
	if (packed && in->rank) {
		e->length = in->shape[last];
		e->step = e->walk.stride[0][last];
		e->scale_step = e->walk.stride[1][last];
		e->block = e->walk.cut == last ? e->walk.block : 1;
		e->walk.cut = e->walk.cut == last ? -1 : e->walk.cut;
		e->walk.count = e->length ? e->walk.count / e->length : 0;
		e->walk.shape[last] = 1;
	}
	ql_strided_join(&e->walk);
}

template <int KIND>
static inline cudaError_t ql_encode_plain(cudaStream_t stream, const ql_encoding &e, dim3 blocks, bool packed)
{
	dim3 threads(QL_ENCODE_THREADS);

	if (packed)
		return ql_launch_free(encode_packed<KIND>, blocks, threads, stream, e);
	return ql_launch_free(KIND == QL_ENCODE_RANDOM ? encode_random : encode, blocks, threads, stream, e);
}

template <int KIND>
static inline cudaError_t ql_encode_by_table(
	cudaStream_t stream, const ql_encoding &e, const ql_table_numbers &t, dim3 blocks, bool packed)
{
	dim3 threads(QL_ENCODE_THREADS);

	return packed ? ql_launch(encode_table<KIND, true>, blocks, threads, sizeof(t), stream, e, t)
		      : ql_launch(encode_table<KIND, false>, blocks, threads, sizeof(t), stream, e, t);
}

/* Encodes in->at into out->at under the params of out. */
static inline cudaError_t ql_encode_run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_tensor *in = call->in, *out = call->out;
	const struct ql_gpu_codes *c = out->codes;
	bool packed = !ql_element_whole(ql_element_of(out->dtype)), random = c->flags & QL_GPU_STOCHASTIC;
	ql_encoding e = {};
	cudaError_t error = cudaSuccess;
	dim3 blocks;

	ql_encoding_walk(&e, in, c, packed);
	e.scales = ql_scales_of(c);
	e.in = in->at;
	e.out = out->at;
	e.counts = reinterpret_cast<unsigned long long *>(c->counts);
	e.from = ql_element_of(in->dtype);
	e.to = ql_element_of(out->dtype);
	e.bytes = packed ? ql_packed_bytes(out) : 0;
	e.seed = call->seed;
	e.first = call->first;
	if (e.counts)
		error = cudaMemsetAsync(e.counts, 0, 2 * sizeof(*e.counts), place->stream);
	if (error || ql_count(in) == 0)
		return error;
	blocks = ql_blocks(e.walk.count * ((e.length + 7) / 8), QL_ENCODE_THREADS);
	if (!c->grid)
		return random ? ql_encode_plain<QL_ENCODE_RANDOM>(place->stream, e, blocks, packed)
			      : ql_encode_plain<QL_ENCODE_NEAREST>(place->stream, e, blocks, packed);
	ql_table_numbers t = ql_table_of(c);

	return random ? ql_encode_by_table<QL_ENCODE_TABLE_RANDOM>(place->stream, e, t, blocks, packed)
		      : ql_encode_by_table<QL_ENCODE_TABLE>(place->stream, e, t, blocks, packed);
}

#endif
